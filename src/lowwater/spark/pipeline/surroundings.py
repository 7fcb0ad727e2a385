"""What a pipeline needs of this machine: functions, files, packages, Java. Found out before Spark starts."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from lowwater.spark.java import JavaError, find_java
from lowwater.spark.pipeline.decode_schemas import check_schema_file
from lowwater.spark.pipeline.model import Model
from lowwater.spark.pipeline.problems import Report
from lowwater.spark.pipeline.python_steps import check_functions

_FILES = {"decode.schemaFile": ("schema_file",), "decode.registry.ca": ("registry", "ca")}


def check_surroundings(model: Model, report: Report) -> None:
    """Reports what is missing. Modules of Python steps are imported for that."""
    check_functions(model, model.folder, report)
    _check_files(model, report)
    _check_packages(model, report)
    if model.remote is None:
        try:
            find_java()
        except JavaError as error:
            report.key((), str(error))


def _check_files(model: Model, report: Report) -> None:
    for source in model.sources:
        for option, keys in _FILES.items():
            name = (source.decode or {}).get(option)
            if name is not None and not Path(model.location(name)).is_file():
                report.value(("source", source.name, "decode", *keys), f"there is no file {name}")
            elif name is not None and option == "decode.schemaFile":
                check_schema_file(model, source, report)


def _check_packages(model: Model, report: Report) -> None:
    if importlib.util.find_spec("pyspark") is None:
        report.key((), "the package pyspark is not installed", "pip install 'lowwater[spark]'")
    for sink in model.sinks:
        if sink.format == "delta" and importlib.util.find_spec("delta") is None:
            hint = "pip install delta-spark, or use parquet"
            report.value(("sink", sink.name, "format"), "the package delta-spark is not installed", hint)
