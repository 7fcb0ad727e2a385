"""What a log takes, what it refuses, and what it stamps on a batch."""

from __future__ import annotations

import pytest
from tests.unit.log.support import HOUR_MS, NOW, SMALL, Home, batch_of, keyed, read_all, read_bytes, values

from lowwater.errors import ApiError, ErrorCode, StorageError
from lowwater.log.config import LogConfig
from lowwater.testing.faults_disk import Fault, FaultKind, FaultyDisk
from lowwater.wire import compression
from lowwater.wire.records import (
    CONTROL,
    HAS_DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    BatchHeader,
    Record,
    build_batch,
    crc_ok,
    seal,
)


def refusal(home: Home, batch: memoryview, **options: bool) -> ErrorCode:
    """The code with which the log refuses; nothing may be written then."""
    before = home.log().log_end, home.log().size_bytes
    with pytest.raises(ApiError) as caught:
        home.log().append(batch, NOW, **options)
    assert (home.log().log_end, home.log().size_bytes) == before
    assert caught.value.detail
    return caught.value.code


def test_offsets_begin_at_zero_and_follow_each_other() -> None:
    home = Home()
    assert home.append(b"a", b"b")[:2] == (0, 1)
    assert home.append(b"c")[:2] == (2, 2)
    assert home.log().log_end == 3
    assert [record.offset for record in read_all(home.log())] == [0, 1, 2]
    assert values(home.log()) == [b"a", b"b", b"c"]


def test_stored_bytes_are_the_sent_ones_but_for_offset_and_epoch() -> None:
    home = Home()
    home.append(b"first")
    sent = batch_of(b"second", b"third", codec=compression.ZSTD)
    expected = bytearray(sent)
    expected[:8] = (1).to_bytes(8, "big")
    expected[12:16] = bytes(4)
    home.log().append(sent, NOW)
    assert read_bytes(home.log(), 1) == bytes(expected)


@pytest.mark.parametrize("codec", range(5))
def test_every_codec_stays_as_it_was_sent(codec: int) -> None:
    home = Home()
    home.append(b"x" * 500, b"y", codec=codec)
    assert BatchHeader.parse(read_bytes(home.log(), 0)).codec == codec
    assert values(home.log()) == [b"x" * 500, b"y"]


def test_no_batch_is_an_invalid_record() -> None:
    assert refusal(Home(), memoryview(bytearray())) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("size", [1, 16, 60])
def test_a_piece_of_a_header_is_no_record(size: int) -> None:
    assert refusal(Home(), batch_of(b"v")[:size]) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("size", [30, 100])
def test_old_formats_are_invalid_records(magic: int, size: int) -> None:
    old = bytearray(size)
    old[16] = magic
    assert refusal(Home(), memoryview(old)) == ErrorCode.INVALID_RECORD


def test_two_batches_for_one_partition_are_invalid() -> None:
    two = memoryview(bytearray(batch_of(b"a")) + bytearray(batch_of(b"b")))
    assert refusal(Home(), two) == ErrorCode.INVALID_RECORD


def test_a_batch_that_ends_early_is_no_record() -> None:
    assert refusal(Home(), batch_of(b"a" * 100)[:-1]) == ErrorCode.INVALID_RECORD


def test_a_future_format_is_corrupt() -> None:
    batch = bytearray(batch_of(b"a"))
    batch[16] = 3
    assert refusal(Home(), memoryview(batch)) == ErrorCode.CORRUPT_MESSAGE


def test_a_length_below_that_of_a_header_is_corrupt() -> None:
    batch = bytearray(batch_of(b"a"))
    batch[8:12] = (20).to_bytes(4, "big")
    assert refusal(Home(), memoryview(batch)) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("position", [21, 23, 40, 61, 70])
def test_a_flipped_bit_fails_the_crc(position: int) -> None:
    batch = bytearray(batch_of(b"value"))
    batch[position] ^= 1
    assert refusal(Home(), memoryview(batch)) == ErrorCode.CORRUPT_MESSAGE


