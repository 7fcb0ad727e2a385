"""One partition as its fetcher knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.client.cluster import NO_LEADER
from lowwater.client.fetching.events import Bounds
from lowwater.client.fetching.stored import NO_CLOCK, NO_EPOCH, Piece
from lowwater.merge.mark import END_MS
from lowwater.types import TopicPartition
from lowwater.wire.messages.fetch import PartitionData
from lowwater.wire.schema import ZERO_UUID

if TYPE_CHECKING:
    from lowwater.client.fetching.asker import Asker

UNKNOWN = -1
NO_STOP = END_MS
_AN_EIGHTH = 8


class PartitionFetch:
    """Reads one partition on from one offset. A seek makes another one, so that what comes too late is known by it."""

    __slots__ = (
        "asked_bytes",
        "asker",
        "batch_bytes",
        "bytes_per_ms",
        "bytes_per_offset",
        "clock_ms",
        "failed_ms",
        "failing_since_ms",
        "fetched_epoch",
        "high_watermark",
        "is_paused",
        "is_stopped",
        "is_told_at_end",
        "last_stable",
        "log_start",
        "one",
        "position",
        "replica",
        "replica_until_ms",
        "stop",
        "told_ms",
        "topic_id",
        "tries",
    )

    def __init__(self, one: TopicPartition, position: int) -> None:
        self.one = one
        self.position = position
        self.stop = NO_STOP  # what lies from there on is not wanted
        self.topic_id = ZERO_UUID
        self.fetched_epoch = NO_EPOCH  # of the leader that took the batch before `position`, where we read it
        self.asker: Asker | None = None  # who was told last to ask for it
        self.asked_bytes = 0  # how much an answer may bring of it
        self.clock_ms = NO_CLOCK  # the newest time of what came, which is due when others have come so far
        self.bytes_per_ms = 1.0
        self.bytes_per_offset = 0.0  # not known
        self.batch_bytes = 0  # of the largest that came
        self.is_paused = False
        self.is_stopped = False  # nothing more is asked until a seek
        self.is_told_at_end = False
        self.log_start = UNKNOWN
        self.high_watermark = UNKNOWN
        self.last_stable = UNKNOWN
        self.replica = NO_LEADER  # the broker nearby that its leader sent us to
        self.replica_until_ms = 0.0
        self.failing_since_ms: float | None = None
        self.failed_ms = 0.0  # the last time
        self.told_ms = 0.0  # when it was last told that it fails
        self.tries = 0

    def moved_to(self, offset: int) -> PartitionFetch:
        """Another one, of the same partition, from another offset on. After a failure it may be of another topic."""
        moved = PartitionFetch(self.one, offset)
        moved.is_paused, moved.stop = self.is_paused, self.stop
        if not self.is_stopped:
            moved.topic_id = self.topic_id
            moved.has_bounds(self)
        moved.bytes_per_ms, moved.batch_bytes = self.bytes_per_ms, self.batch_bytes
        moved.bytes_per_offset = self.bytes_per_offset
        return moved

    def go_on_with(self, piece: Piece, size: int, until_ms: int) -> None:
        """It is read up to behind this. What is stamped later than `until_ms` says nothing of how far it is."""
        self.bytes_per_offset = size / max(piece.position - self.position, 1)
        self.position, self.fetched_epoch = piece.position, piece.epoch
        self.batch_bytes = max(self.batch_bytes, piece.batch_bytes)
        if self.clock_ms < piece.newest_ms <= until_ms:
            self.clock_ms = piece.newest_ms
            self.bytes_per_ms = size / max(piece.newest_ms - piece.first_ms, 1)

    # ---- its ends

    @property
    def is_known(self) -> bool:
        return self.high_watermark != UNKNOWN

    @property
    def bounds(self) -> Bounds:
        return Bounds(self.log_start, self.high_watermark, self.last_stable)

    def has_bounds(self, told: PartitionData | PartitionFetch) -> None:
        """As an answer says, or as another knows of it."""
        if isinstance(told, PartitionFetch):
            self.log_start, self.high_watermark, self.last_stable = told.bounds
        else:
            self.log_start, self.high_watermark = told.log_start_offset, told.high_watermark
            self.last_stable = told.last_stable_offset

    def end(self, is_committed_only: bool) -> int:
        """As of the last answer; for readers of committed records, the LSO."""
        return self.last_stable if is_committed_only else self.high_watermark

    def is_at_end(self, is_committed_only: bool) -> bool:
        """Whether there was nothing more at the last answer."""
        return UNKNOWN < self.end(is_committed_only) <= self.position

    def go_to(self, offset: int) -> None:
        """Read on from there. Which leader took what is before it is not known."""
        self.position, self.fetched_epoch = offset, NO_EPOCH

    @property
    def is_enough(self) -> bool:
        """Whether it came as far as it is wanted."""
        return self.position >= self.stop

    def most_bytes(self, share: int) -> int:
        """How much of it to ask for, which is not more than its share: what comes behind its stop comes in vain."""
        if self.stop == NO_STOP or not self.bytes_per_offset:
            return share
        left = int(max(self.stop - self.position, 0) * self.bytes_per_offset)
        return min(share, left + left // _AN_EIGHTH + self.batch_bytes)

    # ---- where it is asked for

    def has_replica(self, now_ms: float) -> bool:
        return self.replica != NO_LEADER and now_ms < self.replica_until_ms

    def go_to_replica(self, node: int, until_ms: float) -> None:
        self.replica, self.replica_until_ms = node, until_ms

    def leave_replica(self) -> None:
        self.replica = NO_LEADER

    # ---- how it goes

    def went_wrong(self, now_ms: float) -> None:
        if self.failing_since_ms is None:
            self.failing_since_ms = self.told_ms = now_ms
        self.failed_ms = now_ms
        self.tries += 1

    def went_well(self) -> None:
        self.failing_since_ms = None
        self.tries = 0
