"""Ordered tasks of a batch: how many slices of time, where they are cut, and what each of them is told.

Where a slice begins and ends in the partitions is looked up by the task that reads it: a batch is planned, and read
again, by its offsets alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

from lowwater.spark.driver_client import DriverClient
from lowwater.spark.offsets import Bound, Plan, Range
from lowwater.spark.ordering.surveying import Survey
from lowwater.spark.splitting import Slice, Task, TaskRange
from lowwater.types import TopicPartition

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


def plan_slices(
    client: DriverClient, ranges: Mapping[TopicPartition, Range], plan: Plan, options: SliceOptions
) -> tuple[Bound, ...]:
    """The bounds between the slices of a batch: the largest has about as many bytes as the mean."""
    found = {one: each for one, each in ranges.items() if each.size > 0}
    count = slice_count(sum(each.size for each in found.values()), options)
    if count <= 1:
        return ()
    survey = Survey(
        client.cluster,
        found,
        options.isolation,
        options.out_of_order_ms,
        floor_ms=plan.after_ms,
        cap_ms=plan.cut_ms,
    )
    return client.run(survey.bounds(count, is_wanted=options.tasks_min is not None))


def slice_count(offsets: int, options: SliceOptions) -> int:
    """At most so many: as many as were asked for, or else as are worth it."""
    count = options.tasks_min or min(math.ceil(offsets / SLICE_OFFSETS_MIN), options.tasks_max or SLICES_MAX)
    if options.task_records_max is not None:
        count = max(count, math.ceil(offsets / options.task_records_max))
    return max(min(count, offsets), 1)


def ordered_tasks(
    ranges: Mapping[TopicPartition, Range], plan: Plan, *, ids: Mapping[str, str], lineage: str = ""
) -> list[Task]:
    """A task for each slice, in order; by these arguments alone. None where there is nothing to read."""
    pieces = tuple(
        TaskRange(one.topic, one.partition, *found, ids.get(one.topic, ""))
        for one, found in sorted(ranges.items())
        if found.size > 0
    )
    if not pieces:
        return []
    assert plan.out_of_order_ms is not None, "the batch is in order"
    starts, ends = (None, *plan.slices), (*plan.slices, None)
    return [
        Task(pieces, lineage, Slice(start, end, plan.out_of_order_ms, plan.after_ms, plan.cut_ms, plan.late_before_ms))
        for start, end in zip(starts, ends, strict=True)
    ]