def test_a_batch_above_the_limit_is_too_large_and_one_at_the_limit_is_not() -> None:
    home = Home()
    batch = batch_of(b"v" * 300)
    home.log().update_config(home.config.__class__(max_message_bytes=len(batch) - 1))
    assert refusal(home, batch) == ErrorCode.MESSAGE_TOO_LARGE
    home.log().update_config(home.config.__class__(max_message_bytes=len(batch)))
    home.log().append(batch, NOW)


@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        (CONTROL, ErrorCode.INVALID_RECORD),
        (CONTROL | TRANSACTIONAL, ErrorCode.INVALID_RECORD),
        (HAS_DELETE_HORIZON, ErrorCode.INVALID_RECORD),
        (LOG_APPEND_TIME, ErrorCode.INVALID_TIMESTAMP),
        (TRANSACTIONAL, ErrorCode.INVALID_TXN_STATE),
        (5, ErrorCode.INVALID_RECORD),
        (7, ErrorCode.INVALID_RECORD),
    ],
)
def test_attributes_that_a_producer_may_not_set(attributes: int, code: ErrorCode) -> None:
    batch = bytearray(batch_of(b"v"))
    batch[21:23] = attributes.to_bytes(2, "big")
    seal(batch)
    assert refusal(Home(), memoryview(batch)) == code


def test_zstd_needs_a_produce_version_that_knows_it() -> None:
    home = Home()
    old = refusal(home, batch_of(b"v", codec=compression.ZSTD), zstd_allowed=False)
    assert old == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    home.log().append(batch_of(b"v", codec=compression.LZ4), NOW, zstd_allowed=False)


@pytest.mark.parametrize(("count", "delta"), [(0, -1), (-1, 0), (2, 0), (1, 1), (1 << 30, (1 << 30) - 1)])
def test_counts_that_do_not_fit(count: int, delta: int) -> None:
    batch = bytearray(batch_of(b"v"))
    batch[57:61] = count.to_bytes(4, "big", signed=True)
    batch[23:27] = delta.to_bytes(4, "big", signed=True)
    seal(batch)
    assert refusal(Home(), memoryview(batch)) == ErrorCode.INVALID_RECORD


def test_a_new_batch_has_base_offset_zero() -> None:
    batch = memoryview(build_batch([Record(7, NOW, b"k", b"v")]))
    assert refusal(Home(), batch) == ErrorCode.INVALID_RECORD


def test_a_producer_id_needs_a_sequence_and_an_epoch() -> None:
    home = Home()
    assert refusal(home, batch_of(b"v", producer_id=1, producer_epoch=0)) == ErrorCode.INVALID_RECORD
    assert refusal(home, batch_of(b"v", producer_id=1, base_sequence=0)) == ErrorCode.INVALID_RECORD


def test_timestamps_too_far_ahead_are_refused_and_those_at_the_limit_taken() -> None:
    home = Home()
    assert refusal(home, batch_of(b"v", times=[NOW + HOUR_MS + 1])) == ErrorCode.INVALID_TIMESTAMP
    assert refusal(home, batch_of(b"v", b"w", times=[NOW, NOW + HOUR_MS + 1])) == ErrorCode.INVALID_TIMESTAMP
    home.append(b"v", times=[NOW + HOUR_MS])


def test_timestamps_too_long_ago_are_refused_only_when_that_is_configured() -> None:
    home = Home()
    home.append(b"v", times=[5])
    home.log().update_config(home.config.__class__(timestamp_before_max_ms=HOUR_MS))
    assert refusal(home, batch_of(b"v", times=[NOW - HOUR_MS - 1])) == ErrorCode.INVALID_TIMESTAMP
    home.append(b"v", times=[NOW - HOUR_MS])


@pytest.mark.parametrize("told", [-1, NOW - 1])
def test_a_largest_timestamp_below_the_first_is_corrected_from_the_records(told: int) -> None:
    home = Home()
    home.log().append(batch_of(b"v", max_timestamp=told), NOW)
    stored = read_bytes(home.log(), 0)
    assert BatchHeader.parse(stored).max_timestamp == NOW
    assert crc_ok(stored, BatchHeader.parse(stored))


