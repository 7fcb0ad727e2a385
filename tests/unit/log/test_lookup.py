"""Offsets by time, by epoch, and as old simple consumers ask for them."""

from __future__ import annotations

import pytest
from tests.unit.log.support import NOW, SMALL, Home, batch_of

from lowwater.errors import StorageError
from lowwater.log.config import LogConfig
from lowwater.wire import compression


def home_with(*batches: list[int], segment_bytes: int = 1 << 20, interval: int = 100, **fields: int) -> Home:
    """One batch per list of timestamps."""
    home = Home(config=SMALL.__class__(segment_bytes=segment_bytes, index_interval_bytes=interval, retention_ms=-1))
    for times in batches:
        home.append(*[b"v" * 30] * len(times), times=times, **fields)
    return home


def at(home: Home, timestamp: int, upto: int | None = None) -> tuple[int, int] | None:
    found = home.log().offset_for_time(timestamp, upto=home.log().log_end if upto is None else upto)
    return None if found is None else (found.offset, found.timestamp)


def test_the_first_record_at_or_after_a_time() -> None:
    home = home_with([10, 20], [30], [40, 50])
    assert [at(home, time) for time in (0, 10, 11, 30, 41, 50)] == [
        (0, 10),
        (0, 10),
        (1, 20),
        (2, 30),
        (4, 50),
        (4, 50),
    ]
    assert at(home, 51) is None


def test_out_of_order_timestamps_give_the_lowest_offset() -> None:
    home = home_with([50, 10], [5], [40], [60], [45])
    assert at(home, 45) == (0, 50)
    assert at(home, 51) == (4, 60)
    assert at(home, 1) == (0, 50)


@pytest.mark.parametrize("segment_bytes", [300, 1 << 20])
@pytest.mark.parametrize("how", ["as it is", "restart", "kill"])
def test_every_time_in_a_long_disorderly_log(segment_bytes: int, how: str) -> None:
    times = [(number * 7919) % 1000 for number in range(300)]
    home = home_with(*([time] for time in times), segment_bytes=segment_bytes)
    if how != "as it is":
        getattr(home, how)()
    for wanted in range(0, 1002, 13):
        expected = next(((offset, time) for offset, time in enumerate(times) if time >= wanted), None)
        assert at(home, wanted) == expected


@pytest.mark.parametrize("codec", range(5))
def test_a_record_inside_a_compressed_batch(codec: int) -> None:
    home = home_with([10, 20, 30], codec=codec)
    assert at(home, 20) == (1, 20)


def test_deleted_records_are_not_found() -> None:
    home = home_with([10, 90], [20, 30])
    home.log().delete_before(2)
    assert at(home, 0) == (2, 20)
    assert at(home, 80) is None
    home.log().delete_before(3)
    assert at(home, 0) == (3, 30)


def test_records_at_or_after_the_bound_are_not_found() -> None:
    home = home_with([10, 20], [30])
    assert at(home, 15, upto=1) is None
    assert at(home, 15, upto=2) == (1, 20)
    assert at(home, 25, upto=2) is None


def test_an_empty_log_finds_nothing() -> None:
    assert at(Home(), 0) is None
    assert Home().log().offset_of_max_timestamp(upto=0) is None


def test_a_lookup_tells_the_leader_epoch() -> None:
    home = home_with([10])
    home.kill()
    home.append(b"v", times=[20])
    log = home.log()
    first, second = log.offset_for_time(0, upto=2), log.offset_for_time(20, upto=2)
    assert first is not None
    assert second is not None
    assert (first.leader_epoch, second.leader_epoch) == (0, 1)


def max_timestamp(home: Home, upto: int | None = None) -> tuple[int, int] | None:
    found = home.log().offset_of_max_timestamp(upto=home.log().log_end if upto is None else upto)
    return None if found is None else (found.offset, found.timestamp)


def test_the_first_of_the_records_with_the_largest_timestamp() -> None:
    home = home_with([10, 70], [70, 20], [70], segment_bytes=100)
    assert max_timestamp(home) == (1, 70)


def test_the_largest_timestamp_ignores_what_does_not_count() -> None:
    home = home_with([90, 10], [20, 80], [30])
    assert max_timestamp(home, upto=3) == (0, 90)
    home.log().delete_before(1)
    assert max_timestamp(home) == (3, 80)
    assert max_timestamp(home, upto=3) == (2, 20)
    home.log().delete_before(4)
    assert max_timestamp(home) == (4, 30)


