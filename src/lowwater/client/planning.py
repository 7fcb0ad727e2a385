"""What is read of each partition: from where, and up to where. Resolved before its first record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lowwater.client.cluster import Cluster
from lowwater.client.coordinator import Committed, Coordinator
from lowwater.client.offsets import CommittedOffsets, resolve
from lowwater.client.wanted import FROM_THE_BEGINNING, WHERE_THE_GROUP_IS, StopAt, Wanted, stop_at
from lowwater.merge.mark import END_MS
from lowwater.positions.position import (
    Ago,
    AtOffset,
    AtTime,
    BeforeEnd,
    Choice,
    Earliest,
    Latest,
    StartPosition,
    Stored,
    Today,
)
from lowwater.types import TopicPartition

NO_STOP = END_MS
OF_END = Latest | BeforeEnd
OF_TIME = AtTime | Ago | Today


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
    """`resumes`: with a group, nothing of the first share is read from before its committed offset, and what comes to
    the reader later goes on there.

    Wishes are those of the moment at which the reader was made: it may get a partition, or get it back, when others
    have read on and its end has moved.
    """

    def __init__(self, cluster: Cluster, coordinator: Coordinator | None, *, resumes: bool) -> None:
        self._cluster = cluster
        self._coordinator = coordinator
        self._resumes = resumes and coordinator is not None
        self._created_ms = cluster.network.driver.now_ms()
        self._there_before: set[TopicPartition] = set()
        self._settled: dict[TopicPartition, StartPosition] = {}  # wishes, with an offset for what moves
        self._has_planned = False

    async def begin(self, wanted: Wanted, partitions: list[TopicPartition], *, is_member: bool) -> None:
        """These are there. Whatever comes later is read from its own beginning: nothing of it was to be left out.

        A member's share comes later, so it is found out now where it is to start if that is a matter of the end.
        """
        self._there_before.update(partitions)
        if not is_member:
            return
        wishes = {one: wanted.start(one, has_group=self._resumes) for one in partitions}
        of_ends = {one: choice for one, wish in wishes.items() if (choice := _of_end(wish)) is not None}
        if not of_ends:
            return
        asked = {one: StartPosition((choice,)) for one, choice in of_ends.items()}
        found = await resolve(self._cluster, asked, now_ms=self._created_ms)
        self._settled = {one: _settled(wishes[one], of_ends[one], at) for one, at in found.starts.items()}

    async def plans(self, wanted: Wanted, partitions: list[TopicPartition]) -> dict[TopicPartition, Plan]:
        """Without any stop. One "now" for all; at most one OffsetFetch, and two ListOffsets per leader, or three
        where a time falls back."""
        plans = await self._plans(wanted, partitions) if partitions else {}
        self._has_planned = True
        return plans

    async def _plans(self, wanted: Wanted, partitions: list[TopicPartition]) -> dict[TopicPartition, Plan]:
        now_ms = self._cluster.network.driver.now_ms()
        wishes = {one: self._wish(wanted, one) for one in partitions}
        stored = GroupOffsets(self._coordinator, frozenset(one for one in partitions if _needs_group(wishes[one])))
        if self._resumes:
            await stored.ask(frozenset(partitions))
        starts, ends = await resolve(self._cluster, wishes, now_ms=self._created_ms, ends=True, committed=stored.asked)
        self._settle({one: starts[one] for one in partitions if stored[one] is None}, wishes)
        return {one: self._plan(starts[one], ends[one], now_ms, wishes[one], stored[one]) for one in partitions}

    def _plan(self, start: int, end: int, now_ms: int, wish: StartPosition, stored: Committed | None) -> Plan:
        if stored is None:
            return Plan(start, end, now_ms)
        if self._resumes:
            start = _start(start, stored.offset, wish)
        return Plan(start, end, now_ms, epoch=stored.leader_epoch if start == stored.offset else -1)

    def _wish(self, wanted: Wanted, one: TopicPartition) -> StartPosition:
        if one not in self._there_before:
            return WHERE_THE_GROUP_IS if self._resumes else FROM_THE_BEGINNING
        wish = self._settled.get(one) or wanted.start(one, has_group=self._resumes)
        return _or_stored(wish) if self._resumes and self._has_planned else wish

    def _settle(self, starts: Mapping[TopicPartition, int], wishes: Mapping[TopicPartition, StartPosition]) -> None:
        """Where nothing is committed, a time or an end is for this reader where it was at first."""
        for one, start in starts.items():
            choice = next(each for each in (*wishes[one].choices, Earliest()) if not isinstance(each, Stored))
            if isinstance(choice, OF_END | OF_TIME):
                self._settled[one] = _settled(wishes[one], choice, start)

    async def offset(self, one: TopicPartition, position: StartPosition) -> int:
        """Where that is now."""
        asked = None if self._coordinator is None else self._coordinator.committed
        now_ms = self._cluster.network.driver.now_ms()
        return (await resolve(self._cluster, {one: position}, now_ms=now_ms, committed=asked)).starts[one]


class GroupOffsets:
    """What the group has committed: `needed` and the first that are asked for, in one request."""

    def __init__(self, coordinator: Coordinator | None, needed: frozenset[TopicPartition] = frozenset()) -> None:
        self._coordinator = coordinator
        self._needed = needed
        self._asked: frozenset[TopicPartition] = frozenset()
        self._known: dict[TopicPartition, Committed] = {}

    async def ask(self, partitions: frozenset[TopicPartition]) -> Mapping[TopicPartition, int | None]:
        assert self._coordinator is not None, "there is a group"
        if not partitions <= self._asked:
            missing = (partitions | self._needed) - self._asked
            self._known |= await self._coordinator.committed_in_full(missing)
            self._asked |= missing
        return {one: self._known[one].offset if one in self._known else None for one in partitions}

    @property
    def asked(self) -> CommittedOffsets | None:
        return None if self._coordinator is None else self.ask

    def __getitem__(self, one: TopicPartition) -> Committed | None:
        return self._known.get(one)


def _start(requested: int, committed: int, wish: StartPosition) -> int:
    """Never before the committed offset. Where that is gone already, reading there says so: nothing is skipped."""
    if isinstance(wish.choices[0], Earliest):
        return committed
    return max(committed, requested)


def _needs_group(wish: StartPosition) -> bool:
    """Also where it is asked only when nothing else has an answer."""
    return any(isinstance(choice, Stored) for choice in wish.choices)


def _of_end(wish: StartPosition) -> Choice | None:
    return next((choice for choice in wish.choices if isinstance(choice, OF_END)), None)


def _settled(wish: StartPosition, choice: Choice, offset: int) -> StartPosition:
    """The same wish with this offset in place of one of its choices, and of those behind it."""
    return StartPosition((*wish.choices[: wish.choices.index(choice)], AtOffset(offset)))


def _or_stored(wish: StartPosition) -> StartPosition:
    return wish if isinstance(wish.choices[0], Stored) else StartPosition((Stored(), *wish.choices))
