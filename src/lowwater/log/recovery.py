"""Finding out what a log holds after a stop that was not clean.

Segments that were durable at the last checkpoint are believed. The others are scanned: the log ends before the first
batch that is not whole, in order and true to its CRC. What lies behind it is cut off, and kept aside when there are
good batches in it.
"""

from __future__ import annotations

import contextlib
import errno
import logging
from dataclasses import dataclass
from typing import NamedTuple

from crc32c import crc32c

from lowwater.log.batches import DamagedBatchError, headers
from lowwater.log.checkpoint import LogEntry
from lowwater.log.compaction_swap import complete_or_undo
from lowwater.log.epochs import LeaderEpochs
from lowwater.log.marks import LogKey
from lowwater.log.producers import Producers
from lowwater.log.quarantine import Quarantine, has_batches
from lowwater.log.replay import find_aborted, marker_in, replay
from lowwater.log.segment import ALLOCATE_FROM, LOG_SUFFIX, SEGMENT_SUFFIXES, Segment, segment_path
from lowwater.log.sidecar import durable_facts
from lowwater.log.snapshots import read_snapshot, snapshot_offsets, snapshot_path
from lowwater.log.state import LogState, Shared
from lowwater.types import TopicPartition
from lowwater.wire.records import CRC_START, BatchHeader

logger = logging.getLogger(__name__)