def test_append_time_is_what_is_looked_up() -> None:
    home = Home(config=SMALL.__class__(log_append_time=True))
    home.append(b"a", b"b", times=[1, 2])
    home.now_ms += 50
    home.append(b"c", times=[3], codec=compression.LZ4)
    assert at(home, 4) == (0, NOW)
    assert at(home, NOW + 1) == (2, NOW + 50)


def test_a_damaged_batch_is_an_error_and_no_answer() -> None:
    home = home_with([10, 20], codec=compression.GZIP)
    home.damage("00000000000000000000.log", 61, b"\xff" * 20)
    with pytest.raises(StorageError):
        at(home, 15)


# -- ListOffsets v0


def test_segment_offsets_of_two_segments() -> None:
    """Segments at 0 and 7, log end 8."""
    home = Home(config=SMALL.__class__(segment_bytes=100_000))
    t1 = NOW
    home.append(*[b"x" * 10_000] * 7)
    home.now_ms = t2 = NOW + 1000
    home.append(b"x" * 50_000)
    log = home.log()
    assert [segment.base_offset for segment in log.segments] == [0, 7]
    now = t2 + 1000

    def asked(timestamp: int, count: int) -> list[int]:
        return log.segment_offsets(timestamp, count, now)

    assert [asked(-1, 1), asked(-2, 1), asked(t1, 1), asked(t2, 1)] == [[8], [0], [0], [7]]
    assert [asked(-1, 2), asked(-2, 2), asked(t2 - 1, 2), asked(t2, 2)] == [[8, 7], [0], [0], [7, 0]]
    assert asked(t1 - 1, 5) == []


def test_segment_offsets_are_clamped_to_the_log_start() -> None:
    """20 records, 2 per segment, log start 3."""
    home = Home(config=SMALL.__class__(segment_bytes=len(batch_of(b"x" * 50)) * 2))
    for _ in range(20):
        home.append(b"x" * 50)
    home.log().delete_before(3)
    assert home.log().segment_offsets(-1, 15, NOW) == [20, 18, 16, 14, 12, 10, 8, 6, 4, 3]


def test_segment_offsets_of_an_empty_log() -> None:
    log = Home().log()
    assert log.segment_offsets(-1, 5, NOW) == [0]
    assert log.segment_offsets(-2, 5, NOW) == [0]


# -- leader epochs


def test_epochs_count_the_starts_of_the_broker() -> None:
    home = home_with([1], [2])
    assert home.log().leader_epoch == 0
    home.restart()
    assert home.log().leader_epoch == 1
    home.append(b"v")
    home.kill()
    home.kill()
    home.append(b"v")
    log = home.log()
    assert log.leader_epoch == 3
    assert [log.end_offset_for_epoch(epoch) for epoch in range(5)] == [(0, 2), (1, 3), (1, 3), (3, 4), (-1, -1)]
    assert log.end_offset_for_epoch(-1) == (-1, -1)
    assert [log.epoch_at(offset) for offset in range(4)] == [0, 0, 1, 3]


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_epochs_are_known_after(how: str) -> None:
    home = home_with([1])
    home.kill()
    home.append(b"v")
    getattr(home, how)()
    log = home.log()
    assert log.end_offset_for_epoch(0) == (0, 1)
    assert log.end_offset_for_epoch(1) == (1, 2)
    assert log.end_offset_for_epoch(2) == (2, 2)


def test_the_running_epoch_ends_at_the_log_end_before_its_first_batch() -> None:
    home = home_with([1], [2])
    home.kill()
    assert home.log().end_offset_for_epoch(1) == (1, 2)
    assert home.log().end_offset_for_epoch(0) == (0, 2)


def test_epochs_of_deleted_records_are_forgotten() -> None:
    home = home_with([1], segment_bytes=100)
    home.kill()
    home.append(b"v")
    home.append(b"v")
    home.log().delete_before(2)
    assert home.log().end_offset_for_epoch(0) == (0, 2)
    assert home.log().epoch_at(2) == 1


def test_a_lookup_reads_no_further_than_its_answer() -> None:
    home = Home(LogConfig())
    for number in range(100):
        home.append(b"x" * 2000, times=[NOW + number])
    log = home.restart()
    home.damage("00000000000000000000.log", log.size_bytes * 99 // 100, b"\xff" * 61)
    found = log.offset_for_time(NOW + 3, upto=log.log_end)
    assert found is not None
    assert found.offset == 3
