"""What a pipeline says as a whole: names that are there, keys that go together, options that the source accepts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from lowwater.client.config import CLIENT_SETTING, ClientConfig
from lowwater.errors import ConfigError
from lowwater.positions.grammar import PositionError
from lowwater.spark.option_table import ALIASES, OPTION, Where
from lowwater.spark.options import SinkOptions, SourceOptions
from lowwater.spark.pipeline.between_sources import check_sources, not_waited_for
from lowwater.spark.pipeline.decode_schemas import check_decoding
from lowwater.spark.pipeline.faults import (
    origins_of_dead_letters,
    origins_of_sink,
    origins_of_source,
    tell_refusal,
)
from lowwater.spark.pipeline.folders import check_folders_apart
from lowwater.spark.pipeline.model import (
    FILE_FORMATS,
    RECORD_COLUMNS,
    Model,
    PythonStep,
    Sink,
    Source,
    SqlStep,
    is_address,
)
from lowwater.spark.pipeline.problems import Report, did_you_mean, nearest
from lowwater.spark.pipeline.source_options import (
    client_settings,
    dead_letter_options,
    reading_options,
    sink_id,
    writing_options,
)
from lowwater.spark.pipeline.sql_names import SqlError, tables_read
from lowwater.spark.pipeline.together import strangers_of
from lowwater.spark.pipeline.toml_places import Path
from lowwater.types import topic_name_problem

_WHAT_IS_READ = ("topics", "pattern", "partitions")
_WITH_PATH = (*FILE_FORMATS, "delta")
# Of each key of a sink, the formats that it means something to.
_BELONGS_TO = {
    "path": _WITH_PATH,
    "partition_by": _WITH_PATH,
    "topic": ("topic",),
    "key": ("topic",),
    "encode": ("topic",),
    "exactly_once": ("topic",),
    "sink_id": ("topic",),
    "kafka": ("topic",),
}
_MODES = dict.fromkeys(FILE_FORMATS, ("append",)) | dict.fromkeys(("delta", "topic"), ("append", "complete"))
_OWN_SPARK_SETTINGS = {"spark.master": "master", "spark.remote": "remote", "spark.app.name": "name"}


def check(model: Model, report: Report) -> None:
    """Reports what is wrong. Parts that could not be read have been reported already, and are passed over."""
    _check_top(model, report)
    _check_names(model, report)
    for source in model.sources:
        _check_source(model, source, report)
    _check_steps(model, report)
    for sink in model.sinks:
        _check_sink(model, sink, report)
    check_folders_apart(model, report)
    if not report.problems:
        check_sources(model, report)


def warnings(model: Model) -> list[str]:
    """What is not heeded, of a model without problems: settings without meaning here, options of other queries."""
    told = [
        f"source.{source.name}: {warning}"
        for source in model.sources
        for warning in SourceOptions.parse(reading_options(model, source), streaming=True).warnings
    ]
    told += [
        f"sink.{sink.name}: {warning}"
        for sink in model.sinks
        if sink.format == "topic"
        for warning in SinkOptions.parse(writing_options(model, sink)).warnings
    ]
    return told + list(not_waited_for(model))


def _check_top(model: Model, report: Report) -> None:
    for setting, key in _OWN_SPARK_SETTINGS.items():
        if setting in model.spark:
            report.key(("spark",), f"{setting} is not set here", f"the key {key} says it")
    if model.remote is not None and not model.remote.startswith("sc://"):
        report.value(("remote",), "this is not the address of a Spark Connect server", "it begins with sc://")
    if not model.is_local:
        for path, place in _local_paths(model):
            if not is_address(place) and not place.startswith("/"):
                hint = "where Spark runs on several machines it has to be a full path, or an address such as s3a://…"
                report.value(path, f"{place!r} is relative", hint)


def _local_paths(model: Model) -> Iterable[tuple[Path, str]]:
    if model.checkpoint:
        yield ("checkpoint",), model.checkpoint
    for sink in model.sinks:
        if sink.path:
            yield ("sink", sink.name, "path"), sink.path


def _check_names(model: Model, report: Report) -> None:
    """Spark's SQL does not tell capitals from small letters."""
    taken = {source.name.lower(): f"the source {source.name}" for source in model.sources}
    for place, step in enumerate(model.steps):
        if not step.name:
            continue
        if (other := taken.get(step.name.lower())) is not None:
            report.value(("step", place, "name"), f"{step.name!r} is the name of {other} already")
        taken[step.name.lower()] = f"the step {step.name}"


# ---- sources


