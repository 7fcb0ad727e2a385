"""Streams in order, over logs that were never planned: cuts, slices of time, where they lie and their rows are all the
product's; only brokers are not there, and logs in memory answer for them, as brokers do.

Whatever the logs are: every row comes once, in the order that is promised, within a batch and, by cuts, from batch to
batch; a batch is read alike by those who planned it and by a driver that has only its offsets.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.test_spark_cuts import NOW, Reader
from tests.model.test_spark_order import COLUMNS, arrow, given_out, model
from tests.timed_logs import TimedLog, TimedLogs

from lowwater.client.offsets import EARLIEST, Found
from lowwater.client.ranges import OffsetRange
from lowwater.client.sampling import Sampled
from lowwater.spark.offsets import Offset, Plan, Range, ranges
from lowwater.spark.ordering import reading, sorting, surveying
from lowwater.spark.ordering.reading import SliceReading
from lowwater.spark.slicing import ordered_tasks, plan_slices
from lowwater.spark.splitting import Task
from lowwater.types import TopicPartition

FAR_MS = 4_070_908_800_000  # 2099
NO_TIME = -1
PARTITIONS = [TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("b", 0), TopicPartition("b", 1)]
BATCHES_MAX = 2000
Rows = list[tuple[str, int, int, int]]  # topic, partition, offset, timestamp


@dataclass(frozen=True)
class Options:
    tasks_min: int | None
    out_of_order_ms: int
    tasks_max: int | None = None
    task_records_max: int | None = None
    isolation: str = "read_committed"


STEPS = st.integers(0, 5) | st.integers(-150, -1) | st.just(0) | st.integers(500, 2000)
KINDS = st.sampled_from(["row"] * 12 + ["same", "marker", "future", "no time"])


@st.composite
def logs(draw) -> TimedLog:
    """Disorder, gaps, moments with many rows, ends of transactions, rows of the far future, and such without a time."""
    made = TimedLog()
    time_ms = draw(st.sampled_from([0, 0, 3000]))
    for kind, step in draw(st.lists(st.tuples(KINDS, STEPS), max_size=30)):
        time_ms = max(time_ms + step, 0)
        if kind == "marker":
            made.end_transaction(draw(st.sampled_from([NOW, time_ms, time_ms + 50])))
        else:
            made.write({"future": [FAR_MS], "no time": [NO_TIME], "same": [time_ms] * 9}.get(kind, [time_ms]))
    made.log_start = draw(st.integers(0, min(3, len(made.times_ms))))
    return made


TOPICS = st.lists(logs(), min_size=4, max_size=4).map(lambda made: dict(zip(PARTITIONS, made, strict=True)))
OPTIONS = st.builds(Options, st.integers(4, 6), st.sampled_from([0, 3, 60, 10_000]))


class Brokers:
    """Answer from the beginning of their logs, ends of transactions too. Rows come in any interleaving."""

    def __init__(self, made: dict[TopicPartition, TimedLog], chance: Random) -> None:
        self.logs = made
        self.chance = chance
        self.cluster: Any = self

    def run(self, flow: Any, _: float | None = None) -> Any:
        try:
            flow.send(None)
        except StopIteration as done:
            return done.value
        raise AssertionError("nothing has to be waited for")

    def known(self, _: str) -> None:
        return None

    async def list_offsets_many(self, _: Any, asked: Any, *, isolation: str = "") -> list[dict[TopicPartition, Found]]:
        return [{one: self._found(self.logs[one], time) for one, time in each.items()} for each in asked]

    def _found(self, log: TimedLog, time: int) -> Found:
        if time == EARLIEST:
            return Found(log.log_start)
        stamp = TimedLogs._first(log, time)
        return Found(-1) if stamp is None else Found(stamp.offset, stamp.time_ms)

    async def sample(self, _: Any, offsets: Any, *, isolation: str) -> dict[TopicPartition, Sampled | None]:
        return {one: self._sampled(self.logs[one], offset) for one, offset in offsets.items()}

    def _sampled(self, log: TimedLog, offset: int) -> Sampled | None:
        rows = log.rows(offset, log.end)
        return Sampled(rows.offsets[0], rows.times_ms[0], self.chance.choice([1.0, 7.5])) if rows.offsets else None

    def range_reading(self, _: Any, asked: list[OffsetRange], **__: Any) -> Ranges:
        return Ranges(self, asked)

    @contextmanager
    def instead(self) -> Iterator[None]:
        """Of real ones; tasks give out rows as soon as they may, and in small batches, so that files have several."""
        with (
            patch.multiple(surveying, list_offsets_many=self.list_offsets_many, sample=self.sample),
            patch.multiple(reading, list_offsets_many=self.list_offsets_many, RangeReading=self.range_reading),
            patch.multiple(reading, _LOOK_ROWS=1, ROWS_MAX=1),
            patch.multiple(sorting, ROWS_MAX=2),
        ):
            yield


class Ranges:
    """As RangeReading: rows of each range by offset."""

    def __init__(self, brokers: Brokers, asked: list[OffsetRange]) -> None:
        self._chance = brokers.chance
        self._left = {each.partition: _visible(brokers.logs[each.partition], each.start, each.end) for each in asked}

    async def next(self) -> Any:
        waiting = self.unread()
        if not waiting:
            return None
        rows = []
        for one in self._chance.sample(waiting, self._chance.randint(1, len(waiting))):
            count = self._chance.randint(1, len(self._left[one]))
            rows += [(one, *row) for row in self._left[one][:count]]
            del self._left[one][:count]
        return arrow(rows)

    def unread(self) -> list[TopicPartition]:
        return [one for one, rows in self._left.items() if rows]

    def drop(self, one: TopicPartition) -> None:
        self._left[one] = []

    async def close(self) -> None:
        pass


def _visible(log: TimedLog, start: int, end: int) -> list[tuple[int, int]]:
    rows = log.rows(start, end)
    return list(zip(rows.offsets, rows.times_ms, strict=True))


def read(brokers: Brokers, tasks: list[Task]) -> Rows:
    """One task after the other."""
    return [row for task in tasks for row in given_out(list(_slice(brokers, task).batches()))]


def _slice(brokers: Brokers, task: Task) -> SliceReading:
    assert task.slice is not None
    asked = [OffsetRange(TopicPartition(each.topic, each.partition), each.start, each.end) for each in task.ranges]
    held_bytes_max = brokers.chance.choice([1, 60, 400, 1 << 30])
    return SliceReading(brokers, asked, task.slice, COLUMNS, on_lost=_refuse, held_bytes_max=held_bytes_max)


def _refuse(lost: Any) -> None:
    raise AssertionError(lost)


def ordered(
    brokers: Brokers, found: dict[TopicPartition, Range], plan: Plan, options: Options
) -> tuple[Rows, list[int], Plan]:
    """Rows of a batch, the same by those who planned it, by others, and by the definition; and their keys."""
    with brokers.instead():
        sliced = plan_slices(brokers, found, plan, options)
        rows = read(brokers, ordered_tasks(found, sliced.plan, ids={}, extents=sliced.extents))
        assert rows == read(brokers, ordered_tasks(found, sliced.plan, ids={}))
    wanted = model({one: _visible(brokers.logs[one], *each) for one, each in found.items()}, sliced.plan)
    assert rows == [row[1:] for row in wanted]
    return rows, [row[0] for row in wanted], sliced.plan


class OrderedReader(Reader):
    """Reads by cuts, in order. `rows` are all that came, one after the other; `keys` are theirs."""

    def __init__(self, brokers: Brokers, limit: int, options: Options) -> None:
        super().__init__(TimedLogs(brokers.logs), limit)
        self.brokers = brokers
        self.options = options
        self.rows: Rows = []
        self.keys: list[int] = []

    def finished(self, end: Offset) -> Offset:
        assert end.plan is not None
        found = ranges(self.start, end)
        rows, keys, plan = ordered(self.brokers, found, end.plan, self.options)
        self.rows += rows
        self.keys += keys
        return replace(end, plan=plan)


@settings(max_examples=80, deadline=None)
@given(TOPICS, OPTIONS, st.sampled_from([5, 17, 60, 1 << 62]), st.randoms(use_true_random=False))
def test_a_stream_by_cuts_has_every_row_once_and_in_order_from_end_to_end(made, options, limit, chance):
    reader = OrderedReader(Brokers(made, chance), limit, options)
    for _ in range(BATCHES_MAX):
        if chance.random() < 0.1:
            reader.restart()
        if not reader.batch():
            break
    wanted = [(*one, *row) for one, log in made.items() for row in _visible(log, log.log_start, log.end)]
    assert sorted(reader.rows) == sorted(wanted)
    assert reader.keys == sorted(reader.keys)


@settings(max_examples=150, deadline=None)
@given(TOPICS, OPTIONS, st.data(), st.randoms(use_true_random=False))
def test_any_ranges_are_one_sort_however_they_are_sliced(made, options, data, chance):
    """Without cuts, as of a stream with a limit or of a batch query."""
    found = {}
    for one, log in made.items():
        start = data.draw(st.integers(log.log_start, log.end))
        found[one] = Range(start, data.draw(st.integers(start, log.end)))
    ordered(Brokers(made, chance), found, Plan(), options)
