"""What a batch query reads: resolved once, when Spark plans it."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from lowwater.positions.position import AtTime, StartPosition
from lowwater.spark.driver_client import DriverClient
from lowwater.spark.filters import Bounds
from lowwater.spark.heads import Heads
from lowwater.spark.limits import batch_ranges
from lowwater.spark.offsets import Plan
from lowwater.spark.options import SourceOptions
from lowwater.spark.snapshot import Snapshot
from lowwater.spark.splitting import Task, tasks
from lowwater.types import TopicPartition

LOG = logging.getLogger("lowwater.spark")


def plan(options: SourceOptions, bounds: Bounds) -> list[Task]:
    """Its tasks. Rows that no filter lets through need not be read."""
    for warning in options.warnings:
        LOG.warning("%s", warning)
    client = DriverClient(options.client.settings)
    try:
        return _plan(client, options, bounds, Heads(client, options.topics, options.isolation))
    finally:
        client.close()


def _plan(client: DriverClient, options: SourceOptions, bounds: Bounds, heads: Heads) -> list[Task]:
    assert options.stop is not None, "a batch query ends"
    partitions = heads.partitions()
    starts = heads.resolve(options.start.wishes(partitions), options.group)
    stops = heads.resolve(options.stop.wishes(partitions), None)
    snapshot = heads.look()
    options.start.check_found(starts, {one: head.end for one, head in snapshot.partitions.items()})
    ranges = bounds.narrowed(batch_ranges(starts, stops), _first(bounds, heads, snapshot))
    if options.order == "timestamp":
        from lowwater.spark.slicing import ordered_tasks, plan_slices  # only queries in order need what it loads

        sliced = plan_slices(client, ranges, Plan(), options)
        return ordered_tasks(ranges, sliced.plan, ids=snapshot.ids, extents=sliced.extents)
    return tasks(ranges, options, cores=options.tasks_max, ids=snapshot.ids)


def _first(bounds: Bounds, heads: Heads, snapshot: Snapshot) -> Mapping[TopicPartition, int] | None:
    """By partition, the first offset that is stamped as late as the filters want; without those that have none."""
    # Before 1970 there are records without a time, which Spark shows so.
    if bounds.from_ms is None or bounds.from_ms < 0:
        return None
    wish = StartPosition((AtTime(bounds.from_ms),))
    found = heads.resolve({one: wish for one in snapshot.partitions if bounds.has(one)}, None)
    return {one: offset for one, offset in found.items() if offset < snapshot.partitions[one].end}
