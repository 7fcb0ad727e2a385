"""Reads: whole stored batches, from the one that holds the offset."""

from __future__ import annotations

import pytest
from tests.unit.log.support import NOW, SMALL, Home, batch_of, batches_in, read_all, read_bytes

from lowwater.errors import ApiError, ErrorCode, StorageError
from lowwater.log.config import LogConfig
from lowwater.testing.simdisk import SimFile
from lowwater.wire.records import BatchHeader

LARGE = 200_000


def filled(count: int = 40, *, size: int = 20, segment_bytes: int = 2048) -> Home:
    """`count` batches of two records each."""
    home = Home(config=SMALL.__class__(segment_bytes=segment_bytes, index_interval_bytes=256))
    for number in range(count):
        home.append(b"%d" % number * size, b"second")
    return home


def bases(data: bytes) -> list[int]:
    return [BatchHeader.parse(batch).base_offset for batch in batches_in(data)]


@pytest.mark.parametrize("offset", range(80))
def test_a_read_begins_with_the_batch_that_holds_the_offset(offset: int) -> None:
    home = filled()
    assert bases(read_bytes(home.log(), offset, 1)) == [offset // 2 * 2]


def test_a_read_stays_within_one_segment() -> None:
    log = filled().log()
    first = log.segments[0]
    assert len(log.segments) > 2
    assert len(read_bytes(log, 0)) == first.size
    assert bases(read_bytes(log, first.next_offset))[0] == first.next_offset


@pytest.mark.parametrize("max_bytes", [1, 100, 300, 301, 1000, 5000])
def test_a_read_is_cut_at_a_batch_within_the_limit(max_bytes: int) -> None:
    log = filled().log()
    data = read_bytes(log, 3, max_bytes)
    found = batches_in(data)
    assert b"".join(found) == data
    assert len(found) == 1 or len(data) <= max_bytes
    size = BatchHeader.parse(read_bytes(log, 2, 1)).size
    following = BatchHeader.parse(read_bytes(log, BatchHeader.parse(found[-1]).next_offset, 1))
    whole_segment = BatchHeader.parse(found[-1]).next_offset == log.segments[0].next_offset
    assert whole_segment or max_bytes < size or len(data) + following.size > max_bytes


def test_a_first_batch_above_the_limit_comes_whole_or_not_at_all() -> None:
    home = Home()
    home.append(b"x" * 900)
    log = home.log()
    assert log.read(0, 10, upto=1, min_one=True).size > 900
    assert log.read(0, 10, upto=1, min_one=False).size == 0
    assert log.read(0, 2000, upto=1, min_one=False).size > 900


def test_the_same_holds_for_mapped_reads() -> None:
    home = Home(config=SMALL.__class__())
    for _ in range(3):
        home.append(b"x" * LARGE)
    log = home.log()
    assert bases(read_bytes(log, 0, LARGE)) == [0]
    assert log.read(0, LARGE, upto=3, min_one=False).size == 0
    assert bases(read_bytes(log, 0, 2 * LARGE + 1000)) == [0, 1]
    assert bases(read_bytes(log, 1, 10 * LARGE)) == [1, 2]
    assert isinstance(log.read(0, LARGE, upto=3, min_one=True).buffers[0], memoryview)


def test_a_mapped_read_among_small_batches_is_cut_exactly() -> None:
    home = Home(config=SMALL.__class__(index_interval_bytes=1000))
    for _ in range(1000):
        home.append(b"x" * 100)
    log = home.log()
    size = log.size_bytes // 1000
    for max_bytes in (70_000, 70_000 // size * size, 100_001):
        data = read_bytes(log, 17, max_bytes)
        assert bases(data) == list(range(17, 17 + max_bytes // size))


def test_a_read_stops_before_the_offset_it_is_told() -> None:
    log = filled(segment_bytes=1 << 20).log()
    assert bases(read_bytes(log, 0, upto=10)) == [0, 2, 4, 6, 8]
    assert bases(read_bytes(log, 0, upto=11)) == [0, 2, 4, 6, 8]
    assert log.read(10, 1 << 20, upto=10, min_one=True).size == 0
    assert log.read(10, 1 << 20, upto=11, min_one=True).size == 0


def test_reading_at_the_end_gives_nothing() -> None:
    log = filled().log()
    part = log.read(log.log_end, 100, upto=log.log_end, min_one=True)
    assert (part.size, part.buffers, part.cached) == (0, [], True)


def test_an_empty_log_reads_nothing_at_its_end() -> None:
    assert Home().log().read(0, 100, upto=0, min_one=True).size == 0


@pytest.mark.parametrize("offset", [-1, 2, 81, 1 << 40])
def test_offsets_outside_the_log_are_refused_with_both_bounds(offset: int) -> None:
    log = filled().log()
    log.delete_before(3)
    with pytest.raises(ApiError) as caught:
        log.read(offset, 100, upto=log.log_end, min_one=True)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert "[3, 80]" in caught.value.detail


def test_a_slice_stays_readable_when_its_segment_is_deleted() -> None:
    home = Home(config=SMALL.__class__(segment_bytes=300_000))
    for letter in (b"a", b"b"):
        home.append(letter * LARGE)
    log = home.log()
    part = log.read(0, 1 << 20, upto=2, min_one=True)
    log.delete_before(1)
    assert len(log.segments) == 1
    assert b"a" * LARGE in bytes(part.buffers[0])


def test_cold_bytes_come_after_warming() -> None:
    home = filled(segment_bytes=1 << 20)
    home.restart()
    home.disk.cached = False
    log = home.log()
    part = log.read(7, 500, upto=log.log_end, min_one=True)
    assert (part.cached, part.buffers) == (False, [])
    assert 0 < part.size <= 500
    buffers = part.buffers
    part.warm()
    assert part.cached
    assert part.buffers is buffers
    assert part.size == sum(map(len, buffers))
    assert bases(b"".join(map(bytes, buffers)))[0] == 6


def test_what_this_process_wrote_lately_is_not_cold() -> None:
    home = filled()
    home.disk.cached = False
    assert home.log().read(0, 100, upto=80, min_one=True).cached


def test_a_cold_read_that_fails_is_a_storage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    home = filled(segment_bytes=1 << 20)
    home.restart()
    home.disk.cached = False
    part = home.log().read(7, 500, upto=80, min_one=True)

    def broken(*_: int) -> bytes:
        raise OSError(5, "input/output error")

    monkeypatch.setattr("lowwater.testing.simdisk.SimFile.pread", broken)
    with pytest.raises(StorageError, match="input/output error"):
        part.warm()


def test_large_batches_before_the_wanted_one_are_passed_over() -> None:
    home = Home(config=SMALL.__class__(index_interval_bytes=1 << 20))
    for _ in range(3):
        home.append(b"x" * 70_000)
    home.append(b"wanted")
    home.restart()
    assert bases(read_bytes(home.log(), 3, 200)) == [3]


def test_a_log_reads_the_same_after_a_restart() -> None:
    home = filled()
    before = read_all(home.log())
    home.restart()
    assert read_all(home.log()) == before
    home.kill()
    assert read_all(home.log()) == before


def test_sizes_are_counted() -> None:
    home = filled()
    log = home.log()
    assert log.size_bytes == sum(segment.size for segment in log.segments)
    batch = batch_of(b"more")
    before = log.size_bytes
    log.append(batch, NOW)
    assert log.size_bytes == before + len(batch)


@pytest.mark.parametrize("interval", [256, 4096])
def test_appends_between_a_cold_read_and_its_bytes_are_no_damage(
    monkeypatch: pytest.MonkeyPatch, interval: int
) -> None:
    home = Home(LogConfig(index_interval_bytes=interval))
    for _ in range(20):
        home.append(b"x" * 100)
    log = home.restart()
    monkeypatch.setattr(SimFile, "is_cached", lambda *_: False)
    part = log.read(18, 1 << 20, upto=log.log_end, min_one=True)
    assert not part.cached
    for _ in range(5):
        home.append(b"y" * 100)
    part.warm()
    assert [BatchHeader.parse(one).base_offset for one in batches_in(bytes(part.buffers[0]))] == [18, 19]
