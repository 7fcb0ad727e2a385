"""Options in combination: the rows are those that confluent-kafka reads.

Any two choices stand together in a query that is made as Spark makes it; every choice, in batch and in streams, in one
that Spark itself runs. `python -m tests.spark.every_case` tries them all.
"""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from tests.conformance.under_test import UnderTest
from tests.spark.as_spark_calls import batch_rows, stream_batches
from tests.spark.checking import check
from tests.spark.matrix import FEWER, STARTS_BEHIND_ITS_END, Expectations, choices, cover, pairs
from tests.spark.prepared import Prepared
from tests.spark.reading import Spark
from tests.spark.writing import Topics

from lowwater.spark.limits import RangeError
from lowwater.spark.option_table import OptionError


@pytest.fixture(scope="module")
def prepared(broker: UnderTest, topics: Topics) -> Prepared:
    return Prepared(broker.bootstrap, topics)


@pytest.fixture(scope="module")
def expectations(prepared: Prepared) -> Expectations:
    return Expectations(prepared)


def test_any_two_choices_together_give_the_rows_of_another_client(
    broker: UnderTest, expectations: Expectations
) -> None:
    cases = cover(pairs)
    for case in cases:
        query = expectations.of(case)
        options = {"kafka.bootstrap.servers": broker.bootstrap, **query.options}
        if query.rows is None:
            with pytest.raises((RangeError, OptionError), match=STARTS_BEHIND_ITS_END):
                batch_rows(options)
            continue
        columns = FEWER if case.columns == "fewer" else ()
        batches = [batch_rows(options, columns)] if case.is_batch else stream_batches(options, columns)
        check(case, query, batches)
    assert sum(1 for case in cases if expectations.of(case).rows) > len(cases) / 2


def test_every_choice_gives_these_rows_on_spark(spark: Spark, expectations: Expectations) -> None:
    for case in cover(choices):
        query = expectations.of(case)
        options = {name.replace(".", "_"): value for name, value in query.options.items()}
        schema = "topic string, partition int, offset long, value binary" if case.columns == "fewer" else None
        if query.rows is None:
            with pytest.raises(PySparkException, match=STARTS_BEHIND_ITS_END):
                spark.read(schema, **options).collect()
        elif case.is_batch:
            check(case, query, [rows_of(spark.read(schema, **options))])
        else:
            check(case, query, drained(spark, schema, options))


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    return frame.toArrow().to_pylist()  # type: ignore[no-any-return]


def drained(spark: Spark, schema: str | None, options: dict[str, str]) -> list[list[dict[str, Any]]]:
    batches: list[list[dict[str, Any]]] = []
    frame = spark.stream(schema, **options)
    query = spark.start(frame, lambda rows, _: batches.append(rows_of(rows)), spark.checkpoint(), availableNow=True)
    assert query.awaitTermination(300), "the query ends"
    return batches
