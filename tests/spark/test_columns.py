"""Columns, types and values are those of Spark's Kafka connector; the rows are those that another client sees."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, PythonException
from tests.spark.reading import Spark, written
from tests.spark.writing import Topics

SIMPLE = [
    ("key", "binary"),
    ("value", "binary"),
    ("topic", "string"),
    ("partition", "int"),
    ("offset", "bigint"),
    ("timestamp", "timestamp"),
    ("timestampType", "int"),
]
HEADERS = ("headers", "array<struct<key:string,value:binary>>")


@pytest.fixture(scope="module")
def varied(topics: Topics) -> str:
    """Null and empty keys and values, times of long ago, headers of all kinds."""
    topic = topics.create(2, "spark-varied")
    topics.write(topic, [b"plain", b"", None], 0, key=b"k", timestamp=1_700_000_000_123)
    topics.write(topic, [b"no key"], 0, timestamp=1)
    topics.write(topic, [b"empty key"], 1, key=b"", timestamp=1_800_000_000_999)
    topics.write(topic, [b"headers"], 1, headers=[("a", b"1"), ("a", b"2"), ("nothing", None), ("empty", b"")])
    topics.write(topic, [b"none again"], 1)
    return topic


def test_columns_are_those_of_the_connector(spark: Spark, varied: str) -> None:
    frame = spark.read(subscribe=varied)
    assert frame.dtypes == SIMPLE
    assert all(field.nullable for field in frame.schema)
    assert spark.read(subscribe=varied, includeHeaders="true").dtypes == [*SIMPLE, HEADERS]
    assert spark.stream(subscribe=varied).dtypes == SIMPLE


def test_rows_are_those_that_another_client_reads(spark: Spark, topics: Topics, varied: str) -> None:
    rows = spark.read(subscribe=varied, includeHeaders="true").collect()
    assert written(rows) == topics.read(varied)
    assert {row.timestampType for row in rows} == {0}


def test_a_stream_gives_the_same_rows(spark: Spark, topics: Topics, varied: str) -> None:
    [batch] = spark.drain(spark.checkpoint(), subscribe=varied, startingOffsets="earliest", includeHeaders="true")
    assert written(batch) == topics.read(varied)


def test_a_topic_that_the_broker_stamps_says_so(spark: Spark, topics: Topics) -> None:
    topic = topics.create(1, config={"message.timestamp.type": "LogAppendTime"})
    topics.write(topic, [b"stamped"], timestamp=5)
    [row] = spark.read(subscribe=topic).collect()
    assert row.timestampType == 1
    assert row.timestamp.year > 2000


def test_a_schema_of_fewer_columns_gives_those_in_its_order(spark: Spark, topics: Topics, varied: str) -> None:
    frame = spark.read("offset long, value binary, partition int not null", subscribe=varied)
    assert frame.dtypes == [("offset", "bigint"), ("value", "binary"), ("partition", "int")]
    found = sorted((row.partition, row.offset, row.value) for row in frame.collect())
    assert found == [(row.partition, row.offset, row.value) for row in topics.read(varied)]


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("offset int", "offset is bigint, not int"),
        ("value binary, ofset long", "no column ofset; did you mean offset"),
        ("headers array<struct<key: string, value: binary>>", "includeHeaders"),
        ("key binary not null", "key may be null"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused_with_the_reason(
    spark: Spark, varied: str, schema: str, why: str
) -> None:
    with pytest.raises((AnalysisException, PythonException), match=why):
        spark.read(schema, subscribe=varied).collect()


def test_decoded_columns_take_the_place_of_bytes(spark: Spark, topics: Topics) -> None:
    topic = topics.create(1)
    topics.write(topic, [b'{"id": 1, "at": "2026-11-01T10:00:00Z"}', None, b"broken"])
    decode = {"decode": "json", "decode_schema": "id long, at timestamp", "decode_onBad": "null"}
    rows = spark.read(subscribe=topic, **decode).orderBy("offset").collect()
    assert [None if row.value is None else row.value.id for row in rows] == [1, None, None]
    assert [row.value_error is not None for row in rows] == [False, False, True]
    assert bytes(rows[2].value_raw) == b"broken"
    failing = spark.read(subscribe=topic, decode="json", decode_schema="id long")
    with pytest.raises(PythonException, match=f"{topic}-0 at offset 2"):
        failing.collect()
