"""From a document to a model. Everything is read, whatever is wrong elsewhere: all problems are told at once."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from lowwater.spark.pipeline.expanding import expanded
from lowwater.spark.pipeline.keys import BAD_ROW, DECODE, PIPELINE, REGISTRY, SINK, SOURCE, STEP, WATERMARK
from lowwater.spark.pipeline.model import (
    FORMATS,
    MASTER_DEFAULT,
    OUTPUT_MODES,
    START_DEFAULT,
    STOP_WITHIN_DEFAULT_MS,
    BadRows,
    Model,
    PythonStep,
    Sink,
    Source,
    SqlStep,
    Step,
    Watermark,
)
from lowwater.spark.pipeline.problems import PipelineError, Problem, Report
from lowwater.spark.pipeline.secrets import is_secret, secrets_of_address
from lowwater.spark.pipeline.sections import Section, kind_of
from lowwater.spark.pipeline.toml_places import Path, Places

AVAILABLE_NOW = "available-now"
NAME_HINT = "letters, digits and _ make one, and no digit is first"
_DECODE_TEXTS = {"schema": "schema", "schema_file": "schemaFile", "message": "message", "framing": "framing"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_PIPELINE_NAME = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
_TOML_PLACE = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")


def parse_text(text: str, environment: Mapping[str, str], *, folder: str = ".") -> tuple[Model, Report]:
    """PipelineError when it is not TOML at all; whatever else is wrong stands in the report."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PipelineError([_syntax_problem(str(error), text)]) from None
    return parse_document(document, environment, Report(Places(text)), folder=folder)


def parse_document(
    document: Mapping[str, Any], environment: Mapping[str, str], report: Report, *, folder: str = "."
) -> tuple[Model, Report]:
    """The model, with whatever could be read, and what could not."""
    values = expanded(document, environment, report)
    _keep_secrets_of_remote(values, report)
    section = Section(values, (), PIPELINE, report)
    if "master" in section and "remote" in section:
        section.refuse("remote", "a pipeline has a master or a remote, not both")
    name = section.parsed("name", _pipeline_name) or ""
    sources = tuple(_source(Section(values, path, SOURCE, report), name) for path, values in _tables(section, "source"))
    steps = tuple(_step(Section(values, path, STEP, report)) for path, values in _elements(section, "step"))
    sinks = tuple(_sink(Section(values, path, SINK, report)) for path, values in _tables(section, "sink"))
    model = Model(
        name=name,
        checkpoint=section.text("checkpoint") or "",
        sources=sources,
        steps=steps,
        sinks=sinks,
        interval_ms=_interval_ms(section),
        stop_within_ms=_stop_within_ms(section),
        cut_ms=section.duration_ms("cut"),
        idle_ms=_idle_ms(section),
        aligns=_aligns(section),
        master=section.text("master") or MASTER_DEFAULT,
        remote=section.text("remote"),
        kafka=_kafka(section),
        spark={_spark_name(key): value for key, value in section.settings("spark").items()},
        folder=folder,
        secrets=report.secrets,
    )
    return model, report


def _syntax_problem(message: str, text: str) -> Problem:
    found = _TOML_PLACE.search(message)
    what = message[: found.start()] if found else message
    if found is None or found[1] is None:
        lines = text.splitlines() or [""]
        return Problem(len(lines), len(lines[-1]) + 1, "", f"this is not TOML: {what}")
    return Problem(int(found[1]), int(found[2]), "", f"this is not TOML: {what}")


# ---- what stands at the top


def _pipeline_name(text: str) -> str:
    if not _PIPELINE_NAME.fullmatch(text):
        raise ValueError(f"{text!r} has characters other than a-z A-Z 0-9 . _ -")
    return text


def _keep_secrets_of_remote(values: Any, report: Report) -> None:
    """Before anything else is looked at, and told."""
    remote = values.get("remote") if isinstance(values, Mapping) else None
    for secret in secrets_of_address(remote) if isinstance(remote, str) else ():
        report.secrets.add(secret)


