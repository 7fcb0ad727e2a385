"""Arrow rows written as record batches are read back the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.client.outgoing import OutgoingRows
from lowwater.wire import compression
from lowwater.wire.records import HEADER_SIZE, BatchHeader, Record, crc_ok, read_records

FIELDS = st.none() | st.binary(max_size=100)
HEADERS = st.lists(st.tuples(st.text(max_size=8), FIELDS), max_size=3)
ROWS = st.lists(st.tuples(st.integers(-1, 1 << 45), FIELDS, FIELDS, HEADERS), min_size=1, max_size=30)
NOW_MS = 1_700_000_000_000
Row = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def batch_of(rows: list[Row]) -> Any:
    timestamps, keys, values, headers = zip(*rows, strict=True)
    pairs = [[{"key": name, "value": value} for name, value in one] for one in headers]
    kind = pa.list_(pa.struct([("key", pa.utf8()), ("value", pa.binary())]))
    columns = {
        "key": pa.array(keys, pa.binary()),
        "value": pa.array(values, pa.binary()),
        "timestamp": pa.array(timestamps, pa.int64()),
        "headers": pa.array(pairs, kind),
    }
    return pa.RecordBatch.from_pydict(columns)


def every(rows: OutgoingRows) -> Any:
    return np.arange(rows.count)


def values_of(batch: Any, **of: Any) -> list[Any]:
    rows = OutgoingRows(batch, now_ms=NOW_MS)
    return [
        getattr(one, of.get("field", "value")) for one in read_records(rows.encode(every(rows), bytes_max=1 << 20).data)
    ]


@given(ROWS, st.integers(0, 4), st.randoms())
def test_any_rows_in_any_order_are_read_back_as_they_were(rows: list[Row], codec: int, chance: Any) -> None:
    outgoing = OutgoingRows(batch_of(rows), now_ms=NOW_MS)
    chosen = list(range(len(rows)))
    chance.shuffle(chosen)
    data, count = outgoing.encode(np.array(chosen), bytes_max=1 << 20, codec=codec, producer_id=7, base_sequence=9)
    header = BatchHeader.parse(data)
    assert count == header.record_count == len(rows)
    assert crc_ok(data, header)
    assert header.size == len(data)
    assert (header.codec, header.producer_id, header.base_sequence) == (codec, 7, 9)
    assert header.max_timestamp == max(row[0] for row in rows)
    expected = [Record(at, *rows[row][:3], tuple(rows[row][3])) for at, row in enumerate(chosen)]
    assert list(read_records(data)) == expected


@given(ROWS, st.integers(62, 600))
def test_batches_are_as_large_as_allowed_and_hold_every_row_once(rows: list[Row], bytes_max: int) -> None:
    outgoing = OutgoingRows(batch_of(rows), now_ms=NOW_MS)
    first, found = 0, []
    while first < len(rows):
        data, count = outgoing.encode(every(outgoing), first, bytes_max=bytes_max)
        assert len(data) <= bytes_max or count == 1
        if first + count < len(rows):
            more, _ = outgoing.encode(every(outgoing)[: first + count + 1], first, bytes_max=1 << 20)
            assert len(more) > bytes_max
        found += [one.value for one in read_records(data)]
        first += count
    assert found == [row[2] for row in rows]


@given(ROWS, st.integers(1, 5), st.integers(62, 600), st.data())
def test_rows_of_many_partitions_are_written_at_once_each_in_its_place(
    rows: list[Row], partitions: int, bytes_max: int, data: st.DataObject
) -> None:
    places = data.draw(st.lists(st.integers(-1, partitions - 1), min_size=len(rows), max_size=len(rows)))
    outgoing = OutgoingRows(batch_of(rows), now_ms=NOW_MS)
    found: dict[int, list[Record]] = {}
    numbers: dict[int, list[int]] = {}
    for one in outgoing.spread(np.array(places, np.int32), partitions, bytes_max=bytes_max):
        encoded = outgoing.encode(one.chosen, bytes_max=1 << 20)
        assert encoded.data[HEADER_SIZE:] == one.data[HEADER_SIZE:], "as if each batch were written for itself"
        header = BatchHeader.parse(encoded.data)
        assert (header.base_timestamp, header.max_timestamp) == (one.base_timestamp, one.newest)
        assert len(one.data) <= bytes_max or len(one.chosen) == 1
        found.setdefault(one.partition, []).extend(read_records(encoded.data))
        numbers.setdefault(one.partition, []).extend(one.chosen)
    expected = {
        partition: [number for number, place in enumerate(places) if place == partition]
        for partition in set(places) - {-1}
    }
    assert numbers == expected
    assert {partition: [one.value for one in records] for partition, records in found.items()} == {
        partition: [rows[number][2] for number in chosen] for partition, chosen in expected.items()
    }


def test_rows_without_a_time_get_that_of_now() -> None:
    assert values_of(pa.RecordBatch.from_pydict({"value": [b"a"]}), field="timestamp") == [NOW_MS]
    some = pa.RecordBatch.from_pydict({"value": [b"a", b"b"], "timestamp": pa.array([5, None], pa.timestamp("ms"))})
    assert values_of(some, field="timestamp") == [5, NOW_MS]


def test_times_of_every_unit_are_milliseconds() -> None:
    for unit, number in (("s", 2), ("ms", 2_000), ("us", 2_000_999), ("ns", 2_000_999_999)):
        batch = pa.RecordBatch.from_pydict({"value": [b""], "timestamp": pa.array([number], pa.timestamp(unit, "UTC"))})
        assert values_of(batch, field="timestamp") == [2_000]


@pytest.mark.parametrize(
    "kind", [pa.utf8(), pa.large_binary(), pa.large_utf8(), pa.dictionary(pa.int8(), pa.utf8()), pa.string_view()]
)
def test_texts_and_bytes_of_every_kind_are_written(kind: Any) -> None:
    texts = pa.array(["a", None, "", "ö"], pa.utf8()).cast(kind)
    assert values_of(pa.RecordBatch.from_pydict({"value": texts})) == [b"a", None, b"", "ö".encode()]


def test_a_part_of_a_batch_is_written_as_that_part() -> None:
    rows: list[Row] = [(at, b"%d" % at, None if at % 2 else b"v%d" % at, [("h", b"%d" % at)]) for at in range(10)]
    outgoing = OutgoingRows(batch_of(rows).slice(3, 4), now_ms=NOW_MS)
    found = list(read_records(outgoing.encode(every(outgoing), bytes_max=1 << 20).data))
    assert found == [Record(at, *row[:3], tuple(row[3])) for at, row in enumerate(rows[3:7])]


def test_headers_may_be_a_map_and_may_be_missing() -> None:
    headers = pa.array([[("a", b"1")], None, []], pa.map_(pa.utf8(), pa.binary()))
    batch = pa.RecordBatch.from_pydict({"value": [b"x"] * 3, "headers": headers})
    assert values_of(batch, field="headers") == [(("a", b"1"),), (), ()]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"value": [1, 2]}, "int64"),
        ({"value": [b"x"], "headers": [3]}, "headers are"),
        ({"value": [b"x"], "headers": [[b"x"]]}, "headers are"),
        ({"value": [b"x"], "headers": [[{"key": None, "value": b"x"}]]}, "no key|null"),
    ],
)
def test_columns_that_cannot_be_records_are_refused(columns: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        OutgoingRows(pa.RecordBatch.from_pydict(columns), now_ms=NOW_MS)


def test_codecs_are_those_of_the_wire() -> None:
    rows = OutgoingRows(pa.RecordBatch.from_pydict({"value": [b"x" * 1000] * 50}), now_ms=NOW_MS)
    plain = rows.encode(every(rows), bytes_max=1 << 20)
    packed = rows.encode(every(rows), bytes_max=1 << 20, codec=compression.ZSTD)
    assert len(packed.data) < len(plain.data) // 10
