"""`lowwater groups list`."""

from __future__ import annotations

import sys

import click

from lowwater.cli.connecting import Connection, connection_options
from lowwater.cli.groups.choosing import complete_groups, listed
from lowwater.cli.output import Column, Output, output_options
from lowwater.cli.printing import printable, tell

COLUMNS = (
    Column("group", "GROUP"),
    Column("state", "STATE"),
    Column("kind", "KIND"),
    Column("protocol", "PROTOCOL"),
)


@click.command("list")
@click.argument("groups", metavar="[GROUP]…", nargs=-1, shell_complete=complete_groups)
@click.option("--state", "states", metavar="STATE", multiple=True, help="Only those in this state. Repeatable.")
@click.option("-q", "--quiet", is_flag=True, help="Only the names, one per line.")
@output_options
@connection_options
def command(
    groups: tuple[str, ...], states: tuple[str, ...], quiet: bool, output: Output, connection: Connection
) -> None:
    """List groups: all, or those of some names.

    A GROUP is a name, a pattern such as 'billing*', or a regular expression that begins with ^.

    KIND says who shares the partitions among the members: one of them (classic) or the coordinator (consumer).
    """
    from lowwater.cli.topics.choosing import chosen

    with connection.open() as connected:
        known, is_complete = listed(connected)
    names = chosen(groups, known)[0] if groups else list(known)
    wanted = {state.lower() for state in states}
    found = [known[name] for name in names if not wanted or known[name].state.lower() in wanted]
    if quiet:
        click.echo("".join(f"{printable(one.group)}\n" for one in found), nl=False)
    else:
        rows = [
            {"group": one.group, "state": one.state or None, "kind": one.kind or None, "protocol": one.protocol}
            for one in found
        ]
        output.rows(COLUMNS, rows)
        if not rows and output.is_for_people:
            tell("there are no such groups" if groups or states else "there are no groups")
    if not is_complete:
        sys.exit(1)
