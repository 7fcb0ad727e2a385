"""What a stream reads next: asked of a real broker, by the calls that Spark makes and in its order."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fresh import fresh
from tests.integration.spark.conftest import Planning
from tests.reader.writing import Writer

from lowwater import TopicPartition
from lowwater.client.errors import TopicRecreatedError
from lowwater.spark.data_loss import DataLossError
from lowwater.spark.offsets import Offset
from lowwater.spark.option_table import OptionError
from lowwater.spark.options import SourceOptions
from lowwater.spark.stream_planner import StreamPlanner
from lowwater.testing import Broker

PATIENCE_S = 60


@pytest.fixture
def topic(broker: Broker, writer: Writer) -> str:
    """Two partitions of 100 and 50 rows."""
    name = fresh("planned")
    writer.create(name, 2)
    broker.fill(name, 0, next=100)
    broker.fill(name, 1, next=50)
    return name


def more(writer: Writer, topic: str, partition: int, rows: int) -> None:
    writer.write(TopicPartition(topic, partition), [1_700_000_000_000] * rows)


def at(offset: dict[str, Any]) -> dict[int, int]:
    """By partition of the one topic."""
    return {one.partition: next_offset for one, next_offset in Offset.parse(offset).at.items()}


def ranges(planner: StreamPlanner, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[int, int, int]]:
    return [(each.partition, each.start, each.end) for task in planner.tasks(start, end) for each in task.ranges]


def until_new(planner: StreamPlanner, start: dict[str, Any]) -> dict[str, Any]:
    """As Spark does: ask until there is something."""
    deadline = time.monotonic() + PATIENCE_S
    while (end := planner.latest_offset(start, None)) == start:
        assert time.monotonic() < deadline, "there is something to read"
    return end


def test_a_query_begins_where_it_is_told_and_says_so_again(planning: Planning, topic: str, writer: Writer) -> None:
    earliest, latest = planning(subscribe=topic, startingOffsets="earliest"), planning(subscribe=topic)
    assert at(earliest.initial_offset()) == {0: 0, 1: 0}
    first = latest.initial_offset()
    assert at(first) == {0: 100, 1: 50}
    more(writer, topic, 1, 10)
    assert latest.initial_offset() == first


def test_a_batch_ends_at_the_heads_and_reads_all_before_them(planning: Planning, topic: str) -> None:
    planner = planning(subscribe=topic, startingOffsets="earliest")
    start = planner.initial_offset()
    end = planner.latest_offset(start, None)
    assert at(end) == {0: 100, 1: 50}
    assert ranges(planner, start, end) == [(0, 0, 100), (1, 0, 50)]


def test_nothing_new_is_the_very_text_that_was_given(planning: Planning, topic: str) -> None:
    planner = planning(subscribe=topic, startingOffsets="earliest")
    end = planner.latest_offset(planner.initial_offset(), None)
    again = planner.latest_offset(json.loads(json.dumps(end)), None)
    assert json.dumps(again) == json.dumps(end)


def test_what_was_written_before_the_call_is_always_seen(planning: Planning, topic: str, writer: Writer) -> None:
    planner = planning(subscribe=topic)
    end = planner.initial_offset()
    for next_offset in range(101, 131):
        more(writer, topic, 0, 1)
        end = planner.latest_offset(end, None)
        assert at(end)[0] == next_offset


def test_a_limit_is_shared_by_what_is_left(planning: Planning, topic: str) -> None:
    planner = planning(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=30)
    start = planner.initial_offset()
    end = planner.latest_offset(start, 30)
    assert at(end) == {0: 20, 1: 10}
    assert at(planner.latest_offset(end, 30)) == {0: 40, 1: 20}
    assert at(planner.latest_offset(end, None)) == {0: 100, 1: 50}


def test_tasks_need_no_broker(planning: Planning, topic: str, options: Callable[..., SourceOptions]) -> None:
    """After a crash they are the first that Spark asks for."""
    planner = planning(subscribe=topic, startingOffsets="earliest")
    start = planner.initial_offset()
    end = planner.latest_offset(start, None)
    elsewhere = options(subscribe=topic, kafka_bootstrap_servers="127.0.0.1:1")
    assert ranges(StreamPlanner(elsewhere), start, end) == ranges(planner, start, end)


def test_batch_0_is_read_again_as_it_was_although_the_start_is_another_now(
    planning: Planning, topic: str, writer: Writer
) -> None:
    planner = planning(subscribe=topic, start="-10")
    start = planner.initial_offset()
    end = planner.latest_offset(start, None)
    more(writer, topic, 0, 20)
    restarted = planning(subscribe=topic, start="-10")
    assert restarted.initial_offset() != start
    assert ranges(restarted, restarted.initial_offset(), end) == [(0, 90, 100), (1, 40, 50)]


def test_new_partitions_are_read_from_their_beginning(
    planning: Planning, topic: str, broker: Broker, writer: Writer
) -> None:
    planner = planning(subscribe=topic)
    start = planner.initial_offset()
    assert planner.latest_offset(start, None) == start
    writer.add_partitions(topic, 3)
    broker.fill(topic, 2, next=7)
    end = until_new(planner, start)
    assert at(end) == {0: 100, 1: 50, 2: 7}
    assert ranges(planner, start, end) == [(2, 0, 7)]


def test_a_new_topic_of_the_pattern_is_read_from_its_beginning(
    planning: Planning, topic: str, broker: Broker, writer: Writer
) -> None:
    planner = planning(subscribePattern=f"{topic}.*")
    start = planner.initial_offset()
    other = f"{topic}-more"
    writer.create(other, 1)
    broker.fill(other, 0, next=3)
    end = until_new(planner, start)
    assert [(each.topic, each.start, each.end) for task in planner.tasks(start, end) for each in task.ranges] == [
        (other, 0, 3)
    ]


def test_assigned_partitions_are_read_and_no_other(planning: Planning, topic: str) -> None:
    planner = planning(assign=json.dumps({topic: [1]}), startingOffsets="earliest")
    assert at(planner.latest_offset(planner.initial_offset(), None)) == {1: 50}


def test_available_now_ends_although_rows_keep_coming(planning: Planning, topic: str, writer: Writer) -> None:
    planner = planning(subscribe=topic, startingOffsets="earliest")
    planner.stop_at_what_is_there()
    end = planner.initial_offset()
    more(writer, topic, 0, 10)
    end = planner.latest_offset(end, 120)
    more(writer, topic, 0, 10)
    last = planner.latest_offset(end, 120)
    assert at(last)[1] == 50
    assert at(last)[0] == 100
    assert planner.latest_offset(last, 120) == last


def test_available_now_from_the_end_of_a_topic_that_grows_reads_nothing(
    planning: Planning, topic: str, writer: Writer
) -> None:
    planner = planning(subscribe=topic)
    planner.stop_at_what_is_there()
    more(writer, topic, 0, 10)
    start = planner.initial_offset()
    assert planner.latest_offset(start, None) == start


def test_once_its_stop_file_is_there_no_batch_begins(planning: Planning, topic: str, tmp_path: Path) -> None:
    file, group = tmp_path / "stop", fresh("stopped")
    planner = planning(subscribe=topic, startingOffsets="earliest", group=group, stopFile=str(file))
    end = planner.latest_offset(planner.initial_offset(), 30)
    file.touch()
    assert planner.latest_offset(end, 30) == end
    again = planning(subscribe=topic, group=group)
    assert at(again.initial_offset()) == at(end), "what is finished is committed by then"
    file.unlink()
    assert planner.latest_offset(end, 30) != end


def test_a_stored_start_is_that_of_the_group(planning: Planning, topic: str, writer: Writer) -> None:
    group = fresh("planned-group")
    writer.admin.alter_group_offsets(group, {TopicPartition(topic, 0): 33}).checked()
    planner = planning(subscribe=topic, start="stored|-5", group=group)
    assert at(planner.initial_offset()) == {0: 33, 1: 45}


def test_a_time_that_no_record_has_reached_is_an_error_unless_the_end_will_do(planning: Planning, topic: str) -> None:
    late = str(2**52)
    with pytest.raises(OptionError, match=f"No offset matched from request of topic-partition {topic}-0"):
        planning(subscribe=topic, startingTimestamp=late).initial_offset()
    at_the_end = planning(subscribe=topic, startingTimestamp=late, startingOffsetsByTimestampStrategy="latest")
    assert at(at_the_end.initial_offset()) == {0: 100, 1: 50}


def test_the_end_of_a_finished_batch_is_told_and_never_the_initial_offset(planning: Planning, topic: str) -> None:
    told: list[Offset] = []
    planner = planning(subscribe=topic, startingOffsets="earliest", finished=told.append)
    end = planner.latest_offset(planner.initial_offset(), None)
    assert told == []
    planner.latest_offset(end, None)
    assert told == [Offset.parse(end)]


def test_the_heads_are_reported_for_the_progress(planning: Planning, topic: str) -> None:
    planner = planning(subscribe=topic, startingOffsets="earliest")
    assert planner.reported_offset() is None
    planner.latest_offset(planner.initial_offset(), 10)
    reported = planner.reported_offset()
    assert reported is not None
    assert at(reported) == {0: 100, 1: 50}


def test_a_broker_that_is_away_holds_up_nothing_and_is_asked_again(planning: Planning) -> None:
    with Broker() as broker:
        broker.fill("away", next=5)
        planner = planning(subscribe="away", startingOffsets="earliest", kafka_bootstrap_servers=broker.bootstrap)
        end = planner.latest_offset(planner.initial_offset(), None)
        broker.stop()
        assert planner.latest_offset(end, None) == end
        broker.start()
        other = Writer(broker.bootstrap)
        more(other, "away", 0, 3)
        other.close()
        deadline = time.monotonic() + PATIENCE_S
        while at(end := until_new(planner, end)) != {0: 8}:
            assert time.monotonic() < deadline, "the broker is asked again"


# -- what is gone


def test_a_topic_made_anew_is_an_error_that_names_both_ids(planning: Planning, topic: str, writer: Writer) -> None:
    before = planning(subscribe=topic, startingOffsets="earliest")
    end = before.latest_offset(before.initial_offset(), None)
    writer.admin.delete_topics([topic]).checked()
    writer.create(topic, 2)
    with pytest.raises(TopicRecreatedError, match=Offset.parse(end).ids[topic]):
        planning(subscribe=topic).latest_offset(end, None)


def test_a_running_query_notices_that_a_topic_was_made_anew(planning: Planning, topic: str, writer: Writer) -> None:
    planner = planning(subscribe=topic, startingOffsets="earliest")
    end = planner.latest_offset(planner.initial_offset(), None)
    writer.admin.delete_topics([topic]).checked()
    writer.create(topic, 2)
    with pytest.raises(TopicRecreatedError):
        until_new(planner, end)


@pytest.fixture
def expired(planning: Planning, topic: str, writer: Writer) -> dict[str, Any]:
    """The end of a batch whose next rows are deleted."""
    planner = planning(subscribe=topic, startingOffsets="earliest")
    end = planner.latest_offset(planner.initial_offset(), 30)
    writer.admin.delete_records({TopicPartition(topic, 0): 60})
    return end


def test_rows_that_were_deleted_fail_the_query_with_their_range(
    planning: Planning, topic: str, expired: dict[str, Any]
) -> None:
    with pytest.raises(DataLossError, match=rf"{topic}' partition 0: offsets \[20, 60\) are gone"):
        planning(subscribe=topic).latest_offset(expired, None)


def test_without_fail_on_data_loss_the_batch_goes_on_from_where_it_was(
    planning: Planning, topic: str, expired: dict[str, Any]
) -> None:
    """Its task finds out what is gone, and tells."""
    planner = planning(subscribe=topic, failOnDataLoss="false")
    assert ranges(planner, expired, planner.latest_offset(expired, None)) == [(0, 20, 100), (1, 10, 50)]


def test_a_partition_that_is_gone_fails_the_query_or_is_left_out(
    planning: Planning, topic: str, broker: Broker, writer: Writer
) -> None:
    other = f"{topic}-other"
    writer.create(other, 1)
    broker.fill(other, 0, next=5)
    pattern = {"subscribePattern": f"{topic}.*", "startingOffsets": "earliest"}
    planner = planning(**pattern)
    end = planner.latest_offset(planner.initial_offset(), None)
    writer.admin.delete_topics([other]).checked()
    more(writer, topic, 0, 1)
    with pytest.raises(DataLossError, match="partition is not there any more"):
        planning(**pattern).latest_offset(end, None)
    goes_on = planning(**pattern, failOnDataLoss="false")
    assert Offset.parse(goes_on.latest_offset(end, None)).at[TopicPartition(topic, 0)] == 101
