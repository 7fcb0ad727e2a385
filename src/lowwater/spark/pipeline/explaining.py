"""What a pipeline would do, in words, with what Spark makes of it."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lowwater.spark.pipeline.building import source_frame, step_frame
from lowwater.spark.pipeline.durations import duration_text
from lowwater.spark.pipeline.failures import failure_of, told_without
from lowwater.spark.pipeline.model import Model, PythonStep, Sink, Source, Step
from lowwater.spark.pipeline.problems import Report
from lowwater.spark.pipeline.queries import Query, inputs_of, queries
from lowwater.spark.pipeline.refused import RefusedError
from lowwater.spark.pipeline.sinks import check_folders, encoded
from lowwater.spark.pipeline.source_options import sink_id
from lowwater.spark.pipeline.spark_settings import master_of
from lowwater.spark.pipeline.toml_places import Path
from lowwater.spark.pipeline.views import views_put_back

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def explain(spark: SparkSession, model: Model, report: Report) -> str:
    """Every source, step and sink. What Spark refuses is reported, and what depends on it passed over.

    SparkFailedError when it cannot do it at all.
    """
    with told_without(model.secrets), views_put_back(spark, model):
        frames = _frames(spark, model, report)
        return _text(model, frames, _written(model, frames, report))


def outline(model: Model) -> str:
    """The same without Spark: no columns, no plans."""
    return _text(model, {}, {})


def _text(model: Model, frames: dict[str, DataFrame], written: dict[str, DataFrame]) -> str:
    return model.secrets.masked("\n".join(_lines(model, frames, written)))


def _frames(spark: SparkSession, model: Model, report: Report) -> dict[str, DataFrame]:
    """By names in small letters."""
    from pyspark.errors import AnalysisException

    frames: dict[str, DataFrame] = {}
    for part in (*model.sources, *model.steps):
        if not isinstance(part, Source) and not frames.keys() >= {name.lower() for name in inputs_of(part)}:
            continue
        try:
            if isinstance(part, Source):
                frame = source_frame(spark, model, part)
            else:
                frame = step_frame(spark, model, part, frames)
        except RefusedError as error:
            error.tell(report)
        except AnalysisException as error:
            report.key(_path(model, part), failure_of(str(error), model.secrets).what)
        else:
            frames[part.name.lower()] = frame
    return frames


def _written(model: Model, frames: dict[str, DataFrame], report: Report) -> dict[str, DataFrame]:
    """What sinks take of the frames that are there, by the sink's name."""
    from pyspark.errors import AnalysisException

    written: dict[str, DataFrame] = {}
    for sink in (sink for sink in model.sinks if sink.source.lower() in frames):
        frame = frames[sink.source.lower()]
        try:
            check_folders(frame, sink)
            written[sink.name] = encoded(frame, sink) if sink.format == "topic" else frame
        except RefusedError as error:
            error.tell(report)
        except AnalysisException as error:
            report.key(("sink", sink.name), failure_of(str(error), model.secrets).what)
    return written


def _path(model: Model, part: Source | Step) -> Path:
    return ("source", part.name) if isinstance(part, Source) else ("step", model.steps.index(part))


def _lines(model: Model, frames: dict[str, DataFrame], written: dict[str, DataFrame]) -> Iterator[str]:
    trigger = "all that is there" if model.interval_ms is None else f"every {duration_text(model.interval_ms)}"
    if model.cut_ms is not None:
        trigger += f", at most {duration_text(model.cut_ms)} of event time a micro-batch"
    yield f"{model.name}: {trigger}, on {model.remote or master_of(model)}"
    for source in model.sources:
        yield f"\nsource {source.name}: {_source(source)}"
        yield from _columns(frames.get(source.name.lower()))
    for step in model.steps:
        yield f"\nstep {step.name}: {_step(step)}"
        yield from _columns(frames.get(step.name.lower()))
    for query in queries(model):
        yield from _query(model, query, written)


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


def _query(model: Model, query: Query, written: dict[str, DataFrame]) -> Iterator[str]:
    if query.kind == "dead letters":
        source = next(source for source in model.sources if source.name == query.of)
        yield f"\ndead letters of {source.name}: to the topic {source.bad_rows.topic}"
    else:
        sink = next(sink for sink in model.sinks if sink.name == query.of)
        yield f"\nsink {sink.name}: {_sink(model, sink)}"
    yield f"  checkpoint {query.checkpoint}"
    if query.commits:
        yield f"  commits {', '.join(sorted(query.commits))}"
    if query.kind == "sink" and sink.name in written:
        yield from _plan(model, written[sink.name])


def _sink(model: Model, sink: Sink) -> str:
    where = f" {model.location(sink.path)}" if sink.path else f" {sink.topic}" if sink.topic else ""
    folders = f", in folders by {', '.join(sink.partition_by)}" if sink.partition_by else ""
    once = f", each row once as {sink_id(model, sink)}" if sink.exactly_once else ""
    return f"{sink.source} as {sink.format}{where}, {sink.mode}{folders}{once}"


def _columns(frame: DataFrame | None) -> Iterator[str]:
    if frame is not None:
        for field in frame.schema.fields:
            yield f"  {field.name} {field.dataType.simpleString()}"


def _plan(model: Model, frame: DataFrame) -> Iterator[str]:
    if type(frame).__module__.startswith("pyspark.sql.connect"):
        return  # a server has no plans of streams to show
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        # Spark refuses to explain what came straight from its `sql` over a stream, and no frame made of that.
        frame.select("*").explain()
    # Before its lines are set in: a secret may be of several.
    yield from (f"  {line}" for line in model.secrets.masked(told.getvalue()).strip().splitlines())
