"""Ordered slices against a small model: logs of a few partitions, of which tasks read slices of time in any
interleaving; what they give, one after the other, is one sort of the whole batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowwater.spark.offsets import Bound, Plan, Range
from lowwater.spark.ordering.keys import END
from lowwater.spark.ordering.partitions import Partitions
from lowwater.spark.ordering.reading import end_ms, start_ms
from lowwater.spark.ordering.sorting import Sorting
from lowwater.spark.slicing import ordered_tasks
from lowwater.types import TopicPartition

FAR_MS = 4_070_908_800_000  # 2099
PARTITIONS = [TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("b", 0)]
TIMES = st.integers(-1, 40) | st.sampled_from([FAR_MS, 1 << 50, 0, 7, 7, 7])
COLUMNS = ("topic", "partition", "offset", "timestamp")


@dataclass
class Log:
    """Visible rows by offset: in between are markers, or what compaction took."""

    rows: list[tuple[int, int]]
    end: int


@st.composite
def logs(draw) -> Log:
    rows, offset = [], 0
    for _ in range(draw(st.integers(0, 14))):
        offset += draw(st.sampled_from([0, 0, 0, 1, 3]))
        rows.append((offset, draw(TIMES)))
        offset += 1
    return Log(rows, offset + draw(st.integers(0, 2)))


@st.composite
def plans(draw) -> Plan:
    moments = st.integers(0, 45)
    split = st.builds(Bound, moments, st.sampled_from("ab"), st.integers(0, 2), st.integers(0, 14))
    bounds = draw(st.sets(st.builds(Bound, moments) | split, max_size=5))
    after = draw(st.none() | st.integers(0, 20))
    cut = None if after is None else after + draw(st.integers(0, 30))
    return Plan(after, cut, slices=tuple(sorted(bounds)), out_of_order_ms=draw(st.integers(0, 12)))


def model(batch: dict[TopicPartition, list[tuple[int, int]]], plan: Plan) -> list[tuple[int, str, int, int, int]]:
    """(key, topic, partition, offset, timestamp) of every row, sorted: the page's definition and nothing else."""
    found = []
    for one, rows in batch.items():
        newest = None
        for offset, stamped in rows:
            timestamp = stamped if plan.cut_ms is None else min(stamped, plan.cut_ms)
            newest = timestamp if newest is None else max(newest, timestamp)
            key = max(timestamp, newest - plan.out_of_order_ms)
            if plan.after_ms is not None:
                key = max(key, plan.after_ms)
            found.append((key, *one, offset, stamped))
    return sorted(found)


def arrow(rows: list[tuple[TopicPartition, int, int]]) -> pa.RecordBatch:
    """As the client gives them: where there is no time, -1 stands under the null."""
    topics = ["b", "a"]
    times = pa.array([row[2] for row in rows], pa.int64())
    validity = pa.array([row[2] != -1 for row in rows]).buffers()[1]
    columns = [
        pa.DictionaryArray.from_arrays(pa.array([topics.index(row[0].topic) for row in rows], pa.int32()), topics),
        pa.array([row[0].partition for row in rows], pa.int32()),
        pa.array([row[1] for row in rows], pa.int64()),
        pa.Array.from_buffers(pa.timestamp("ms", "UTC"), len(rows), [validity, times.buffers()[1]]),
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(COLUMNS))


def given_out(batches: list[pa.RecordBatch]) -> list[tuple[str, int, int, int]]:
    rows = []
    for batch in batches:
        topic, partition, offset, timestamp = batch.columns
        stamps = pa.Array.from_buffers(pa.int64(), len(timestamp), [None, timestamp.buffers()[1]])
        rows += zip(*(one.to_pylist() for one in (topic, partition, offset, stamps)), strict=True)
    return rows


def play(data, batch, task, held_bytes_max) -> list[tuple[str, int, int, int]]:
    """One task: rows of its partitions come in any interleaving, from any safe start on, and go when they may."""
    part = task.slice
    partitions = Partitions([TopicPartition(one.topic, one.partition) for one in task.ranges], part)
    sorting = Sorting(partitions, COLUMNS, held_bytes_max=held_bytes_max)
    waiting = {}
    for each in task.ranges:
        one = TopicPartition(each.topic, each.partition)
        rows = batch[one]
        if (moment := start_ms(part)) is not None:
            late_enough = [number for number, row in enumerate(rows) if row[1] >= moment]
            exact = late_enough[0] if late_enough else len(rows)
            rows = rows[data.draw(st.integers(0, exact)) :]
        if (moment := end_ms(part)) is not None:
            too_late = [number for number, row in enumerate(rows) if row[1] >= moment]
            exact = too_late[0] if too_late else len(rows)
            rows = rows[: data.draw(st.integers(exact, len(rows)))]
        waiting[one] = rows
    out: list[pa.RecordBatch] = []
    while any(waiting.values()):
        one = data.draw(st.sampled_from(sorted(one for one, rows in waiting.items() if rows)))
        count = data.draw(st.integers(1, len(waiting[one])))
        sorting.add(arrow([(one, *row) for row in waiting[one][:count]]))
        waiting[one] = [] if partitions.is_past(one) else waiting[one][count:]
        mark = min(partitions.places_of(one for one, rows in waiting.items() if rows), default=END)
        if sorting.due_rows(mark):
            out += sorting.due(mark)
    out += sorting.rest()
    sorting.close()
    return given_out(out)


@settings(max_examples=120, deadline=None)
@given(st.data(), st.lists(logs(), min_size=3, max_size=3), plans(), st.sampled_from([1, 400, 1 << 30]))
def test_slices_one_after_the_other_are_one_sort_of_the_batch(data, found, plan, held_bytes_max):
    batch, ranges = {}, {}
    for one, log in zip(PARTITIONS, found, strict=True):
        start = data.draw(st.integers(0, log.end))
        ranges[one] = Range(start, data.draw(st.integers(start, log.end)))
        batch[one] = [row for row in log.rows if start <= row[0] < ranges[one].end]
    tasks = ordered_tasks(ranges, plan, ids={})
    assert len(tasks) in (0, len(plan.slices) + 1)
    rows = [row for task in tasks for row in play(data, batch, task, held_bytes_max)]
    assert rows == [row[1:] for row in model(batch, plan)]


@pytest.mark.parametrize(
    ("plan", "late"),
    [
        (Plan(600, 700, out_of_order_ms=1000), 2),  # of the batch after that cut
        (Plan(600, 600, out_of_order_ms=1000, due_ms=100), 1),  # what is left of that cut, which is no fault of theirs
        (Plan(600, 600, out_of_order_ms=1000, due_ms=-1), 0),
        (Plan(600, 600, out_of_order_ms=200, due_ms=-1), 1),  # nor does it excuse what is out of order
    ],
)
def test_late_are_rows_of_a_cut_that_was_over_and_not_those_of_its_rest(plan, late):
    one = PARTITIONS[0]
    [task] = ordered_tasks({one: Range(0, 3)}, plan, ids={})
    partitions = Partitions([one], task.slice)
    partitions.keyed(arrow([(one, 0, 400), (one, 1, 50), (one, 2, 650)]))
    assert partitions.late_rows == late
