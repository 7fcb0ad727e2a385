"""From a model to DataFrames: sources are loaded, steps applied, in the order of the file."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lowwater.spark.pipeline.decode_errors import decoded_rows
from lowwater.spark.pipeline.failures import failure_of
from lowwater.spark.pipeline.model import RECORD_COLUMNS, Model, Source, Step, Watermark
from lowwater.spark.pipeline.queries import needed
from lowwater.spark.pipeline.refused import RefusedError, no_column
from lowwater.spark.pipeline.secrets import Secrets
from lowwater.spark.pipeline.source_options import dead_letter_reading, reading_options
from lowwater.spark.pipeline.spark_settings import cores_of
from lowwater.spark.pipeline.steps import apply_step
from lowwater.spark.pipeline.together import are_cut_together, at_one_moment
from lowwater.spark.pipeline.toml_places import Path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from pyspark.sql.types import StructType

FORMAT = "lowwater"


def build(
    spark: SparkSession,
    model: Model,
    name: str,
    *,
    commits: frozenset[str] = frozenset(),
    inputs: Mapping[str, DataFrame] | None = None,
    stop_file: str | None = None,
) -> DataFrame:
    """The source or step `name`. Of the sources in `commits` offsets are committed to the group.

    `inputs` stand in for sources, with the columns that steps see; they get the watermarks of those.
    Views of the session are named as sources and steps are, since that is how SQL finds them.
    """
    inputs = inputs or {}
    sources, steps = needed(model, name)
    if are_cut_together(model, sources):
        now_ms = time.time_ns() // 1_000_000
        sources = tuple(at_one_moment(source, now_ms) for source in sources)
    frames: dict[str, DataFrame] = {}
    for source in sources:
        rows = inputs.get(source.name)
        frames[source.name.lower()] = source_frame(
            spark, model, source, source.name in commits, rows, query=sources, stop_file=stop_file
        )
    for step in steps:
        frames[step.name.lower()] = step_frame(spark, model, step, frames)
    return frames[name.lower()]


def source_frame(
    spark: SparkSession,
    model: Model,
    source: Source,
    commits: bool = False,
    rows: DataFrame | None = None,
    *,
    query: Sequence[Source] = (),
    stop_file: str | None = None,
) -> DataFrame:
    """A source as steps see it, or `rows` in its place. `query`: all sources of the query."""
    if rows is None:
        read = reading_options(model, source, commits=commits, query=query)
        rows = decoded_rows(_load(spark, model, source, read, stop_file), source)
    return _shown(rows, source, ("source", source.name), model.secrets)


def step_frame(spark: SparkSession, model: Model, step: Step, frames: Mapping[str, DataFrame]) -> DataFrame:
    """`frames` has what the step reads, by names in small letters. RefusedError when it cannot be done."""
    return _shown(apply_step(spark, model, step, frames), step, ("step", model.steps.index(step)), model.secrets)


def load_dead_letters(spark: SparkSession, model: Model, source: Source, *, stop_file: str | None = None) -> DataFrame:
    """The source with all that a record has, for those that cannot be decoded."""
    return _reader(spark, _packed(model, dead_letter_reading(model, source), stop_file)).load()


def _load(spark: SparkSession, model: Model, source: Source, read: dict[str, str], stop_file: str | None) -> DataFrame:
    """The source as it is read, before its fields become columns."""
    options = _packed(model, read, stop_file)
    reader = _reader(spark, options)
    if source.columns:
        # Named by a schema, and not by a select, columns that are not wanted are not even made.
        reader = reader.schema(_some_columns(options, source))
    return reader.load()


def _reader(spark: SparkSession, options: Mapping[str, str]) -> DataStreamReader:
    return spark.readStream.format(FORMAT).options(**options)


def _packed(model: Model, read: dict[str, str], stop_file: str | None) -> dict[str, str]:
    return {**_packing(model), **read, **({} if stop_file is None else {"stopFile": stop_file})}


def _packing(model: Model) -> dict[str, str]:
    """More tasks than run at a time only cost; a source does not know how many those are."""
    cores = cores_of(model, os.cpu_count() or 1)
    return {} if cores is None else {"maxPartitions": str(cores)}


def _some_columns(options: Mapping[str, str], source: Source) -> StructType:
    from lowwater.spark.source import LowwaterSource

    whole = LowwaterSource({name.lower(): value for name, value in options.items()}).schema()
    kept = [field for field in whole.fields if field.name in source.columns or field.name not in RECORD_COLUMNS]
    return type(whole)(kept)


def _shown(frame: DataFrame, part: Source | Step, path: Path, secrets: Secrets) -> DataFrame:
    if part.watermark is not None:
        frame = _watermarked(frame, part.watermark, (*path, "watermark", "column"), secrets)
    frame.createOrReplaceTempView(part.name)
    return frame


def _watermarked(frame: DataFrame, watermark: Watermark, path: Path, secrets: Secrets) -> DataFrame:
    from pyspark.errors import AnalysisException

    if watermark.column not in frame.columns:
        raise no_column(path, watermark.column, frame.columns)
    try:
        return frame.withWatermark(watermark.column, f"{watermark.delay_ms} milliseconds")
    except AnalysisException as error:
        raise RefusedError(path, failure_of(str(error), secrets).what) from error
