"""Ordered tasks of a batch: how many slices of time, where they are cut, and what each of them is told.

Where a slice begins and ends in the partitions is told to the task that reads it by whoever has just planned the batch.
Otherwise the task looks it up: a batch can be read again by its offsets alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from lowwater.spark.driver_client import DriverClient
from lowwater.spark.offsets import Plan, Range
from lowwater.spark.ordering.surveying import Survey
from lowwater.spark.splitting import Slice, Task, TaskRange
from lowwater.types import TopicPartition

Extents: TypeAlias = tuple[tuple[int, int], ...] | None
SLICES_MAX = 8
"""Unless the options say otherwise: more tasks than cores win nothing, and nobody knows how many there are."""
SLICE_OFFSETS_MIN = 50_000
"""Less is not worth a task of its own, unless the options want it."""


class SliceOptions(Protocol):
    """What of the options decides how many slices there are."""

    @property
    def tasks_min(self) -> int | None: ...
    @property
    def tasks_max(self) -> int | None: ...
    @property
    def task_records_max(self) -> int | None: ...
    @property
    def out_of_order_ms(self) -> int: ...
    @property
    def isolation(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Sliced:
    """The plan of a batch with the bounds between its slices; and, for each slice, where it lies, if that was found."""

    plan: Plan
    ranges: Mapping[TopicPartition, Range]
    extents: tuple[Extents, ...]

    def extents_of(self, ranges: Mapping[TopicPartition, Range], plan: Plan) -> tuple[Extents, ...] | None:
        """None: of another batch."""
        return self.extents if (ranges, plan) == (self.ranges, self.plan) else None


def plan_slices(
    client: DriverClient, ranges: Mapping[TopicPartition, Range], plan: Plan, options: SliceOptions
) -> Sliced:
    """The largest slice has about as many bytes as the mean."""
    plan = replace(plan, out_of_order_ms=options.out_of_order_ms)
    found = {one: each for one, each in ranges.items() if each.size > 0}
    count = slice_count(sum(each.size for each in found.values()), options)
    if count <= 1:
        return Sliced(plan, ranges, (None,))
    survey = Survey(
        client.cluster,
        found,
        options.isolation,
        options.out_of_order_ms,
        floor_ms=plan.after_ms,
        cap_ms=plan.cut_ms,
    )
    plan = replace(plan, slices=client.run(survey.bounds(count, is_wanted=options.tasks_min is not None)))
    return Sliced(plan, ranges, tuple(map(survey.extents, _slices(plan))))


def slice_count(offsets: int, options: SliceOptions) -> int:
    """At most so many: as many as were asked for, or else as are worth it."""
    count = options.tasks_min or min(math.ceil(offsets / SLICE_OFFSETS_MIN), options.tasks_max or SLICES_MAX)
    if options.task_records_max is not None:
        count = max(count, math.ceil(offsets / options.task_records_max))
    return max(min(count, offsets), 1)


def ordered_tasks(
    ranges: Mapping[TopicPartition, Range],
    plan: Plan,
    *,
    ids: Mapping[str, str],
    lineage: str = "",
    extents: Sequence[Extents] | None = None,
) -> list[Task]:
    """A task for each slice, in order; their rows by these arguments alone. None where there is nothing to read."""
    pieces = tuple(
        TaskRange(one.topic, one.partition, *found, ids.get(one.topic, ""))
        for one, found in sorted(ranges.items())
        if found.size > 0
    )
    if not pieces:
        return []
    slices = _slices(plan)
    known = [None] * len(slices) if extents is None else extents
    return [Task(pieces, lineage, replace(part, extents=found)) for part, found in zip(slices, known, strict=True)]


def _slices(plan: Plan) -> list[Slice]:
    assert plan.out_of_order_ms is not None, "the batch is in order"
    starts, ends = (None, *plan.slices), (*plan.slices, None)
    return [
        Slice(start, end, plan.out_of_order_ms, plan.after_ms, plan.cut_ms, plan.late_before_ms)
        for start, end in zip(starts, ends, strict=True)
    ]
