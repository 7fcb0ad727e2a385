"""`lowwater groups`, and the commands in it."""

from __future__ import annotations

import click

from lowwater.cli.lazy import LazyGroup

COMMANDS = {
    "list": ("lowwater.cli.groups.listing", "List groups with their states."),
    "describe": ("lowwater.cli.groups.describing", "Show the members of groups, and what they read."),
    "lag": ("lowwater.cli.groups.lagging", "Show how far groups are behind, in records and in time."),
    "watch": ("lowwater.cli.groups.watching", "Watch the lag of groups, live."),
    "reset": ("lowwater.cli.groups.resetting", "Set where groups go on reading."),
    "undo": ("lowwater.cli.groups.undoing", "Take a change of offsets back."),
    "history": ("lowwater.cli.groups.telling", "List changes of offsets that were made here."),
    "delete": ("lowwater.cli.groups.deleting", "Delete groups with their offsets."),
    "delete-offsets": ("lowwater.cli.groups.forgetting", "Delete offsets of some topics."),
    "export": ("lowwater.cli.groups.exporting", "Print committed offsets as CSV."),
    "import": ("lowwater.cli.groups.importing", "Set offsets from such a file."),
}


@click.group("groups", cls=LazyGroup, table=COMMANDS)
def command() -> None:
    """Look at groups, at how far they are behind, and set where they go on.

    Works with any Kafka cluster, not only with a Lowwater broker: -b says where it is. What changes something only
    shows it, until you say --execute; the old offsets are kept, and `undo` brings them back.

    \b
      lowwater groups lag billing
      lowwater groups reset billing --topic orders --to -1h --execute
      lowwater groups undo billing --execute
    """
