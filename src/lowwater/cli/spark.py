"""`lowwater spark`, and the commands in it."""

from __future__ import annotations

import click

from lowwater.cli.lazy import LazyGroup

COMMANDS = {
    "losses": ("lowwater.cli.spark_losses", "Show what queries went on without, since it was deleted before."),
    "sinks": ("lowwater.cli.spark_sinks", "Show what exactly-once sinks have committed, and settle what is left."),
    "offsets": ("lowwater.cli.spark_offsets", "Show where a streaming query stands, from its checkpoint."),
}


@click.group("spark", cls=LazyGroup, table=COMMANDS)
def command() -> None:
    """Look at what Spark's source and sink have left behind: losses, checkpoints, commits. None needs Spark.

    \b
      lowwater spark losses
      lowwater spark sinks
      lowwater spark offsets run/checkpoint
      lowwater spark offsets run/checkpoint --as kafka
    """
