"""Batches of keys and values alone agree with the general reader and writer of records."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowwater.wire import compression
from lowwater.wire.plain_batch import build_plain_batch, read_pairs
from lowwater.wire.records import (
    TRANSACTIONAL,
    BatchHeader,
    CorruptBatch,
    Record,
    build_batch,
    crc_ok,
    read_records,
)

PAIRS = st.lists(st.tuples(st.binary(max_size=300), st.none() | st.binary(max_size=20_000)), min_size=1, max_size=30)
NOW_MS = 1_700_000_000_000


@settings(deadline=None)
@given(PAIRS)
def test_what_is_built_is_what_the_general_writer_builds(pairs: list[tuple[bytes, bytes | None]]) -> None:
    records = [Record(number, NOW_MS, key, value) for number, (key, value) in enumerate(pairs)]
    assert build_plain_batch(pairs, NOW_MS) == build_batch(records)


@settings(deadline=None)
@given(PAIRS)
def test_what_is_read_is_what_was_written(pairs: list[tuple[bytes, bytes | None]]) -> None:
    batch = build_plain_batch(pairs, NOW_MS)
    header = BatchHeader.parse(batch)
    assert crc_ok(batch, header)
    assert list(read_pairs(batch, header)) == pairs
    assert [(one.key, one.value) for one in read_records(batch)] == pairs


@pytest.mark.parametrize("codec", [compression.GZIP, compression.SNAPPY, compression.LZ4, compression.ZSTD])
def test_batches_can_be_compressed(codec: int) -> None:
    pairs: list[tuple[bytes, bytes | None]] = [(b"key", b"value" * 100), (b"gone", None)]
    batch = build_plain_batch(pairs, NOW_MS, codec=codec)
    assert list(read_pairs(batch, BatchHeader.parse(batch))) == pairs


def test_headers_are_passed_over_and_records_without_a_key_left_out() -> None:
    records = [
        Record(0, NOW_MS, b"a", b"1", (("name", b"value"), ("other", None))),
        Record(1, NOW_MS, None, b"2"),
        Record(2, NOW_MS, b"c", b"", (("name", b"value"),)),
    ]
    batch = build_batch(records)
    assert list(read_pairs(batch, BatchHeader.parse(batch))) == [(b"a", b"1"), (b"c", b"")]


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=200), st.integers(1, 40))
def test_any_bytes_give_pairs_or_say_that_they_are_corrupt(body: bytes, count: int) -> None:
    batch = build_batch([Record(0, NOW_MS, b"k", b"v")])
    header = BatchHeader.parse(batch)._replace(record_count=count, batch_length=49 + len(body))
    try:
        pairs = list(read_pairs(bytes(batch[:61]) + body, header))
    except CorruptBatch:
        return
    assert sum(len(key) + len(value or b"") for key, value in pairs) <= len(body)


@pytest.mark.parametrize("codec", [compression.NONE, compression.ZSTD])
def test_a_batch_of_a_producer_is_part_of_its_transaction_and_has_no_sequence(codec: int) -> None:
    batch = build_plain_batch([(b"key", b"value")], NOW_MS, codec=codec, producer=(1 << 40, 7))
    expected = build_batch(
        [Record(0, NOW_MS, b"key", b"value")],
        codec=codec,
        attributes=TRANSACTIONAL,
        producer_id=1 << 40,
        producer_epoch=7,
    )
    assert batch == expected
    assert BatchHeader.parse(batch).base_sequence == -1
