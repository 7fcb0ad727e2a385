"""The log of one partition: segments in order, what producers did, where epochs began.

Everything runs in one thread, except `FlushTicket.run`, `Slice.warm` and the execution of a compaction.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator

from lowwater.errors import ApiError, ErrorCode, StorageError
from lowwater.log import compaction_plan, log_start, lookup, retention
from lowwater.log.aborted import AbortedTransaction
from lowwater.log.admission import admit
from lowwater.log.appended import Appended
from lowwater.log.atomic_file import is_disk_full
from lowwater.log.batches import DamagedBatchError
from lowwater.log.cold import Warmed
from lowwater.log.compaction import CompactionPlan, CompactionResult
from lowwater.log.config import LogConfig
from lowwater.log.flush import FlushTicket, run_tickets
from lowwater.log.log_start import LogStart
from lowwater.log.lookup import OffsetAtTime
from lowwater.log.marks import Marks
from lowwater.log.producers import NOBODY, Producers
from lowwater.log.segment import Segment, ShortWriteError
from lowwater.log.slices import Slice, empty_slice
from lowwater.log.snapshots import write_snapshot
from lowwater.log.stored_log import StoredLog
from lowwater.wire.control import build_end_marker, read_end_marker
from lowwater.wire.records import CONTROL, NO_PRODUCER_ID, BatchHeader, set_log_append_time, set_position

__all__ = ["Appended", "FlushTicket", "OffsetAtTime", "PartitionLog", "Slice", "run_tickets"]

logger = logging.getLogger(__name__)


class PartitionLog(StoredLog):
    """Offsets in [log_start, log_end) are readable; the next batch gets `next_offset`."""

    __slots__ = ()

    # -- appending

    def append(
        self,
        batch: memoryview,
        now_ms: int,
        *,
        zstd_allowed: bool = True,
        in_transaction: bool = False,
        epoch_bumped: bool = False,
    ) -> Appended:
        """Check, stamp and write one batch. Readable at once, durable after a flush. Nothing is written on an error.

        `in_transaction`: the coordinator says that this partition is part of the producer's transaction. Without it, a
        transactional batch must follow another one. `epoch_bumped`: each of its transactions has an epoch of its own.
        """
        if self.offline is not None:
            self.check_online()
        header = admit(batch, self.config, now_ms, zstd_allowed=zstd_allowed)
        if header.producer_id >= 0:
            if self._load is not None:
                self.touch()
            known = self._producers if self._producers is not None else NOBODY
            repeated = known.repeated(header, in_transaction, epoch_bumped)
            if repeated is not None:
                first, last, append_time_ms = repeated[2:]
                return Appended(first, last, append_time_ms, self.log_start, True)
        return self._append(batch, header, now_ms)

    def append_own(self, batch: bytearray, now_ms: int) -> Appended:
        """The same for a batch that the broker itself made, perhaps in the name of a producer (in its transaction)."""
        if self.offline is not None:
            self.check_online()
        header = BatchHeader.parse(batch)
        if header.producer_id >= 0:
            self.touch()
            self.producer_state.check_own(header.producer_id, header.producer_epoch)
        return self._append(memoryview(batch), header, now_ms)

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        commit: bool,
        coordinator_epoch: int,
        now_ms: int,
        *,
        epoch_bumped: bool = False,
    ) -> Appended:
        """End the producer's transaction, if it has one here; ApiError for an old epoch of either."""
        self.check_online()
        self.touch()
        state = self.producer_state
        state.check_marker(producer_id, producer_epoch, coordinator_epoch, epoch_bumped=epoch_bumped)
        if not commit:
            with self._reading():
                self._segments.ready_to_abort()
        batch = build_end_marker(producer_id, producer_epoch, commit, coordinator_epoch, now_ms)
        return self._append(memoryview(batch), BatchHeader.parse(batch), now_ms)

    def _append(self, batch: memoryview, header: BatchHeader, now_ms: int) -> Appended:
        config = self.config
        if self._load is not None:
            self.touch()
        base_offset = self.log_end if self.log_end >= self._resume_at else self._resume_at
        last_offset = base_offset + header.last_offset_delta
        max_timestamp = header.max_timestamp
        if base_offset > self.log_end:
            self._secure(lambda marks: marks.note_gap(self.key, base_offset))
        if last_offset >= self._raise_at:
            self._raise_ceiling(last_offset + 1)
        if config.log_append_time:
            set_log_append_time(batch, header.attributes, now_ms)
            max_timestamp = now_ms
        set_position(batch, base_offset, self.leader_epoch)
        try:
            is_first = self._segments.write(batch, base_offset, last_offset, max_timestamp, now_ms, config)
        except (OSError, ShortWriteError) as error:
            raise self._write_failed(error) from error
        if is_first and self._producers is not None:
            self._snapshot(base_offset)
        if header.producer_id != NO_PRODUCER_ID and (header.producer_id >= 0 or header.is_control):
            if self._producers is None:
                self._producers = Producers()
            if header.attributes & CONTROL:
                self._note_end(batch, header, base_offset, max_timestamp, now_ms)
            else:
                self._producers.note(header, base_offset, max_timestamp, now_ms, config.log_append_time)
        if self._epochs.last != self.leader_epoch:
            self._epochs.note(self.leader_epoch, base_offset)
        self.log_end = last_offset + 1
        self.size_bytes += len(batch)
        return Appended(base_offset, last_offset, now_ms if config.log_append_time else -1, self.log_start, False)

    def _note_end(self, batch: memoryview, header: BatchHeader, offset: int, timestamp: int, now_ms: int) -> None:
        """A marker was written."""
        marker = read_end_marker(batch, header)
        assert marker is not None
        assert self._producers is not None
        aborted = self._producers.end(header, marker, offset, timestamp, now_ms)
        if aborted is not None:
            self._segments.note_aborted(aborted)

    def _raise_ceiling(self, end: int) -> None:
        """Ask for a higher ceiling ahead of use; wait for it only when this append needs it."""
        if end <= self._ceiling:
            self._shared.marks.wanting[self] = None
            self._raise_at = self._ceiling
            return
        self._secure(lambda marks: marks.reserve(self, end))

    def _secure(self, mark: Callable[[Marks], None]) -> None:
        """Write down what must be known before a batch is written."""
        try:
            mark(self._shared.marks)
        except StorageError as error:
            if error.retriable:
                raise
            raise self.go_offline(str(error)) from error

    def _snapshot(self, offset: int) -> None:
        """Each segment begins with what is known of the producers."""
        assert self._producers is not None
        try:
            write_snapshot(self._shared.disk, self.directory, offset, self._producers)
        except (OSError, StorageError) as error:
            logger.warning("the producer snapshot of %s was not saved: %s", self.topic_partition, error)

    def _write_failed(self, error: OSError | ShortWriteError) -> StorageError:
        """Cut back to the end before the write. A full disk may have room again later; anything else is final."""
        retriable = isinstance(error, ShortWriteError) or is_disk_full(error)
        try:
            self._segments.undo_write()
        except (OSError, StorageError) as second:
            return self.go_offline(f"a failed write ({error}) could not be undone: {second}")
        if not retriable:
            return self.go_offline(f"writing failed: {error}")
        return StorageError(f"{self.topic_partition} cannot be written now: {error}", retriable=True)

    # -- reading

    def read(self, offset: int, max_bytes: int, *, upto: int, min_one: bool) -> Slice:
        """Stored bytes from the batch that holds `offset` on, whole batches before offset `upto`."""
        if self.offline is not None:
            self.check_online()
        # Offsets up to the resume point may have been seen before a power cut: they wait, they are not refused.
        if not self.log_start <= offset <= max(self.log_end, self._resume_at):
            raise self._out_of_range(offset)
        if offset >= upto:
            return empty_slice()
        try:
            return self._read(offset, max_bytes, upto, min_one)
        except (OSError, DamagedBatchError) as error:
            raise StorageError(f"{self.topic_partition} cannot be read at offset {offset}: {error}") from error

    def _read(self, offset: int, max_bytes: int, upto: int, min_one: bool) -> Slice:
        if self._load is not None:
            self.touch()
        segment = self._segments.find(offset)
        if segment is None:
            return empty_slice()
        end = segment.size if upto >= segment.next_offset else segment.end_position(upto)
        return segment.read(offset, max_bytes, end, min_one=min_one)

    def aborted_in_read(self, offset: int, size: int) -> list[tuple[int, int]]:
        """The aborted transactions that concern a read of `size` bytes from `offset` on; a few more do no harm."""
        self.touch()
        if not self._segments.has_aborts_from(offset):
            return []
        with self._reading():
            end = self._segments.end_of_read(offset, size)
        return self.aborted_transactions(offset, end)

    def _out_of_range(self, offset: int) -> ApiError:
        bounds = f"[{self.log_start}, {self.log_end}]"
        return ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} of {self.topic_partition} is outside {bounds}")

    # -- looking up

    def offset_for_time(self, timestamp: int, *, upto: int, warmed: Warmed | None = None) -> OffsetAtTime | None:
        """The first record at or after `timestamp`, also out of order. `warmed`: ColdReadError instead of waiting."""
        with self._reading():
            return lookup.first_at_or_after(self, timestamp, upto, warmed)

    def offset_of_max_timestamp(self, *, upto: int, warmed: Warmed | None = None) -> OffsetAtTime | None:
        """The first record with the largest timestamp; `warmed` as above."""
        with self._reading():
            return lookup.with_max_timestamp(self, upto, warmed)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Whatever goes wrong with the files is a StorageError."""
        self.check_online()
        try:
            yield
        except (OSError, DamagedBatchError) as error:
            raise StorageError(f"{self.topic_partition} cannot be read: {error}") from error

    def segment_offsets(self, timestamp: int, max_count: int, now_ms: int) -> list[int]:
        """What the old simple consumer asks for (ListOffsets v0): segment starts, the latest first."""
        self.check_online()
        return lookup.segment_offsets(self, timestamp, max_count, now_ms)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(the largest epoch up to `epoch`, its end offset), or (-1, -1)."""
        self.check_online()
        return self.epochs.end_offset(epoch, self.leader_epoch, self.next_offset, self.log_end)

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of `offset`; -1 when nothing was written yet."""
        self.check_online()
        return self.epochs.epoch_at(offset)

    def aborted_transactions(self, start: int, end: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of each aborted transaction that a reader of [start, end) must leave out."""
        return [(one.producer_id, one.first_offset) for one in self.aborted(start, end)]

    def aborted(self, start: int, end: int) -> list[AbortedTransaction]:
        """All that is known of them, in the order of their ends."""
        self.touch()
        with self._reading():
            return self._segments.aborted(start, end)

    # -- housekeeping

    def update_config(self, config: LogConfig) -> None:
        self.config = config

    def roll_if_due(self, now_ms: int) -> bool:
        """Seal an active segment that is older than segment.ms; the next append begins a new one."""
        if self.offline is not None or self._load is not None or not self.segments:
            return False
        active = self.segments[-1]
        if active.is_sealed or not active.size or now_ms - active.created_ms <= self.config.segment_ms_max:
            return False
        self._segments.seal_active()
        return True

    def start_at(self, offset: int) -> None:
        """Let a log that was never written begin at `offset` instead of 0."""
        assert self.next_offset == 0, "only for a log without any history"
        if offset:
            self.log_end = self.flushed_end = offset
            self.advance_log_start(offset)

    def start_after_deletion(self, offset: int) -> int:
        """Where the log starts once everything below `offset` (-1: the log end) is deleted; ApiError beyond the end."""
        self.check_online()
        target = self.log_end if offset == -1 else offset
        if not 0 <= target <= self.log_end:
            raise self._out_of_range(offset)
        return max(target, self.log_start)

    def expire_producers(self, now_ms: int) -> None:
        """Forget producers that were not seen for producer.id.expiration.ms. A log that nobody uses is not loaded."""
        if self._producers is not None:
            self._producers.expire(now_ms, self.config.producer_expiration_ms)

    def start_after_retention(self, now_ms: int) -> int | None:
        """Where the log starts without the segments that are too old or too many; None when none is."""
        if self.offline is not None or not retention.is_worth_a_look(self, self._stored, now_ms):
            return None
        expired = retention.expired(self, now_ms)
        return max(self.log_start, expired[-1].next_offset) if expired else None

    def delete_before(self, offset: int) -> int:
        """Move the log start up to `offset` (DeleteRecords). Blocking, durable on return."""
        target = self.start_after_deletion(offset)
        if target > self.log_start:
            self.advance_log_start(target)
        return self.log_start

    def apply_retention(self, now_ms: int) -> list[int]:
        """Delete by age, by size, and what lies below the log start; return the base offsets. Blocking."""
        start = self.start_after_retention(now_ms)
        return [] if start is None else self.advance_log_start(start)

    def advance_log_start(self, offset: int) -> list[int]:
        """Make `offset` the durable log start, remove the segments below; return their base offsets. Blocking."""
        start = self.begin_log_start(offset)
        start.secure()
        self.mark_log_start(start)
        self._secure(lambda marks: marks.sync())
        return self.finish_log_start(start)

    def begin_log_start(self, offset: int) -> LogStart:
        return log_start.begin(self, self._shared.disk, offset)

    def mark_log_start(self, start: LogStart) -> None:
        """What had to be secured is. The marks still have to be synced."""
        self._secure(lambda marks: marks.write_log_start(self.key, start.offset))

    def finish_log_start(self, start: LogStart) -> list[int]:
        """The mark is durable: remove the segments that end at or before it; return their base offsets."""
        self.check_online()
        self._shared.marks.note_log_start(self.key, start.offset)
        self.log_start = max(self.log_start, start.offset)
        self._epochs.drop_before(self.log_start)
        doomed = [one for one in self.segments if one.next_offset <= self.log_start]
        self._remove(doomed)
        return [segment.base_offset for segment in doomed]

    def _remove(self, segments: list[Segment]) -> None:
        self._segments.remove(segments)
        self.size_bytes -= sum(segment.size for segment in segments)

    # -- compaction

    def plan_compaction(self, now_ms: int) -> CompactionPlan | None:
        """What to compact, for `compaction.execute` in a worker; None when there is too little to do."""
        if self.failure() is not None or self._compacting or not self.config.compact:
            return None
        marks = self._shared.marks
        name = f"{marks.boot_count}-{self._compactions}"
        plan = compaction_plan.plan(self, self._shared.disk, name, marks.path, now_ms)
        if plan is None:
            return None
        self._secure(lambda marks: marks.write_compacted(self.key, plan.segments[-1].next_offset))
        self._compacting = True
        self._compactions += 1
        return plan

    def finish_compaction(self, result: CompactionResult) -> None:
        """Put the compacted segments in place of their sources."""
        self._compacting = False
        if result.manifest is None:
            logger.error("%s was not compacted: %s", self.topic_partition, result.error)
            self._compacting = not result.retriable  # damaged: not tried again before the next start
        elif self.offline is None:
            self.attempt("compacted segments could not be put in place", lambda: self._take_compacted(result))

    def _take_compacted(self, result: CompactionResult) -> None:
        self._segments.exchange(result)
        self.size_bytes = sum(one.size for one in self.segments)
        self.clean_until = max(self.clean_until, result.clean_until)
        self._remove([one for one in self.segments if one.next_offset <= self.log_start])
