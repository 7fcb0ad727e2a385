"""Which offset belongs to a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from lowwater.errors import StorageError, WireError
from lowwater.log.batches import headers
from lowwater.log.segment import Segment
from lowwater.wire.records import BatchHeader, read_times

if TYPE_CHECKING:
    from lowwater.log.partition_log import PartitionLog

LATEST, EARLIEST = -1, -2


class OffsetAtTime(NamedTuple):
    offset: int
    timestamp: int
    leader_epoch: int


def first_at_or_after(log: PartitionLog, timestamp: int, upto: int) -> OffsetAtTime | None:
    """The lowest offset in [log start, upto) whose timestamp is at or after `timestamp`."""
    for segment in log.segments:
        if segment.base_offset >= upto or segment.max_timestamp < timestamp:
            continue
        start = segment.index.position_for_time(timestamp)
        found = _search(log, segment, start, timestamp, upto)
        if found is not None:
            return found
    return None


def with_max_timestamp(log: PartitionLog, upto: int) -> OffsetAtTime | None:
    """The lowest offset that has the largest timestamp of all below `upto`."""
    best = max(
        (segment for segment in log.segments if segment.base_offset < upto and segment.size),
        key=lambda segment: segment.max_timestamp,
        default=None,
    )
    if best is None:
        return None
    if upto < log.log_end or log.log_start > log.segments[0].base_offset:
        return _max_by_scan(log, upto)
    return first_at_or_after(log, best.max_timestamp, upto)


def _max_by_scan(log: PartitionLog, upto: int) -> OffsetAtTime | None:
    """When some records do not count, the segments' own maxima do not either."""
    largest = max(
        (
            header.max_timestamp
            for segment in log.segments
            for _, header in _batches(segment, 0)
            if header.next_offset > log.log_start and header.base_offset < upto
        ),
        default=None,
    )
    while largest is not None:
        found = first_at_or_after(log, largest, upto)
        if found is not None:
            return found
        largest = _next_lower(log, largest, upto)
    return None


def _next_lower(log: PartitionLog, below: int, upto: int) -> int | None:
    """The largest timestamp below `below`: the batch with that maximum has it only in records that do not count."""
    times = (
        time
        for segment in log.segments
        for position, header in _batches(segment, 0)
        if header.next_offset > log.log_start and header.base_offset < upto
        for offset, time in _times(segment, position)
        if log.log_start <= offset < upto and time < below
    )
    return max(times, default=None)


def _search(log: PartitionLog, segment: Segment, start: int, timestamp: int, upto: int) -> OffsetAtTime | None:
    for position, header in _batches(segment, start):
        if header.base_offset >= upto:
            return None
        if header.max_timestamp < timestamp or header.next_offset <= log.log_start or header.is_control:
            continue
        for offset, time in _times(segment, position):
            if time >= timestamp and log.log_start <= offset < upto:
                return OffsetAtTime(offset, time, header.leader_epoch)
    return None


def _batches(segment: Segment, start: int) -> Iterator[tuple[int, BatchHeader]]:
    if not segment.size:
        return
    segment.verify(start, segment.size)
    yield from headers(segment.handle.mapped(segment.size), start, segment.size)


def _times(segment: Segment, position: int) -> Iterator[tuple[int, int]]:
    try:
        yield from read_times(segment.batch_at(position))
    except WireError as error:
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
