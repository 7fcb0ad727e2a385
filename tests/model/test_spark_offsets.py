"""A streaming query against a small model of Spark and of a topic: logs that grow, lose their beginning and get further
partitions; limits, available-now runs, crashes between any two steps, and checkpoints begun by the Kafka connector.

Spark keeps two texts per batch and nothing else. Whatever happens, each offset is read once by finished batches, a
batch that is read again is the same one, and there is always progress.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lowwater.spark.limits import WAIT, batch_end, gaps
from lowwater.spark.offsets import Bound, Offset, Place, Plan, Range, advance, ranges
from lowwater.spark.snapshot import Head, Snapshot
from lowwater.spark.splitting import tasks
from lowwater.types import TopicPartition

IDS = {"a": "f9Gx2kq0T1i8mO3bq7n0Yw", "b": "AAAAAAAAQACAAAAAAAAAAA"}
PARTITIONS = st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 3))
TIMES = st.integers(-1, 1 << 50)
PLANS = st.none() | st.builds(
    Plan,
    after_ms=st.none() | TIMES,
    cut_ms=TIMES,
    rest=st.none() | st.builds(Place, st.sampled_from("ab"), st.integers(0, 3), st.integers(0, 60)),
    slices=st.sets(TIMES, max_size=3).map(lambda times: tuple(map(Bound, sorted(times)))),
    out_of_order_ms=st.none() | st.integers(0, 1000),
    asked=st.integers(0, 12),
    ahead=st.integers(0, 3),
    due_ms=st.none() | TIMES,
    others=st.dictionaries(PARTITIONS, st.integers(0, 60), max_size=3),
)


@dataclass
class Options:
    """As they were given for the whole life of the query."""

    offsets_max: int | None
    offsets_min: int | None = None
    delay_max_ms: int = 1000
    cut_ms: int | None = None
    tasks_min: int | None = None
    tasks_max: int | None = None
    task_records_max: int | None = None


@dataclass
class Checkpoint:
    """What Spark keeps: the end of each batch, and how many are finished."""

    offsets: list[str] = field(default_factory=list)
    finished: int = 0


class Query(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.logs: dict[TopicPartition, Head] = {}
        self.hidden: set[TopicPartition] = set()
        self.checkpoint = Checkpoint()
        self.read: dict[TopicPartition, list[Range]] = {}
        self.first_read: dict[int, dict[TopicPartition, Range]] = {}
        self.start: Offset | None = None
        self.now_ms = 0
        self.last_ms: int | None = None
        self.lineage = 0

    @initialize(
        partitions=st.dictionaries(PARTITIONS, st.integers(0, 50), max_size=4),
        limit=st.integers(1, 40) | st.none(),
        least=st.integers(1, 40) | st.none(),
        adopted=st.booleans(),
        records=st.integers(1, 20) | st.none(),
        cores=st.integers(1, 3) | st.none(),
    )
    def begin(self, partitions, limit, least, adopted, records, cores):
        least = least if limit is None or least is None else min(least, limit)
        self.options = Options(limit, least, task_records_max=records)
        self.cores = cores
        self.logs = {one: Head(0, end) for one, end in partitions.items()}
        if adopted and partitions:
            self.adopt()

    def adopt(self) -> None:
        """The connector has finished a batch, and planned another."""
        middle = {one: head.end // 2 for one, head in self.logs.items()}
        self.checkpoint = Checkpoint([connectors(middle), connectors(self.ends())], finished=1)
        self.start = Offset.parse(json.loads(self.checkpoint.offsets[0]))
        self.read = {one: [Range(0, end)] for one, end in middle.items()}

    def ends(self) -> dict[TopicPartition, int]:
        return {one: head.end for one, head in self.logs.items()}

    def snapshot(self) -> Snapshot:
        return Snapshot({one: head for one, head in self.logs.items() if one not in self.hidden}, IDS, self.now_ms)

    # -- the topics

    @rule(one=PARTITIONS, count=st.integers(1, 60))
    def write(self, one, count):
        """Into a partition, which may be new."""
        head = self.logs.get(one, Head(0, 0))
        self.logs[one] = Head(head.log_start, head.end + count)

    @rule(one=PARTITIONS)
    def add(self, one):
        self.logs.setdefault(one, Head(0, 0))

    @rule(one=PARTITIONS, count=st.integers(1, 60))
    def expire(self, one, count):
        if one in self.logs:
            head = self.logs[one]
            self.logs[one] = Head(min(head.log_start + count, head.end), head.end)

    @rule(one=PARTITIONS)
    def hide(self, one):
        """The metadata leave it out for a while."""
        self.hidden.symmetric_difference_update({one} & self.logs.keys())

    @rule(elapsed_ms=st.integers(0, 1500))
    def wait(self, elapsed_ms):
        self.now_ms += elapsed_ms

    # -- Spark

    def initial(self) -> Offset:
        """What the source says to a query without a checkpoint: from the middle of what is there now."""
        self.lineage += 1
        starts = {one: (head.log_start + head.end) // 2 for one, head in self.snapshot().partitions.items()}
        return Offset.initial(starts, IDS, f"{self.lineage:08x}")

    def is_planned(self) -> bool:
        return len(self.checkpoint.offsets) > self.checkpoint.finished

    @precondition(lambda self: not self.is_planned())
    @rule(once=st.booleans(), plan=PLANS)
    def plan(self, once, plan=None):
        if self.start is None:
            self.start = self.initial()
        limit = None if once else self.options.offsets_max
        snapshot = self.snapshot()
        found = batch_end(self.start, snapshot, self.options, now_ms=self.now_ms, last_ms=self.last_ms, limit=limit)
        if found is WAIT:
            assert not once
            return
        self.last_ms = self.now_ms
        end = advance(self.start, found.ends, found.introduced, ids=IDS, lineage="ffffffff", plan=plan)
        self.check_progress(snapshot, end)
        if end is not self.start:
            self.checkpoint.offsets.append(json.dumps(end.to_json()))

    def check_progress(self, snapshot: Snapshot, end: Offset) -> None:
        """There is a batch as soon as any partition has a record that was not read."""
        assert self.start is not None
        left = {one: max(self.start.at.get(one, head.log_start), head.log_start) < head.end
                for one, head in snapshot.partitions.items()}  # fmt: skip
        if any(left.values()):
            assert end is not self.start
        for one, head in snapshot.partitions.items():
            assert end.at.get(one, head.log_start) <= max(head.end, self.start.at.get(one, 0))

    @precondition(lambda self: self.is_planned())
    @rule(crashes=st.booleans())
    def run(self, crashes):
        """The batch is read, by its two texts alone; then it is finished, or the driver dies before that."""
        number = self.checkpoint.finished
        found = self.ranges(number)
        assert self.first_read.setdefault(number, found) == found
        self.check_tasks(found)
        if crashes:
            self.restart()
            return
        for one, each in found.items():
            self.read.setdefault(one, []).append(each)
        self.checkpoint.finished += 1
        self.start = self.parsed(number)

    @rule()
    def restart(self):
        """All that is not in the checkpoint is forgotten."""
        self.last_ms = None
        finished = self.checkpoint.finished
        self.start = self.parsed(finished - 1) if finished else None

    def ranges(self, number: int) -> dict[TopicPartition, Range]:
        start = self.parsed(number - 1) if number else self.initial()
        return ranges(start, self.parsed(number))

    def parsed(self, number: int) -> Offset:
        return Offset.parse(json.loads(self.checkpoint.offsets[number]))

    def check_tasks(self, found: dict[TopicPartition, Range]) -> None:
        planned = tasks(found, self.options, cores=self.cores, ids=IDS)
        assert planned == tasks(found, self.options, cores=self.cores, ids=IDS)
        pieces = sorted(one for task in planned for one in task.ranges)
        rebuilt: dict[TopicPartition, Range] = {}
        for piece in pieces:
            one = TopicPartition(piece.topic, piece.partition)
            before = rebuilt.get(one, Range(piece.start, piece.start))
            assert before.end == piece.start
            rebuilt[one] = Range(before.start, piece.end)
        assert rebuilt == {one: each for one, each in found.items() if each.size}

    # -- what always holds

    @invariant()
    def every_offset_is_read_once(self):
        for found in self.read.values():
            for before, after in pairwise(found):
                assert before.end == after.start

    @invariant()
    def what_is_read_is_where_the_query_stands(self):
        if self.checkpoint.finished:
            at = self.parsed(self.checkpoint.finished - 1).at
            assert {one: found[-1].end for one, found in self.read.items()} == at

    @invariant()
    def the_text_is_canonical(self):
        for written in self.checkpoint.offsets:
            offset = Offset.parse(json.loads(written))
            if not offset.is_adopted:
                assert json.dumps(offset.to_json()) == written

    @invariant()
    def what_is_gone_is_told(self):
        if self.start is not None and not self.hidden:
            told = {gap.partition for gap in gaps(self.start, self.snapshot())}
            behind = {one for one, at in self.start.at.items() if at < self.logs[one].log_start}
            assert behind <= told

    def teardown(self):
        """Left alone, the query reads all there is."""
        self.hidden.clear()
        for _ in range(2000):
            if self.is_planned():
                self.run(crashes=False)
                continue
            before = len(self.checkpoint.offsets)
            self.plan(once=False)
            self.now_ms += self.options.delay_max_ms
            if len(self.checkpoint.offsets) == before:
                break
        if self.start is not None and not self.start.is_initial:
            at = self.start.at
            assert all(at.get(one, head.log_start) >= head.end for one, head in self.logs.items())


def connectors(offsets: dict[TopicPartition, int]) -> str:
    topics: dict[str, dict[str, int]] = {}
    for one, offset in offsets.items():
        topics.setdefault(one.topic, {})[str(one.partition)] = offset
    return json.dumps(topics, separators=(",", ":"))


TestQuery = Query.TestCase
TestQuery.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
