"""A query that plans by cuts, on logs in memory."""

from __future__ import annotations

import itertools

from tests.timed_logs import TimedLog, TimedLogs

from lowwater.spark.aligning.alignment import Alignment
from lowwater.spark.aligning.logs import Edge
from lowwater.spark.limits import readable
from lowwater.spark.offsets import Offset, advance, ranges
from lowwater.types import TopicPartition

P0, P1, P2 = (TopicPartition("t", number) for number in range(3))
OTHER = TopicPartition("u", 0)
CUT, IDLE = 600, 100
NOW = 1_000_000_000_000
FAR = 4_000_000_000_000


class Query:
    """Plans as a stream does; `now_ms` is ours to move."""

    def __init__(self, logs, *, own=None, starts=None, limit=1 << 62, is_live=False, windows=None, cut=CUT):
        self.logs = logs
        self.own = own
        self.limit = limit
        self.is_live = is_live
        self.now_ms = NOW
        starts = starts or {one: log.log_start for one, log in logs.logs.items() if own is None or one in own}
        self.start = Offset.initial(starts, {}, "00000000")
        self.alignment = Alignment(logs, cut, IDLE, windows=windows)
        self.alignment.begin_others({one: 0 for one in logs.logs if one not in starts})
        self.batches = []

    def plan(self):
        """The end of the next batch; None when there is none now."""
        snapshot = self.logs.snapshot(self.now_ms, self.own)
        found = readable(self.start, snapshot)
        edges = {one: Edge(found.begins[one], head) for one, head in found.heads.items()}
        planned = self.alignment.plan(
            self.start, edges, snapshot.others, limit=self.limit, now_ms=self.now_ms, is_live=self.is_live
        )
        if planned is None:
            return None
        end = advance(
            self.start, planned.ends, found.introduced, ids={}, plan=planned.plan, also_empty=planned.also_empty
        )
        return None if end is self.start else end

    def batch(self):
        """The offsets of the next batch by partition, without those that have none; None when there is none now."""
        end = self.plan()
        if end is None:
            return None
        found = {one: tuple(each) for one, each in ranges(self.start, end).items() if each.size}
        self.start = Offset.parse(end.to_json())
        self.batches.append(found)
        return found

    @property
    def cut(self):
        return self.start.plan.cut_ms

    def all(self):
        """Every batch until there is none."""
        return list(itertools.takewhile(lambda found: found is not None, iter(self.batch, object())))


def logs(*times):
    return TimedLogs({TopicPartition("t", number): TimedLog(list(each)) for number, each in enumerate(times)})
