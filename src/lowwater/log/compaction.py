"""Compaction: of each key the last value stays, in its place.

Planned on the event loop (`PartitionLog.plan_compaction`), executed elsewhere (`execute`, which only touches sealed
segments and files of its own), and swapped in by `PartitionLog.finish_compaction`. The manifest decides a crash: once
it is durable the swap will happen, before that nothing has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from crc32c import crc32c

from lowwater.errors import StorageError, WireError
from lowwater.log.aborted import AbortedTransaction
from lowwater.log.atomic_file import is_disk_full, sync_path
from lowwater.log.batches import DamagedBatchError, headers
from lowwater.log.cleaning import Cleaner, Rules, key_of
from lowwater.log.compaction_swap import Group, Manifest, clear_manifest, output_stem, undo, write_manifest
from lowwater.log.outcomes import Outcomes
from lowwater.log.segment import RELATIVE_MAX, segment_path
from lowwater.log.segment_writer import SegmentWriter
from lowwater.log.sidecar import SegmentFacts
from lowwater.ports import Disk
from lowwater.wire.record_scan import scan
from lowwater.wire.records import CRC_START, BatchHeader

KEYS_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class PlannedSegment:
    base_offset: int
    size: int
    next_offset: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """Everything the worker needs; `segments` are sealed and durable."""

    disk: Disk
    directory: str
    name: str  # unlike that of any other compaction of this log
    segments: tuple[PlannedSegment, ...]
    dirty_from: int
    rules: Rules
    segment_bytes: int
    index_interval_bytes: int
    marks_path: str  # where it stands that this log is compacted
    aborted: tuple[AbortedTransaction, ...] = ()
    keys_max: int = KEYS_MAX


@dataclass(frozen=True, slots=True)
class CompactedSegment:
    """What replaces the segments that begin at `sources`; no facts when nothing of them stays."""

    sources: tuple[int, ...]
    base_offset: int
    facts: SegmentFacts | None


@dataclass(frozen=True, slots=True)
class CompactionResult:
    manifest: Manifest | None
    segments: tuple[CompactedSegment, ...]
    clean_until: int
    error: str | None = None
    retriable: bool = False


def execute(plan: CompactionPlan) -> CompactionResult:
    """Write the compacted segments and the manifest, all durable. An error is part of the result."""
    try:
        clear_manifest(plan.disk, plan.directory)
        latest, clean_until = _latest_offsets(plan)
        cleaner = Cleaner(plan.rules, latest, clean_until, Outcomes(plan.aborted))
        sources = [one for one in plan.segments if one.base_offset < clean_until]
        compacted = tuple(_compact(plan, cleaner, group) for group in _groups(plan, sources))
        groups = tuple(Group(one.sources, one.base_offset, one.facts is not None) for one in compacted)
        manifest = Manifest(plan.name, groups)
        sync_path(plan.disk, plan.marks_path)
        write_manifest(plan.disk, plan.directory, manifest)
    except (OSError, StorageError, WireError, DamagedBatchError) as error:
        undo(plan.disk, plan.directory)
        return CompactionResult(None, (), plan.dirty_from, f"{type(error).__name__}: {error}", _may_pass(error))
    return CompactionResult(manifest, compacted, clean_until)


def _may_pass(error: Exception) -> bool:
    if isinstance(error, OSError):
        # A segment that is gone fell to retention or DeleteRecords since it was planned.
        return is_disk_full(error) or isinstance(error, FileNotFoundError)
    return isinstance(error, StorageError) and error.retriable


def _latest_offsets(plan: CompactionPlan) -> tuple[dict[bytes, int], int]:
    """The last offset of each key from `dirty_from` on, and how far that knowledge reaches: memory is bounded."""
    latest: dict[bytes, int] = {}
    outcomes = Outcomes(plan.aborted)
    reached = plan.dirty_from
    for segment in plan.segments:
        if segment.next_offset <= plan.dirty_from:
            continue
        for batch, header in _batches(plan, segment):
            if header.next_offset <= plan.dirty_from:
                continue
            # What was aborted takes no one's place.
            if not header.is_control and not outcomes.is_aborted(header):
                _, records = scan(batch, header)
                if latest and len(latest) + len(records) > plan.keys_max:
                    return latest, reached
                latest.update(
                    (key_of(one.key), header.base_offset + one.offset_delta) for one in records if one.key is not None
                )
            reached = header.next_offset
        reached = segment.next_offset
    return latest, reached


def _groups(plan: CompactionPlan, sources: list[PlannedSegment]) -> Iterator[list[PlannedSegment]]:
    """Neighbours that fit into one segment together."""
    group: list[PlannedSegment] = []
    for one in sources:
        size = sum(other.size for other in group) + one.size
        too_large = size > plan.segment_bytes or (group and one.next_offset - group[0].base_offset > RELATIVE_MAX)
        if group and too_large:
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _compact(plan: CompactionPlan, cleaner: Cleaner, group: list[PlannedSegment]) -> CompactedSegment:
    base_offset = group[0].base_offset
    sources = tuple(one.base_offset for one in group)
    stem = output_stem(plan.directory, base_offset, plan.name)
    writer = SegmentWriter(plan.disk, base_offset, stem, plan.index_interval_bytes)
    try:
        for segment in group:
            for batch, header in _batches(plan, segment):
                cleaned = cleaner.clean(batch, header)
                if cleaned is not None:
                    writer.append(cleaned)
        facts = writer.finish(group[-1].modified_ms, cleaner.take_aborted())
    finally:
        writer.close()
    return CompactedSegment(sources, base_offset, facts)


def _batches(plan: CompactionPlan, segment: PlannedSegment) -> Iterator[tuple[memoryview, BatchHeader]]:
    """Every batch, its CRC checked: damage must not be made to look right by a new checksum."""
    path = segment_path(plan.directory, segment.base_offset)
    file = plan.disk.open(path)
    try:
        view = file.map(segment.size)
        for position, header in headers(view, 0, segment.size):
            batch = view[position : position + header.size]
            if crc32c(batch[CRC_START:]) != header.crc:
                raise StorageError(f"{path} is damaged at byte {position}")
            yield batch, header
    finally:
        file.close()
