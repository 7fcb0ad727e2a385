"""A log as it lies on disk: where it begins and ends, its segments, what is known of its producers."""

from __future__ import annotations

from collections.abc import Callable

from lowwater.errors import StorageError
from lowwater.log.atomic_file import is_disk_full
from lowwater.log.availability import Availability
from lowwater.log.checkpoint import LogEntry, SegmentEntry
from lowwater.log.config import LogConfig
from lowwater.log.epochs import LeaderEpochs
from lowwater.log.flush import FlushTicket, run_tickets
from lowwater.log.marks import LogKey, raise_point
from lowwater.log.producers import NO_TRANSACTION, NOBODY, Producer, Producers, first_open_in
from lowwater.log.segment import Segment
from lowwater.log.segments import Segments
from lowwater.log.state import LogState, Shared
from lowwater.types import TopicPartition


class StoredLog(Availability):
    """Opened from the checkpoint or by recovery; loaded on first use, made durable by flushes."""

    __slots__ = (
        "_ceiling",
        "_compacting",
        "_compactions",
        "_entry",
        "_epochs",
        "_first_open",
        "_load",
        "_producers",
        "_raise_at",
        "_resume_at",
        "_segments",
        "_shared",
        "_stored",
        "clean_until",
        "config",
        "flushed_end",
        "key",
        "leader_epoch",
        "log_end",
        "log_start",
        "size_bytes",
    )

    def __init__(
        self,
        shared: Shared,
        topic_partition: TopicPartition,
        key: LogKey,
        topic_directory: str,
        config: LogConfig,
        leader_epoch: int,
    ) -> None:
        super().__init__(topic_partition)
        self._shared = shared
        self.key = key
        self.config = config
        self.leader_epoch = leader_epoch
        self.log_start = self.log_end = self.flushed_end = self.size_bytes = 0
        self._resume_at = 0
        self._load: Callable[[StoredLog, LogEntry], LogState] | None = None
        self._stored: bytes | None = None
        self._segments = Segments(shared, topic_directory, topic_partition.partition)
        self._epochs = LeaderEpochs()
        self._producers: Producers | None = None
        self._first_open = NO_TRANSACTION  # until the producers are known
        self.clean_until = 0
        self._compacting = False
        self._compactions = 0
        self._entry: tuple[tuple[int, ...], bytes] | None = None
        self.set_ceiling(shared.marks.ceiling_of(key))

    def go_offline(self, why: str) -> StorageError:
        self._shared.doubt.note()
        return super().go_offline(why)

    # -- opening

    def open_with(self, state: LogState) -> None:
        """Take the state that the checkpoint or a recovery gives."""
        self._load = self._stored = None
        self._segments.take(state.segments, state.unsynced)
        self._epochs = state.epochs
        self._producers = state.producers if len(state.producers) else None
        self._first_open = NO_TRANSACTION
        self.log_start, self.log_end, self.flushed_end = state.log_start, state.log_end, state.flushed_end
        self._resume_at = state.resume_at
        self.clean_until = state.clean_until
        self.size_bytes = sum(segment.size for segment in state.segments)

    def open_later(self, stored: bytes, load: Callable[[StoredLog, LogEntry], LogState]) -> None:
        """`stored` is this log in the checkpoint: enough to answer for the ends; the rest is loaded on first use."""
        entry = LogEntry.decode(stored)
        self.log_start, self.log_end, self.flushed_end = entry.log_start, entry.log_end, entry.flushed_end
        self._resume_at = entry.resume_at
        self.size_bytes = sum(one.facts.size for one in entry.segments)
        self._first_open = first_open_in(entry.producers or b"")
        self._stored = stored
        self._load = load

    def open_recovered(self, stored: bytes | None, recover: Callable[[], LogState]) -> None:
        """Recover now. A log for which that fails is offline; `stored` is what the checkpoint goes on to say of it."""
        self._stored = stored
        self.attempt("recovery failed", lambda: self.open_with(recover()))

    @property
    def is_loaded(self) -> bool:
        return self._load is None

    def touch(self) -> None:
        """Load what is still only in the checkpoint."""
        if self._load is None:
            return
        assert self._stored is not None
        try:
            self.open_with(self._load(self, LogEntry.decode(self._stored)))
        except OSError as error:
            if is_disk_full(error):
                raise StorageError(f"{self.topic_partition} cannot be opened now: {error}", retriable=True) from error
            raise self.go_offline(f"it cannot be opened: {error}") from error

    @property
    def directory(self) -> str:
        return self._segments.directory

    @property
    def segments(self) -> list[Segment]:
        """Oldest first; not to be changed."""
        if self._load is not None:
            self.touch()
        return self._segments.all

    @property
    def epochs(self) -> LeaderEpochs:
        if self._load is not None:
            self.touch()
        return self._epochs

    @property
    def next_offset(self) -> int:
        """What the next batch gets."""
        return max(self.log_end, self._resume_at)

    @property
    def last_stable(self) -> int:
        """Everything below is decided: the first offset of an open transaction, or the log end."""
        first = self._first_open if self._producers is None else self._producers.first_open
        return self.log_end if first < 0 else max(first, self.log_start)

    def set_ceiling(self, ceiling: int) -> None:
        self._ceiling = ceiling
        self._raise_at = raise_point(ceiling)

    # -- producers

    def producers(self) -> list[tuple[int, Producer]]:
        """(producer id, state) of everyone remembered."""
        self.check_online()
        self.touch()
        return list(self._producers.items()) if self._producers is not None else []

    @property
    def producer_state(self) -> Producers:
        return self._producers if self._producers is not None else NOBODY

    def has_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether that producer has a transaction open here, in that epoch."""
        self.touch()
        return self._producers is not None and self._producers.has_transaction(producer_id, producer_epoch)

    def check_producer(self, producer_id: int, producer_epoch: int) -> None:
        """ApiError when a newer epoch of that producer was seen here."""
        self.touch()
        if self._producers is not None:
            self._producers.check_own(producer_id, producer_epoch)

    # -- durability

    def begin_flush(self) -> FlushTicket | None:
        """What to sync so that everything appended until now is durable; None when it is already."""
        if self.flushed_end >= self.log_end:
            return None
        return self._segments.begin_flush(self.log_end)

    def finish_flush(self, ticket: FlushTicket, error: BaseException | None) -> None:
        """The ticket ran. An error is final: the kernel may have dropped what it could not write."""
        self._segments.end_flush(ticket)
        if error is not None:
            self.go_offline(f"fsync failed: {error}")
        elif self.offline is None:
            self.flushed_end = max(self.flushed_end, ticket.end)

    def flush(self) -> None:
        """All of it at once, blocking; StorageError when it fails."""
        ticket = self.begin_flush()
        if ticket is None:
            return
        [error] = run_tickets(self._shared.disk, [ticket])
        self.finish_flush(ticket, error)
        self.check_online()

    # -- closing

    def entry(self) -> bytes:
        """This log as the checkpoint keeps it; remembered, since most logs do not change between two checkpoints."""
        if self._stored is not None:
            return self._stored
        all_durable = self.flushed_end >= self.log_end and self.offline is None
        flushed_end = min(self.flushed_end, self.log_end)
        ends = (self.log_start, self.log_end, flushed_end, self._resume_at, self.clean_until)
        is_sealed = bool(self.segments) and self.segments[-1].is_sealed
        state = (*ends, self.size_bytes, len(self.segments), len(self.producer_state), is_sealed, all_durable)
        if self._entry is None or self._entry[0] != state:
            segments = [SegmentEntry.of(segment) for segment in self.segments]
            producers = self.producer_state.encode() if all_durable else None
            encoded = LogEntry(*ends, segments, list(self._epochs), producers).encode()
            self._entry = (state, encoded)
        return self._entry[1]

    def save(self) -> None:
        """Leave indexes for the next start."""
        self._segments.save()

    def close(self) -> None:
        """Close the files; the log is not used any more."""
        self._segments.close()
