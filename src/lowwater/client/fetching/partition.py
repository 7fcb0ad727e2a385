"""One partition as its fetcher knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.client.cluster import NO_LEADER
from lowwater.client.fetching.events import Bounds
from lowwater.client.fetching.stored import NO_EPOCH
from lowwater.types import TopicPartition
from lowwater.wire.schema import ZERO_UUID

if TYPE_CHECKING:
    from lowwater.client.fetching.asker import Asker

UNKNOWN = -1


class PartitionFetch:
    """Reads one partition on from one offset. A seek makes another one, so that what comes too late is known by it."""

    __slots__ = (
        "asker",
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
        "told_ms",
        "topic_id",
        "tries",
    )

    def __init__(self, one: TopicPartition, position: int) -> None:
        self.one = one
        self.position = position
        self.topic_id = ZERO_UUID
        self.fetched_epoch = NO_EPOCH  # of the leader that took the batch before `position`, where we read it
        self.asker: Asker | None = None  # who was told last to ask for it
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
        moved.topic_id = ZERO_UUID if self.is_stopped else self.topic_id
        moved.is_paused = self.is_paused
        return moved

    # ---- its ends

    @property
    def is_known(self) -> bool:
        return self.high_watermark != UNKNOWN

    @property
    def bounds(self) -> Bounds:
        return Bounds(self.log_start, self.high_watermark, self.last_stable)

    def end(self, is_committed_only: bool) -> int:
        """As of the last answer; for readers of committed records, the LSO."""
        return self.last_stable if is_committed_only else self.high_watermark

    def is_at_end(self, is_committed_only: bool) -> bool:
        """Whether there was nothing more at the last answer."""
        return UNKNOWN < self.end(is_committed_only) <= self.position

    def go_to(self, offset: int) -> None:
        """Read on from there. Which leader took what is before it is not known."""
        self.position, self.fetched_epoch = offset, NO_EPOCH

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
