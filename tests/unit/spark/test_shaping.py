"""Batches in the shape that Spark expects, from rows as the client has them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lowwater.client.columns import Held
from lowwater.client.errors import CorruptRecordsError
from lowwater.client.slices import FetchedSlice
from lowwater.merge.mark import EVERYTHING
from lowwater.spark.columns import Chosen
from lowwater.spark.decoding.decoder import Decoder
from lowwater.spark.decoding.errors import UndecodableRowError
from lowwater.spark.decoding.spec import DecodeSpec
from lowwater.spark.shaping import HEADERS, MICROSECONDS, TYPES, Shape
from lowwater.types import TopicPartition
from lowwater.wire.records import Record, build_batch

ALL = tuple(Chosen(name) for name in TYPES)


def rows(*records: Record, columns: tuple[str, ...] | None = None) -> Any:
    """As the client hands them out."""
    one = TopicPartition("orders", 3)
    held = Held(order=None, columns=columns)
    held.add(one, 0, len(records))
    held.take([FetchedSlice(one, 0, bytes(build_batch(list(records), base_offset=0)))])
    return held.release(EVERYTHING).batch


def record(offset: int, value: bytes | None = b"v", timestamp: int = 1_700_000_000_123, **more: Any) -> Record:
    return Record(offset, timestamp, more.get("key"), value, more.get("headers", ()))


def test_all_columns_have_the_types_of_the_connector() -> None:
    batch = Shape(ALL).fit(rows(record(0, key=b"k"), record(1, None)))
    assert batch.schema == pa.schema(list(TYPES.items()))
    assert batch.to_pylist()[0] | {"timestamp": None} == {
        "key": b"k",
        "value": b"v",
        "topic": "orders",
        "partition": 3,
        "offset": 0,
        "timestamp": None,
        "timestampType": 0,
        "headers": None,
    }
    assert batch.column("timestamp").cast(pa.int64()).to_pylist() == [1_700_000_000_123_000] * 2
    assert batch.column("key").to_pylist() == [b"k", None]
    assert batch.column("value").to_pylist() == [b"v", None]


def test_headers_are_null_only_in_rows_that_have_none() -> None:
    some = [("a", b"1"), ("b", None), ("a", b"")]
    batch = Shape(ALL).fit(rows(record(0), record(1, headers=some), record(2), record(3, headers=some[:1])))
    pairs = [{"key": name, "value": value} for name, value in some]
    assert batch.column("headers").type == HEADERS
    assert batch.column("headers").to_pylist() == [None, pairs, None, pairs[:1]]
    batch.validate(full=True)


def test_headers_that_every_row_has_need_no_nulls() -> None:
    headers = Shape(ALL).fit(rows(*(record(place, headers=[("h", b"x")]) for place in range(9)))).column("headers")
    assert headers.null_count == 0
    assert headers.to_pylist() == [[{"key": "h", "value": b"x"}]] * 9


def test_a_row_without_a_time_shows_the_last_millisecond_before_1970() -> None:
    batch = Shape(ALL).fit(rows(record(0, timestamp=-1), record(1, timestamp=5)))
    assert batch.column("timestamp").type == MICROSECONDS
    assert batch.column("timestamp").cast(pa.int64()).to_pylist() == [-1000, 5000]


def test_a_time_that_spark_cannot_say_is_an_error_that_names_it() -> None:
    beyond = 2**63 // 1000 + 1
    with pytest.raises(CorruptRecordsError, match=f"stamped {beyond} ms"):
        Shape(ALL).fit(rows(record(0, timestamp=beyond)))


def test_a_shape_of_fewer_columns_reads_fewer() -> None:
    shape = Shape((Chosen("timestampType"), Chosen("offset", is_nullable=False)))
    assert shape.reads == ("timestamp_type", "offset")
    batch = shape.fit(rows(record(0), record(1), columns=shape.reads))
    assert batch.schema == pa.schema([("timestampType", pa.int32()), pa.field("offset", pa.int64(), nullable=False)])
    assert batch.to_pylist() == [{"timestampType": 0, "offset": 0}, {"timestampType": 0, "offset": 1}]


def decoder(**more: str) -> Decoder:
    return Decoder.of(DecodeSpec.of("json", schema="id long", **more))


def test_a_decoded_column_takes_the_place_of_its_bytes() -> None:
    shape = Shape((Chosen("offset"), Chosen("value")), decoder())
    batch = shape.fit(rows(record(0, b'{"id": 7}'), record(1, None), columns=shape.reads))
    assert batch.to_pylist() == [{"offset": 0, "value": {"id": 7}}, {"offset": 1, "value": None}]


def test_a_row_that_cannot_be_decoded_fails_and_is_named() -> None:
    shape = Shape((Chosen("value"),), decoder())
    with pytest.raises(UndecodableRowError) as raised:
        shape.fit(rows(record(0, b'{"id": 7}'), record(1, b"nonsense"), columns=shape.reads))
    assert (raised.value.topic, raised.value.partition, raised.value.offset) == ("orders", 3, 1)


def test_bad_rows_may_be_null_with_their_bytes_and_the_reason_beside_them() -> None:
    names = ("value", "value_raw", "value_error")
    shape = Shape(tuple(map(Chosen, names)), decoder(on_bad="null"))
    assert shape.reads == ("value",)
    good, bad = shape.fit(rows(record(0, b'{"id": 7}'), record(1, b"nonsense"), columns=shape.reads)).to_pylist()
    assert good == {"value": {"id": 7}, "value_raw": None, "value_error": None}
    assert (bad["value"], bad["value_raw"]) == (None, b"nonsense")
    assert bad["value_error"]


def test_nothing_is_decoded_when_the_decoded_column_is_not_chosen() -> None:
    shape = Shape((Chosen("offset"),), decoder())
    assert shape.reads == ("offset",)
    assert shape.fit(rows(record(0, b"nonsense"), columns=shape.reads)).to_pylist() == [{"offset": 0}]
