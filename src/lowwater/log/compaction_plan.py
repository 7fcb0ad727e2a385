"""When a log is worth compacting, and what of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.log.cleaning import Rules
from lowwater.log.compaction import CompactionPlan, PlannedSegment
from lowwater.log.segment import Segment
from lowwater.ports import Disk

if TYPE_CHECKING:
    from lowwater.log.partition_log import PartitionLog


def plan(log: PartitionLog, disk: Disk, name: str, marks_path: str, now_ms: int) -> CompactionPlan | None:
    """All sealed, durable segments that are old enough, if enough of their bytes are new since the last compaction."""
    segments = _cleanable(log, now_ms)
    dirty_from = max(log.clean_until, log.log_start)
    dirty = [one for one in segments if one.next_offset > dirty_from]
    if not dirty:
        return None
    ratio = sum(one.size for one in dirty) / sum(one.size for one in segments)
    if ratio <= log.config.min_cleanable_dirty_ratio and not _is_overdue(log, dirty[0], now_ms):
        return None
    return CompactionPlan(
        disk,
        log.directory,
        name,
        tuple(PlannedSegment(one.base_offset, one.size, one.next_offset, one.modified_ms) for one in segments),
        dirty_from,
        Rules(now_ms, log.config.delete_retention_ms, _batches_to_keep(log), _markers_to_keep(log)),
        log.config.segment_bytes,
        log.config.index_interval_bytes,
        marks_path,
        tuple(log.aborted(segments[0].base_offset, segments[-1].next_offset)),
    )


def _cleanable(log: PartitionLog, now_ms: int) -> list[Segment]:
    found = []
    lag_ms = log.config.min_compaction_lag_ms
    for segment in log.segments:
        # Without a lag, timestamps do not matter: those ahead of our clock must not put compaction off.
        is_recent = lag_ms > 0 and now_ms - segment.max_timestamp < lag_ms
        # Beyond the last stable offset nobody knows yet what counts.
        is_undecided = segment.next_offset > log.last_stable
        if not segment.is_sealed or segment.next_offset > log.flushed_end or is_recent or is_undecided:
            break
        found.append(segment)
    return found


def _is_overdue(log: PartitionLog, oldest: Segment, now_ms: int) -> bool:
    since = oldest.first_timestamp if oldest.first_timestamp >= 0 else oldest.created_ms
    return now_ms - since > log.config.max_compaction_lag_ms


def _batches_to_keep(log: PartitionLog) -> frozenset[int]:
    """What live producers may repeat, and the last batch of all: the log end follows from it."""
    remembered = {sent.last_offset for _, producer in log.producers() for sent in producer.sent}
    return frozenset({*remembered, log.log_end - 1})


def _markers_to_keep(log: PartitionLog) -> frozenset[tuple[int, int]]:
    """Of producers whose epoch is known by nothing else."""
    return frozenset((producer_id, one.epoch) for producer_id, one in log.producers() if not one.sent)
