"""Streams by cuts, over logs that were never planned: disorder, ends of transactions, gaps, rows of the future, silent
partitions, partitions that come later, open transactions; with limits, restarts, and live or not.

Whatever the logs are: every row is read once, no row before its cut's time but for those that are counted, there is
always progress, and no planning asks more than its share.
"""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.timed_logs import TimedLog, TimedLogs

from lowwater.spark.aligning.alignment import Alignment, late_before
from lowwater.spark.aligning.logs import Edge
from lowwater.spark.aligning.windows import Windows
from lowwater.spark.limits import readable
from lowwater.spark.offsets import Offset, advance, ranges
from lowwater.types import TopicPartition

CUT, IDLE, NOW = 100, 50, 1_000_000
FAR = NOW * 4
TIME_MAX = (1 << 63) - 1
LOOK = 8
LOOKUPS_MAX = 12

STEPS = st.one_of(
    st.integers(0, 5),  # time goes on
    st.integers(-150, -1),  # and back
    st.just(0),
    st.integers(500, 20_000),  # a gap
)
KINDS = st.sampled_from(["row"] * 12 + ["marker", "future", "future run"])


@st.composite
def log(draw) -> TimedLog:
    """Half of them begin later than the others."""
    made = TimedLog()
    time_ms = draw(st.sampled_from([0, 0, 0, 3000]))
    for kind, step in draw(st.lists(st.tuples(KINDS, STEPS), max_size=40)):
        time_ms = max(time_ms + step, 0)
        if kind == "marker":
            made.end_transaction(draw(st.sampled_from([NOW, time_ms, time_ms + 50])))
        elif kind == "row":
            made.write([time_ms])
        else:
            made.write([draw(st.sampled_from([FAR, TIME_MAX]))] * (1 if kind == "future" else 2 * LOOK))
    made.log_start = draw(st.integers(0, min(3, len(made.times_ms))))
    return made


@st.composite
def topic(draw) -> list[TimedLog]:
    return draw(st.lists(log(), min_size=1, max_size=4))


class Reader:
    """Reads batch after batch and checks each; restarts when it is told to."""

    def __init__(self, logs: TimedLogs, limit: int, *, is_live: bool = False) -> None:
        self.logs = logs
        self.limit = limit
        self.is_live = is_live
        self.now_ms = NOW
        self.start = Offset.initial({one: each.log_start for one, each in logs.logs.items()}, {}, "00000000")
        self.read: dict[TopicPartition, int] = dict(self.start.at)
        self.cut_ms: int | None = None
        self.restart()

    def restart(self) -> None:
        self.alignment = Alignment(self.logs, CUT, IDLE, windows=Windows(look=LOOK, scan=5 * LOOK))

    def batch(self) -> bool:
        snapshot = self.logs.snapshot(self.now_ms)
        found = readable(self.start, snapshot)
        edges = {one: Edge(found.begins[one], head) for one, head in found.heads.items()}
        self.logs.lookups = 0
        planned = self.alignment.plan(self.start, edges, {}, limit=self.limit, now_ms=self.now_ms, is_live=self.is_live)
        assert self.logs.lookups <= LOOKUPS_MAX
        if planned is None:
            assert self.is_live or not found.count, "what is there is read"
            return False
        end = self.finished(advance(self.start, planned.ends, found.introduced, ids={}, plan=planned.plan))
        assert end is not self.start, "a batch has something to read"
        self.check(self.start, end)
        self.start = Offset.parse(json.loads(json.dumps(end.to_json())))
        return True

    def finished(self, end: Offset) -> Offset:
        """With all that stands in it."""
        return end

    def check(self, start: Offset, end: Offset) -> None:
        plan = end.plan
        assert plan is not None
        assert plan.cut_ms is not None
        size = ahead = 0
        for one, (first, behind) in ranges(start, end).items():
            assert first == self.read.get(one, self.logs.logs[one].log_start), "no row is lost or doubled"
            assert behind <= self.logs.logs[one].end
            self.read[one] = behind
            size += behind - first
            ahead += sum(each >= plan.cut_ms for each in self.logs.logs[one].rows(first, behind).times_ms)
        assert 0 < size <= self.limit
        assert plan.cut_ms == TIME_MAX or ahead <= plan.ahead or plan.rest is not None, (
            "rows ahead of their cut are counted"
        )
        assert self.cut_ms is None or plan.cut_ms >= self.cut_ms, "cuts go on"
        if self.limit > 10**6:
            assert plan.cut_ms % CUT == 0 or plan.cut_ms == TIME_MAX
        assert plan.after_ms == self.cut_ms
        self.cut_ms = plan.cut_ms


