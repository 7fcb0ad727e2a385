"""Which partition a row goes to."""

from __future__ import annotations

import itertools
import zlib
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.client.virtual import SeededIds

from lowwater.client.outgoing import OutgoingRows
from lowwater.client.producing.partitioning import WAYS, Partitioner
from lowwater.client.producing.tables import named_partitions

KEYS = st.lists(st.none() | st.binary(max_size=40), min_size=1, max_size=60)
MASK = 0xFFFFFFFF


def murmur2(key: bytes) -> int:
    """By the book, a byte at a time."""
    value = 0x9747B28C ^ len(key)
    whole = len(key) - len(key) % 4
    for at in range(0, whole, 4):
        part = int.from_bytes(key[at : at + 4], "little") * 0x5BD1E995 & MASK
        part = (part ^ part >> 24) * 0x5BD1E995 & MASK
        value = (value * 0x5BD1E995 & MASK) ^ part
    if len(key) % 4:
        value = (value ^ int.from_bytes(key[whole:], "little")) * 0x5BD1E995 & MASK
    value = (value ^ value >> 13) * 0x5BD1E995 & MASK
    return (value ^ value >> 15) & 0x7FFFFFFF


def spread(
    keys: list[bytes | None], partitions: int, way: str = "murmur2_random", named: Any = None, **of: Any
) -> tuple[list[int | None], Any]:
    """The partition of each row, and the rows that have none."""
    values = of.get("values", [b"value"] * len(keys))
    batch = pa.RecordBatch.from_pydict({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})
    partitioner = Partitioner(way, of.get("batch_bytes", 1_000_000), SeededIds(of.get("seed", 0)))
    parts, wrong = partitioner.spread(OutgoingRows(batch, now_ms=0), named, partitions)
    found: list[int | None] = [None] * len(keys)
    last = dict.fromkeys(range(partitions), -1)
    for partition, rows, *_ in parts:
        assert [last[partition], *rows] == sorted([last[partition], *rows]), "rows of a partition keep their order"
        last[partition] = rows[-1]
        for row in rows:
            assert found[row] is None, "a row goes to one partition"
            found[row] = partition
    return found, wrong


@given(KEYS, st.integers(1, 300))
def test_keys_choose_as_with_java(keys: list[bytes | None], partitions: int) -> None:
    found, _ = spread(keys, partitions)
    for key, partition in zip(keys, found, strict=True):
        assert partition is not None
        assert partition < partitions
        assert key is None or partition == murmur2(key) % partitions


@given(KEYS, st.integers(1, 300))
def test_keys_choose_as_with_librdkafka_where_it_is_asked_for(keys: list[bytes | None], partitions: int) -> None:
    found, _ = spread(keys, partitions, "consistent_random")
    for key, partition in zip(keys, found, strict=True):
        assert not key or partition == zlib.crc32(key) % partitions


def test_without_random_rows_that_have_no_key_share_a_partition() -> None:
    assert spread([None, b"", None], 7, "murmur2")[0] == [murmur2(b"") % 7] * 3
    assert spread([None, b"", None], 7, "consistent")[0] == [0, 0, 0]


def test_random_ways_deal_out_rows_without_a_key() -> None:
    for way in ("murmur2_random", "consistent_random", "random"):
        seen = {spread([None], 4, way, seed=seed)[0][0] for seed in range(50)}
        assert seen == {0, 1, 2, 3}, way
    assert len({spread([b"same"], 4, "random", seed=seed)[0][0] for seed in range(50)}) == 4


def test_a_few_rows_without_a_key_stay_together() -> None:
    found, _ = spread([None] * 50, 8)
    assert len(set(found)) == 1


def test_many_rows_without_a_key_are_shared_evenly_in_long_runs() -> None:
    found, _ = spread([None] * 4_000, 4, values=[b"x" * 100] * 4_000)
    counts = Counter(found)
    assert set(counts) == {0, 1, 2, 3}
    assert max(counts.values()) - min(counts.values()) <= 200
    changes = sum(one != other for one, other in itertools.pairwise(found))
    assert changes <= 5


def test_runs_are_no_longer_than_a_batch() -> None:
    found, _ = spread([None] * 4_000, 2, values=[b"x" * 100] * 4_000, batch_bytes=20_000)
    changes = sum(one != other for one, other in itertools.pairwise(found))
    assert changes >= 15


@given(KEYS, st.data())
def test_rows_that_name_a_partition_go_there(keys: list[bytes | None], data: st.DataObject) -> None:
    named = data.draw(st.lists(st.none() | st.integers(0, 4), min_size=len(keys), max_size=len(keys)))
    column = named_partitions(pa.RecordBatch.from_pydict({"partition": pa.array(named, pa.int32())}))
    found, wrong = spread(keys, 5, named=column)
    assert not len(wrong)
    for key, wish, partition in zip(keys, named, found, strict=True):
        if wish is not None:
            assert partition == wish
        elif key is not None:
            assert partition == murmur2(key) % 5


def test_rows_that_name_a_partition_which_is_not_there_are_left_out() -> None:
    column = named_partitions(pa.RecordBatch.from_pydict({"partition": pa.array([0, 3, -2, 2], pa.int64())}))
    found, wrong = spread([b"a", b"b", b"c", b"d"], 3, named=column)
    assert list(wrong) == [1, 2]
    assert found == [0, None, None, 2]


@pytest.mark.parametrize("way", WAYS)
def test_no_rows_are_no_trouble(way: str) -> None:
    assert spread([], 3, way)[0] == []


def test_a_column_of_nulls_names_nothing() -> None:
    assert named_partitions(pa.RecordBatch.from_pydict({"partition": pa.nulls(3)})) is None
    column = named_partitions(pa.RecordBatch.from_pydict({"partition": pa.array([None, 1], pa.int16())}))
    assert np.array_equal(column, [-1, 1])
