"""How a batch is cut into slices of time: evenly, by what brokers told."""

from __future__ import annotations

import asyncio
import pickle
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowwater.client.sampling import Sampled
from lowwater.spark.offsets import TIME_MAX, Bound, Plan, Range
from lowwater.spark.ordering import surveying
from lowwater.spark.ordering.bounds import SHARE_MAX, Curve, cut, fewer, unevenness, worth_asking
from lowwater.spark.slicing import SLICE_OFFSETS_MIN, SLICES_MAX, ordered_tasks, slice_count
from lowwater.spark.splitting import Slice, Task, TaskRange
from lowwater.types import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
ID = "f9Gx2kq0T1i8mO3bq7n0Yw"


@dataclass
class Given:
    tasks_min: int | None = None
    tasks_max: int | None = None
    task_records_max: int | None = None
    out_of_order_ms: int = 0
    isolation: str = "read_uncommitted"


# ---- how many


@pytest.mark.parametrize(
    ("offsets", "options", "count"),
    [
        (0, {}, 1),
        (SLICE_OFFSETS_MIN, {}, 1),
        (SLICE_OFFSETS_MIN + 1, {}, 2),
        (1 << 40, {}, SLICES_MAX),
        (1 << 40, {"tasks_max": 3}, 3),
        (1 << 40, {"tasks_max": 30}, 30),
        (100, {"tasks_min": 4}, 4),
        (3, {"tasks_min": 4}, 3),
        (100, {"task_records_max": 30}, 4),
        (100, {"task_records_max": 30, "tasks_max": 2}, 4),
    ],
)
def test_there_are_as_many_slices_as_are_wanted_or_worth_it(offsets, options, count):
    assert slice_count(offsets, Given(**options)) == count


# ---- tasks


def test_every_slice_reads_of_all_partitions_and_keeps_what_lies_between_its_bounds():
    plan = Plan(5, 90, slices=(Bound(10), Bound(20, "a", 1, 7)), out_of_order_ms=3)
    ranges = {B0: Range(0, 4), A1: Range(7, 9), A0: Range(2, 2)}
    pieces = (TaskRange("a", 1, 7, 9, ID), TaskRange("b", 0, 0, 4, ""))
    assert ordered_tasks(ranges, plan, ids={"a": ID}, lineage="5f2c9a1e") == [
        Task(pieces, "5f2c9a1e", Slice(None, Bound(10), 3, 5, 90, 5)),
        Task(pieces, "5f2c9a1e", Slice(Bound(10), Bound(20, "a", 1, 7), 3, 5, 90, 5)),
        Task(pieces, "5f2c9a1e", Slice(Bound(20, "a", 1, 7), None, 3, 5, 90, 5)),
    ]


def test_a_slice_of_the_rest_of_a_cut_is_told_what_is_late_in_it():
    [task] = ordered_tasks({A0: Range(0, 4)}, Plan(90, 90, out_of_order_ms=3, due_ms=5), ids={})
    assert task.slice == Slice(None, None, 3, floor_ms=90, cap_ms=90, late_before_ms=5)


def test_a_batch_without_rows_has_no_tasks():
    assert ordered_tasks({A0: Range(4, 4)}, Plan(slices=(Bound(1),), out_of_order_ms=0), ids={}) == []


def test_tasks_can_be_sent():
    [task, _] = ordered_tasks({A0: Range(0, 4)}, Plan(slices=(Bound(1),), out_of_order_ms=0), ids={})
    assert pickle.loads(pickle.dumps(task)) == task
    assert len(pickle.dumps(task)) < 500


# ---- bounds


def curve(*points, start=0, end=1000, size=1.0):
    found = Curve(Range(start, end), size)
    for point in points:
        found.learn(*point)
    return found


def test_a_straight_curve_is_cut_evenly():
    assert cut({A0: curve((0, 0), (1000, 1000))}, 4) == (Bound(250), Bound(500), Bound(750))


def test_bytes_count_and_not_offsets():
    curves = {A0: curve((0, 0), (100, 1000), size=9.0), A1: curve((100, 0), (200, 1000), size=1.0)}
    assert cut(curves, 2) == (Bound(56),)


