"""From the ranges of a batch to its tasks."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from lowwater.spark.offsets import Bound, Range
from lowwater.types import TopicPartition


class Splits(Protocol):
    """What of the options decides how a batch is split."""

    @property
    def tasks_min(self) -> int | None: ...
    @property
    def tasks_max(self) -> int | None: ...
    @property
    def task_records_max(self) -> int | None: ...


class TaskRange(NamedTuple):
    """[start, end) of one partition. `topic_id` is empty where no broker tells it."""

    topic: str
    partition: int
    start: int
    end: int
    topic_id: str

    @property
    def size(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Slice:
    """Which rows of its ranges an ordered task keeps: those from `start` to before `end` in the order; None: any.

    A row's key is its timestamp, or that of the newest row before it in its partition less `out_of_order_ms`, if that
    is later. No key lies before `floor_ms`; rows stamped after `cap_ms` count as stamped then.
    Late are rows stamped before `late_before_ms`, or before the newest less `out_of_order_ms`.
    `extents`, where whoever planned the slice knows: by range, where it begins, and about where it ends.
    """

    start: Bound | None
    end: Bound | None
    out_of_order_ms: int
    floor_ms: int | None = None
    cap_ms: int | None = None
    late_before_ms: int | None = None
    extents: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """What one task reads, by topic, partition and offset. `lineage`: of which stream, if it is of one.

    With a `slice` its rows come in order, and are those of the slice alone. Rows stamped before `late_before_ms` are
    told.
    """

    ranges: tuple[TaskRange, ...]
    lineage: str = ""
    slice: Slice | None = None
    late_before_ms: int | None = None

    @property
    def size(self) -> int:
        return sum(one.size for one in self.ranges)


def tasks(
    ranges: Mapping[TopicPartition, Range],
    splits: Splits,
    *,
    cores: int | None,
    ids: Mapping[str, str],
    lineage: str = "",
) -> list[Task]:
    """Tasks that read each record of the ranges once; the same ones for the same ranges, options and cores.

    As the Kafka connector splits them. Only then, where there are more pieces than cores and nobody asked for so many,
    one task reads several: tasks that wait for a core cost time and win nothing. `cores` None: nobody knows how many.
    `tasks_max` of the options goes before it.
    """
    pieces = [
        TaskRange(one.topic, one.partition, *found, ids.get(one.topic, ""))
        for one, found in sorted(ranges.items())
        if found.size > 0
    ]
    if splits.task_records_max is not None:
        pieces = [part for one in pieces for part in _divided(one, math.ceil(one.size / splits.task_records_max))]
    if splits.tasks_min is not None and splits.tasks_min > len(pieces):
        pieces = list(_at_least(pieces, splits.tasks_min))
    room = max(splits.tasks_max or cores or len(pieces), splits.tasks_min or 0)
    if len(pieces) <= room:
        return [Task((one,), lineage) for one in pieces]
    packs = _packed(pieces, room, splits.task_records_max)
    return [Task(pack, lineage) for pack in packs]


def _at_least(pieces: list[TaskRange], count: int) -> Iterator[TaskRange]:
    """Pieces that are small stay whole; the others share the tasks that are left by their size."""
    total = sum(one.size for one in pieces)
    whole = {one for one in pieces if _parts(one, total, count) == 1}
    total -= sum(one.size for one in whole)
    count = max(count - len(whole), 1)
    for one in pieces:
        yield from _divided(one, 1 if one in whole else _parts(one, total, count))


def _parts(one: TaskRange, total: int, count: int) -> int:
    return max(math.floor(one.size / total * count + 0.5), 1)


def _divided(one: TaskRange, parts: int) -> Iterator[TaskRange]:
    start = one.start
    for left in range(parts, 0, -1):
        end = start + (one.end - start) // left
        if end > start:
            yield one._replace(start=start, end=end)
        start = end


def _packed(pieces: Iterable[TaskRange], count: int, records_max: int | None) -> list[tuple[TaskRange, ...]]:
    """Into `count` packs of about the same size, or more where one would have too many records."""
    packs: list[list[TaskRange]] = [[] for _ in range(count)]
    free = [(0, place) for place in range(count)]
    for one in sorted(pieces, key=lambda piece: (-piece.size, piece)):
        size, place = heapq.heappop(free)
        if records_max is not None and size + one.size > records_max and packs[place]:
            heapq.heappush(free, (size, place))
            size, place = 0, len(packs)
            packs.append([])
        packs[place].append(one)
        heapq.heappush(free, (size + one.size, place))
    return sorted(tuple(sorted(pack)) for pack in packs if pack)
