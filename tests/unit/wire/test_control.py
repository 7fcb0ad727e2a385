"""The ends of transactions as control batches."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowwater.wire.control import EndMarker, build_end_marker, read_end_marker
from lowwater.wire.records import CONTROL, TRANSACTIONAL, BatchHeader, CorruptBatch, Record, build_batch, crc_ok

NOW_MS = 1_700_000_000_000


def control(key: bytes | None, value: bytes | None) -> bytearray:
    return build_batch([Record(0, NOW_MS, key, value)], attributes=CONTROL | TRANSACTIONAL, producer_id=5)


def read(batch: bytearray) -> EndMarker | None:
    return read_end_marker(batch, BatchHeader.parse(batch))


def test_a_commit_has_the_bytes_of_kafka() -> None:
    assert bytes(build_end_marker(5, 3, True, 7, NOW_MS))[61:] == bytes.fromhex(
        "20 00 00 00 08 00000001 0c 0000 00000007 00"
    )


@pytest.mark.parametrize("commit", [True, False])
def test_an_end_is_read_as_it_was_built(commit: bool) -> None:
    batch = build_end_marker(1 << 40, 32767, commit, 12, NOW_MS)
    header = BatchHeader.parse(batch)
    assert crc_ok(batch, header)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (1 << 40, 32767, -1)
    assert header.is_control
    assert header.is_transactional
    assert (header.base_timestamp, header.max_timestamp, header.record_count) == (NOW_MS, NOW_MS, 1)
    assert read_end_marker(batch, header) == EndMarker(commit, 12)


def test_control_records_of_another_kind_are_no_end() -> None:
    leader_change = bytes.fromhex("0000 0002")
    assert read(control(leader_change, b"\0\0")) is None


def test_data_is_no_end() -> None:
    assert read(build_batch([Record(0, NOW_MS, bytes(4), bytes(6))], attributes=TRANSACTIONAL)) is None


def test_a_control_batch_that_compaction_emptied_is_no_end() -> None:
    empty = build_batch([], base_offset=3, last_offset=3, attributes=CONTROL | TRANSACTIONAL, producer_id=5)
    assert read(empty) is None


def test_later_versions_are_read_as_far_as_they_are_known() -> None:
    assert read(control(bytes.fromhex("0001 0001 ffff"), bytes.fromhex("0003 00000009 ff"))) == EndMarker(True, 9)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, bytes(6)),
        (b"\0\0\0", bytes(6)),
        (bytes.fromhex("ffff 0001"), bytes(6)),
        (bytes.fromhex("0000 0001"), None),
        (bytes.fromhex("0000 0000"), bytes(5)),
    ],
)
def test_an_end_that_says_too_little_is_corrupt(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(CorruptBatch):
        read(control(key, value))


@settings(deadline=None)
@given(st.none() | st.binary(max_size=12), st.none() | st.binary(max_size=12))
def test_any_control_record_is_an_end_or_another_kind_or_corrupt(key: bytes | None, value: bytes | None) -> None:
    try:
        marker = read(control(key, value))
    except CorruptBatch:
        return
    assert marker is None or marker.commit == (key is not None and key[3] == 1)