def _interval_ms(section: Section) -> int | None:
    trigger = section.text("trigger")
    if trigger is None or trigger == AVAILABLE_NOW:
        return None
    interval_ms = section.duration_ms("trigger") if trigger[:1].isdigit() else None
    if interval_ms is None and not trigger[:1].isdigit():
        section.refuse("trigger", f"{trigger!r} is no trigger", f"there are {AVAILABLE_NOW} and durations such as 10s")
    return interval_ms


def _stop_within_ms(section: Section) -> int:
    """None at all is a wish too: what runs is cut off at once."""
    stop_within_ms = section.duration_ms("stop_within")
    return STOP_WITHIN_DEFAULT_MS if stop_within_ms is None else stop_within_ms


def _idle_ms(section: Section) -> int | None:
    _need_cut(section, "idle_timeout")
    return section.duration_ms("idle_timeout")


def _aligns(section: Section) -> bool:
    _need_cut(section, "align")
    return "align" not in section or section.flag("align") != "false"


def _need_cut(section: Section, name: str) -> None:
    if name in section and "cut" not in section:
        section.refuse(name, "this counts only with cut")


def _spark_name(name: str) -> str:
    return name if name.startswith("spark.") else f"spark.{name}"


def _kafka(section: Section) -> dict[str, str]:
    settings = section.settings("kafka")
    for name, value in settings.items():
        if is_secret(name):
            section.report.secrets.add(value)
    return settings


def _tables(section: Section, name: str) -> list[tuple[Path, Any]]:
    """[source.orders], [source.payments] …"""
    tables = section.table(name)
    if tables is None:
        return []
    if not tables:
        section.refuse(name, "there is none", f"write [{name}.NAME]")
    found: list[tuple[Path, Any]] = []
    for inner, values in tables.items():
        if (problem := _name_problem(inner)) is not None:
            section.report.key((name, inner), problem, NAME_HINT)
        found.append(((name, inner), values))
    return found


def _elements(section: Section, name: str) -> list[tuple[Path, Any]]:
    """[[step]], [[step]] …"""
    values = section.raw(name)
    if values is None:
        return []
    if not isinstance(values, list | tuple):
        section.refuse(name, f"this has to be a list of tables, not {kind_of(values)}", f"write [[{name}]]")
        return []
    return [((name, place), inner) for place, inner in enumerate(values)]


def _name_problem(name: str) -> str | None:
    return None if _NAME.fullmatch(name) else f"{name!r} cannot be a name in SQL"


# ---- sources


def _source(section: Section, pipeline: str) -> Source:
    return Source(
        name=str(section.path[-1]),
        topics=section.texts("topics"),
        pattern=section.parsed("pattern", _pattern),
        partitions=_partitions(section),
        start=section.text("start") or START_DEFAULT,
        group=section.text("group") or pipeline,
        columns=section.texts("columns"),
        decode=_decode(section),
        watermark=_watermark(section),
        bad_rows=_bad_rows(section),
        skips_losses=section.choice("on_data_loss", ("fail", "skip")) == "skip",
        limit=section.number("limit"),
        kafka=_kafka(section),
        options=section.settings("options"),
    )


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from None
    return text


def _partitions(section: Section) -> dict[str, tuple[int, ...]]:
    taken: dict[str, tuple[int, ...]] = {}
    for topic, numbers in (section.table("partitions") or {}).items():
        is_list = isinstance(numbers, list | tuple) and bool(numbers)
        if not is_list or not all(type(number) is int and number >= 0 for number in numbers):
            path = (*section.path, "partitions", topic)
            section.report.value(path, "this has to be a list of partitions", f"write {{ {topic} = [0, 1] }}")
            continue
        taken[topic] = tuple(numbers)
    return taken


