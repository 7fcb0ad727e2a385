"""What is read of each partition: from where, and up to where. Resolved before its first record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lowwater.client.cluster import Cluster
from lowwater.client.coordinator import Committed, Coordinator
from lowwater.client.offsets import CommittedOffsets, resolve
from lowwater.client.wanted import FROM_THE_BEGINNING, WHERE_THE_GROUP_IS, StopAt, Wanted, stop_at
from lowwater.merge.mark import END_MS
from lowwater.positions.position import Choice, Earliest, StartPosition
from lowwater.types import TopicPartition

NO_STOP = END_MS


class Plan(NamedTuple):
    """`end` is where the partition ended at the moment `made_ms`.

    `epoch`: of the leader that took what is before `start`, where whoever committed that has told; -1: not known.
    """

    start: int
    end: int
    made_ms: int = 0
    stop: StopAt | None = None
    epoch: int = -1

    def stopped(self, choice: Choice | None) -> Plan:
        """The same, up to there."""
        return self if choice is None else self._replace(stop=stop_at(choice, self.end, self.made_ms))

    @property
    def stop_offset(self) -> int:
        return NO_STOP if self.stop is None or self.stop.offset is None else self.stop.offset

    @property
    def stop_ms(self) -> int:
        return NO_STOP if self.stop is None or self.stop.timestamp_ms is None else self.stop.timestamp_ms

    @property
    def is_empty(self) -> bool:
        """Nothing is to be read. A start behind the end is looked at all the same: it is out of range."""
        return self.stop_offset <= self.start <= self.end

    @property
    def waits_for_stop(self) -> bool:
        """Where to stop is known when the time for it has come."""
        return self.stop is not None and self.stop.offset is None


class Planner:
    """`resumes`: with a group, nothing is read from before its committed offset."""

    def __init__(self, cluster: Cluster, coordinator: Coordinator | None, *, resumes: bool) -> None:
        self._cluster = cluster
        self._coordinator = coordinator
        self._resumes = resumes and coordinator is not None
        self._there_before: set[TopicPartition] = set()

    def begin(self, partitions: list[TopicPartition]) -> None:
        """These are there. Whatever comes later is read from its own beginning: nothing of it was to be left out."""
        self._there_before.update(partitions)

    async def plans(self, wanted: Wanted, partitions: list[TopicPartition]) -> dict[TopicPartition, Plan]:
        """Without any stop. One "now" for all; at most one OffsetFetch, and two ListOffsets per leader."""
        if not partitions:
            return {}
        now_ms = self._cluster.network.driver.now_ms()
        wishes = {one: self._wish(wanted, one) for one in partitions}
        stored = Stored(self._coordinator)
        if self._resumes:
            await stored.ask(frozenset(partitions))
        starts, ends = await resolve(self._cluster, wishes, now_ms=now_ms, ends=True, committed=stored.asked)
        return {one: self._plan(starts[one], ends[one], now_ms, wishes[one], stored[one]) for one in partitions}

    def _plan(self, start: int, end: int, now_ms: int, wish: StartPosition, stored: Committed | None) -> Plan:
        if stored is None:
            return Plan(start, end, now_ms)
        if self._resumes:
            start = _start(start, stored.offset, wish)
        return Plan(start, end, now_ms, epoch=stored.leader_epoch if start == stored.offset else -1)

    def _wish(self, wanted: Wanted, one: TopicPartition) -> StartPosition:
        if one in self._there_before:
            return wanted.start(one, has_group=self._resumes)
        return WHERE_THE_GROUP_IS if self._resumes else FROM_THE_BEGINNING

    async def offset(self, one: TopicPartition, position: StartPosition) -> int:
        """Where that is now."""
        asked = None if self._coordinator is None else self._coordinator.committed
        now_ms = self._cluster.network.driver.now_ms()
        return (await resolve(self._cluster, {one: position}, now_ms=now_ms, committed=asked)).starts[one]


class Stored:
    """What the group has committed, asked for at most once."""

    def __init__(self, coordinator: Coordinator | None) -> None:
        self._coordinator = coordinator
        self._known: dict[TopicPartition, Committed] | None = None

    async def ask(self, partitions: frozenset[TopicPartition]) -> Mapping[TopicPartition, int | None]:
        assert self._coordinator is not None, "there is a group"
        if self._known is None:
            self._known = await self._coordinator.committed_in_full(partitions)
        return {one: self._known[one].offset if one in self._known else None for one in partitions}

    @property
    def asked(self) -> CommittedOffsets | None:
        return None if self._coordinator is None else self.ask

    def __getitem__(self, one: TopicPartition) -> Committed | None:
        return None if self._known is None else self._known.get(one)


def _start(requested: int, committed: int, wish: StartPosition) -> int:
    """Never before the committed offset. Where that is gone already, reading there says so: nothing is skipped."""
    if isinstance(wish.choices[0], Earliest):
        return committed
    return max(committed, requested)
