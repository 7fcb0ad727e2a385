"""`lowwater groups reset`."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING

import click

from lowwater.cli.connecting import Connected, Connection, connection_options
from lowwater.cli.groups.changing import Doing, doing_options, plans_by_group, show_and_do, topic_option
from lowwater.cli.groups.choosing import all_of_them, complete_groups
from lowwater.cli.groups.importing import offsets_of_file
from lowwater.cli.output import Output, output_options, print_csv
from lowwater.cli.starting import zone_option

if TYPE_CHECKING:
    from lowwater.client.errors import ClientError, UnknownTopicError
    from lowwater.lag.resetting import Plan, Selection, Target

_SHIFT = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


def _shift(ctx: click.Context, param: click.Parameter, text: str | None) -> int | None:
    if text is None or _SHIFT.fullmatch(text):
        return None if text is None else int(text)
    raise click.BadParameter(f"{text!r} is no number of offsets, such as +10 or -10", ctx, param)


@click.command("reset")
@click.argument("groups", metavar="[GROUP]…", nargs=-1, shell_complete=complete_groups)
@click.option("--all-groups", is_flag=True, help="All groups there are.")
@topic_option
@click.option("--to", metavar="POSITION", help="Where to go on: earliest, latest, -1h, @2026-11-01T00:00Z, 17, -5 …")
@click.option("--shift", metavar="±N", callback=_shift, help="So many offsets on (+10) or back (-10) from where it is.")
@click.option("--from-file", metavar="FILE", help="Offsets one by one, from a CSV file; - is stdin.")
@click.option("--export", "exports", is_flag=True, help="Print the new offsets as such a file, and change nothing.")
@zone_option
@doing_options
@output_options
@connection_options
def command(
    groups: tuple[str, ...],
    all_groups: bool,
    selection: Selection,
    to: str | None,
    shift: int | None,
    from_file: str | None,
    exports: bool,
    zone: tzinfo | None,
    doing: Doing,
    output: Output,
    connection: Connection,
) -> None:
    """Set where groups go on reading. Shows old and new offsets; with --execute, sets them.

    \b
      lowwater groups reset billing --topic orders --to earliest
      lowwater groups reset billing --topic orders:0,2 --to -1h --execute
      lowwater groups reset billing --all-topics --shift -100 --execute
      lowwater groups reset billing --topic orders --to stored+1 --execute
      lowwater groups reset --from-file offsets.csv --execute

    A POSITION is one of: earliest, latest, stored, stored+5, 17 (an offset), -5 (before the end), -1h (ago), today,
    @2026-11-01T00:00Z (a moment), s@1793491200000 (in ms), with fallbacks stored|-1h|earliest, and topic by topic
    orders=stored,clicks=-1h. What lies outside the log becomes its first or last offset.

    A group that has members is left alone: stop them first. The old offsets are kept, `lowwater groups undo` brings
    them back. The file has lines topic,partition,offset or group,topic,partition,offset, as kafka-consumer-groups.sh
    writes them.
    """
    _check(groups, all_groups, selection, (to, shift, from_file))
    is_complete = True
    with connection.open() as connected:
        if from_file is not None:
            plans = plans_by_group(connected, offsets_of_file(from_file, groups), "reset")
        else:
            names = list(dict.fromkeys(groups))
            if all_groups:
                names, is_complete = all_of_them(connected)
            plans = _plans(connected, names, _target(to, shift, zone), selection)
        if exports:
            _export(plans)
        else:
            show_and_do(connected, plans, doing, output)
    if not is_complete:
        sys.exit(1)


def _check(
    groups: Sequence[str], all_groups: bool, selection: Selection, targets: tuple[str | int | None, ...]
) -> None:
    from_file = targets[2]
    if sum(each is not None for each in targets) != 1:
        raise click.UsageError("say where to: one of --to, --shift and --from-file")
    if all_groups and (groups or from_file is not None):
        raise click.UsageError("--all-groups means every group: name none, and give no file")
    if from_file is not None and (selection.topics or selection.is_all):
        raise click.UsageError("the file says which partitions: --topic and --all-topics have no meaning beside it")
    if from_file is None and not (groups or all_groups):
        raise click.UsageError("which groups? Name them, or say --all-groups")
    if from_file is None and not (selection.topics or selection.is_all):
        raise click.UsageError("which topics? Say --topic TOPIC, or --all-topics for all that have offsets")


def _target(to: str | None, shift: int | None, zone: tzinfo | None) -> Target:
    from lowwater.errors import ConfigError
    from lowwater.lag.resetting import Target, read_target

    if to is None:
        return Target(shift=shift)
    try:
        return read_target(to, zone, "--zone")
    except ConfigError as error:
        raise click.BadParameter(str(error), param_hint="--to") from None


def _plans(connected: Connected, names: Sequence[str], target: Target, selection: Selection) -> list[Plan]:
    from lowwater.client.errors import UnknownTopicError
    from lowwater.lag.resetting import check_target, plan_reset

    try:
        plans = [connected.run(plan_reset(connected.cluster, name, target, selection)) for name in names]
    except UnknownTopicError as error:
        raise _unknown(connected, error) from None
    check_target(target, plans)
    return plans


def _unknown(connected: Connected, error: UnknownTopicError) -> ClientError:
    """With the topics that sound alike. A partition that is not there is told as it is."""
    from lowwater.cli.topics.choosing import not_there
    from lowwater.client.admin.topics import list_topics
    from lowwater.client.errors import ClientError

    try:
        known = connected.run(list_topics(connected.cluster, internal=True))
    except ClientError:
        return error
    return error if error.topic is None or error.topic in known else not_there([error.topic], known)


def _export(plans: Sequence[Plan]) -> None:
    from lowwater.lag.offsets_csv import to_csv

    offsets = {
        plan.group: {move.partition: move.after.offset for move in plan.moves if move.after is not None}
        for plan in plans
    }
    print_csv(to_csv(offsets))