def test_a_moment_with_too_much_is_split_by_topic_partition_and_offset():
    curves = {A0: curve((0, 0), (500, 0), (501, 1000)), B0: curve((0, 0), (500, 0), (501, 1000))}
    assert cut(curves, 4) == (Bound(500, "a", 0, 500), Bound(500, "b", 0, 0), Bound(500, "b", 0, 500))
    assert unevenness(curves, cut(curves, 4), 4) == 1.0


def test_a_row_far_ahead_of_its_time_takes_what_is_behind_it_along():
    ahead = curve((0, 0), (1000, 1000))
    ahead.jump(10**9, 500)
    ahead.learn(10**10, 500)
    assert cut({A0: ahead}, 2)[0].key_ms == 10**9


def test_nothing_known_is_one_slice():
    assert cut({A0: curve()}, 4) == ()
    assert unevenness({A0: curve()}, (), 4) == 1.0


def test_what_does_not_fit_to_what_is_known_is_left_out():
    assert curve((100, 500), (200, 400), (50, 600), (100, 400)).points == [(100, 400)]


def test_slices_shorter_than_the_disorder_are_put_together():
    curves = {A0: curve((0, 0), (1000, 1000))}
    bounds = cut(curves, 8)
    assert fewer(curves, bounds, 0) == bounds
    assert fewer(curves, bounds, 100) == bounds
    assert len(fewer(curves, bounds, 300)) == 3
    assert fewer(curves, bounds, 10_000) == cut(curves, 2)  # the second one is read twice, and no more


def test_bounds_are_asked_for_first_and_then_where_it_is_steep():
    curves = {A0: curve((0, 0), (10, 10), (1000, 990))}
    bounds = cut(curves, 2)
    assert worth_asking(curves, bounds, is_first=True) == [bounds[0].key_ms]
    assert worth_asking(curves, bounds, is_first=False) == [bounds[0].key_ms, 11]


def test_no_time_is_asked_for_that_cannot_be_told():
    curves = {A0: curve((0, 0), (TIME_MAX, 10))}
    bounds = (Bound(TIME_MAX), Bound(TIME_MAX, "a", 0, 5))
    assert max(worth_asking(curves, bounds, is_first=False)) == TIME_MAX


def test_a_last_row_of_the_last_time_there_is_does_not_make_a_survey_ask_for_later_ones(monkeypatch):
    asked = []

    async def answer(cluster, questions, *, isolation):
        asked.extend(time for each in questions for time in each.values())
        return [{} for _ in questions]

    async def look(cluster, offsets, *, isolation):
        return {one: Sampled(offset, TIME_MAX, 1.0) for one, offset in offsets.items()}

    monkeypatch.setattr(surveying, "list_offsets_many", answer)
    monkeypatch.setattr(surveying, "sample", look)
    asyncio.run(surveying.Survey(None, {A0: Range(0, 10)}, "read_committed", 5).bounds(2, is_wanted=True))
    assert asked
    assert max(asked) <= TIME_MAX


TIMES = st.lists(st.integers(0, 60), min_size=1, max_size=60)


@settings(max_examples=150, deadline=None)
@given(st.lists(TIMES, min_size=1, max_size=4), st.integers(2, 6), st.lists(st.integers(1, 9), min_size=4, max_size=4))
def test_what_is_known_exactly_is_cut_evenly(logs, count, weights):
    """No slice is larger than its share and two pieces of a moment: less cannot be told apart without looking again."""
    curves, rows = {}, []
    for number, log in enumerate(logs):
        times = sorted(log)
        found = Curve(Range(0, len(times)), float(weights[number]))
        for time in range(min(times), max(times) + 2):
            found.learn(time, sum(each < time for each in times))
        curves[TopicPartition("t", number)] = found
        rows += [(time, "t", number, place, weights[number]) for place, time in enumerate(times)]
    bounds = cut(curves, count)
    assert list(bounds) == sorted(set(bounds))
    edges = [Bound(-1), *bounds, Bound(100)]
    sizes = [sum(row[4] for row in rows if start <= row[:4] < end) for start, end in pairwise(edges)]
    total = sum(row[4] for row in rows)
    assert sum(sizes) == total
    assert max(sizes) <= total / count * (SHARE_MAX + 0.3) + 2 * max(weights)
