"""What a pipeline would do, in words, with what Spark makes of it."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lowwater.spark.pipeline.building import build, drop_views
from lowwater.spark.pipeline.durations import duration_text
from lowwater.spark.pipeline.failures import failure_of
from lowwater.spark.pipeline.model import Model, PythonStep, Sink, Source, Step
from lowwater.spark.pipeline.problems import Report
from lowwater.spark.pipeline.queries import Query, queries
from lowwater.spark.pipeline.sinks import encoded
from lowwater.spark.pipeline.spark_settings import master_of
from lowwater.spark.pipeline.steps import RefusedStepError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def explain(spark: SparkSession, model: Model, report: Report) -> str:
    """Every source, step and sink. What Spark refuses is reported, and what depends on it passed over."""
    try:
        frames = _frames(spark, model, report)
        return "\n".join(_lines(model, frames))
    finally:
        drop_views(spark, model)


def outline(model: Model) -> str:
    """The same without Spark: no columns, no plans."""
    return "\n".join(_lines(model, {}))


def _frames(spark: SparkSession, model: Model, report: Report) -> dict[str, DataFrame]:
    from pyspark.errors import AnalysisException

    frames: dict[str, DataFrame] = {}
    refused: set[object] = set()
    for part in (*model.sources, *model.steps):
        try:
            frames[part.name] = build(spark, model, part.name)
        except RefusedStepError as error:
            if error.path not in refused:
                error.tell(report)
            refused.add(error.path)
        except AnalysisException as error:
            path = ("source", part.name) if isinstance(part, Source) else ("step", model.steps.index(part))
            report.key(path, failure_of(str(error), model.secrets).what)
    return frames


def _lines(model: Model, frames: dict[str, DataFrame]) -> Iterator[str]:
    trigger = "all that is there" if model.interval_ms is None else f"every {duration_text(model.interval_ms)}"
    yield f"{model.name}: {trigger}, on {model.remote or master_of(model)}"
    for source in model.sources:
        yield f"\nsource {source.name}: {_source(source)}"
        yield from _columns(frames.get(source.name))
    for step in model.steps:
        yield f"\nstep {step.name}: {_step(step)}"
        yield from _columns(frames.get(step.name))
    for query in queries(model):
        yield from _query(model, query, frames)


def _source(source: Source) -> str:
    parts = [source.described, f"from {source.start}", f"group {source.group}"]
    if source.decode is not None:
        parts.append(f"decoded as {source.decode['decode']}")
    if source.watermark is not None:
        parts.append(f"{source.watermark.column} up to {duration_text(source.watermark.delay_ms)} late")
    return ", ".join(parts)


def _step(step: Step) -> str:
    if not isinstance(step, PythonStep):
        return "SQL"
    name = step.function if isinstance(step.function, str) else getattr(step.function, "__qualname__", "a function")
    return f"{name}({', '.join(step.inputs)})"


def _query(model: Model, query: Query, frames: dict[str, DataFrame]) -> Iterator[str]:
    if query.kind == "dead letters":
        source = next(source for source in model.sources if source.name == query.of)
        yield f"\ndead letters of {source.name}: to the topic {source.bad_rows.topic}"
    else:
        sink = next(sink for sink in model.sinks if sink.name == query.of)
        yield f"\nsink {sink.name}: {_sink(model, sink)}"
    yield f"  checkpoint {query.checkpoint}"
    if query.commits:
        yield f"  commits {', '.join(sorted(query.commits))}"
    if query.kind == "sink" and sink.source in frames:
        frame = frames[sink.source]
        yield from _plan(encoded(frame, sink) if sink.format == "topic" else frame)


def _sink(model: Model, sink: Sink) -> str:
    where = f" {model.location(sink.path)}" if sink.path else f" {sink.topic}" if sink.topic else ""
    folders = f", in folders by {', '.join(sink.partition_by)}" if sink.partition_by else ""
    return f"{sink.source} as {sink.format}{where}, {sink.mode}{folders}"


def _columns(frame: DataFrame | None) -> Iterator[str]:
    if frame is not None:
        for field in frame.schema.fields:
            yield f"  {field.name} {field.dataType.simpleString()}"


def _plan(frame: DataFrame) -> Iterator[str]:
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        frame.explain()
    yield from (f"  {line}" for line in told.getvalue().strip().splitlines())
