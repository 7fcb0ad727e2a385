"""Which offset belongs to a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from lowwater.errors import StorageError, WireError
from lowwater.log.batches import headers
from lowwater.log.cold import Warmed, require, require_index
from lowwater.log.segment import Segment
from lowwater.wire.records import (
    INLINE_BYTES_MAX,
    INLINE_RECORDS_MAX,
    NO_TIMESTAMP,
    BatchHeader,
    crc_ok,
    read_times,
)

if TYPE_CHECKING:
    from lowwater.log.partition_log import PartitionLog

LATEST, EARLIEST = -1, -2
CHECK_STEP = 64 * 1024


class OffsetAtTime(NamedTuple):
    offset: int
    timestamp: int
    leader_epoch: int


class OpaqueBatchError(Exception):
    """A producer sent a batch with a right CRC of which nobody can tell the records, or not in good time."""


def first_at_or_after(log: PartitionLog, timestamp: int, upto: int, warmed: Warmed | None) -> OffsetAtTime | None:
    """The lowest offset in [log start, upto) whose timestamp is at or after `timestamp`.

    A batch that says it has one but cannot be looked into is answered as a whole: reading begins at its start.
    """
    records_left = INLINE_RECORDS_MAX
    for segment, position, header in _candidates(log, timestamp, upto, warmed):
        records_left -= header.record_count  # headers that lie must not make us look into a whole log
        try:
            for offset, time in _times(segment, position, header, records_left, warmed, since_ms=timestamp):
                if log.log_start <= offset < upto:
                    return OffsetAtTime(offset, time, header.leader_epoch)
        except OpaqueBatchError:
            return OffsetAtTime(max(header.base_offset, log.log_start), header.max_timestamp, header.leader_epoch)
    return None


def _candidates(
    log: PartitionLog, timestamp: int, upto: int, warmed: Warmed | None
) -> Iterator[tuple[Segment, int, BatchHeader]]:
    """The batches that may hold the answer, by what their headers say."""
    for segment in log.segments:
        if segment.base_offset >= upto or segment.max_timestamp < timestamp:
            continue
        require_index(segment, warmed)
        for position, header in _batches(segment, segment.index.position_for_time(timestamp), warmed):
            if header.base_offset >= upto:
                return
            if header.max_timestamp >= timestamp and header.next_offset > log.log_start:
                yield segment, position, header


def with_max_timestamp(log: PartitionLog, upto: int, warmed: Warmed | None) -> OffsetAtTime | None:
    """The lowest offset that has the largest timestamp of all in [log start, upto)."""
    times = [_largest_time(log, segment, upto, warmed) for segment in log.segments if segment.base_offset < upto]
    return first_at_or_after(log, max(times), upto, warmed) if times else None


def _largest_time(log: PartitionLog, segment: Segment, upto: int, warmed: Warmed | None) -> int:
    """Of the records that count; only the first and the last segment can hold others, and have to be looked into."""
    if log.log_start <= segment.base_offset and segment.next_offset <= upto:
        return segment.max_timestamp
    counting = (
        _largest_time_of_batch(log, segment, position, header, upto, warmed)
        for position, header in _batches(segment, 0, warmed)
        if header.next_offset > log.log_start and header.base_offset < upto
    )
    return max(counting, default=NO_TIMESTAMP)


def _largest_time_of_batch(
    log: PartitionLog, segment: Segment, position: int, header: BatchHeader, upto: int, warmed: Warmed | None
) -> int:
    if log.log_start <= header.base_offset and header.next_offset <= upto:
        return header.max_timestamp
    times = _times(segment, position, header, INLINE_RECORDS_MAX - header.record_count, warmed)
    try:
        return max((time for offset, time in times if log.log_start <= offset < upto), default=NO_TIMESTAMP)
    except OpaqueBatchError:
        return header.max_timestamp


def _batches(segment: Segment, start: int, warmed: Warmed | None) -> Iterator[tuple[int, BatchHeader]]:
    """From the batch at `start` on, checked piece by piece: what is not asked for is not read for its sums."""
    if not segment.size:
        return
    checked = start
    require(segment, start, min(CHECK_STEP, segment.size - start), warmed)
    for position, header in headers(segment.handle.mapped(segment.size, CHECK_STEP), start, segment.size):
        if position >= checked:
            checked = min(position + CHECK_STEP, segment.size)
            segment.verify(position, checked)
        yield position, header
        following = position + header.size
        if checked <= following < segment.size:
            require(segment, following, min(CHECK_STEP, segment.size - following), warmed)


def _times(
    segment: Segment,
    position: int,
    header: BatchHeader,
    records_left: int,
    warmed: Warmed | None,
    *,
    since_ms: int | None = None,
) -> Iterator[tuple[int, int]]:
    """(offset, timestamp) of every record, or of those stamped then or later."""
    if records_left < 0:
        raise OpaqueBatchError
    require(segment, position, header.size, warmed)
    batch = segment.batch_at(position)
    try:
        yield from read_times(batch, since_ms=since_ms, limit=INLINE_BYTES_MAX)
    except WireError as error:
        if crc_ok(batch, header):
            raise OpaqueBatchError from error
        raise StorageError(f"{segment.path} is damaged at byte {position}: {error}") from error


def segment_offsets(log: PartitionLog, timestamp: int, max_count: int, now_ms: int) -> list[int]:
    """Kafka's old answer: (base offset, last modified) per segment, then (log end, now) unless that adds nothing."""
    segments = log.segments
    entries = [(max(one.base_offset, log.log_start), one.modified_ms) for one in segments]
    if segments and segments[-1].size:
        entries.append((log.log_end, now_ms))
    if not entries:
        entries.append((log.log_end, now_ms))
    last = _last_entry(entries, timestamp)
    count = min(max_count, last + 1)
    return sorted((offset for offset, _ in entries[last + 1 - count : last + 1]), reverse=True)


def _last_entry(entries: list[tuple[int, int]], timestamp: int) -> int:
    if timestamp == LATEST:
        return len(entries) - 1
    if timestamp == EARLIEST:
        return 0
    return next((place for place in reversed(range(len(entries))) if entries[place][1] <= timestamp), -1)
