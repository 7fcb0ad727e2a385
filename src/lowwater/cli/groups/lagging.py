"""`lowwater groups lag`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from lowwater.cli.connecting import PATIENCE, Connected, Connection, connection_options
from lowwater.cli.groups.choosing import complete_groups, named
from lowwater.cli.groups.figures import FLAT, GROUPS, PARTITIONS, group_row, headline, useful
from lowwater.cli.output import Output, output_options, print_table
from lowwater.cli.printing import printable, tell
from lowwater.cli.topics.choosing import is_pattern

if TYPE_CHECKING:
    from lowwater.lag.report import GroupLag, Report

WRONG = 3
# A broker that is down must not hold up the others for long.
IMPATIENCE = {**PATIENCE, "default.api.timeout.ms": "6000", "socket.connection.setup.timeout.ms": "3000"}


def span_of(ctx: click.Context, param: click.Parameter, text: str | None) -> int:
    """A duration as people write it, in ms; 0 when none is given."""
    from lowwater.positions.grammar import PositionError, parse_start
    from lowwater.positions.position import Ago

    if text is None:
        return 0
    try:
        [choice] = parse_start(f"-{text}").choices
    except (PositionError, ValueError):
        choice = None
    if not isinstance(choice, Ago):
        raise click.BadParameter(f"{text!r} is no duration; write 30s, 5m, 1h30m", ctx, param)
    return choice.duration_ms


@click.command("lag")
@click.argument("groups", metavar="[GROUP]…", nargs=-1, shell_complete=complete_groups)
@click.option("--allowed", metavar="RECORDS", type=click.IntRange(0), default=0, show_default=True,
              help="A lag of so many records is well.")  # fmt: skip
@click.option("--max-time-lag", "time_lag_max_ms", metavar="DURATION", callback=span_of,
              help="Exit with 3 when a partition is further behind than this, such as 5m.")  # fmt: skip
@click.option("--watch-for", "watch_for_ms", metavar="DURATION", callback=span_of,
              help="Look for so long, such as 30s, to see rates and whether lag shrinks.")  # fmt: skip
@output_options
@connection_options
def command(
    groups: tuple[str, ...],
    allowed: int,
    time_lag_max_ms: int,
    watch_for_ms: int,
    output: Output,
    connection: Connection,
) -> None:
    """Show how far groups are behind: in records, in time, and whether they get on.

    A GROUP is a name, a pattern such as 'billing*', or a regular expression that begins with ^. Without one, all groups
    are shown, a line each.

    LAG is how many offsets are left to read. TIME LAG is the age of the record that is read next, as the log has it.
    STATUS is by the last 10 commits: OK, WARN (lag never shrinks), STALL (it commits, but does not move), STOP (it
    does not commit any more), REWIND (offsets went back). What is not known is shown as – and is null in JSON.

    Exit codes: 0 all is well; 3 a group is not; 1 something could not be asked.
    """
    from lowwater.lag.collecting import report

    with connection.open(IMPATIENCE) as connected:
        names = _names(connected, groups)
        found = connected.run(report(connected.cluster, names, allowed=allowed, watch_for_ms=watch_for_ms))
    _print(found, output, groups)
    for fault in found.faults:
        tell(f"{fault.where}: {fault.what}")
    if found.faults:
        sys.exit(1)
    if found.is_wrong or _is_late(found, time_lag_max_ms):
        sys.exit(WRONG)


def _names(connected: Connected, groups: tuple[str, ...]) -> list[str] | None:
    if not groups:
        return None
    return named(connected, groups)


def _is_late(found: Report, time_lag_max_ms: int) -> bool:
    late = (group.time_lag_ms for group in found.groups.values() if group.time_lag_ms is not None)
    return bool(time_lag_max_ms) and any(each > time_lag_max_ms for each in late)


def _print(found: Report, output: Output, asked: tuple[str, ...]) -> None:
    groups = list(found.groups.values())
    if output.is_json:
        documents = [group.document() for group in groups]
        output.document(documents[0] if _is_one(asked, documents) else documents)
    elif output.is_csv:
        output.rows(FLAT, [_flat(group, one.document()) for group in groups for one in group.partitions])
    elif not asked:
        rows = [group_row(group) for group in groups]
        output.rows(useful(GROUPS, rows), rows)
        if not groups:
            tell("there are no groups")
    else:
        for group in groups:
            show(group)


def _is_one(asked: tuple[str, ...], documents: list[dict[str, Any]]) -> bool:
    """One group that was named is the document itself; else it is a list of them."""
    return len(asked) == len(documents) == 1 and (documents[0]["group"] == asked[0] or not is_pattern(asked[0]))


def _flat(group: GroupLag, partition: dict[str, Any]) -> dict[str, Any]:
    return {"group": group.group, "state": group.state, **partition}


def show(group: GroupLag) -> None:
    """One group with its partitions, for people."""
    click.echo(headline(group))
    if group.partitions:
        rows = [one.document() for one in group.partitions]
        print_table(useful(PARTITIONS, rows), rows, indent=2)
    if group.lineages:
        click.echo(f"  follows Spark: lineage {', '.join(group.lineages)}")
    click.echo(f"  recommended: {printable(group.fault or group.recommendation.text)}")