def _decode(section: Section) -> dict[str, str] | None:
    """As options of the source: decode, decode.schema, decode.registry.url …"""
    values = section.raw("decode")
    if values is None:
        return None
    inner = Section(values, (*section.path, "decode"), DECODE, section.report)
    options = {"decode": inner.choice("format", ("json", "avro", "protobuf"))}
    options |= {f"decode.{option}": inner.text(key) for key, option in _DECODE_TEXTS.items()}
    if "emit_defaults" in inner:
        options["decode.emitDefaults"] = inner.flag("emit_defaults")
    return {name: value for name, value in (options | _registry(inner)).items() if value is not None}


def _registry(section: Section) -> dict[str, str | None]:
    values = section.raw("registry")
    if values is None:
        return {}
    if isinstance(values, str):
        return {"decode.registry.url": section.text("registry")}
    inner = Section(values, (*section.path, "registry"), REGISTRY, section.report)
    if isinstance(password := inner.raw("password"), str):
        section.report.secrets.add(password)
    return {f"decode.registry.{name}": inner.scalar(name) for name in REGISTRY.names}


def _watermark(section: Section) -> Watermark | None:
    values = section.raw("watermark")
    if values is None:
        return None
    inner = Section(values, (*section.path, "watermark"), WATERMARK, section.report)
    column, delay_ms = inner.text("column"), inner.duration_ms("delay")
    return None if column is None or delay_ms is None else Watermark(column, delay_ms)


def _bad_rows(section: Section) -> BadRows:
    value = section.raw("on_bad_row")
    if value is None or value == "fail":
        return BadRows()
    if value == "drop":
        return BadRows("drop")
    if isinstance(value, Mapping):
        inner = Section(value, (*section.path, "on_bad_row"), BAD_ROW, section.report)
        return BadRows("dead_letter", inner.text("dead_letter") or "")
    section.refuse(
        "on_bad_row", f"{value!r} is not possible here", 'there are fail, drop and { dead_letter = "topic" }'
    )
    return BadRows()


# ---- steps and sinks


def _step(section: Section) -> Step:
    name = section.text("name") or ""
    if name and (problem := _name_problem(name)) is not None:
        section.refuse("name", problem, NAME_HINT)
    if "python" not in section:
        return _sql_step(section, name)
    if "sql" in section:
        section.refuse("python", "a step is either sql or python", "make two steps of it")
    function = section.raw("python")
    if not callable(function):
        function = section.parsed("python", _function_name) or ""
    if section.is_table and "from" not in section:
        section.report.key(section.path, "from is missing", "it names the sources and steps that the function is given")
    return PythonStep(
        name, function, section.texts("from"), dict(section.table("arguments") or {}), _watermark(section)
    )


def _sql_step(section: Section, name: str) -> SqlStep:
    if section.is_table and "sql" not in section:
        section.report.key(section.path, "sql or python is missing", "one of them says what the step does")
    for other in ("from", "arguments"):
        if other in section:
            section.refuse(other, "this goes with python only", "a query names what it reads itself")
    return SqlStep(name, section.text("sql") or "", _watermark(section))


def _function_name(text: str) -> str:
    module, colon, function = text.partition(":")
    if not colon or not all(part.isidentifier() for part in module.split(".")) or not function.isidentifier():
        raise ValueError(f"{text!r} is not module:function")
    return text


def _sink(section: Section) -> Sink:
    return Sink(
        name=str(section.path[-1]),
        source=section.text("from") or "",
        format=section.choice("format", FORMATS) or "",
        path=section.text("path"),
        topic=section.text("topic"),
        key=section.text("key"),
        encode=section.choice("encode", ("json",)),
        exactly_once="exactly_once" in section and section.flag("exactly_once") == "true",
        sink_id=section.text("sink_id"),
        mode=section.choice("mode", OUTPUT_MODES) or "append",
        partition_by=section.texts("partition_by"),
        kafka=_kafka(section),
        options=section.settings("options"),
    )
