"""`lowwater topics`, and the commands in it."""

from __future__ import annotations

import click

from lowwater.cli.topics.creating import create
from lowwater.cli.topics.deleting import delete
from lowwater.cli.topics.describing import describe
from lowwater.cli.topics.listing import list_
from lowwater.cli.topics.locating import offsets


class InOrder(click.Group):
    """Commands in the order in which they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group("topics", cls=InOrder)
def command() -> None:
    """List, describe, make and delete topics, and find offsets in them.

    Works with any Kafka cluster, not only with a Lowwater broker: -b says where it is.

    \b
      lowwater topics list
      lowwater topics create orders --partitions 3 --config retention.ms=86400000
      lowwater topics describe orders
      lowwater topics offsets orders --at -1h
    """


for each in (list_, describe, create, delete, offsets):
    command.add_command(each)
