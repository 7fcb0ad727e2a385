"""From a model to DataFrames: sources are loaded, steps applied, in the order of the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lowwater.spark.pipeline.decode_errors import decoded_rows
from lowwater.spark.pipeline.model import RECORD_COLUMNS, Model, Source, Step, Watermark
from lowwater.spark.pipeline.queries import needed
from lowwater.spark.pipeline.source_options import reading_options
from lowwater.spark.pipeline.steps import apply_step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "lowwater"


def build(
    spark: SparkSession,
    model: Model,
    name: str,
    *,
    commits: frozenset[str] = frozenset(),
    inputs: Mapping[str, DataFrame] | None = None,
) -> DataFrame:
    """The source or step `name`. Of the sources in `commits` offsets are committed to the group.

    `inputs` stand in for sources, with the columns that steps see; they get the watermarks of those.
    Views of the session are named as sources and steps are, since that is how SQL finds them.
    """
    inputs = inputs or {}
    sources, steps = needed(model, name)
    frames: dict[str, DataFrame] = {}
    for source in sources:
        rows = inputs.get(source.name)
        if rows is None:
            rows = decoded_rows(load(spark, model, source, commits=source.name in commits), source)
        frames[source.name.lower()] = _shown(rows, source)
    for step in steps:
        frames[step.name.lower()] = _shown(apply_step(spark, model, step, frames), step)
    return frames[name.lower()]


def load(
    spark: SparkSession, model: Model, source: Source, *, commits: bool = False, with_headers: bool = False
) -> DataFrame:
    """The source as it is read, before its fields become columns."""
    options = reading_options(model, source, commits=commits)
    if with_headers:
        options["includeHeaders"] = "true"
    whole = spark.readStream.format(FORMAT).options(**options).load()
    if not source.columns or with_headers:
        return whole
    kept = [field for field in whole.schema.fields if field.name in source.columns or field.name not in RECORD_COLUMNS]
    # Named by a schema, and not by a select, columns that are not wanted are not even made.
    return spark.readStream.format(FORMAT).options(**options).schema(type(whole.schema)(kept)).load()


def drop_views(spark: SparkSession, model: Model) -> None:
    """Leaves nothing behind in a session that others use."""
    for name in model.names:
        spark.catalog.dropTempView(name)


def _shown(frame: DataFrame, part: Source | Step) -> DataFrame:
    if part.watermark is not None:
        frame = _watermarked(frame, part.watermark)
    frame.createOrReplaceTempView(part.name)
    return frame


def _watermarked(frame: DataFrame, watermark: Watermark) -> DataFrame:
    return frame.withWatermark(watermark.column, f"{watermark.delay_ms} milliseconds")