def _check_source(model: Model, source: Source, report: Report) -> None:
    path: Path = ("source", source.name)
    told = len(report.problems)
    _check_what_is_read(source, path, report)
    _check_start(source, path, report)
    _check_decoding(model, source, path, report)
    _check_columns(source, path, report)
    _check_client(model, source, path, report)
    if len(report.problems) == told and _is_whole(model, source):
        _check_options(model, source, path, report)


def _is_whole(model: Model, source: Source) -> bool:
    """Whether it says what is read, and where from; where it does not, that has been reported."""
    return any(getattr(source, key) for key in _WHAT_IS_READ) and "bootstrap.servers" in client_settings(model, source)


def _check_what_is_read(source: Source, path: Path, report: Report) -> None:
    given = [key for key in _WHAT_IS_READ if getattr(source, key)]
    if len(given) != 1 and not any(report.has_told((*path, key)) for key in _WHAT_IS_READ):
        what = f"{' and '.join(given)} exclude each other" if given else "topics is missing"
        report.key(path, what, "one of topics, pattern and partitions says what is read")
    for key, topics in (("topics", source.topics), ("partitions", source.partitions)):
        for topic in topics:
            if (problem := topic_name_problem(topic)) is not None:
                report.value((*path, key), problem)


def _check_start(source: Source, path: Path, report: Report) -> None:
    try:
        strangers = list(strangers_of(source))
    except PositionError as error:
        hint = (
            did_you_mean(error.part, ("earliest", "latest", "stored", "today"))
            or "docs/start-positions.md has the forms"
        )
        report.inside((*path, "start"), 1, error.at, error.why, hint)
        return
    if strangers:
        report.value((*path, "start"), f"this names {', '.join(strangers)}, which is not read")


def _check_decoding(model: Model, source: Source, path: Path, report: Report) -> None:
    if source.decode is None:
        if source.keeps_errors:
            report.key((*path, "on_bad_row"), "nothing is decoded here", "it goes with decode")
        return
    check_decoding(model, source, report)
    topic = source.bad_rows.topic
    if topic and (problem := topic_name_problem(topic)) is not None:
        report.value((*path, "on_bad_row", "dead_letter"), problem)
    elif topic and topic in (*source.topics, *source.partitions):
        report.value((*path, "on_bad_row", "dead_letter"), "dead letters cannot go to the topic that they come from")


def _check_columns(source: Source, path: Path, report: Report) -> None:
    for place, column in enumerate(source.columns):
        if column not in RECORD_COLUMNS:
            hint = did_you_mean(column, RECORD_COLUMNS) or f"there are {', '.join(RECORD_COLUMNS)}"
            report.value((*path, "columns", place), f"{column!r} is not a column of a source", hint)
    if source.columns and source.decode is not None and "value" not in source.columns:
        report.value((*path, "columns"), "value is decoded, so it has to be among the columns")
    if source.watermark is None or source.decode is not None:
        return
    columns = source.columns or RECORD_COLUMNS
    if source.watermark.column not in columns:
        hint = did_you_mean(source.watermark.column, columns) or f"there are {', '.join(columns)}"
        report.value((*path, "watermark", "column"), f"there is no column {source.watermark.column!r}", hint)


def _check_client(model: Model, source: Source, path: Path, report: Report) -> None:
    settings = client_settings(model, source)
    if "bootstrap.servers" not in settings:
        _miss_bootstrap(path, model.kafka, source.kafka, report)
        return
    try:
        _ = ClientConfig({"bootstrap.servers": settings["bootstrap.servers"]}).bootstrap
    except ConfigError as error:
        table, name = origins_of_source(model, source)["kafka.bootstrap.servers"]
        report.value(report.path_of(table, name), str(error))


def _miss_bootstrap(path: Path, shared: Mapping[str, str], own: Mapping[str, str], report: Report) -> None:
    """At the setting that was probably meant to be it, where there is one; else at what needs it."""
    if report.has_told(("kafka",)) or report.has_told((*path, "kafka")):
        return
    tables: tuple[tuple[Path, Mapping[str, str]], ...] = (((*path, "kafka"), own), (("kafka",), shared))
    for where, settings in tables:
        meant = nearest("bootstrap.servers", (name for name in settings if name not in CLIENT_SETTING))
        if meant is not None:
            report.key(report.path_of(where, meant), "there is no such setting", "did you mean bootstrap.servers?")
            return
    report.key(path, "bootstrap.servers is not set", "write it into [kafka]: it says where a broker is")


def _check_options(model: Model, source: Source, path: Path, report: Report) -> None:
    if not _are_known(source.options, Where.STREAM, path, report):
        return
    parse = partial(SourceOptions.parse, streaming=True)
    otherwise = (*path, "options")
    tell_refusal(reading_options(model, source), parse, origins_of_source(model, source), otherwise, report)
    if source.bad_rows.action == "dead_letter":
        origins = origins_of_dead_letters(model, source)
        tell_refusal(dead_letter_options(model, source), SinkOptions.parse, origins, otherwise, report)


