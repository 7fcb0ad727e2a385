"""Values decoded by the source: typed columns in Spark, bad rows failing or kept, schemas from a registry."""

from __future__ import annotations

import datetime
import decimal
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PythonException
from tests.spark.reading import Spark
from tests.spark.writing import Topics
from tests.unit.spark.decoding.avro_cases import encode
from tests.unit.spark.decoding.protobuf_cases import Cases, expected
from tests.unit.spark.decoding.registries import FakeRegistry, serving

COLUMNS = (
    "id bigint, paid boolean, price decimal(10,2), weight double, tiny tinyint, day date, at timestamp,"
    " local timestamp_ntz, raw binary, tags array<string>, seen map<string, int>, line struct<sku: string, n: int>"
)
ORDER = {
    "id": 7,
    "paid": True,
    "price": "12.50",
    "weight": 0.5,
    "tiny": -1,
    "day": "2024-02-29",
    "raw": "YWI=",
    "at": "2024-02-29T12:00:00+02:00",
    "local": "2024-02-29T12:00:00",
    "tags": ["a", None],
    "seen": {"x": 1},
    "line": {"sku": "é", "n": None},
    "unknown": [1],
}
WHOLE = {
    "id": 7,
    "paid": True,
    "price": decimal.Decimal("12.50"),
    "weight": 0.5,
    "tiny": -1,
    "raw": bytearray(b"ab"),
    "day": datetime.date(2024, 2, 29),
    "local": datetime.datetime(2024, 2, 29, 12),
    "tags": ["a", None],
    "seen": {"x": 1},
    "line": {"sku": "é", "n": None},
}


@pytest.fixture(scope="module")
def orders(topics: Topics) -> str:
    """A good row, a tombstone, a broken row, an empty object."""
    topic = topics.create(1, "spark-decode")
    topics.write(topic, [json.dumps(ORDER).encode(), None, b'{"id": 7', b"{}"])
    return topic


def test_json_is_typed_columns_and_bad_rows_are_kept_with_their_reason(spark: Spark, orders: str) -> None:
    frame = spark.read(subscribe=orders, decode="json", decode_schema=COLUMNS, decode_onBad="null")
    types = dict(frame.dtypes)
    assert types["value"] == (
        "struct<id:bigint,paid:boolean,price:decimal(10,2),weight:double,tiny:tinyint,day:date,at:timestamp,"
        "local:timestamp_ntz,raw:binary,tags:array<string>,seen:map<string,int>,line:struct<sku:string,n:int>>"
    )
    assert (frame.columns[-2:], types["value_raw"], types["value_error"]) == (
        ["value_raw", "value_error"],
        "binary",
        "string",
    )
    good, tombstone, bad, empty = sorted(frame.collect(), key=lambda row: row.offset)
    found = good.value.asDict(recursive=True)
    assert found.pop("at").timestamp() == datetime.datetime(2024, 2, 29, 10, tzinfo=datetime.UTC).timestamp()
    assert found == WHOLE
    assert set(empty.value.asDict().values()) == {None}
    assert [(row.value, row.value_raw, row.value_error) for row in (tombstone, bad)] == [
        (None, None, None),
        (None, bytearray(b'{"id": 7'), "the JSON ends too early (byte 8)"),
    ]


def test_a_bad_row_fails_the_query_and_says_where_it_is(spark: Spark, orders: str) -> None:
    with pytest.raises(PythonException) as caught:
        spark.read(subscribe=orders, decode="json", decode_schema=COLUMNS).collect()
    assert f"the value of {orders}-0 at offset 2 cannot be decoded: the JSON ends too early" in str(caught.value)


def test_avro_rows_of_two_versions_are_read_as_the_subjects_latest(spark: Spark, topics: Topics) -> None:
    first: dict[str, Any] = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "int"}]}
    second = {**first, "fields": [{"name": "n", "type": "long"}, {"name": "s", "type": "string", "default": "none"}]}
    registry = FakeRegistry(login="me:sesame")
    topic = topics.create(1, "spark-avro")
    registry.add(1, f"{topic}-value", 1, json.dumps(first))
    registry.add(2, f"{topic}-value", 2, json.dumps(second))
    topics.write(
        topic, [b"\0\0\0\0\x01" + encode(first, {"n": 1}), b"\0\0\0\0\x02" + encode(second, {"n": 2, "s": "x"})]
    )
    login = {"decode_registry_user": "me", "decode_registry_password": "sesame"}
    with serving(registry):
        options = {"subscribe": topic, "startingOffsets": "earliest", "decode": "avro", **login}
        batches = spark.drain(spark.checkpoint(), **options, decode_registry_url=registry.url)
    rows = [row for batch in batches for row in batch]
    assert sorted((row.value.n, row.value.s) for row in rows) == [(1, "none"), (2, "x")]


def test_protobuf_rows_are_read_by_a_descriptor_set(spark: Spark, topics: Topics, tmp_path: Path) -> None:
    cases = Cases(5, "proto3")
    (tmp_path / "m.desc").write_bytes(cases.descriptor_set())
    messages = [cases.message() for _ in range(20)]
    topic = topics.create(1, "spark-protobuf")
    topics.write(topic, [message.SerializeToString() for message in messages])
    options = {"decode_schemaFile": str(tmp_path / "m.desc"), "decode_message": cases.name}
    rows = spark.read(subscribe=topic, decode="protobuf", **options).collect()
    found = [_comparable(row.value.asDict(recursive=True)) for row in sorted(rows, key=lambda row: row.offset)]
    assert found == [_comparable(expected(message, False)) for message in messages]


def _comparable(value: Any) -> Any:
    """Times as moments, bytes as bytes, however the two sides hold them."""
    if isinstance(value, dict):
        return {key: _comparable(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_comparable(one) for one in value]
    if isinstance(value, datetime.datetime):
        return round(value.timestamp() * 1_000_000)
    return bytes(value) if isinstance(value, bytearray) else value
