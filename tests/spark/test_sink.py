"""DataFrames written to topics, and read back by another client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PythonException, StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, BinaryType, IntegerType, StringType, StructType
from tests.spark.reading import PATIENCE_S, Spark
from tests.spark.writing import Topics, Written

HEADERS = ArrayType(StructType().add("key", StringType()).add("value", BinaryType()))

JAVAS_PARTITIONS = {
    "": 2,
    "a": 5,
    "bc": 6,
    "anna": 2,
    "order-17": 6,
    "äöü": 5,
    "a longer key with spaces in it": 0,
    "0123456789": 1,
}
"""Of seven: what Java's client says for these keys."""


def write(spark: Spark, frame: DataFrame, mode: str | None = "append", **options: str) -> None:
    writer = frame.write.format("lowwater").option("kafka.bootstrap.servers", spark.bootstrap).options(**options)
    (writer if mode is None else writer.mode(mode)).save()


def start(spark: Spark, frame: DataFrame, checkpoint: str, mode: str = "append", **options: str) -> Any:
    writer = frame.writeStream.format("lowwater").outputMode(mode).option("checkpointLocation", checkpoint)
    writer = writer.option("kafka.bootstrap.servers", spark.bootstrap).options(**options)
    return writer.trigger(availableNow=True).start()


def finish(query: Any) -> None:
    assert query.awaitTermination(PATIENCE_S), "the query ends"


def contents(rows: list[Written]) -> list[tuple[Any, ...]]:
    """In any order; sorted here."""
    return sorted(((row.key, row.value, row.headers) for row in rows), key=repr)


def test_keys_values_and_headers_are_written_and_other_columns_are_not(spark: Spark, topics: Topics) -> None:
    topic = topics.create(2)
    schema = StructType().add("offset", IntegerType()).add("key", StringType()).add("value", BinaryType())
    rows = [
        (1, "anna", b"\x00\xff", [("origin", b"web"), ("trace", None)], "ignored"),
        (2, "", b"", [], "ignored"),
        (3, None, None, None, "ignored"),
    ]
    frame = spark.session.createDataFrame(rows, schema.add("headers", HEADERS).add("topic", StringType()))
    write(spark, frame, topic=topic)
    assert contents(topics.read(topic)) == contents([
        Written(topic, 0, 0, 0, b"anna", b"\x00\xff", (("origin", b"web"), ("trace", None))),
        Written(topic, 0, 0, 0, b"", b"", None),
        Written(topic, 0, 0, 0, None, None, None),
    ])  # fmt: skip


def test_rows_go_to_the_topic_and_the_partition_that_they_name(spark: Spark, topics: Topics) -> None:
    one, other = topics.create(3), topics.create(3)
    rows = [(f"{topic}/{partition}", topic, partition) for topic in (one, other) for partition in range(3)]
    write(spark, spark.session.createDataFrame(rows, "value string, topic string, partition int"))
    found = [(row.value.decode(), row.topic, row.partition) for row in topics.read(one, other)]
    assert sorted(found) == sorted(rows)


def test_a_key_chooses_the_partition_that_javas_client_chooses(spark: Spark, topics: Topics) -> None:
    topic = topics.create(7)
    rows = [(key, key, None) for key in JAVAS_PARTITIONS]
    write(spark, spark.session.createDataFrame(rows, "key string, value string, partition int"), topic=topic)
    assert {row.value.decode(): row.partition for row in topics.read(topic)} == JAVAS_PARTITIONS


def test_what_spark_has_many_rows_of_is_written_once_each(spark: Spark, topics: Topics) -> None:
    """More than an Arrow batch has, and tasks that have nothing."""
    topic = topics.create(3)
    numbers = spark.session.range(0, 25_000, 1, 2).selectExpr("CAST(id AS STRING) AS value")
    write(spark, numbers.union(numbers.where("false")), topic=topic)
    assert sorted(int(row.value) for row in topics.read(topic)) == list(range(25_000))


def test_what_cannot_be_written_is_said_before_any_task_runs(spark: Spark) -> None:
    with pytest.raises(AnalysisException, match=r"unsupported type int\. value must be a\(n\) string or binary"):
        write(spark, spark.session.sql("SELECT 1 AS value"), topic="t")


def test_topics_are_not_overwritten(spark: Spark) -> None:
    frame = spark.session.sql("SELECT 'a' AS value")
    with pytest.raises(AnalysisException, match="Save mode Overwrite not allowed for Kafka"):
        write(spark, frame, "overwrite", topic="t")
    # Spark itself refuses the default mode for every source in Python.
    with pytest.raises(AnalysisException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        write(spark, frame, None, topic="t")


def test_a_row_that_cannot_be_delivered_fails_the_write(spark: Spark, topics: Topics) -> None:
    topic = topics.create(2)
    with pytest.raises(PythonException, match=r"1 of 1 rows were not written.*too large"):
        write(spark, spark.session.sql("SELECT repeat('x', 2000000) AS value"), topic=topic)
    with pytest.raises(PythonException, match="the topic has 2 partitions"):
        write(spark, spark.session.sql("SELECT 'a' AS value, 9 AS partition"), topic=topic)


def test_a_stream_in_complete_mode_adds_its_result(spark: Spark, topics: Topics) -> None:
    source, counts = topics.create(1), topics.create(1)
    topics.write(source, [b"a", b"b", b"a"])
    frame = spark.stream(subscribe=source, startingOffsets="earliest").groupBy("value").count()
    frame = frame.selectExpr("value AS key", "CAST(count AS STRING) AS value")
    finish(start(spark, frame, spark.checkpoint(), "complete", topic=counts))
    assert contents(topics.read(counts)) == [(b"a", b"2", None), (b"b", b"1", None)]


def fails_beside(file: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Lets rows pass; while the file is there it fails behind the last."""

    def passed(batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches
        if Path(file).exists():
            raise RuntimeError("the task is killed")

    return passed


def test_a_stream_copies_a_topic_and_writes_what_failed_again(spark: Spark, topics: Topics, tmp_path: Path) -> None:
    source, copy, checkpoint, trouble = topics.create(2), topics.create(2), spark.checkpoint(), tmp_path / "trouble"
    topics.write(source, [b"one", None], 0, key=b"k", headers=[("h", b"1")])
    topics.write(source, [b"two"], 1)
    rows = spark.stream(subscribe=source, startingOffsets="earliest", includeHeaders=True)
    frame = rows.mapInArrow(fails_beside(str(trouble)), rows.schema)
    finish(start(spark, frame, checkpoint, topic=copy))
    assert contents(topics.read(copy)) == contents(topics.read(source))
    topics.write(source, [b"%d" % number for number in range(20)], 1)
    trouble.touch()
    with pytest.raises(StreamingQueryException, match="the task is killed"):
        finish(start(spark, frame, checkpoint, topic=copy))
    trouble.unlink()
    finish(start(spark, frame, checkpoint, topic=copy))
    copied = contents(topics.read(copy))
    assert set(copied) == set(contents(topics.read(source)))
    assert sum(value in (b"one", b"two", None) for _, value, _ in copied) == 3, "what was finished is not written again"
