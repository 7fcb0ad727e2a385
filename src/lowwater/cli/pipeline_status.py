"""`lowwater pipeline status`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from lowwater.cli.output import Column, Output, output_options
from lowwater.cli.pipeline_file import failures_exit, load_pipeline, pipeline_argument
from lowwater.cli.pipeline_progress import moment
from lowwater.cli.printing import age, number, tell

if TYPE_CHECKING:
    from lowwater.spark.pipeline.status import PartitionStatus, QueryStatus

_QUERIES = (
    Column("query", "QUERY"),
    Column("batches", "BATCHES", number, is_number=True),
    Column("finished_ms", "LAST", lambda value: age(value, int(time.time() * 1000))),
    Column("watermark_ms", "WATERMARK", moment),
    Column("behind", "BEHIND", number, is_number=True),
    Column("behind_max", "MOST", number, is_number=True),
    Column("state", "STATE"),
)
_PARTITIONS = (
    Column("query", "QUERY"),
    Column("topic", "TOPIC"),
    Column("partition", "PARTITION", number, is_number=True),
    Column("offset", "OFFSET", number, is_number=True),
    Column("end", "END", number, is_number=True),
    Column("behind", "BEHIND", number, is_number=True),
    Column("committed", "COMMITTED", number, is_number=True),
)


@click.command("status")
@pipeline_argument
@click.option("--partitions", "by_partition", is_flag=True, help="Show every partition.")
@output_options
def command(file: str, by_partition: bool, output: Output) -> None:
    """Show how far a pipeline has got, without starting Spark.

    Each query has a checkpoint: how many micro-batches are finished, when the last one was, where the watermark stands,
    and how many records it is behind its topics. With --partitions also what is committed to the group.
    """
    from lowwater.spark.pipeline.run_lock import RunningError, refuse_running
    from lowwater.spark.pipeline.status import status

    pipeline = load_pipeline(file)
    with failures_exit():
        found = status(pipeline.model)
    try:
        refuse_running(pipeline.model)
    except RunningError as running:
        tell(running)
    if by_partition:
        output.rows(_PARTITIONS, [_partition(each) for query in found.queries for each in query.partitions])
    else:
        output.rows(_QUERIES, [_query(each) for each in found.queries])
    for problem in (*(each.problem for each in found.queries if each.problem), *found.problems):
        tell(problem)


def _query(found: QueryStatus) -> dict[str, Any]:
    checkpoint, behind = found.checkpoint, found.behind
    return {
        "query": found.query.label,
        "batches": checkpoint.finished + 1,
        "finished_ms": checkpoint.finished_ms,
        "watermark_ms": checkpoint.watermark_ms,
        "behind": None if behind is None else behind.records,
        "behind_max": None if behind is None else behind.most,
        "state": _state(found),
    }


def _state(found: QueryStatus) -> str:
    if found.problem is not None:
        return "unknown"
    if not found.checkpoint.is_there:
        return "never run"
    if found.checkpoint.is_cut_off:
        return f"batch {found.checkpoint.planned} is not finished"
    return "between batches"


def _partition(each: PartitionStatus) -> dict[str, Any]:
    return {
        "query": each.query,
        "topic": each.one.topic,
        "partition": each.one.partition,
        "offset": each.at,
        "end": each.end,
        "behind": each.behind,
        "committed": each.committed,
    }
