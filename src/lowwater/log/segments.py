"""The segments of one log, oldest first: only the last one grows."""

from __future__ import annotations

import contextlib
import logging
from bisect import bisect_right
from operator import attrgetter

from lowwater.errors import StorageError
from lowwater.log.aborted import AbortedTransaction, AbortedTransactions
from lowwater.log.compaction import CompactionResult
from lowwater.log.compaction_swap import swap
from lowwater.log.config import LogConfig
from lowwater.log.flush import FlushTicket, Unflushed
from lowwater.log.replay import find_aborted
from lowwater.log.segment import Segment
from lowwater.log.sidecar import SegmentFacts
from lowwater.log.state import Shared

logger = logging.getLogger(__name__)

_BASE_OFFSET = attrgetter("base_offset")


class Segments:
    """The files in one partition's directory, which appears with the first batch."""

    __slots__ = ("_partition", "_shared", "_topic_directory", "_unflushed", "all")

    def __init__(self, shared: Shared, topic_directory: str, partition: int) -> None:
        self._shared = shared
        self._topic_directory = topic_directory
        self._partition = partition
        self._unflushed = Unflushed()
        self.all: list[Segment] = []

    @property
    def directory(self) -> str:
        return f"{self._topic_directory}/{self._partition}"

    def take(self, segments: list[Segment], unsynced: list[Segment]) -> None:
        """The segments that were found; some of them perhaps not yet synced."""
        self.all = segments
        self._unflushed = Unflushed(unsynced)

    def find(self, offset: int) -> Segment | None:
        """The segment with the first batch that ends at or after `offset`."""
        segments = self.all
        if segments and offset >= segments[-1].base_offset:
            return segments[-1] if offset < segments[-1].next_offset else None
        place = max(bisect_right(segments, offset, key=_BASE_OFFSET) - 1, 0)
        return next((one for one in segments[place : place + 2] if one.next_offset > offset), None)

    def end_of_read(self, offset: int, size: int) -> int:
        """An offset that a read of `size` bytes from `offset` on does not reach."""
        segment = self.find(offset)
        if segment is None:
            return offset
        beyond = segment.index.offset_beyond(offset - segment.base_offset, size)
        return segment.next_offset if beyond is None else segment.base_offset + beyond

    def has_aborts_from(self, offset: int) -> bool:
        """Whether a transaction was aborted at or after `offset`: quick, since seldom one was."""
        for segment in reversed(self.all):
            if segment.has_aborts or segment.base_offset <= offset:
                return segment.has_aborts
        return False

    def aborted(self, start: int, end: int) -> list[AbortedTransaction]:
        """Transactions whose aborted records a reader of [start, end) would meet, in the order of their ends."""
        found: list[AbortedTransaction] = []
        place = max(bisect_right(self.all, start, key=_BASE_OFFSET) - 1, 0)
        for segment in self.all[place:]:
            if segment.has_aborts and self._aborted_in(segment).overlapping(start, end, found):
                break
        return found

    def _aborted_in(self, segment: Segment) -> AbortedTransactions:
        if segment.aborted is None:
            segment.aborted = segment.read_aborted()
        if segment.aborted is None:
            # Nothing is lost: it is not synced, so a kill leaves it out of date.
            logger.info("the transaction index of %s is made anew", segment.path)
            find_aborted(self._shared.disk, self.directory, self.all, segment)
        assert segment.aborted is not None
        return segment.aborted

    # -- writing

    def write(
        self,
        batch: memoryview,
        base_offset: int,
        last_offset: int,
        max_timestamp: int,
        now_ms: int,
        config: LogConfig,
    ) -> bool:
        """Write a batch; whether it is the first of its segment. OSError or ShortWriteError: then `undo_write`."""
        segment = self.all[-1] if self.all else None
        if segment is None or not _takes(segment, last_offset, len(batch), max_timestamp, now_ms, config):
            segment = self._roll(base_offset, now_ms)
        is_first = not segment.size
        segment.append(batch, last_offset, max_timestamp, now_ms, config.index_interval_bytes)
        self._unflushed.note(segment)
        return is_first

    def ready_to_abort(self) -> None:
        """Load what is needed to note a transaction that the next batch aborts."""
        if self.all and self.all[-1].has_aborts:
            self._aborted_in(self.all[-1])

    def note_aborted(self, aborted: AbortedTransaction) -> None:
        """The batch that was just written ended that transaction."""
        segment = self.all[-1]
        assert segment.aborted is not None, "ready_to_abort comes before the write"
        segment.aborted.add(aborted)
        segment.has_aborts = True

    def undo_write(self) -> None:
        """Remove what a failed write left."""
        if self.all:
            self.all[-1].cut_back()

    def _roll(self, base_offset: int, now_ms: int) -> Segment:
        """Begin a new segment; the old one is sealed, and synced with the next flush."""
        try:
            segment = Segment.create(self._shared.files, self.directory, base_offset, now_ms)
        except FileNotFoundError:
            if self.all:
                raise
            self._make_directory()
            segment = Segment.create(self._shared.files, self.directory, base_offset, now_ms)
        self.seal_active()
        self.all.append(segment)
        self._unflushed.note_names()
        return segment

    def _make_directory(self) -> None:
        try:
            self._shared.disk.mkdir(self.directory)
        except FileNotFoundError:
            self._shared.disk.mkdir(self._topic_directory)
            self._shared.disk.mkdir(self.directory)

    def seal_active(self) -> None:
        """The next batch begins a new segment."""
        if not self.all or self.all[-1].is_sealed:
            return
        segment = self.all[-1]
        segment.is_sealed = True
        try:
            segment.release_reserve()
            self._save_indexes(segment)
        except (OSError, StorageError) as error:
            logger.warning("the index of %s was not saved, it will be rebuilt: %s", segment.path, error)

    # -- removing

    def remove(self, segments: list[Segment]) -> None:
        """They are no longer part of the log; what stays of their files, the next start removes."""
        self.all = [one for one in self.all if one not in segments]
        self._unflushed.drop(segments)
        for segment in segments:
            try:
                segment.unlink()
            except OSError as error:
                logger.warning("%s could not be removed, the next start does it: %s", segment.path, error)

    def exchange(self, result: CompactionResult) -> None:
        """Put compacted segments in place of their sources. After an OSError try again, or leave it to a restart."""
        assert result.manifest is not None
        sources = {base for one in result.segments for base in one.sources}
        old = [one for one in self.all if one.base_offset in sources]
        self._unflushed.drop(old)  # what is compacted was durable
        for segment in old:
            segment.close()
        swap(self._shared.disk, self.directory, result.manifest)
        new = [self._compacted(one.base_offset, one.facts) for one in result.segments if one.facts is not None]
        self.all = sorted([one for one in self.all if one not in old] + new, key=_BASE_OFFSET)

    def _compacted(self, base_offset: int, facts: SegmentFacts) -> Segment:
        segment = Segment(self._shared.files, self.directory, base_offset, facts.modified_ms)
        segment.take(facts)
        segment.is_sealed = True
        return segment

    # -- syncing and closing

    def begin_flush(self, end: int) -> FlushTicket:
        root = self._topic_directory.rpartition("/")[0]
        return self._unflushed.begin(end, [self.directory, self._topic_directory, root], self._shared.doubt)

    def end_flush(self, ticket: FlushTicket) -> None:
        self._unflushed.end(ticket)

    def save(self) -> None:
        """Leave indexes for the next start."""
        for segment in self.all:
            with contextlib.suppress(OSError, StorageError):
                segment.release_reserve()
                self._save_indexes(segment)

    def _save_indexes(self, segment: Segment) -> None:
        segment.save_index()
        if segment.has_aborts:
            self._aborted_in(segment)
            segment.save_aborted()

    def close(self) -> None:
        for segment in self.all:
            segment.close()


def _takes(segment: Segment, last_offset: int, size: int, max_timestamp: int, now_ms: int, config: LogConfig) -> bool:
    """Whether the last segment takes the batch: Kafka's rules, by size and by how much time its records span."""
    if not segment.size:
        return True  # another one would have the same name: here a write failed after the roll
    if segment.is_sealed or not segment.has_room_for(last_offset, size, config.segment_bytes):
        return False
    if segment.first_timestamp >= 0 and max_timestamp >= 0:
        waited = max_timestamp - segment.first_timestamp
    else:
        waited = now_ms - segment.created_ms
    return waited <= config.segment_ms_max
