"""`lowwater groups undo`."""

from __future__ import annotations

import click

from lowwater.cli.connecting import Connection, connection_options
from lowwater.cli.groups.changing import Doing, doing_options, show_and_do
from lowwater.cli.groups.choosing import complete_groups
from lowwater.cli.output import Output, output_options


@click.command("undo")
@click.argument("groups", metavar="GROUP…", nargs=-1, required=True, shell_complete=complete_groups)
@click.option(
    "--change", metavar="ID", help="Which change, as `lowwater groups history` shows it.  [default: the last]"
)
@doing_options
@output_options
@connection_options
def command(groups: tuple[str, ...], change: str | None, doing: Doing, output: Output, connection: Connection) -> None:
    """Bring back the offsets from before the last change, or from before another one.

    Exactly: with their notes and leader epochs, and without an offset where there was none. It works from any machine,
    since the old offsets are kept in the cluster. An undo is a change as well: undone again, it is as after the change.
    """
    from lowwater.lag.resetting import plan_undo

    names = list(dict.fromkeys(groups))
    if change is not None and len(names) > 1:
        raise click.UsageError("a change is one of one group: name that one")
    with connection.open() as connected:
        plans = [connected.run(plan_undo(connected.cluster, name, change)) for name in names]
        show_and_do(connected, plans, doing, output)
