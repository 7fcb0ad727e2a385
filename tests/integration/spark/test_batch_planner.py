"""What a batch query reads: starts, stops, filters and splits, asked of a real broker."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.fresh import fresh
from tests.reader.writing import Writer

from lowwater import TopicPartition
from lowwater.client.errors import UnknownTopicError
from lowwater.spark.batch_planner import plan
from lowwater.spark.filters import Bounds
from lowwater.spark.limits import RangeError
from lowwater.spark.offsets import Range
from lowwater.spark.option_table import OptionError
from lowwater.spark.options import SourceOptions
from lowwater.testing import Broker

T0 = 1_700_000_000_000
Planned = Callable[..., list[tuple[int, int, int]]]


@pytest.fixture(scope="module")
def topic(writer: Writer) -> str:
    """Two partitions of ten rows; row n is stamped T0 + 1000 n, in partition 1 an hour later."""
    name = fresh("batch")
    writer.create(name, 2)
    for partition, begin in ((0, T0), (1, T0 + 3_600_000)):
        writer.write(TopicPartition(name, partition), [begin + 1000 * row for row in range(10)])
    return name


@pytest.fixture
def planned(options: Callable[..., SourceOptions], topic: str) -> Planned:
    def plan_with(bounds: Bounds | None = None, **given: Any) -> list[tuple[int, int, int]]:
        subscribed = {} if given.keys() & {"assign", "subscribePattern", "subscribe"} else {"subscribe": topic}
        tasks = plan(options(streaming=False, **subscribed, **given), bounds or Bounds())
        return [(each.partition, each.start, each.end) for task in tasks for each in task.ranges]

    return plan_with


def test_everything_is_read_unless_said(planned: Planned) -> None:
    assert planned() == [(0, 0, 10), (1, 0, 10)]


def test_starts_and_ends_in_the_connectors_json(planned: Planned, topic: str) -> None:
    starts, ends = json.dumps({topic: {"0": 3, "1": -2}}), json.dumps({topic: {"0": -1, "1": 4}})
    assert planned(startingOffsets=starts, endingOffsets=ends) == [(0, 3, 10), (1, 0, 4)]


def test_starts_and_ends_by_time(planned: Planned, topic: str) -> None:
    late = T0 + 3_600_000
    assert planned(startingTimestamp=T0 + 3_500, startingOffsetsByTimestampStrategy="latest") == [
        (0, 4, 10),
        (1, 0, 10),
    ]
    times = json.dumps({topic: {"0": T0 + 2_000, "1": late + 5_000}})
    assert planned(startingOffsetsByTimestamp=times, endingTimestamp=late + 7_000) == [(0, 2, 10), (1, 5, 7)]


def test_starts_and_stops_in_our_grammar(planned: Planned, topic: str) -> None:
    assert planned(start=f"{topic}[0]=-3,{topic}[1]=2", stop=f"{topic}[1]=6") == [(0, 7, 10), (1, 2, 6)]


def test_a_start_at_the_groups_offsets(planned: Planned, topic: str, writer: Writer) -> None:
    group = fresh("batch-group")
    writer.admin.alter_group_offsets(group, {TopicPartition(topic, 1): 8}).checked()
    assert planned(start="stored|earliest", group=group) == [(0, 0, 10), (1, 8, 10)]


def test_one_look_is_enough_for_starts_by_offset(
    planned: Planned, topic: str, broker: Broker, options: Callable[..., SourceOptions]
) -> None:
    before = broker.requests()
    planned(startingOffsets=json.dumps({topic: {"0": 3, "1": 4}}))
    after = broker.requests()
    asked = {name: count - before.get(name, 0) for name, count in after.items() if count > before.get(name, 0)}
    assert asked["Metadata"] <= 2
    assert asked["ListOffsets"] <= 3
    assert asked.keys() <= {"ApiVersions", "Metadata", "ListOffsets"}


def test_a_start_behind_the_end_is_refused(planned: Planned, topic: str) -> None:
    with pytest.raises(RangeError, match="start offset 99 is greater than the resolved end offset 10"):
        planned(startingOffsets=json.dumps({topic: {"0": 99, "1": 0}}))


def test_offsets_have_to_name_every_partition(planned: Planned, topic: str) -> None:
    with pytest.raises(OptionError, match="startingOffsets don't match what are assigned"):
        planned(startingOffsets=json.dumps({topic: {"0": 1}}))


def test_a_topic_or_partition_that_is_not_there_is_named(planned: Planned, topic: str) -> None:
    with pytest.raises(UnknownTopicError, match="no-such-topic"):
        planned(subscribe="no-such-topic")
    with pytest.raises(UnknownTopicError, match=r"partition 7.*2 partitions"):
        planned(assign=json.dumps({topic: [0, 7]}))


def test_a_pattern_that_matches_nothing_reads_nothing(planned: Planned) -> None:
    assert planned(subscribePattern="no-topic-is-called-.*") == []


def test_partitions_are_split_and_packed_as_wished(planned: Planned, topic: str) -> None:
    assert planned(minPartitions=4) == [(0, 0, 5), (0, 5, 10), (1, 0, 5), (1, 5, 10)]
    assert planned(assign=json.dumps({topic: [1]}), maxRecordsPerPartition=4) == [(1, 0, 3), (1, 3, 6), (1, 6, 10)]


def test_filters_narrow_what_is_read(planned: Planned) -> None:
    assert planned(Bounds(partitions=frozenset({1}), offsets=Range(2, 5))) == [(1, 2, 5)]
    assert planned(Bounds(from_ms=T0 + 5_000)) == [(0, 5, 10), (1, 0, 10)]
    assert planned(Bounds(from_ms=T0 + 3_600_000)) == [(1, 0, 10)]
    assert planned(Bounds(topics=frozenset({"another"}))) == []


def test_a_filter_by_time_skips_rows_without_one_only_where_they_do_not_pass_it(
    planned: Planned, writer: Writer
) -> None:
    """Spark shows them as the last millisecond of 1969."""
    writer.create(name := fresh("untimed"), 1)
    writer.write(TopicPartition(name, 0), [-1, -1, T0])
    assert planned(Bounds(from_ms=-1), subscribe=name) == [(0, 0, 3)]
    assert planned(Bounds(from_ms=0), subscribe=name) == [(0, 2, 3)]