def _are_known(options: Mapping[str, str], where: Where, path: Path, report: Report) -> bool:
    """Spark passes over options that nobody knows; a pipeline does not."""
    unknown = [name for name in options if name.lower() not in (*OPTION, *ALIASES) and not _is_kafka(name)]
    for name in unknown:
        near = did_you_mean(name, (option.name for option in OPTION.values() if where in option.where))
        report.key(report.path_of((*path, "options"), name), "there is no such option", near)
    return not unknown


def _is_kafka(name: str) -> bool:
    return name.lower().startswith("kafka.")


# ---- steps


def _check_steps(model: Model, report: Report) -> None:
    known = {source.name.lower() for source in model.sources}
    for place, step in enumerate(model.steps):
        if isinstance(step, SqlStep):
            _check_sql(model, step, ("step", place, "sql"), known, report)
        else:
            _check_inputs(model, step, ("step", place, "from"), known, report)
        known.add(step.name.lower())


def _check_sql(model: Model, step: SqlStep, path: Path, known: set[str], report: Report) -> None:
    if not step.sql:
        return
    try:
        tables = tables_read(step.sql)
    except SqlError as error:
        report.inside(path, error.line, error.column, str(error))
        return
    for table in tables:
        name = table.parts[0]
        if len(table.parts) == 1 and name.lower() not in known:
            report.inside(path, table.line, table.column, *_unknown(model, name, known, is_sql=True))


def _check_inputs(model: Model, step: PythonStep, path: Path, known: set[str], report: Report) -> None:
    for name in step.inputs:
        if name.lower() not in known:
            report.value(path, *_unknown(model, name, known))


def _unknown(model: Model, name: str, known: set[str], *, is_sql: bool = False) -> tuple[str, str]:
    if name.lower() in (each.lower() for each in model.names):
        return f"{name!r} is not there yet", "a step sees the sources and the steps above it: move it up"
    there = [each for each in model.names if each.lower() in known]
    of_catalog = f"; a table of the catalog is written with its database: default.{name}" if is_sql else ""
    what = f"there is no source or step {name!r}"
    return what, did_you_mean(name, there) or f"there are {', '.join(there)}{of_catalog}"


# ---- sinks


def _check_sink(model: Model, sink: Sink, report: Report) -> None:
    path: Path = ("sink", sink.name)
    told = len(report.problems)
    names = {name.lower() for name in model.names}
    if sink.source and sink.source.lower() not in names:
        report.value((*path, "from"), *_unknown(model, sink.source, names))
    if not sink.format:
        return
    for key, formats in _BELONGS_TO.items():
        if getattr(sink, key) and sink.format not in formats:
            report.key((*path, key), f"this means nothing to {sink.format}", f"it goes with {', '.join(formats)}")
    if sink.format in _WITH_PATH and sink.path is None and not report.has_told((*path, "path")):
        report.key(path, "path is missing", f"it says where {sink.format} is written to")
    if sink.mode not in (modes := _MODES.get(sink.format, ("append", "update", "complete"))):
        report.value(
            (*path, "mode"), f"{sink.format} cannot be written in the mode {sink.mode}", f"use {' or '.join(modes)}"
        )
    if sink.topic is not None and (problem := topic_name_problem(sink.topic)) is not None:
        report.value((*path, "topic"), problem)
    if sink.sink_id is not None and not sink.exactly_once:
        report.key((*path, "sink_id"), "this counts only with exactly_once = true")
    for name in sink.options:
        if name.lower() == "checkpointlocation":
            report.key((*path, "options", name), "the key checkpoint, at the top, says where checkpoints are")
    if sink.format == "topic" and "bootstrap.servers" not in client_settings(model, sink):
        _miss_bootstrap(path, model.kafka, sink.kafka, report)
    elif sink.format == "topic" and len(report.problems) == told:
        _check_sink_options(model, sink, path, report)


def _check_sink_options(model: Model, sink: Sink, path: Path, report: Report) -> None:
    if not _are_known(sink.options, Where.SINK, path, report):
        return
    origins = origins_of_sink(model, sink)
    tell_refusal(writing_options(model, sink), SinkOptions.parse, origins, (*path, "options"), report)
    if not sink.exactly_once:
        return
    same = [other.name for other in model.sinks if other.exactly_once and sink_id(model, other) == sink_id(model, sink)]
    if same[0] != sink.name:
        report.key((*path, "sink_id"), f"the sink {same[0]} has the same", "each query needs one of its own")
