"""The sink, as Spark calls it: rows of a batch or a stream are added to topics, each at least once.

A task's rows are all written when it ends, or it fails, and Spark tries it again: rows of the failed attempt may then
stand in their topics twice. Where each is to be there once, `sink_once` writes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from lowwater.spark.extra import require_spark_extra
from lowwater.spark.option_table import OptionError
from lowwater.spark.options import SinkOptions
from lowwater.spark.sink_columns import WrittenColumns, written_columns

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from lowwater.client.producing.reports import Placed
    from lowwater.spark.sink_once import Left
    from lowwater.types import TopicPartition

BATCH_ID = "streaming.sql.batchId"
QUERY_ID = "sql.streaming.queryId"
_log = logging.getLogger("lowwater.spark")
_told: set[str] = set()


class Attempt(NamedTuple):
    """Who writes: the try of a task, in a micro-batch of a stream (None: a batch query). No other try has its `id`."""

    batch: int | None
    task: int
    number: int
    id: int = 0
    query: str | None = None

    @classmethod
    def running(cls) -> Attempt:
        """The one that this process runs."""
        context = TaskContext.get()
        if context is None:
            return cls(None, 0, 0)
        batch = context.getLocalProperty(BATCH_ID)
        return cls(
            None if batch is None else int(batch),
            context.partitionId(),
            context.attemptNumber(),
            context.taskAttemptId(),
            context.getLocalProperty(QUERY_ID),
        )


@dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):
    """What a task tells the driver: how many rows it wrote, where they are, and what it has left open."""

    attempt: Attempt
    rows: int
    partitions: Mapping[TopicPartition, Placed] = field(default_factory=dict)
    left: Left | None = None


@dataclass(frozen=True, slots=True)
class Writing:
    """What all tasks of a write share. Can be pickled; its text shows no secrets."""

    options: SinkOptions
    columns: WrittenColumns

    @classmethod
    def plan(cls, options: Mapping[str, str], schema: StructType, *, streaming: bool = True) -> Writing:
        """Nothing is asked of a broker yet. OptionError says what cannot be written so."""
        require_spark_extra()
        parsed = SinkOptions.parse(options, streaming=streaming)
        _tell(parsed.warnings)
        return cls(parsed, written_columns(schema, parsed.topic))

    def run(self, batches: Iterator[Any]) -> Written:
        """In a worker: write the rows of one task."""
        from lowwater.spark.worker_producer import write_rows  # drivers need neither Arrow nor the kernels

        summary = write_rows(self.options.client.settings, self.columns, batches)
        return Written(Attempt.running(), summary.delivered, summary.partitions)


class LowwaterWriter(DataSourceArrowWriter):
    def __init__(self, writing: Writing) -> None:
        self._writing = writing

    def write(self, iterator: Iterator[Any]) -> Written:
        return self._writing.run(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """All rows are in their topics already."""
        _log.info("%d rows written", rows_of(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        _tell_left(messages, "the write failed")


class LowwaterStreamWriter(DataSourceStreamArrowWriter):
    """Spark makes one for the tasks of each micro-batch, and another, in another process, for its end."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing

    def write(self, iterator: Iterator[Any]) -> Written:
        return self._writing.run(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  Spark's name
        """All rows are in their topics already."""
        _log.info("batch %d: %d rows written", batchId, rows_of(messages))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  Spark's name
        _tell_left(messages, f"batch {batchId} failed")


def batch_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
    """OptionError says what cannot be written so."""
    if overwrite:
        raise OptionError('Save mode Overwrite not allowed for Kafka: rows are added to topics, say .mode("append")')
    writing = Writing.plan(options, schema, streaming=False)
    if writing.options.once is None:
        return LowwaterWriter(writing)
    from lowwater.spark.sink_once import LowwaterOnceWriter

    return LowwaterOnceWriter(writing)


def stream_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
    """A stream in complete mode overwrites, for Spark; here it adds all rows of its result each time."""
    writing = Writing.plan(options, schema)
    if writing.options.once is None:
        return LowwaterStreamWriter(writing)
    from lowwater.spark.sink_once import LowwaterOnceStreamWriter

    return LowwaterOnceStreamWriter(writing)


def rows_of(messages: Iterable[WriterCommitMessage | None]) -> int:
    """Of tasks that failed there is no message."""
    return sum(message.rows for message in messages if isinstance(message, Written))


def _tell_left(messages: Iterable[WriterCommitMessage | None], what: str) -> None:
    if rows := rows_of(messages):
        _log.warning("%s; %d rows of tasks that ended well are in their topics, and will be there again", what, rows)


def _tell(warnings: Iterable[str]) -> None:
    """Once in a process: a stream's writer is made anew for each micro-batch."""
    for warning in warnings:
        if warning not in _told:
            _told.add(warning)
            _log.warning("%s", warning)
