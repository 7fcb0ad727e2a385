"""Which segments may go: too old, too many bytes, or wholly below the log start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.log.checkpoint import LogEntry
from lowwater.log.config import LogConfig
from lowwater.log.segment import Segment

if TYPE_CHECKING:
    from lowwater.log.partition_log import PartitionLog


def is_worth_a_look(log: PartitionLog, stored: bytes | None, now_ms: int) -> bool:
    """A log that nobody uses, and of which only `stored` is known, is not loaded for nothing."""
    if stored is None:
        return log.size_bytes > 0
    return _may_have_expired(LogEntry.decode(stored), log.config, now_ms)


def _may_have_expired(entry: LogEntry, config: LogConfig, now_ms: int) -> bool:
    if not entry.segments or not config.delete:
        return False
    oldest = entry.segments[0].facts
    latest = oldest.max_timestamp if oldest.max_timestamp >= 0 else oldest.modified_ms
    is_old = 0 <= config.retention_ms < now_ms - latest
    return is_old or 0 <= config.retention_bytes < sum(one.facts.size for one in entry.segments)


def expired(log: PartitionLog, now_ms: int) -> list[Segment]:
    """The oldest segments, as many as the settings let go. The active one goes too when it is too old."""
    segments = log.segments
    count = _below_log_start(log, segments)
    if log.config.delete:
        count = max(count, _too_old(log, segments, now_ms), _too_many(log, segments))
    return segments[:count]


def _below_log_start(log: PartitionLog, segments: list[Segment]) -> int:
    return sum(1 for segment in segments if segment.next_offset <= log.log_start)


def _too_old(log: PartitionLog, segments: list[Segment], now_ms: int) -> int:
    limit = log.config.retention_ms
    if limit < 0:
        return 0
    count = 0
    for segment in segments:
        latest = segment.max_timestamp if segment.max_timestamp >= 0 else segment.modified_ms
        if now_ms - latest <= limit:
            break
        count += 1
    return count


def _too_many(log: PartitionLog, segments: list[Segment]) -> int:
    """As many as leave at least retention.bytes behind."""
    limit = log.config.retention_bytes
    if limit < 0:
        return 0
    surplus = sum(segment.size for segment in segments) - limit
    count = 0
    for segment in segments[:-1]:
        surplus -= segment.size
        if surplus < 0:
            break
        count += 1
    return count
