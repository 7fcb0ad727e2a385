"""A group's offsets follow a query's checkpoint: with a real broker, by the calls that Spark makes and in its order."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place
from kafka import KafkaConsumer
from kafka import TopicPartition as OtherPlace
from tests.fresh import fresh
from tests.integration.spark.conftest import Planning
from tests.reader.writing import Writer

from lowwater.errors import ErrorCode
from lowwater.spark import following
from lowwater.spark.commits import note
from lowwater.spark.following import GroupInUseError, commit_finished
from lowwater.spark.offsets import Offset
from lowwater.spark.options import SourceOptions
from lowwater.spark.stream_planner import StreamPlanner
from lowwater.testing import Broker

PATIENCE_S = 60


@pytest.fixture
def topic(broker: Broker, writer: Writer) -> str:
    """Two partitions of 100 and 50 rows."""
    name = fresh("followed")
    writer.create(name, 2)
    broker.fill(name, 0, next=100)
    broker.fill(name, 1, next=50)
    return name


@pytest.fixture
def group(topic: str) -> str:
    return f"{topic}-group"


@pytest.fixture
def committed(broker: Broker, topic: str, group: str) -> Callable[[], dict[int, int]]:
    """What another client says that the group has committed, by partition."""

    def ask() -> dict[int, int]:
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
        try:
            found = consumer.committed([Place(topic, 0), Place(topic, 1)], PATIENCE_S)
        finally:
            consumer.close()
        return {one.partition: one.offset for one in found if one.offset >= 0}

    return ask


@pytest.fixture
def query(planning: Planning, topic: str, group: str) -> Callable[..., StreamPlanner]:
    def make(**more: Any) -> StreamPlanner:
        return planning(**{"subscribe": topic, "group": group, "startingOffsets": "earliest"} | more)

    return make


def batch(planner: StreamPlanner, start: dict[str, Any], limit: int | None = None) -> dict[str, Any]:
    """The end of the next batch, which is then finished."""
    end = planner.latest_offset(start, limit)
    assert end != start
    return end


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.02)


# -- when


def test_a_batch_is_committed_when_the_next_one_is_planned(query, committed) -> None:
    planner = query()
    first = batch(planner, planner.initial_offset(), 30)
    assert committed() == {}
    batch(planner, first, 30)
    wait_for(lambda: committed() == {0: 20, 1: 10})


def test_the_initial_offset_is_never_committed(query, committed) -> None:
    """It could take a group back that others have led far."""
    planner = query(startingOffsets="latest")
    planner.stop_at_what_is_there()
    start = planner.initial_offset()
    assert planner.latest_offset(start, None) == start  # which waits for commits
    again = query()
    again.stop_at_what_is_there()
    again.latest_offset(start, 0)
    assert committed() == {}


def test_the_last_batch_of_an_available_now_query_is_committed_before_it_ends(query, committed, broker) -> None:
    planner = query()
    planner.stop_at_what_is_there()
    end = batch(planner, planner.initial_offset())
    broker.faults.delay("OffsetCommit", 300)
    assert planner.latest_offset(end, None) == end  # the last that Spark asks: nothing comes after it
    assert committed() == {0: 100, 1: 50}


def test_a_batch_that_was_not_committed_is_at_the_next_start(query, committed) -> None:
    """Of `once` Spark says nothing any more when its batch is done."""
    before = query()
    end = batch(before, before.initial_offset())
    before.close()
    assert committed() == {}
    after = query()
    after.stop_at_what_is_there()
    after.latest_offset(end, None)
    assert committed() == {0: 100, 1: 50}


def test_a_query_with_no_group_commits_nothing(planning, topic, broker) -> None:
    planner = planning(subscribe=topic, startingOffsets="earliest")
    broker.faults.fail("OffsetCommit", ErrorCode.INVALID_GROUP_ID)
    planner.stop_at_what_is_there()
    end = batch(planner, planner.initial_offset())
    planner.latest_offset(end, None)
    assert broker.faults.left("OffsetCommit") == 1
    broker.faults.clear()


def test_commit_offsets_false_starts_from_the_group_alone(query, committed, writer, topic, group, planning) -> None:
    leads = query()
    leads.stop_at_what_is_there()
    end = batch(leads, leads.initial_offset(), 30)
    leads.latest_offset(end, 0)
    wait_for(lambda: committed() == {0: 20, 1: 10})
    planner = planning(subscribe=topic, group=group, commitOffsets="false")
    planner.stop_at_what_is_there()
    start = planner.initial_offset()
    assert sorted(Offset.parse(start).at.values()) == [10, 20]
    end = batch(planner, start)
    planner.latest_offset(end, None)
    assert committed() == {0: 20, 1: 10}


def test_the_same_offset_is_committed_once(query, committed, broker) -> None:
    planner = query()
    end = batch(planner, planner.initial_offset(), 30)
    planner.latest_offset(end, 30)
    wait_for(lambda: committed() == {0: 20, 1: 10})
    broker.faults.fail("OffsetCommit", ErrorCode.INVALID_GROUP_ID)
    for _ in range(5):
        planner.latest_offset(end, 30)
    assert broker.faults.left("OffsetCommit") == 1
    broker.faults.clear()


def test_whoever_hears_of_a_finished_batch_may_commit_it(query, committed, options, topic, group) -> None:
    given: SourceOptions = options(subscribe=topic, group=group)
    planner = query()
    start = planner.initial_offset()
    assert not commit_finished(given, start)
    assert commit_finished(given, batch(planner, start))
    assert committed() == {0: 100, 1: 50}
    assert not commit_finished(options(subscribe=topic, group=group, commitOffsets="false"), batch(planner, start))


# -- whose


def test_a_commit_says_which_query_made_it(query, broker, group, topic) -> None:
    planner = query()
    planner.stop_at_what_is_there()
    end = batch(planner, planner.initial_offset())
    planner.latest_offset(end, None)
    lineage = Offset.parse(end).lineage
    assert lineage is not None
    reader = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=group, enable_auto_commit=False)
    found = [reader.committed(OtherPlace(topic, partition), metadata=True) for partition in (0, 1)]
    reader.close()
    assert [(each.offset, each.metadata) for each in found] == [(100, note(lineage)), (50, note(lineage))]


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    with caplog.at_level(logging.WARNING, "lowwater.spark"):
        yield lambda: [record.getMessage() for record in caplog.records if record.name == "lowwater.spark"]


def test_two_queries_of_one_group_are_told_of_each_other(query, warnings) -> None:
    first, second = query(), query()
    ends = [batch(each, each.initial_offset(), 30) for each in (first, second)]
    one, other = (Offset.parse(end).lineage for end in ends)
    first.latest_offset(ends[0], 30)
    first.stop_at_what_is_there()
    second.stop_at_what_is_there()
    first.latest_offset(ends[0], 0)
    assert warnings() == []
    second.latest_offset(ends[1], 0)
    wait_for(lambda: len(warnings()) == 1)
    [warning] = warnings()
    assert str(one) in warning
    assert str(other) in warning


def test_an_old_copy_of_a_query_does_not_take_its_group_back(query, committed) -> None:
    planner = query()
    first = batch(planner, planner.initial_offset(), 30)
    second = batch(planner, first, 30)
    planner.stop_at_what_is_there()
    planner.latest_offset(second, 0)
    wait_for(lambda: committed() == {0: 40, 1: 20})
    stale = query()
    stale.stop_at_what_is_there()
    stale.latest_offset(first, 0)
    assert committed() == {0: 40, 1: 20}


# -- groups that have members


@pytest.fixture(params=["classic", "consumer"])
def member(request: pytest.FixtureRequest, broker: Broker, topic: str, group: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "group.protocol": request.param,
            "client.id": "somebody",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    deadline = time.monotonic() + PATIENCE_S
    while not consumer.assignment():
        assert time.monotonic() < deadline
        consumer.poll(0.1)
    yield consumer
    consumer.close()


def test_a_group_with_members_is_refused_by_name(query, group, member) -> None:
    with pytest.raises(GroupInUseError, match=rf"group '{group}' has members \(somebody at "):
        query().initial_offset()


def test_also_when_the_query_goes_on_from_a_checkpoint(query, planning, topic, member) -> None:
    planner = planning(subscribe=topic, startingOffsets="earliest")
    end = batch(planner, planner.initial_offset(), 30)
    with pytest.raises(GroupInUseError):
        query().latest_offset(end, 30)


def test_a_query_that_does_not_commit_does_not_mind_members(query, member) -> None:
    assert query(commitOffsets="false").initial_offset()


# -- commits that fail


def test_a_commit_that_is_refused_warns_and_the_query_goes_on(query, warnings, broker) -> None:
    planner = query()
    end = batch(planner, planner.initial_offset(), 30)
    broker.faults.fail("OffsetCommit", ErrorCode.UNKNOWN_MEMBER_ID)
    end = batch(planner, end, 30)
    wait_for(lambda: len(warnings()) == 1)
    assert "offsets were not committed, the query goes on" in warnings()[0]
    batch(planner, end, 30)


def test_the_next_commit_says_it_all(query, committed, warnings, broker) -> None:
    planner = query()
    first = batch(planner, planner.initial_offset(), 30)
    broker.faults.fail("OffsetCommit", ErrorCode.UNKNOWN_MEMBER_ID)
    second = batch(planner, first, 30)
    wait_for(lambda: len(warnings()) == 1)
    planner.latest_offset(second, 30)
    wait_for(lambda: committed() == {0: 40, 1: 20})


def test_a_coordinator_that_is_down_for_a_while_holds_nothing_up(query, committed, broker) -> None:
    planner = query()
    first = batch(planner, planner.initial_offset(), 30)
    broker.faults.fail("OffsetFetch", ErrorCode.COORDINATOR_NOT_AVAILABLE, times=3)
    broker.faults.drop("OffsetCommit", times=2)
    second = batch(planner, first, 30)
    third = batch(planner, second, 30)
    planner.latest_offset(third, 30)
    wait_for(lambda: not broker.faults.left("OffsetFetch") and not broker.faults.left("OffsetCommit"))
    wait_for(lambda: committed() == {0: 60, 1: 30})


def test_members_that_cannot_be_asked_for_are_told_and_trusted(query, warnings, broker) -> None:
    broker.faults.fail("ConsumerGroupDescribe", ErrorCode.GROUP_AUTHORIZATION_FAILED)
    assert query().initial_offset()
    [warning] = warnings()
    assert "has members cannot be found out" in warning


def test_a_partition_that_is_gone_does_not_hold_up_the_others(
    query, committed, warnings, planning, writer, topic, group
) -> None:
    other = f"{topic}-other"
    writer.create(other, 1)
    wide = {"subscribePattern": f"{topic}.*", "startingOffsets": "earliest", "failOnDataLoss": "false"}
    before = planning(**wide)
    end = batch(before, before.initial_offset())
    writer.admin.delete_topics([other]).checked()
    planner = planning(**wide, group=group)
    planner.stop_at_what_is_there()
    planner.latest_offset(end, None)
    wait_for(lambda: committed() == {0: 100, 1: 50})


def test_partitions_that_are_refused_are_tried_again_and_said_not_to_be_committed(
    query, committed, warnings, broker, monkeypatch
) -> None:
    """Other than those that are gone: they may be allowed later."""
    monkeypatch.setattr(following, "REST_MS", 0)
    planner = query()
    planner.stop_at_what_is_there()
    end = batch(planner, planner.initial_offset())
    broker.faults.fail("OffsetCommit", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    planner.latest_offset(end, None)  # the query ends, and waits for its commit
    assert committed() == {}
    assert "offsets were not committed, the query goes on" in warnings()[0]
    planner.latest_offset(end, None)
    assert committed() == {0: 100, 1: 50}


def test_what_is_refused_again_and_again_is_said_once(query, committed, warnings, broker, monkeypatch) -> None:
    monkeypatch.setattr(following, "REST_MS", 0)
    planner = query()
    planner.stop_at_what_is_there()
    end = batch(planner, planner.initial_offset())
    broker.faults.fail("OffsetCommit", ErrorCode.TOPIC_AUTHORIZATION_FAILED, times=3)
    for left in (2, 1, 0):
        planner.latest_offset(end, None)
        assert broker.faults.left("OffsetCommit") == left
    assert len(warnings()) == 1
    broker.faults.fail("OffsetCommit", ErrorCode.UNKNOWN_MEMBER_ID)
    planner.latest_offset(end, None)
    assert len(warnings()) == 2  # which is something else
    planner.latest_offset(end, None)
    assert committed() == {0: 100, 1: 50}
    assert len(warnings()) == 2


def test_who_commits_for_a_query_hears_that_partitions_were_refused(query, broker, options, topic, group) -> None:
    given: SourceOptions = options(subscribe=topic, group=group)
    planner = query()
    end = batch(planner, planner.initial_offset())
    broker.faults.fail("OffsetCommit", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert not commit_finished(given, end)
    assert commit_finished(given, end)
