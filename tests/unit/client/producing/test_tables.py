"""Tables of every kind become pieces of rows."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lowwater.client.arrow import SCHEMA
from lowwater.client.errors import BadRowsError
from lowwater.client.producing.tables import (
    BYTES_MAX,
    GROWTH_MAX,
    ROWS_MAX,
    batches_of,
    by_topic,
    offsets,
    outgoing,
    pieces,
    require_columns,
)

TABLE = pa.table({"value": [b"%d" % number for number in range(10)]})


class Stream:
    """Any other library's table."""

    def __arrow_c_stream__(self, requested: Any = None) -> Any:
        return TABLE.__arrow_c_stream__(requested)


class Array:
    def __arrow_c_array__(self, requested: Any = None) -> Any:
        return TABLE.to_batches()[0].__arrow_c_array__(requested)


@pytest.mark.parametrize("table", [TABLE, TABLE.to_batches()[0], TABLE.to_reader(), Stream(), Array()], ids=type)
def test_tables_batches_readers_and_those_of_other_libraries_are_taken(table: Any) -> None:
    assert pa.Table.from_batches(list(batches_of(table))) == TABLE


@pytest.mark.parametrize("table", [[b"a"], {"value": [b"a"]}, None, 5])
def test_what_is_no_table_is_refused(table: Any) -> None:
    with pytest.raises(BadRowsError, match="no Arrow table"):
        list(batches_of(table))


def test_many_small_chunks_are_put_together() -> None:
    table = pa.concat_tables([TABLE] * 500)
    [batch] = batches_of(table)
    assert batch.num_rows == 5_000


def test_pieces_are_bounded_by_rows_and_by_bytes_and_grow_with_partitions() -> None:
    numbers = pa.RecordBatch.from_pydict({"value": pa.array(np.zeros(ROWS_MAX * 3 + 5, np.int8))})
    assert [piece.num_rows for piece in pieces(numbers, 4)] == [ROWS_MAX] * 3 + [5]
    assert [piece.num_rows for piece in pieces(numbers, 256)] == [2 * ROWS_MAX, ROWS_MAX + 5]
    assert max(piece.num_rows for piece in pieces(numbers, 1 << 20)) <= GROWTH_MAX * ROWS_MAX
    large = pa.RecordBatch.from_pydict({"value": [b"x" * (BYTES_MAX // 4)] * 9})
    assert max(piece.num_rows for piece in pieces(large, 1)) <= 4
    huge = pa.RecordBatch.from_pydict({"value": [b"x" * (BYTES_MAX * 2)] * 2})
    assert [piece.num_rows for piece in pieces(huge, 1)] == [1, 1]
    assert list(pieces(numbers.slice(0, 0), 4)) == []


@pytest.mark.parametrize("kind", [pa.utf8(), pa.large_utf8(), pa.binary(), pa.dictionary(pa.int8(), pa.utf8())])
def test_rows_are_told_apart_by_the_topic_they_name(kind: Any) -> None:
    topics = pa.array(["b", "a", "b", "c"], pa.utf8())
    topics = topics.dictionary_encode() if pa.types.is_dictionary(kind) else topics.cast(kind)
    batch = pa.RecordBatch.from_pydict({"topic": topics, "value": [b"0", b"1", b"2", b"3"]})
    found = {name: (part.column("value").to_pylist(), list(numbers)) for name, part, numbers in by_topic(None, batch)}
    assert found == {"a": ([b"1"], [1]), "b": ([b"0", b"2"], [0, 2]), "c": ([b"3"], [3])}


def test_a_topic_that_is_given_goes_before_the_column() -> None:
    batch = pa.RecordBatch.from_pydict({"topic": ["x", "y"], "value": [b"0", b"1"]})
    assert [(name, part.num_rows) for name, part, _ in by_topic("given", batch)] == [("given", 2)]


def test_columns_that_cannot_be_records_say_which_kind_they_are() -> None:
    with pytest.raises(BadRowsError, match="list"):
        outgoing(pa.RecordBatch.from_pydict({"value": [[1, 2]]}), 0)


@pytest.mark.parametrize(
    ("times", "says"),
    [
        (["yesterday"], "the column timestamp is string, not of times"),
        (["1700000000000"], "the column timestamp is string, not of times"),
        ([b"5"], "the column timestamp is binary"),
        ([True], "the column timestamp is bool"),
        ([timedelta(hours=1)], "the column timestamp is duration"),
        ([1700000000.5], "the column timestamp cannot be written as milliseconds: .*truncated"),
        (pa.array([1 << 63], pa.uint64()), "the column timestamp cannot be written as milliseconds"),
    ],
)
def test_a_column_of_what_is_no_time_is_refused_by_its_name(times: Any, says: str) -> None:
    with pytest.raises(BadRowsError, match=says):
        outgoing(pa.RecordBatch.from_pydict({"value": [b"x"], "timestamp": times}), 0)


@pytest.mark.parametrize(
    ("times", "found"),
    [
        ([5, None], [5, 9]),
        ([5.0, None], [5, 9]),
        (pa.array([5, None], pa.uint16()), [5, 9]),
        (pa.nulls(2), [9, 9]),
        ([datetime(1970, 1, 1, 0, 0, 1), None], [1000, 9]),
        ([datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), None], [1000, 9]),
        (pa.array([date(1970, 1, 2), None], pa.date64()), [86_400_000, 9]),
    ],
)
def test_a_column_of_times_or_milliseconds_is_taken_and_without_a_zone_it_is_in_utc(times: Any, found: Any) -> None:
    batch = pa.RecordBatch.from_pydict({"value": [b"x", b"y"], "timestamp": times})
    assert outgoing(batch, 9).timestamps.tolist() == found


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["key", "vaule"], "did you mean value"),
        (["a"], "'a' cannot be written"),
        (["partition", "timestamp"], "neither"),
        (["value", "value"], "2 columns"),
    ],
)
def test_columns_that_would_be_lost_are_refused(names: list[str], words: str) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([b"x"])] * len(names), names=names)
    with pytest.raises(BadRowsError, match=words):
        require_columns(batch)


def test_batches_of_a_reader_may_be_sent() -> None:
    require_columns(pa.RecordBatch.from_pylist([], schema=SCHEMA))
    require_columns(pa.RecordBatch.from_pydict({"key": [b"k"]}))


def test_offsets_stand_where_their_rows_do() -> None:
    found = offsets(6, [(np.array([4, 1]), 10), (np.array([0]), -1), (np.array([5]), 3)])
    assert found.to_pylist() == [None, 11, None, None, 10, 3]
