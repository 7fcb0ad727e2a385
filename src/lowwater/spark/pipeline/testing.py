"""Running the tests of a pipeline: rows of the file in place of its sources, in a session of Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lowwater.spark.pipeline.building import build
from lowwater.spark.pipeline.decode_errors import TOMBSTONE, decoded_rows
from lowwater.spark.pipeline.failures import told_without
from lowwater.spark.pipeline.fixtures import Case, Difference, Fixtures, Row, TestReport, compare, result_of
from lowwater.spark.pipeline.model import BadRows, Model, Source
from lowwater.spark.pipeline.problems import Report, did_you_mean
from lowwater.spark.pipeline.row_values import misfits, to_spark
from lowwater.spark.pipeline.source_options import reading_options
from lowwater.spark.pipeline.toml_places import Path
from lowwater.spark.pipeline.views import views_put_back

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def run_fixtures(spark: SparkSession, model: Model, fixtures: Fixtures) -> TestReport:
    """PipelineError for rows with columns that their source does not have, or with values of another type.

    SparkFailedError when a step fails on its rows.
    """
    schemas = {source.name: _columns(spark, model, source) for source in model.sources}
    _check_columns(fixtures, schemas)
    differences: list[Difference] = []
    with told_without(model.secrets), views_put_back(spark, model):
        for case in fixtures.cases:
            differences += _differences(spark, model, case, schemas)
    return TestReport(len(fixtures.cases), sum(len(case.expect) for case in fixtures.cases), tuple(differences))


def _columns(spark: SparkSession, model: Model, source: Source) -> StructType:
    """Those that steps see."""
    from lowwater.spark.source import LowwaterSource

    options = {name.lower(): value for name, value in reading_options(model, source).items()}
    offered = LowwaterSource(options).schema()
    rows = spark.createDataFrame([], offered)
    # Rows that cannot be decoded do not come here: they need not be counted.
    schema = decoded_rows(rows, replace(source, bad_rows=BadRows())).schema
    kept = [field for field in schema.fields if not source.columns or _is_kept(field.name, source)]
    return type(schema)(kept)


def _is_kept(name: str, source: Source) -> bool:
    from lowwater.spark.pipeline.model import RECORD_COLUMNS

    return name in source.columns or name not in RECORD_COLUMNS


def _check_columns(fixtures: Fixtures, schemas: Mapping[str, StructType]) -> None:
    for case in fixtures.cases:
        for name, rows in case.given.items():
            for place, row in enumerate(rows):
                _check_row(name, row, schemas[name], (*case.path, "given", name, place), fixtures.report)
    fixtures.raise_problems()


def _check_row(source: str, row: Row, schema: StructType, path: Path, report: Report) -> None:
    known = schema.names
    for column, value in row.items():
        if column not in known:
            hint = did_you_mean(column, known) or f"there are {', '.join(known)}"
            report.key((*path, column), f"{source} has no column {column}", hint)
            continue
        for where, what in misfits(value, schema[column].dataType, (*path, column)):
            report.value(where, what)


def _differences(spark: SparkSession, model: Model, case: Case, schemas: Mapping[str, StructType]) -> list[Difference]:
    inputs = {
        source.name: _frame(spark, source, case.given.get(source.name, []), schemas[source.name])
        for source in model.sources
    }
    found = []
    for name, expected in case.expect.items():
        frame = build(spark, model, result_of(model, name), inputs=inputs)
        rows = _collected(frame, expected)
        if (difference := compare(case.name, name, expected, rows)) is not None:
            found.append(difference)
    return found


def _frame(spark: SparkSession, source: Source, rows: Sequence[Row], schema: StructType) -> DataFrame:
    defaults = {"topic": next(iter((*source.topics, *source.partitions)), source.name), "partition": 0}
    defaults |= {TOMBSTONE: False, "timestampType": 0}
    made = []
    for place, row in enumerate(rows):
        values: dict[str, Any] = {**defaults, "offset": place, **row}
        made.append(tuple(to_spark(values.get(field.name), field.dataType) for field in schema.fields))
    return spark.createDataFrame(made, schema)


def _collected(frame: DataFrame, expected: Sequence[Row]) -> list[Row]:
    columns = [name for name in (expected[0] if expected else frame.columns) if name in frame.columns]
    rows: list[Row] = frame.select(*columns).toArrow().to_pylist()
    return rows
