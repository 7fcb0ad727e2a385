"""`lowwater groups delete-offsets`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lowwater.cli.connecting import Connection, connection_options
from lowwater.cli.groups.changing import Doing, doing_options, show_and_do, topic_option
from lowwater.cli.groups.choosing import complete_groups, named
from lowwater.cli.output import Output, output_options

if TYPE_CHECKING:
    from lowwater.lag.resetting import Selection


@click.command("delete-offsets")
@click.argument("groups", metavar="GROUP…", nargs=-1, required=True, shell_complete=complete_groups)
@topic_option
@doing_options
@output_options
@connection_options
def command(
    groups: tuple[str, ...], selection: Selection, doing: Doing, output: Output, connection: Connection
) -> None:
    """Delete the offsets of some topics, so that the group begins there as if it had never read them.

    Shows what goes; with --execute, does it. Its members may go on reading other topics, but not these.
    """
    from lowwater.lag.resetting import plan_delete_offsets

    if not (selection.topics or selection.is_all):
        raise click.UsageError("which topics? Say --topic TOPIC, or --all-topics for all that have offsets")
    with connection.open() as connected:
        names = named(connected, groups)
        plans = [connected.run(plan_delete_offsets(connected.cluster, name, selection)) for name in names]
        show_and_do(connected, plans, doing, output)
