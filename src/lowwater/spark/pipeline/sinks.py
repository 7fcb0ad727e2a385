"""Starting the query of a sink."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.spark.pipeline.building import FORMAT, build, load_dead_letters
from lowwater.spark.pipeline.decode_errors import dead_letters
from lowwater.spark.pipeline.model import Model, Sink
from lowwater.spark.pipeline.queries import Query
from lowwater.spark.pipeline.refused import no_column
from lowwater.spark.pipeline.source_options import dead_letter_options, writing_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def start(spark: SparkSession, model: Model, query: Query, stop_file: str | None = None) -> StreamingQuery:
    """Begins to run at once, from its checkpoint when there is one. Once the file is there it begins no new batch."""
    writer = prepare(spark, model, query, stop_file)
    writer = writer.queryName(query.name).option("checkpointLocation", query.checkpoint)
    if model.interval_ms is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{model.interval_ms} milliseconds").start()


def prepare(spark: SparkSession, model: Model, query: Query, stop_file: str | None = None) -> DataStreamWriter:
    """Everything up to its start: its frames are made, and Spark has said what it refuses of them."""
    make = _dead_letter_writer if query.kind == "dead letters" else _writer
    return make(spark, model, query, stop_file)


def _writer(spark: SparkSession, model: Model, query: Query, stop_file: str | None) -> DataStreamWriter:
    sink = next(sink for sink in model.sinks if sink.name == query.of)
    frame = build(spark, model, sink.source, commits=query.commits, stop_file=stop_file)
    return writer_of(frame, model, sink)


def writer_of(frame: DataFrame, model: Model, sink: Sink) -> DataStreamWriter:
    """All but the checkpoint, the trigger and the name."""
    check_folders(frame, sink)
    if sink.format == "topic":
        writer = encoded(frame, sink).writeStream.format(FORMAT).options(**writing_options(model, sink))
    else:
        writer = frame.writeStream.format(sink.format).options(**sink.options)
    if sink.path is not None:
        writer = writer.option("path", model.location(sink.path))
    if sink.partition_by:
        writer = writer.partitionBy(*sink.partition_by)
    return writer.outputMode(sink.mode)


def check_folders(frame: DataFrame, sink: Sink) -> None:
    """RefusedError for folders by a column that is not there, which Spark sees only when it writes."""
    known = {name.lower() for name in frame.columns}
    for name in sink.partition_by:
        if name.lower() not in known:
            raise no_column(("sink", sink.name, "partition_by"), name, frame.columns)


def encoded(frame: DataFrame, sink: Sink) -> DataFrame:
    """The columns that a topic takes: those that are there, or what the sink's `encode` and `key` make of them.

    A `partition` that came along from a source is none of the other topic's: with `encode` or `key` it is left out.
    """
    from pyspark.sql import functions as f

    if sink.encode is None and sink.key is None:
        return frame
    kept = ["headers"] if sink.topic is not None else ["headers", "topic"]
    columns = [f.col(name) for name in kept if name in frame.columns]
    if sink.key is not None:
        columns.append(f.col(sink.key).cast("string").alias("key"))
    elif "key" in frame.columns:
        columns.append(f.col("key"))
    value = f.col("value") if sink.encode is None else f.to_json(f.struct(*frame.columns))
    return frame.select(*columns, value.alias("value"))


def _dead_letter_writer(spark: SparkSession, model: Model, query: Query, stop_file: str | None) -> DataStreamWriter:
    source = next(source for source in model.sources if source.name == query.of)
    rows = dead_letters(load_dead_letters(spark, model, source, stop_file=stop_file), source)
    return rows.writeStream.format(FORMAT).options(**dead_letter_options(model, source)).outputMode("append")