def named(logs: list[TimedLog]) -> TimedLogs:
    return TimedLogs({TopicPartition("t", number): each for number, each in enumerate(logs)})


LIMITS = st.sampled_from([1, 3, 17, 1 << 62])


@settings(max_examples=200, deadline=None)
@given(topic(), LIMITS, st.lists(st.booleans(), max_size=30))
def test_a_backlog_is_read_to_its_end(logs, limit, restarts):
    reader = Reader(named(logs), limit)
    for number in range(4000):
        if number < len(restarts) and restarts[number]:
            reader.restart()
        if not reader.batch():
            break
    assert reader.read == {one: each.end for one, each in reader.logs.logs.items()}


@settings(max_examples=80, deadline=None)
@given(topic(), topic(), LIMITS, st.integers(0, 12))
def test_partitions_that_come_half_way_are_read_whole(logs, more, limit, when):
    reader = Reader(named(logs), limit)
    for _ in range(when):
        reader.batch()
    for number, each in enumerate(more):
        reader.logs.logs[TopicPartition("u", number)] = each
    while reader.batch():
        pass
    assert all(reader.read.get(one, each.log_start) == each.end for one, each in reader.logs.logs.items())


@settings(max_examples=80, deadline=None)
@given(topic(), LIMITS, st.data())
def test_a_live_stream_reads_all_that_comes_within_a_bounded_time(logs, limit, data):
    """Rows come while it runs; then, left alone, it is done as soon as every partition is idle."""
    reader = Reader(named(logs), limit, is_live=True)
    for _ in range(data.draw(st.integers(0, 15))):
        one = data.draw(st.sampled_from(sorted(reader.logs.logs)))
        reader.logs.logs[one].write(data.draw(st.lists(st.integers(0, 5000), max_size=5)))
        reader.now_ms += data.draw(st.integers(0, 40))
        reader.batch()
    reader.now_ms += IDLE
    waits = 0
    while reader.read != {one: each.end for one, each in reader.logs.logs.items()}:
        if not reader.batch():
            reader.now_ms += IDLE
            waits += 1
            assert waits <= 3, "idle partitions hold nothing up"


@settings(max_examples=80, deadline=None)
@given(topic(), LIMITS)
def test_rows_in_order_are_each_read_in_their_own_batch(logs, limit):
    """Of logs without disorder: no row comes after its time, nor before."""
    for each in logs:
        each.times_ms[:] = sorted(min(time_ms, NOW // 2) for time_ms in each.times_ms)
        each.markers.clear()
    reader = Reader(named(logs), limit)
    after_ms = -1
    while True:
        before = dict(reader.read)
        cut_ms = reader.cut_ms
        rest = reader.start.plan is not None and reader.start.plan.rest is not None
        if not reader.batch():
            break
        if not rest:
            after_ms = -1 if cut_ms is None else cut_ms
        for one, behind in reader.read.items():
            times = reader.logs.logs[one].rows(before[one], behind).times_ms
            assert all(after_ms <= each < reader.cut_ms for each in times)


@st.composite
def transactions(draw) -> TimedLog:
    """Rows in order, with ends of transactions between them that have times of their own: a little later, or much."""
    made = TimedLog()
    time_ms = 0
    for step, later in draw(
        st.lists(st.tuples(st.integers(0, 30), st.sampled_from([None, None, 60, NOW])), max_size=40)
    ):
        time_ms += step
        if later is None:
            made.write([time_ms])
        else:
            made.end_transaction(time_ms + later)
    return made


@settings(max_examples=80, deadline=None)
@given(st.lists(transactions(), min_size=1, max_size=3), LIMITS)
def test_ends_of_transactions_make_no_row_in_order_late(logs, limit):
    reader = Reader(named(logs), limit)
    while True:
        before, start = dict(reader.read), reader.start
        if not reader.batch():
            break
        late_ms = late_before(start, reader.start)
        for one, behind in reader.read.items():
            times = reader.logs.logs[one].rows(before[one], behind).times_ms
            assert late_ms is None or all(each >= late_ms for each in times)
