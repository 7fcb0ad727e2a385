"""What each micro-batch of a stream reads. Decides nothing by itself: it asks, and keeps what has to be remembered.

One lives in the process that Spark starts for a stream's driver side, as long as the query runs. After a crash `tasks`
may be the first that is called: it needs the two offsets and nothing else.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lowwater.client.errors import ClientError
from lowwater.positions.position import StartPosition
from lowwater.spark import data_loss
from lowwater.spark.aligning.alignment import Alignment, Planned, late_before
from lowwater.spark.aligning.brokers import BrokerLogs
from lowwater.spark.aligning.logs import Edge
from lowwater.spark.aligning.timestamp_types import warn_of_types
from lowwater.spark.driver_client import DriverClient
from lowwater.spark.following import Follower
from lowwater.spark.heads import PATIENCE_MS, Heads
from lowwater.spark.limits import WAIT, Ends, Gap, batch_end, gaps, is_too_early, readable
from lowwater.spark.offsets import Offset, Plan, advance, check_ids, ranges
from lowwater.spark.option_table import OptionError
from lowwater.spark.options import SourceOptions
from lowwater.spark.snapshot import Snapshot
from lowwater.spark.splitting import Task, tasks
from lowwater.system import SystemIds
from lowwater.types import TopicPartition

if TYPE_CHECKING:
    from lowwater.spark.slicing import Sliced

LOG = logging.getLogger("lowwater.spark")
_LINEAGE_BYTES = 4


class StreamPlanner:
    """For the one thread of Spark's that calls it. Offsets come and go as Spark keeps them: as JSON objects."""

    def __init__(self, options: SourceOptions, *, finished: Callable[[Offset], None] | None = None) -> None:
        """`finished` is told the end of every batch that Spark is done with, when it plans the next one."""
        self._options = options
        self._finished = finished
        self._initial: Offset | None = None
        self._target: Snapshot | None = None
        self._last_ms: int | None = None
        self._lineage = SystemIds().uuid()[:_LINEAGE_BYTES].hex()
        self._told: set[Gap] = set()
        self._typed: set[str] = set()
        self._sliced: Sliced | None = None
        for warning in options.warnings:
            LOG.warning("%s", warning)

    @cached_property
    def client(self) -> DriverClient:
        return DriverClient(self._options.client.settings)

    @cached_property
    def _follower(self) -> Follower | None:
        options = self._options
        return Follower(self.client, options.group, self._lineage) if options.commits and options.group else None

    @cached_property
    def _heads(self) -> Heads:
        return Heads(self.client, self._options.topics, self._options.isolation, self._options.align_with)

    @cached_property
    def _alignment(self) -> Alignment | None:
        options = self._options
        if options.cut_ms is None:
            return None
        return Alignment(BrokerLogs(self.client, options.isolation), options.cut_ms, options.idle_ms)

    def close(self) -> None:
        client = self.__dict__.pop("client", None)
        if client is not None:
            client.close()

    # -- where a query begins

    def initial_offset(self) -> dict[str, Any]:
        """The same whenever it is asked."""
        if self._initial is None:
            self._initial = self._begin()
        return self._initial.to_json()

    def _begin(self) -> Offset:
        if self._follower is not None:
            self._follower.check_members()
        starts = self._starts()
        snapshot = self._heads.look()
        self._options.start.check_found(starts, {one: head.end for one, head in snapshot.partitions.items()})
        if self._target is not None:
            self._target = snapshot  # no start lies behind that
        return Offset.initial(starts, snapshot.ids, self._lineage)

    def _starts(self) -> dict[TopicPartition, int]:
        """Of what is read. Where other sources begin is found at the same moment, and told to the alignment."""
        own = self._heads.partitions()
        others = self._heads.look().others if self._options.align_with else {}
        found = self._heads.resolve(self._wishes(own, list(others)), self._options.group)
        if self._alignment is not None and others:
            self._alignment.begin_others({one: found.get(one, head.log_start) for one, head in others.items()})
        return {one: found[one] for one in own}

    def _wishes(
        self, own: list[TopicPartition], others: list[TopicPartition]
    ) -> Mapping[TopicPartition, StartPosition]:
        """One start counts for all sources of a query, and may name the topics of each; or, by offsets, its own."""
        try:
            return self._options.start.wishes([*own, *others])
        except OptionError:
            return self._options.start.wishes(own)

    # -- where a batch ends

    def stop_at_what_is_there(self) -> None:
        """For a query that ends when it has read what is there now."""
        self._target = self._heads.look()

    def latest_offset(self, given: dict[str, Any], limit: int | None) -> dict[str, Any]:
        """The end of the batch that begins at `given`, with about `limit` records; `given` when there is none yet."""
        start = Offset.parse(given)
        self._note_finished(start)
        if self._is_to_stop():
            return given
        if self._target is not None:
            end = self._end(start, self._target, limit)
        else:
            end = self._end(start, self._heads.snapshot(), limit)
            if end is start:
                end = self._end(start, self._look(), limit)
        if end is not start:
            return end.to_json()
        if self._target is not None and self._follower is not None:
            self._follower.settle()  # an available-now query ends here, and its process with it
        return given

    def _is_to_stop(self) -> bool:
        """Whoever stops the query waits until it is idle; so what is finished has to be committed before."""
        if self._options.stop_file is None or not os.path.exists(self._options.stop_file):
            return False
        if self._follower is not None:
            self._follower.settle()
        return True

    def _note_finished(self, start: Offset) -> None:
        if self._follower is not None:
            self._follower.check_members()
            self._follower.finished(start)
        if self._finished is not None and not start.is_initial:
            self._finished(start)

    def _look(self) -> Snapshot:
        return self._heads.look(PATIENCE_MS, pace_ms=self._options.head_interval_ms)

    def _end(self, start: Offset, snapshot: Snapshot, limit: int | None) -> Offset:
        if not self._look_for_gaps(start, snapshot):
            return start
        now_ms = self.client.now_ms()
        target = None
        if snapshot is self._target:
            target = {one: head.end for one, head in snapshot.partitions.items()}
        if limit is not None and self._alignment is not None:
            return self._cut(start, snapshot, limit, now_ms, target)
        found = batch_end(
            start, snapshot, self._options, now_ms=now_ms, last_ms=self._last_ms, limit=limit, target=target
        )
        if found is WAIT:
            return start
        end = advance(start, found.ends, found.introduced, ids=snapshot.ids, lineage=self._lineage)
        return self._planned(start, end, now_ms, is_live=target is None)

    def _planned(self, start: Offset, end: Offset, now_ms: int, *, is_live: bool) -> Offset:
        """A stream that goes on waits for brokers that do not answer: no batch has begun then."""
        try:
            planned = self._ordered(start, end)
        except ClientError as error:
            if not is_live or not error.retriable:
                raise
            LOG.warning("where slices of time are to be cut cannot be asked, it is tried again: %s", error)
            return start
        self._last_ms = now_ms
        return planned

    def _ordered(self, start: Offset, end: Offset) -> Offset:
        """With the bounds of the slices of time, where the batch is to be in order."""
        if self._options.order != "timestamp" or end is start:
            return end
        from lowwater.spark.slicing import plan_slices  # only queries in order need what it loads

        self._sliced = plan_slices(self.client, ranges(start, end), end.plan or Plan(), self._options)
        return replace(end, plan=self._sliced.plan)

    def _cut(self, start: Offset, snapshot: Snapshot, limit: int, now_ms: int, target: Ends | None) -> Offset:
        """The end of a batch at one moment in all partitions."""
        found = readable(start, snapshot, target)
        if target is None and is_too_early(found.count, self._options, now_ms, self._last_ms):
            return start
        edges = {one: Edge(found.begins[one], head) for one, head in found.heads.items()}
        planned = self._aligned(start, edges, snapshot, limit, now_ms, is_live=target is None)
        if planned is None:
            return start
        end = advance(
            start,
            planned.ends,
            found.introduced,
            ids=snapshot.ids,
            lineage=self._lineage,
            plan=planned.plan,
            also_empty=planned.also_empty,
        )
        return self._planned(start, end, now_ms, is_live=target is None)

    def _aligned(
        self,
        start: Offset,
        edges: dict[TopicPartition, Edge],
        snapshot: Snapshot,
        limit: int,
        now_ms: int,
        *,
        is_live: bool,
    ) -> Planned | None:
        """A stream that goes on waits for brokers that do not answer; one that ends would miss what is there."""
        assert self._alignment is not None
        self._mention_types(snapshot)
        try:
            return self._alignment.plan(start, edges, snapshot.others, limit=limit, now_ms=now_ms, is_live=is_live)
        except ClientError as error:
            if not is_live or not error.retriable:
                raise
            LOG.warning("where partitions were at a time cannot be asked, it is tried again: %s", error)
            return None

    def _mention_types(self, snapshot: Snapshot) -> None:
        """Once for each topic: alignment is by the time in the record."""
        topics = {one.topic for one in (*snapshot.partitions, *snapshot.others)}
        if not topics <= self._typed:
            warn_of_types(self.client, topics)
            self._typed |= topics

    def _look_for_gaps(self, start: Offset, snapshot: Snapshot) -> bool:
        """Each is told once: Spark asks many times a second. A topic that was made anew is another matter.

        False: it is not known whether there is one, and the batch has to wait.
        """
        check_ids(start, snapshot.ids)
        if self._told.issuperset(gaps(start, snapshot)):
            return True
        # A query that ends would miss what is there: it waits as long as it may, and then fails.
        surely = self._heads.look(None if snapshot is self._target else PATIENCE_MS, is_wide=True)
        if surely is snapshot:
            return False
        check_ids(start, surely.ids)
        news = [gap for gap in gaps(start, surely) if gap not in self._told]
        self._told.update(news)
        if news:
            data_loss.at_planning(news, self._options, start.lineage or self._lineage)
        return True

    def reported_offset(self) -> dict[str, Any] | None:
        """Where partitions end, as far as that is known: Spark shows it in its progress."""
        snapshot = self._heads.known
        if snapshot is None:
            return None
        at = {one: head.end for one, head in snapshot.partitions.items()}
        return Offset(at, ids=snapshot.ids, lineage=self._lineage).to_json()

    # -- what a batch reads

    def tasks(self, start: dict[str, Any], end: dict[str, Any]) -> list[Task]:
        """The same tasks for the same offsets."""
        begin, until = Offset.parse(start), Offset.parse(end)
        late_before_ms = late_before(begin, until)
        return [replace(task, late_before_ms=late_before_ms) for task in self._tasks(begin, until)]

    def _tasks(self, begin: Offset, until: Offset) -> list[Task]:
        found = ranges(begin, until)
        lineage = until.lineage or ""
        if until.plan is not None and until.plan.out_of_order_ms is not None:
            from lowwater.spark.slicing import ordered_tasks  # as above

            extents = None if self._sliced is None else self._sliced.extents_of(found, until.plan)
            return ordered_tasks(found, until.plan, ids=until.ids, lineage=lineage, extents=extents)
        return tasks(found, self._options, cores=self._options.tasks_max, ids=until.ids, lineage=lineage)
