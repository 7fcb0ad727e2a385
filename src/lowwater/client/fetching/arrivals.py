"""Answers between their arrival and whoever takes them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from lowwater.client.fetching.asker import Asker
from lowwater.client.fetching.budget import Budget
from lowwater.client.fetching.events import Event, Fetched
from lowwater.client.fetching.partition import PartitionFetch
from lowwater.client.slices import FetchedSlice
from lowwater.pending import Pending
from lowwater.types import TopicPartition


class Arrived:
    """One answer, and whom it is about."""

    __slots__ = ("asker", "fetched", "of_events", "of_pieces", "of_slices", "size", "turn")

    def __init__(self, release: Callable[[], None], asker: Asker | None = None) -> None:
        self.fetched = Fetched([], [], [], release)
        self.asker = asker
        self.turn = 0
        self.size = 0
        self.of_slices: list[PartitionFetch] = []
        self.of_events: list[PartitionFetch] = []
        self.of_pieces: list[PartitionFetch] = []  # of which there was less than a batch

    def add_slice(self, partition: PartitionFetch, one: FetchedSlice, position: int) -> None:
        self.fetched.slices.append(one)
        self.fetched.positions.append(position)
        self.of_slices.append(partition)
        self.size += len(one.records)

    def add_event(self, partition: PartitionFetch, event: Event) -> None:
        self.fetched.events.append(event)
        self.of_events.append(partition)


class Arrivals:
    """A queue, in the order of arrival. What becomes void while it waits here is not given out."""

    def __init__(self, partitions: Mapping[TopicPartition, PartitionFetch], budget: Budget) -> None:
        self._partitions = partitions
        self._budget = budget
        self._waiting: deque[Arrived] = deque()
        self._turn = 0
        self._waiter: Pending[None] | None = None
        self._bug: BaseException | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, arrived: Arrived) -> None:
        arrived.turn = self._turn
        self._budget.came(arrived.size)
        if arrived.asker is not None:
            arrived.asker.untaken += 1
        self._waiting.append(arrived)
        self._wake()

    def outdate(self) -> None:
        """Some partitions are not those any more that answers here are about."""
        self._turn += 1

    def break_off(self, bug: BaseException) -> None:
        """Something failed that nobody waits for: whoever takes next is told."""
        self._bug = self._bug or bug
        self._wake()

    # ---- taking

    def wait(self) -> Pending[None]:
        if self._waiter is None:
            self._waiter = Pending()
            # Whoever gives up is not to be called for ever after; others that wait look once more.
            self._waiter.on_abandon = self._wake
        waiter = self._waiter
        if self._waiting or self._bug is not None:
            self._wake()
        return waiter

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done:
            waiter.resolve(None)

    def take(self) -> list[Fetched]:
        if self._bug is not None:
            raise self._bug
        taken = []
        while self._waiting:
            fetched = self._taken(self._waiting.popleft())
            if fetched.slices or fetched.events:
                taken.append(fetched)
        return taken

    def _taken(self, arrived: Arrived) -> Fetched:
        self._budget.taken(arrived.size)
        if arrived.asker is not None:
            arrived.asker.untaken -= 1
        return arrived.fetched if arrived.turn == self._turn else self._what_counts(arrived)

    def _what_counts(self, arrived: Arrived) -> Fetched:
        whole = arrived.fetched
        kept = Fetched([], [], [], whole.release)
        for one, position, partition in zip(whole.slices, whole.positions, arrived.of_slices, strict=True):
            if self._partitions.get(one.partition) is partition:
                kept.slices.append(one)
                kept.positions.append(position)
        for event, partition in zip(whole.events, arrived.of_events, strict=True):
            if self._partitions.get(event.partition) is partition:
                kept.events.append(event)
        if not kept.slices:
            whole.release()
        return kept

    def close(self) -> None:
        while self._waiting:
            self._taken(self._waiting.popleft()).release()