def test_records_without_timestamps_are_taken() -> None:
    home = Home()
    home.append(b"v", times=[-1])
    assert read_all(home.log())[0].timestamp == -1


def test_append_time_replaces_timestamps_and_the_crc_still_fits() -> None:
    home = Home(config=SMALL.__class__(log_append_time=True))
    appended = home.append(b"a", b"b", times=[5, 6])
    assert appended.log_append_time_ms == NOW
    stored = read_bytes(home.log(), 0)
    header = BatchHeader.parse(stored)
    assert header.has_log_append_time
    assert header.max_timestamp == NOW
    assert crc_ok(stored, header)
    assert [record.timestamp for record in read_all(home.log())] == [NOW, NOW]


def test_creation_time_answers_no_append_time() -> None:
    assert Home().append(b"a").log_append_time_ms == -1


def test_a_compacted_topic_needs_keys() -> None:
    home = Home(config=SMALL.__class__(compact=True))
    assert refusal(home, batch_of(b"v", key=None)) == ErrorCode.INVALID_RECORD
    assert refusal(home, memoryview(build_batch([Record(0, NOW, b"k", b"v"), Record(1, NOW, None, b"v")]))) == (
        ErrorCode.INVALID_RECORD
    )
    home.log().append(keyed((b"", b"v"), codec=compression.GZIP), NOW)


def test_a_compacted_topic_refuses_records_that_cannot_be_decoded() -> None:
    home = Home(config=SMALL.__class__(compact=True))
    batch = bytearray(batch_of(b"v"))
    batch[61] = 0x7F
    seal(batch)
    assert refusal(home, memoryview(batch)) == ErrorCode.CORRUPT_MESSAGE


def test_the_answer_carries_the_log_start() -> None:
    home = Home()
    home.append(b"a", b"b")
    home.log().delete_before(1)
    assert home.append(b"c").log_start == 1


def test_an_offline_log_refuses_appends_and_reads() -> None:
    home = Home()
    home.append(b"a")
    home.log().go_offline("the disk is gone")
    with pytest.raises(StorageError, match="the disk is gone"):
        home.append(b"b")
    with pytest.raises(StorageError, match="the disk is gone"):
        read_bytes(home.log(), 0)
    assert home.log().failure() is not None


def test_files_appear_with_the_first_batch_only() -> None:
    home = Home()
    assert home.log().log_end == 0
    assert not home.disk.exists(home.directory)
    home.append(b"a")
    assert home.names() == ["00000000000000000000.log"]


def test_a_segment_whose_first_write_failed_takes_the_next_batch_however_late_that_comes() -> None:
    home = Home(LogConfig(segment_bytes=500, segment_ms=1000), start=False)
    disk = FaultyDisk(home.disk, Fault(FaultKind.SHORT_WRITE, 2, path_contains=".log"))
    home.start(through=disk)
    home.append(b"a" * 400)
    with pytest.raises(StorageError):
        home.append(b"b" * 400)
    home.now_ms += 5000
    home.append(b"c" * 400)
    home.append(b"d" * 400)
    assert [segment.base_offset for segment in home.log().segments] == [0, 1, 2]
    home.log().delete_before(1)
    home.kill()
    assert values(home.log()) == [b"c" * 400, b"d" * 400]


def test_a_segment_whose_first_write_failed_begins_with_a_producer_snapshot_all_the_same() -> None:
    home = Home(LogConfig(segment_bytes=500), start=False)
    disk = FaultyDisk(home.disk, Fault(FaultKind.SHORT_WRITE, 2, path_contains=".log"))
    home.start(through=disk)
    home.append(b"a" * 400, producer_id=7, producer_epoch=0, base_sequence=0)
    with pytest.raises(StorageError):
        home.append(b"b" * 400)
    home.append(b"c" * 400)
    home.log().delete_before(1)
    home.kill()
    assert [producer_id for producer_id, _ in home.log().producers()] == [7]
