"""`lowwater spark offsets`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from lowwater.cli.output import Column, Output, output_options
from lowwater.cli.printing import number, tell

if TYPE_CHECKING:
    from lowwater.types import TopicPartition

COLUMNS = (
    Column("topic", "TOPIC"),
    Column("partition", "PARTITION", number, is_number=True),
    Column("offset", "OFFSET", number, is_number=True),
)


@click.command("offsets")
@click.argument("checkpoint", metavar="CHECKPOINT")
@click.option(
    "--as",
    "form",
    type=click.Choice(["kafka", "start"]),
    help="As a text that the option startingOffsets of either source takes, or our option start.",
)
@output_options
def command(checkpoint: str, form: str | None, output: Output) -> None:
    """Show where a streaming query stands: the next offsets to read, behind its last finished micro-batch.

    CHECKPOINT is the folder given as checkpointLocation. Checkpoints of the Kafka connector are read as well. To begin
    anew elsewhere from there, also with the other source:

    \b
      .option("startingOffsets", "$(lowwater spark offsets run/checkpoint --as kafka)")
    """
    from lowwater.spark.checkpoint import read_checkpoint

    found = read_checkpoint(checkpoint)
    if not found.is_there:
        raise click.ClickException(f"there is no checkpoint in {checkpoint}")
    if found.is_cut_off:
        tell(f"batch {found.planned} is planned and not finished: these are the offsets before it")
    if form is not None:
        click.echo(_as_kafka(found.at) if form == "kafka" else _as_start(found.at))
        return
    rows = [{"topic": one.topic, "partition": one.partition, "offset": at} for one, at in sorted(found.at.items())]
    output.rows(COLUMNS, rows)


def _as_kafka(at: Mapping[TopicPartition, int]) -> str:
    topics: dict[str, dict[str, int]] = {}
    for one, offset in sorted(at.items()):
        topics.setdefault(one.topic, {})[str(one.partition)] = offset
    return json.dumps(topics, separators=(",", ":"))


def _as_start(at: Mapping[TopicPartition, int]) -> str:
    return ",".join(f"{one.topic}[{one.partition}]={offset}" for one, offset in sorted(at.items()))
