"""From the ranges of a batch to its tasks."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.spark.offsets import Range
from lowwater.spark.splitting import Task, TaskRange, tasks
from lowwater.types import TopicPartition

TOPIC_ID = "f9Gx2kq0T1i8mO3bq7n0Yw"


@dataclass
class Given:
    tasks_min: int | None = None
    tasks_max: int | None = None
    task_records_max: int | None = None


def batch(*sizes, start=0):
    return {TopicPartition("t", number): Range(start, start + size) for number, size in enumerate(sizes)}


def split(ranges, *, cores=None, **options):
    return tasks(ranges, Given(**options), cores=cores, ids={"t": TOPIC_ID})


def sizes(found):
    return [[one.size for one in task.ranges] for task in found]


def test_a_partition_is_a_task():
    assert split(batch(3, 5, start=10)) == [
        Task((TaskRange("t", 0, 10, 13, TOPIC_ID),)),
        Task((TaskRange("t", 1, 10, 15, TOPIC_ID),)),
    ]


def test_a_partition_with_nothing_to_read_is_none():
    assert sizes(split(batch(3, 0, 5))) == [[3], [5]]


def test_nothing_to_read_is_no_task():
    assert split(batch(0, 0), cores=4, tasks_min=3) == []


def test_a_topic_without_an_id_has_an_empty_one():
    assert tasks(batch(1), Given(), cores=None, ids={})[0].ranges[0].topic_id == ""


# ---- minPartitions, maxRecordsPerPartition: as the Kafka connector counts


@pytest.mark.parametrize(
    ("given_sizes", "least", "expected"),
    [
        ((4, 6), 2, [[4], [6]]),
        ((100,), 3, [[33], [33], [34]]),
        ((100, 50), 3, [[50], [50], [50]]),
        ((1, 100), 4, [[1], [33], [33], [34]]),
        ((1, 1), 5, [[1], [1]]),
        ((100, 5, 9), 6, [[25], [25], [25], [25], [5], [9]]),
    ],
)
def test_a_minimum_splits_large_partitions(given_sizes, least, expected):
    assert sizes(split(batch(*given_sizes), tasks_min=least)) == expected


@pytest.mark.parametrize(
    ("given_sizes", "most", "expected"),
    [
        ((10,), 4, [[3], [3], [4]]),
        ((4, 8), 4, [[4], [4], [4]]),
        ((3,), 1, [[1], [1], [1]]),
    ],
)
def test_a_maximum_of_records_splits_what_is_larger(given_sizes, most, expected):
    assert sizes(split(batch(*given_sizes), task_records_max=most)) == expected


def test_both_together_split_by_records_first():
    assert sizes(split(batch(10, 2), task_records_max=5, tasks_min=6)) == [[1], [2], [2], [1], [2], [2], [2]]


# ---- no more tasks than cores


def test_several_partitions_share_a_task_when_there_are_more_than_cores():
    assert sizes(split(batch(7, 5, 4, 3), cores=2)) == [[7, 3], [5, 4]]


def test_shared_tasks_are_of_about_the_same_size():
    assert sizes(split(batch(1, 1, 1, 9), cores=2)) == [[1, 1, 1], [9]]


def test_a_minimum_goes_before_the_cores():
    assert len(split(batch(7, 5, 4, 3), cores=2, tasks_min=3)) == 3


def test_a_maximum_of_tasks_goes_before_the_cores():
    assert len(split(batch(7, 5, 4, 3), cores=4, tasks_max=1)) == 1


def test_a_maximum_of_records_holds_for_shared_tasks_too():
    found = split(batch(4, 4, 4, 4, 2), cores=2, task_records_max=8)
    assert all(task.size <= 8 for task in found)
    assert sum(task.size for task in found) == 18
    assert len(found) == 3


def test_a_split_does_not_depend_on_the_order_of_the_ranges():
    ranges = batch(7, 5, 4, 3, 3, 3)
    backward = dict(reversed(ranges.items()))
    assert split(ranges, cores=3) == split(backward, cores=3)


def test_a_task_is_small_when_it_travels():
    one = split(batch(1, start=10**12))[0]
    many = split(batch(*[10] * 64, start=10**12), cores=1)[0]
    assert len(pickle.dumps(one)) < 200 + 30
    assert len(pickle.dumps(many)) < 200 + 64 * 30


@given(
    st.lists(st.integers(0, 5000), min_size=0, max_size=12),
    st.integers(1, 20) | st.none(),
    st.integers(1, 20) | st.none(),
    st.integers(100, 2000) | st.none(),
    st.integers(1, 8) | st.none(),
)
def test_every_record_is_in_one_task(given_sizes, least, most, records, cores):
    ranges = batch(*given_sizes, start=3)
    found = split(ranges, cores=cores, tasks_min=least, tasks_max=most, task_records_max=records)
    pieces = sorted(one for task in found for one in task.ranges)
    covered = {}
    for piece in pieces:
        one = TopicPartition(piece.topic, piece.partition)
        assert piece.start < piece.end
        assert piece.start == covered.get(one, ranges[one].start)
        covered[one] = piece.end
    assert covered == {one: each.end for one, each in ranges.items() if each.size}
    assert all(task.ranges for task in found)
    if records is not None:
        assert all(task.size <= records for task in found)
    elif most is not None or cores is not None:
        assert len(found) <= max(most or cores or 0, least or 0)
