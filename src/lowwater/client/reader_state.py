"""What a reader says of itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from lowwater.client.asked import Asked, ask
from lowwater.client.cluster import Cluster
from lowwater.client.coordinator import Identity
from lowwater.client.driver import Driver
from lowwater.client.errors import ClientError
from lowwater.client.network import Network
from lowwater.client.reading import Reading
from lowwater.client.releasing import Lost
from lowwater.merge.merging import Progress
from lowwater.types import TopicPartition

T = TypeVar("T")

ARROW = "lowwater.client.arrow"
POLL_MS = 1000
_A_QUARTER = 4


@dataclass(frozen=True, slots=True)
class ReaderStats:
    """What a reader did so far, and what it holds now."""

    rows: int = 0
    batches: int = 0
    held_rows: int = 0
    held_bytes: int = 0
    paused_partitions: int = 0
    late_rows: int = 0
    """Rows that came out after younger ones, because they were written after those."""
    future_rows: int = 0
    """Rows that were there at the beginning and claim to be younger than that."""
    lost_offsets: int = 0
    commit_failures: int = 0


class ReaderState:
    """What both kinds of readers say of themselves."""

    _core: Reading | None = None
    _columns: tuple[str, ...] | None = None

    @property
    def _reading(self) -> Reading:
        if self._core is None:
            raise ClientError("the reader has not begun yet", advice="enter it with `async with`, or await begin()")
        return self._core

    def _see(self, look: Callable[[Reading], T]) -> T:
        """What is so at one moment."""
        return look(self._reading)

    def __repr__(self) -> str:
        name = type(self).__name__
        if self._core is None:
            return f"<{name}, not begun>"
        topics = ", ".join(sorted({one.topic for one in self.assignment})) or "nothing yet"
        return f"<{name} of {topics}: {len(self.assignment)} partitions, {self.stats.rows} rows returned>"

    @property
    def starts(self) -> Mapping[TopicPartition, int]:
        """Where each partition was begun; resolved before its first record."""
        return self._see(lambda reading: {one: plan.start for one, plan in reading.partitions.plans.items()})

    @property
    def ends(self) -> Mapping[TopicPartition, int]:
        """Where each partition ended at that moment."""
        return self._see(lambda reading: {one: plan.end for one, plan in reading.partitions.plans.items()})

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are read; for a member of a group, its share of them."""
        return self._see(lambda reading: frozenset(reading.partitions.plans))

    @property
    def identity(self) -> Identity:
        """As which member the group knows this reader, for `Producer.send_offsets_to_transaction(…, by=)`."""
        return self._see(lambda reading: reading.identity)

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The next offset of each partition that you will get: what you would store to go on from here."""
        return self._see(lambda reading: reading.partitions.positions())

    @property
    def lag(self) -> dict[TopicPartition, int]:
        """How many offsets each partition is ahead of its position, as far as brokers told."""
        return self._see(lambda reading: reading.partitions.lag())

    @property
    def is_live(self) -> bool:
        """Whether everything that was there at the beginning was returned; once true, always true."""
        releasing = self._reading.partitions.releasing
        return releasing is not None and releasing.is_live

    @property
    def is_finished(self) -> bool:
        """Whether everything up to the stop was returned. Never without a stop."""
        return self._reading.is_finished

    @property
    def lost(self) -> list[Lost]:
        """What was gone before it could be read: exact ranges of offsets, [first, behind)."""
        releasing = self._reading.partitions.releasing
        return [] if releasing is None else list(releasing.lost)

    @property
    def mark_ms(self) -> int | None:
        """The low-water mark: what is stamped later waits for the others. None when there is none, or when live."""
        releasing = self._reading.partitions.releasing
        return None if releasing is None else releasing.mark_ms

    def progress(self) -> dict[TopicPartition, tuple[Progress, int]]:
        """Of each partition what is known of it, and the next offset that you will get."""
        return self._see(lambda reading: reading.partitions.progress())

    @property
    def late_rows(self) -> int:
        """How many rows came out after younger ones."""
        return self.stats.late_rows

    @property
    def stats(self) -> ReaderStats:
        return self._see(_stats)


def _stats(reading: Reading) -> ReaderStats:
    releasing = reading.partitions.releasing
    if releasing is None:
        return ReaderStats()
    progress = releasing.progress.values()
    return ReaderStats(
        rows=releasing.rows,
        batches=releasing.batches,
        held_rows=releasing.held_rows,
        held_bytes=releasing.held_bytes,
        paused_partitions=sum(one.is_paused for one in progress),
        late_rows=releasing.late_rows,
        future_rows=sum(one.future_rows for one in progress),
        lost_offsets=sum(one.behind - one.first for one in releasing.lost),
        commit_failures=reading.commit_failures,
    )


def reading_of(asked: Asked, driver: Driver) -> Reading:
    options = replace(asked.options, cutoff_ms=asked.cutoff_ms(driver.now_ms()))
    # Memory that is kept for the next answers is beside what is held, or within it while little is held.
    bytes_max = options.held_bytes_max
    network = Network(asked.config, driver, kept_bytes_max=bytes_max // _A_QUARTER, all_bytes_max=bytes_max)
    return Reading(Cluster(network), asked.wanted, options)


def written_out(one: Any) -> Any:
    """With the options as `ask` writes them out, for `help` and for whoever completes what one types."""
    one.__signature__ = inspect.signature(ask).replace(return_annotation=inspect.Signature.empty)
    return one
