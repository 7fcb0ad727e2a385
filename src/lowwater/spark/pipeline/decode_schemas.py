"""What sources are decoded by: whether it can be understood, found out before Spark starts."""

from __future__ import annotations

from lowwater.spark.decoding.errors import DecodeError
from lowwater.spark.decoding.spec import DecodeSpec
from lowwater.spark.decoding.spec_shapes import shape_of
from lowwater.spark.pipeline.model import Model, Source
from lowwater.spark.pipeline.problems import Report
from lowwater.spark.pipeline.source_options import reading_options
from lowwater.spark.pipeline.toml_places import Path


def check_decoding(model: Model, source: Source, report: Report) -> None:
    """The options, and a schema that stands among them; one of a registry is looked at by Spark."""
    path: Path = ("source", source.name, "decode")
    try:
        spec = _spec(model, source)
    except DecodeError as error:
        report.value(path, str(error))
        return
    if spec is not None and spec.schema is not None:
        _check_schema(spec, (*path, "schema"), report)


def check_schema_file(model: Model, source: Source, report: Report) -> None:
    """Of a source whose options are right, and whose file is there."""
    spec = _spec(model, source)
    if spec is not None and spec.schema_file is not None:
        _check_schema(spec, ("source", source.name, "decode", "schema_file"), report)


def _spec(model: Model, source: Source) -> DecodeSpec | None:
    return DecodeSpec.parse({name.lower(): text for name, text in reading_options(model, source).items()})


def _check_schema(spec: DecodeSpec, path: Path, report: Report) -> None:
    try:
        shape_of(spec.loaded())
    except DecodeError as error:
        report.value(path, str(error).removeprefix("decode.schema: ").removeprefix("decode.schemaFile: "))
