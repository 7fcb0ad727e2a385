"""`lowwater groups delete`."""

from __future__ import annotations

import click

from lowwater.cli.connecting import Connection, connection_options
from lowwater.cli.groups.changing import Doing, doing_options, show_and_do
from lowwater.cli.groups.choosing import complete_groups, named
from lowwater.cli.output import Output, output_options


@click.command("delete")
@click.argument("groups", metavar="GROUP…", nargs=-1, required=True, shell_complete=complete_groups)
@doing_options
@output_options
@connection_options
def command(groups: tuple[str, ...], doing: Doing, output: Output, connection: Connection) -> None:
    """Delete groups with all they have committed. Shows what goes; with --execute, does it.

    A group that has members is left alone. `lowwater groups undo` brings the offsets back.
    """
    from lowwater.lag.resetting import plan_delete

    with connection.open() as connected:
        plans = [connected.run(plan_delete(connected.cluster, name)) for name in named(connected, groups)]
        show_and_do(connected, plans, doing, output)
