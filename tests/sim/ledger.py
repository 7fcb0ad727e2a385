"""What a workload was promised, and when: counted in disk operations, so that a crash can be placed between.

`at` is always the number of operations issued when the promise was made. A crash after N operations must honour
every promise with `at` ≤ N; work that had begun before it may show, or not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.sim.batches import Batch, Record

from lowwater.log.config import LogConfig

NEVER = 1 << 62


@dataclass(slots=True)
class Promised:
    """One appended batch, as stored; `durable_at`: when a flush that covers it was over."""

    at: int
    batch: Batch
    began_at: int
    durable_at: int = NEVER


@dataclass(frozen=True, slots=True)
class Start:
    """The log start moved to `offset`: asked for at `began_at`, answered at `at`."""

    began_at: int
    at: int
    offset: int


@dataclass(slots=True)
class PartitionLedger:
    topic: str
    topic_id: bytes
    partition: int
    config: LogConfig
    created_boot: int
    created_at: int = 0
    sent_ms: int = 0
    promised: list[Promised] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    compacted_at: int = NEVER
    tombstones_expire_at: int = NEVER
    deleted_at: int = NEVER

    def written(self, at: int) -> list[Promised]:
        """Batches some reader may have seen by then."""
        return [promise for promise in self.promised if promise.began_at < at]

    def acked(self, at: int, *, power_cut: bool) -> list[Promised]:
        """Batches that must survive: all that were written for a mere kill, the flushed ones for a power cut."""
        return [promise for promise in self.promised if (promise.durable_at if power_cut else promise.at) <= at]

    def start_promised(self, at: int) -> int:
        return max((start.offset for start in self.starts if start.at <= at), default=0)

    def start_allowed(self, at: int) -> int:
        return max((start.offset for start in self.starts if start.began_at < at), default=0)

    def newest(self, key: bytes | None, at: int, *, power_cut: bool) -> Record | None:
        """The last acked record of a key."""
        found = None
        for promise in self.acked(at, power_cut=power_cut):
            for record in promise.batch.records:
                found = record if record.key == key else found
        return found
