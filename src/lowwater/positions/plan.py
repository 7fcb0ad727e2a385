"""From wishes to offsets, in as few questions as possible. Pure: says what to ask, and is told the answers.

A ListOffsets request asks each partition one thing, so as many requests are needed as one partition has questions, and
not one per partition. Absolute offsets need none: whether they are there shows when they are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from lowwater.errors import LowwaterError
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

LATEST, EARLIEST = -1, -2
"""The two ends, as ListOffsets names them where a timestamp could stand."""

Asked: TypeAlias = dict[TopicPartition, int]
"""Partition -> timestamp or end: one ListOffsets request for every broker that leads some of them."""


class UnresolvedError(LowwaterError, LookupError):
    """Some partitions have no start: nothing of what was wished has an answer there."""

    def __init__(self, wishes: Mapping[TopicPartition, StartPosition]) -> None:
        names = sorted(map(str, wishes))
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        wish = next(iter(wishes.values()))
        super().__init__(
            f"the group has no committed offset for {shown}: say where to start then, "
            f"for example {wish}|earliest or {wish}|latest"
        )
        self.partitions = frozenset(wishes)


@dataclass(frozen=True, slots=True)
class Questions:
    """What to ask now: the group's committed offsets, and offsets by time or end; all of it at once."""

    committed: frozenset[TopicPartition] = frozenset()
    offsets: tuple[Asked, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.committed or self.offsets)


@dataclass(slots=True)
class _Partition:
    """How far one partition is resolved."""

    wish: StartPosition
    place: int = 0  # of the choice that is being tried
    start: int | None = None
    known: dict[int, int] = field(default_factory=dict)  # timestamp or end -> offset, -1: none that late
    committed: int | None = None
    is_committed_known: bool = False

    @property
    def choice(self) -> Choice | None:
        return self.wish.choices[self.place] if self.place < len(self.wish.choices) else None


class Resolution:
    """Resolves every wish by one "now"; with `ends` it finds out where each partition ends as well.

    Behind a time that no record has reached stands the end of the partition, unless the wish says otherwise. Ask
    what `questions` says, `take` all the answers, and again until there are none.
    """

    def __init__(self, wishes: Mapping[TopicPartition, StartPosition], now_ms: int, *, ends: bool = False) -> None:
        self._now_ms = now_ms
        self._wants_ends = ends
        self._partitions = {one: _Partition(_with_end(wish)) for one, wish in wishes.items()}
        for partition in self._partitions.values():
            self._advance(partition)

    def questions(self) -> Questions:
        committed: set[TopicPartition] = set()
        requests: list[Asked] = []
        for one, partition in self._partitions.items():
            choice = partition.choice if partition.start is None else None
            if isinstance(choice, Stored):
                committed.add(one)
            for place, asked in enumerate(self._missing(partition, choice)):
                if place == len(requests):
                    requests.append({})
                requests[place][one] = asked
        return Questions(frozenset(committed), tuple(requests))

    def _missing(self, partition: _Partition, choice: Choice | None) -> list[int]:
        needed = list(_needs(choice, self._now_ms))
        if self._wants_ends and LATEST not in needed:
            needed.append(LATEST)
        return [one for one in needed if one not in partition.known]

    def take(
        self, committed: Mapping[TopicPartition, int | None], offsets: Mapping[TopicPartition, Mapping[int, int]]
    ) -> None:
        """Answers: committed offsets (None: never committed), and by partition what each timestamp or end gave."""
        for one, offset in committed.items():
            partition = self._partitions[one]
            partition.committed, partition.is_committed_known = offset, True
        for one, found in offsets.items():
            self._partitions[one].known.update(found)
        for partition in self._partitions.values():
            self._advance(partition)

    def _advance(self, partition: _Partition) -> None:
        """Go on to the first choice that has an answer, or whose answer is not known yet."""
        while partition.start is None and (choice := partition.choice) is not None:
            if not self._is_answered(partition, choice):
                return
            partition.start = self._start(partition, choice)
            if partition.start is None:
                partition.place += 1

    def _is_answered(self, partition: _Partition, choice: Choice) -> bool:
        if isinstance(choice, Stored):
            return partition.is_committed_known
        return all(one in partition.known for one in _needs(choice, self._now_ms))

    def _start(self, partition: _Partition, choice: Choice) -> int | None:
        known = partition.known
        match choice:
            case Stored():
                return partition.committed
            case AtOffset(offset):
                return offset
            case Earliest():
                return known[EARLIEST]
            case Latest():
                return known[LATEST]
            case BeforeEnd(count):
                return max(known[EARLIEST], known[LATEST] - count)
        found = known[choice.timestamp(self._now_ms)]
        return found if found >= 0 else None

    @property
    def starts(self) -> dict[TopicPartition, int]:
        """Every start; UnresolvedError when a partition has none. Only when there is nothing left to ask."""
        left = {one: partition.wish for one, partition in self._partitions.items() if partition.start is None}
        if left:
            raise UnresolvedError(left)
        return {one: partition.start for one, partition in self._partitions.items() if partition.start is not None}

    @property
    def ends(self) -> dict[TopicPartition, int]:
        return {one: partition.known[LATEST] for one, partition in self._partitions.items()}


def _with_end(wish: StartPosition) -> StartPosition:
    return wish.otherwise(Latest()) if isinstance(wish.choices[-1], AtTime | Ago | Today) else wish


def _needs(choice: Choice | None, now_ms: int) -> tuple[int, ...]:
    """What has to be known of a partition before this choice is decided."""
    match choice:
        case None | Stored() | AtOffset():
            return ()
        case Earliest():
            return (EARLIEST,)
        case Latest():
            return (LATEST,)
        case BeforeEnd():
            return (LATEST, EARLIEST)
    return (choice.timestamp(now_ms),)
