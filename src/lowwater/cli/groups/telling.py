"""`lowwater groups history`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lowwater.cli.connecting import Connection, connection_options
from lowwater.cli.groups.choosing import complete_groups
from lowwater.cli.output import Column, Output, Row, output_options
from lowwater.cli.pipeline_progress import moment
from lowwater.cli.printing import number, tell

if TYPE_CHECKING:
    from lowwater.lag.changes import Change

COLUMNS = (
    Column("id", "CHANGE"),
    Column("at_ms", "WHEN (UTC)", moment),
    Column("group", "GROUP"),
    Column("verb", "WHAT"),
    Column("count", "PARTITIONS", number, is_number=True, spare=2),
    Column("who", "WHO"),
    Column("undoes", "UNDOES", spare=1),
    Column("outcome", "OUTCOME"),
)


@click.command("history")
@click.argument("groups", metavar="[GROUP]…", nargs=-1, shell_complete=complete_groups)
@output_options
@connection_options
def command(groups: tuple[str, ...], output: Output, connection: Connection) -> None:
    """List changes of offsets that were made with these tools, the newest first: when, by whom, and what.

    Each can be undone, for a year. OUTCOME is not known of a change whose maker was stopped in the midst of it. --json
    has the old and new offsets.
    """
    from lowwater.lag.journal import changes

    with connection.open() as connected:
        found = connected.run(changes(connected.cluster, groups or None))
    if output.is_json:
        output.document([change.document() for change in found])
        return
    output.rows(COLUMNS, [_row(change) for change in found])
    if not found and output.is_for_people:
        tell("nothing was changed here")


def _row(change: Change) -> Row:
    return {**change.document(), "count": len(change.before)}
