"""`lowwater spark`, and the commands in it."""

from __future__ import annotations

import click

from lowwater.cli.lazy import LazyGroup

COMMANDS = {
    "losses": ("lowwater.cli.spark_losses", "Show what queries went on without, since it was deleted before."),
    "offsets": ("lowwater.cli.spark_offsets", "Show where a streaming query stands, from its checkpoint."),
}


@click.group("spark", cls=LazyGroup, table=COMMANDS)
def command() -> None:
    """Look at what the Spark source has left behind: losses and checkpoints. Neither needs Spark.

    \b
      lowwater spark losses
      lowwater spark offsets run/checkpoint
      lowwater spark offsets run/checkpoint --as kafka
    """
