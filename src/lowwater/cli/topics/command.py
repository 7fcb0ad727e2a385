"""`lowwater topics`, and the commands in it."""

from __future__ import annotations

import click

from lowwater.cli.lazy import LazyGroup

COMMANDS = {
    "list": ("lowwater.cli.topics.listing", "List topics with their partitions, records and sizes."),
    "describe": ("lowwater.cli.topics.describing", "Show partitions, offsets, sizes and settings of topics."),
    "create": ("lowwater.cli.topics.creating", "Make topics."),
    "alter": ("lowwater.cli.topics.altering", "Change settings of topics, and let them grow."),
    "delete": ("lowwater.cli.topics.deleting", "Delete topics with all their records."),
    "offsets": ("lowwater.cli.topics.locating", "Show where partitions start and end, and where readers would start."),
}


@click.group("topics", cls=LazyGroup, table=COMMANDS)
def command() -> None:
    """List, describe, make, change and delete topics, and find offsets in them.

    Works with any Kafka cluster, not only with a Lowwater broker: -b says where it is.

    \b
      lowwater topics list
      lowwater topics create orders --partitions 3 --config retention.ms=86400000
      lowwater topics describe orders
      lowwater topics offsets orders --at -1h
    """