STEM_LENGTH = 20
COPY_STEP = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known before looking at the files."""

    key: LogKey
    topic_partition: TopicPartition
    directory: str
    entry: LogEntry  # the last checkpoint's; an empty one when there is none
    leader_epoch: int
    interval: int
    now_ms: int


class Damage(NamedTuple):
    """The first bad batch of a segment. Holds no view: the file is cut there."""

    position: int
    why: str
    good_batches_follow: bool


class Recovery:
    """One log. `run` gives its state and leaves the directory in order, durably."""

    def __init__(self, shared: Shared, situation: Situation) -> None:
        self._shared = shared
        self._disk = shared.disk
        self._marks = shared.marks
        self._situation = situation
        self._directory = situation.directory
        self._entry = situation.entry
        self._quarantine = Quarantine(shared.disk, situation.directory)
        self._epochs = LeaderEpochs(situation.entry.epochs)
        self._known = {one.base_offset: one for one in situation.entry.segments}
        self._epoch_starts = {start for _, start in situation.entry.epochs}
        # Compaction may have left gaps below. All of that was durable before it did.
        self._compacted = max(shared.marks.compacted_of(situation.key), situation.entry.clean_until)
        log_start = max(shared.marks.log_start_of(situation.key), situation.entry.log_start)
        self._state = LogState(log_start=log_start)
        self._end: int | None = None
        self._last_epoch = -1
        self._names_changed = False

    def run(self) -> LogState:
        names = self._disk.listdir(self._directory)
        if complete_or_undo(self._disk, self._directory, names):
            names = self._disk.listdir(self._directory)
        bases = sorted(int(name[:STEM_LENGTH]) for name in names if _is_log(name))
        self._remove_strays(names, set(bases))
        for place, base in enumerate(bases):
            rest = bases[place + 1 :]
            if rest and rest[0] <= self._state.log_start:
                self._discard(base)
            elif not self._take(base, rest):
                self._set_aside(rest)
                break
        self._settle_ends()
        if self._shared.doubt.found:
            self._write_again()
        self._state.producers = self._producers(snapshot_offsets(names))
        for segment in self._state.unsynced:
            if segment.has_aborts:
                find_aborted(self._disk, self._directory, self._state.segments, segment)
        if self._names_changed:
            self._disk.sync_dir(self._directory)
        return self._state

    # -- segments

    def _take(self, base: int, rest: list[int]) -> bool:
        """Add the segment; False when the log ends in it, before its own end."""
        segment = Segment(self._shared.files, self._directory, base, self._situation.now_ms)
        size = segment.handle.file().size()
        damage = None
        if not self._believe(segment, size):
            damage = self._scan(segment, size, rest[0] if rest else None)
            if damage is not None:
                self._cut(segment, damage)
            elif segment.size >= ALLOCATE_FROM:
                # Gives back the room that a killed process had reserved behind the end.
                segment.handle.file().truncate(segment.size)
        if segment.size and segment.next_offset > self._state.log_start:
            segment.is_sealed = bool(rest)
            self._state.segments.append(segment)
        else:
            segment.close()
            self._discard(base)
        return damage is None

    def _believe(self, segment: Segment, size: int) -> bool:
        """Take a segment unseen: it was durable, at the checkpoint or by compaction, and is as long as it was."""
        # Compaction since the checkpoint may have put another segment of that name there, even one of that size.
        known = self._known.get(segment.base_offset) if segment.base_offset >= self._compacted else None
        if known is not None and known.facts.next_offset <= self._entry.flushed_end and known.facts.size == size:
            segment.take(known.facts, known.whole_sum)
            segment.created_ms = known.created_ms
        else:
            facts = durable_facts(self._disk, segment_path(self._directory, segment.base_offset, ""))
            if facts is None or facts.size != size:
                return False
            segment.take(facts)
        self._expect(segment.base_offset)
        self._end = segment.next_offset
        self._last_epoch = max(self._last_epoch, self._epochs.epoch_at(segment.next_offset - 1))
        return True

    def _scan(self, segment: Segment, size: int, following: int | None) -> Damage | None:
        """Walk over the batches up to the first bad one."""
        segment.start_over()
        segment.modified_ms = self._disk.modified_ms(segment.path)
        self._state.unsynced.append(segment)
        if not size:
            return None
        if self._end is None:
            self._end = min(segment.base_offset, self._state.log_start)
        view = segment.handle.mapped(size)
        try:
            for position, header in headers(view, 0, size):
                self._check(view, position, header, following)
                prefix = bytes(view[position : position + CRC_START])
                segment.note(prefix, header.last_offset, header.max_timestamp, header.size, self._situation.interval)
                self._epochs.note(header.leader_epoch, header.base_offset)
                if header.is_control and _is_abort(view[position : position + header.size], header):
                    segment.has_aborts = True
                self._last_epoch, self._end = header.leader_epoch, header.next_offset
        except DamagedBatchError as error:
            return Damage(error.position, error.why, has_batches(view, error.position, size))
        return None

    def _check(self, view: memoryview, position: int, header: BatchHeader, following: int | None) -> None:
        """Batches lie back to back. A gap is only where a new epoch began at a ceiling, or where compaction was."""
        offset, expected = header.base_offset, self._end or 0
        if not self._last_epoch <= header.leader_epoch <= self._situation.leader_epoch:
            raise DamagedBatchError(position, f"leader epoch {header.leader_epoch} after {self._last_epoch}")
        if offset < expected or (following is not None and header.next_offset > following):
            raise DamagedBatchError(position, f"offset {offset} where {expected} is expected")
        if offset < self._entry.flushed_end:
            # Durable once: damage of its records is the reader's to find, and the batches behind it stay.
            self._expect(offset)
            return
        if offset > expected:
            self._check_gap(position, header, expected)
            logger.warning("%s: no records from %d to %d", self._situation.topic_partition, expected, offset)
        if crc32c(view[position + CRC_START : position + header.size]) != header.crc:
            raise DamagedBatchError(position, "the batch does not match its CRC")

    def _check_gap(self, position: int, header: BatchHeader, expected: int) -> None:
        offset = header.base_offset
        begins_epoch = header.leader_epoch != self._last_epoch
        on_purpose = self._marks.is_gap(self._situation.key, offset) or offset in self._epoch_starts
        if offset > self._compacted and not (begins_epoch and on_purpose):
            raise DamagedBatchError(position, f"offset {offset} where {expected} is expected")

    def _expect(self, offset: int) -> None:
        """Durable batches follow from `offset` on: what lies between the end so far and there must be a known gap."""
        expected = self._state.log_start if self._end is None else self._end
        if offset > max(expected, self._compacted) and offset not in self._epoch_starts:
            logger.error("%s: records from %d to %d are lost", self._situation.topic_partition, expected, offset)
            self._note_loss()

    def _cut(self, segment: Segment, damage: Damage) -> None:
        """End the segment at the first bad batch; keep the rest aside when it is worth something."""
        segment.close()  # and its map with it: a mapped range is never cut
        if damage.good_batches_follow or (self._end or 0) < self._entry.flushed_end:
            kept = self._quarantine.keep_tail(segment.path, damage.position)
            logger.error("%s: byte %d: %s; the rest is in %s", segment.path, damage.position, damage.why, kept)
            self._note_loss()
        else:
            logger.warning("%s: byte %d: %s; cut off", segment.path, damage.position, damage.why)
        file = segment.handle.file()
        file.truncate(damage.position)
        file.sync()

    def _write_again(self) -> None:
        """A sync failed before: what was read here may be on no disk, and no later sync would write it."""
        for segment in self._state.unsynced:
            file = segment.handle.file()
            for position in range(0, segment.size, COPY_STEP):
                chunk = file.pread(min(COPY_STEP, segment.size - position), position)
                if file.pwrite(chunk, position) != len(chunk):
                    raise OSError(errno.ENOSPC, "no space left to write it again", segment.path)

    def _set_aside(self, bases: list[int]) -> None:
        """Segments behind the end of the log do not belong to it."""
        if bases:
            self._note_loss()
        for base in bases:
            path = segment_path(self._directory, base)
            logger.error("%s lies behind damaged batches; it is kept in %s", path, self._quarantine.keep_file(path))
            self._discard(base)

    def _discard(self, base: int) -> None:
        for suffix in SEGMENT_SUFFIXES:
            with contextlib.suppress(FileNotFoundError):
                self._disk.unlink(segment_path(self._directory, base, suffix))
        self._names_changed = True

    def _remove_strays(self, names: list[str], bases: set[int]) -> None:
        """Half-written files, and companions whose log is gone."""
        for name in names:
            stem, _, suffix = name.partition(".")
            is_companion = "." + suffix in SEGMENT_SUFFIXES and stem.isdigit()
            if name.endswith(".new") or (is_companion and int(stem) not in bases):
                self._disk.unlink(f"{self._directory}/{name}")
                self._names_changed = True

    # -- what follows from them

    def _settle_ends(self) -> None:
        state, entry = self._state, self._entry
        if state.segments:
            state.log_end = max(state.log_start, state.segments[-1].next_offset)
        else:
            state.log_end = state.log_start
        if state.log_end < entry.flushed_end:
            logger.error("%s: durable records from %d on are lost", self._situation.topic_partition, state.log_end)
            self._note_loss()
        self._epochs.drop_from(state.log_end)
        self._epochs.drop_before(state.log_start)
        state.epochs = self._epochs
        state.flushed_end = min(entry.flushed_end, state.log_end)
        state.unsynced = [segment for segment in state.unsynced if segment in state.segments]
        state.clean_until = min(entry.clean_until, state.log_end)
        state.resume_at = max(entry.resume_at, entry.log_end, state.log_end, self._marks.resume_of(self._situation.key))
        if self._marks.may_have_lost(self._situation.leader_epoch, self._epochs.last):
            # Readers may have seen offsets up to the ceiling. A killed process, by contrast, loses nothing.
            state.resume_at = max(state.resume_at, self._marks.ceiling_of(self._situation.key))

    def _note_loss(self) -> None:
        """Records that were seen are gone: their offsets are not given out again, also if this start is cut short."""
        ceiling = self._marks.ceiling_of(self._situation.key)
        if self._marks.resume_of(self._situation.key) < ceiling:
            self._marks.raise_resume(self._situation.key, ceiling)

    def _producers(self, snapshots: list[int]) -> Producers:
        """From the newest state that lies within the log, and the batches after it."""
        log_end = self._state.log_end
        producers = Producers()
        start = self._state.segments[0].base_offset if self._state.segments else log_end
        if self._entry.producers is not None and self._entry.log_end <= log_end:
            producers, start = Producers.decode(self._entry.producers), self._entry.log_end
        for offset in snapshots:
            if offset > log_end:
                # It speaks of lost batches, and must not come back when the log has grown past it.
                self._disk.unlink(snapshot_path(self._directory, offset))
                self._names_changed = True
            elif offset >= start and (found := read_snapshot(self._disk, self._directory, offset)) is not None:
                producers, start = found, offset
        replay(producers, self._state.segments, start, log_end, self._situation.now_ms)
        return producers


def _is_abort(batch: memoryview, header: BatchHeader) -> bool:
    marker = marker_in(batch, header)
    return marker is not None and not marker.commit


def _is_log(name: str) -> bool:
    return name.endswith(LOG_SUFFIX) and len(name) == STEM_LENGTH + len(LOG_SUFFIX) and name[:STEM_LENGTH].isdigit()
