"""Rows of a Fetch answer in plain Python are those of the log; what cannot be read is a typed error that says where."""

from __future__ import annotations

import contextlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.client.fetched import P0, RandomLog, batch

from lowwater.client.errors import CorruptRecordsError, RecordFormatError
from lowwater.client.rows import rows_of
from lowwater.client.slices import FetchedSlice
from lowwater.wire.records import HEADER_SIZE, MAGIC_POSITION, BatchHeader, seal


def fetched(*batches: bytes | bytearray) -> FetchedSlice:
    return FetchedSlice(P0, 0, memoryview(b"".join(batches)))


@given(seed=st.integers(0, 1 << 32), fetch_offset=st.integers(0, 30), cut=st.integers(0, 400))
def test_rows_are_those_of_the_log(seed: int, fetch_offset: int, cut: int) -> None:
    log = RandomLog(P0, random.Random(seed))
    one = log.slice(fetch_offset, cut)
    expected, _ = log.rows(fetch_offset, len(one.records))
    assert [tuple(row) for row in rows_of(one)] == expected


def test_rows_before_a_damaged_batch_come_first() -> None:
    damaged = batch(2, 30)
    damaged[-1] ^= 1
    rows = rows_of(fetched(batch(0, 10, 20), damaged))
    assert [next(rows).offset, next(rows).offset] == [0, 1]
    with pytest.raises(CorruptRecordsError) as caught:
        next(rows)
    assert (caught.value.topic, caught.value.partition, caught.value.offset) == (P0.topic, P0.partition, 2)


def test_records_of_an_old_format_are_named() -> None:
    old = batch(5, 10)
    old[MAGIC_POSITION] = 1
    with pytest.raises(RecordFormatError, match="format 1"):
        list(rows_of(fetched(old)))


def test_a_header_that_contradicts_itself_is_an_error() -> None:
    bad = batch(5, 10)
    bad[8:12] = (3).to_bytes(4, "big")
    with pytest.raises(CorruptRecordsError, match="contradicts itself"):
        list(rows_of(fetched(bad)))


@given(seed=st.integers(0, 1 << 32), changes=st.integers(1, 8), is_sealed=st.booleans())
def test_changed_bytes_give_rows_or_a_typed_error(seed: int, changes: int, is_sealed: bool) -> None:
    chance = random.Random(seed)
    one = RandomLog(P0, chance).slice(0)
    data = bytearray(one.records)
    for _ in range(changes if data else 0):
        data[chance.randrange(len(data))] = chance.randrange(256)
    if is_sealed and len(data) > HEADER_SIZE:
        size = min(BatchHeader.parse(data).size, len(data))
        seal(memoryview(data)[: max(size, HEADER_SIZE)])
    with contextlib.suppress(CorruptRecordsError, RecordFormatError):
        assert all(row.offset >= 0 for row in rows_of(one._replace(records=memoryview(data))))
