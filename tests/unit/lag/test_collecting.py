"""What is asked of a cluster, part of which may be away; on virtual time."""

from __future__ import annotations

from typing import Any

from tests.unit.client.test_admin import A, B, World
from tests.unit.client.virtual import Asked, refused

from lowwater.errors import ErrorCode
from lowwater.lag.collecting import Observer, report
from lowwater.lag.report import Problem
from lowwater.lag.rules import Status
from lowwater.wire.messages import (
    ConsumerGroupDescribeResponse,
    DescribeGroupsResponse,
    FetchResponse,
    FindCoordinatorResponse,
    ListGroupsResponse,
    ListOffsetsResponse,
    OffsetFetchResponse,
)
from lowwater.wire.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from lowwater.wire.messages.describe_groups import DescribedGroup
from lowwater.wire.messages.fetch import FetchableTopicResponse, PartitionData
from lowwater.wire.messages.find_coordinator import Coordinator
from lowwater.wire.messages.list_groups import ListedGroup
from lowwater.wire.messages.list_offsets import ListOffsetsPartitionResponse, ListOffsetsTopicResponse
from lowwater.wire.messages.offset_fetch import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from lowwater.wire.records import Record, build_batch

LATEST, END = -1, 10


class Cluster:
    """Two brokers, each with a partition of `t` that has ten records; the n-th of time n. `g` has read both to 7."""

    def __init__(self) -> None:
        self.committed = {"g": {0: 7, 1: 7}}
        self.nodes = {"g": 1}
        self.world = World(
            FindCoordinator=self._coordinators,
            ListGroups=self._listed,
            OffsetFetch=self._offsets,
            ConsumerGroupDescribe=self._newer,
            DescribeGroups=self._described,
            ListOffsets=self._bounds,
            Fetch=self._records,
        )

    def _coordinators(self, asked: Asked) -> Any:
        wanted = asked.request.coordinator_keys
        found = [Coordinator(key=each, node_id=self.nodes[each], host="", port=0) for each in wanted]
        return FindCoordinatorResponse(coordinators=found)

    def _listed(self, asked: Asked) -> Any:
        node = 1 if asked.line.address == A else 2
        mine = [group for group, home in self.nodes.items() if home == node]
        return ListGroupsResponse(
            groups=[
                ListedGroup(group_id=each, protocol_type="consumer", group_state="Empty", group_type="classic")
                for each in mine
            ]
        )

    def _offsets(self, asked: Asked) -> Any:
        return OffsetFetchResponse(groups=[self._offsets_of(each.group_id) for each in asked.request.groups])

    def _offsets_of(self, group: str) -> Any:
        partitions = [
            OffsetFetchResponsePartitions(partition_index=each, committed_offset=offset, metadata="")
            for each, offset in self.committed[group].items()
        ]
        topics = [OffsetFetchResponseTopics(name="t", partitions=partitions)]
        return OffsetFetchResponseGroup(group_id=group, topics=topics)

    def _newer(self, asked: Asked) -> Any:
        return ConsumerGroupDescribeResponse(
            groups=[
                DescribedConsumerGroup(
                    error_code=ErrorCode.GROUP_ID_NOT_FOUND, group_id=each, group_state="", group_epoch=0,
                    assignment_epoch=0, assignor_name="", members=[],
                )
                for each in asked.request.group_ids
            ]
        )  # fmt: skip

    def _described(self, asked: Asked) -> Any:
        return DescribeGroupsResponse(
            groups=[
                DescribedGroup(group_id=each, group_state="Empty", protocol_type="", protocol_data="", members=[])
                for each in asked.request.groups
            ]
        )

    def _bounds(self, asked: Asked) -> Any:
        [topic] = asked.request.topics
        partitions = [
            ListOffsetsPartitionResponse(
                partition_index=each.partition_index, offset=END if each.timestamp == LATEST else 0
            )
            for each in topic.partitions
        ]
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=partitions)])

    def _records(self, asked: Asked) -> Any:
        [topic] = asked.request.topics
        batch = bytes(build_batch([Record(offset, offset, b"k", b"v") for offset in range(END)]))
        partitions = [
            PartitionData(
                partition_index=each.partition, high_watermark=END, last_stable_offset=END, log_start_offset=0,
                records=batch if each.fetch_offset < END else b"",
            )
            for each in topic.partitions
        ]  # fmt: skip
        return FetchResponse(responses=[FetchableTopicResponse(topic_id=topic.topic_id, partitions=partitions)])


def test_both_brokers_are_asked_once_each() -> None:
    cluster = Cluster()
    found = cluster.world.do(report(cluster.world.cluster, ["g"]))
    group = found.groups["g"]
    assert (group.lag, group.unknown, found.faults) == (6, 0, ())
    assert {one.time_lag_ms for one in group.partitions} == {found.at_ms - 7}
    assert len(cluster.world.asked("Fetch")) == 2
    assert len(cluster.world.asked("ListOffsets")) == 4
    assert len(cluster.world.asked("OffsetFetch")) == 1


def test_a_broker_that_is_away_is_named_and_the_rest_is_known() -> None:
    cluster = Cluster()
    cluster.world.driver.unreachable[B] = refused(B)
    found = cluster.world.do(report(cluster.world.cluster, ["g"]), 400_000)
    first, second = found.groups["g"].partitions
    assert (first.lag, first.time_lag_ms) == (3, found.at_ms - 7)
    assert (second.committed, second.lag, second.end, second.status) == (7, None, None, Status.UNKNOWN)
    assert second.problem is Problem.UNREACHABLE
    assert (found.groups["g"].lag, found.groups["g"].unknown) == (3, 1)
    [fault] = found.faults
    assert fault.where == "broker 2"
    assert "b:2 refuses connections" in fault.what
    assert found.is_wrong


def test_a_coordinator_that_is_away_leaves_the_other_groups() -> None:
    cluster = Cluster()
    cluster.nodes["h"], cluster.committed["h"] = 2, {0: 9}
    cluster.world.driver.unreachable[B] = refused(B)
    found = cluster.world.do(report(cluster.world.cluster, ["g", "h"]), 400_000)
    assert found.groups["g"].partitions[0].lag == 3
    away = found.groups["h"]
    assert (away.lag, away.status, away.state, away.members) == (None, Status.UNKNOWN, None, None)
    assert "b:2 refuses connections" in (away.fault or "")
    assert {fault.where for fault in found.faults} == {"broker 2", "group h"}


def test_groups_of_a_broker_that_is_away_are_not_listed_and_that_is_told() -> None:
    cluster = Cluster()
    cluster.nodes["h"], cluster.committed["h"] = 2, {0: 9}
    cluster.world.driver.unreachable[B] = refused(B)
    found = cluster.world.do(report(cluster.world.cluster), 400_000)
    assert list(found.groups) == ["g"]
    assert "broker 2" in {fault.where for fault in found.faults}


def test_what_does_not_change_is_not_asked_twice() -> None:
    cluster = Cluster()
    observer = Observer(cluster.world.cluster)
    for _ in range(3):
        cluster.world.do(observer.observe(["g"]))
    assert len(cluster.world.asked("Fetch")) == 2
    cluster.committed["g"] = {0: 8, 1: 7}
    found = cluster.world.do(observer.observe(["g"]))
    assert len(cluster.world.asked("Fetch")) == 3
    assert sorted(stamp.timestamp_ms for stamp in found.next_records.values()) == [7, 8]


def test_groups_are_forgotten_when_all_brokers_have_told_theirs() -> None:
    cluster = Cluster()
    observer = Observer(cluster.world.cluster)
    assert observer._log is not None
    observer._log._told_up_to = {"g": 5, "h": 5}
    cluster.world.driver.unreachable[B] = refused(B)
    assert not cluster.world.do(observer.observe(), 400_000).is_all
    del cluster.world.driver.unreachable[B]
    assert not cluster.world.do(observer.observe(["g"]), 400_000).is_all
    assert observer._log._told_up_to == {"g": 5, "h": 5}
    assert cluster.world.do(observer.observe(), 400_000).is_all
    assert observer._log._told_up_to == {"g": 5}


def test_groups_without_members_are_not_described_when_they_are_listed() -> None:
    cluster = Cluster()
    cluster.world.do(report(cluster.world.cluster))
    assert cluster.world.asked("DescribeGroups") == []
    assert cluster.world.asked("ConsumerGroupDescribe") == []


def test_a_topic_that_is_gone_is_not_waited_for() -> None:
    cluster = Cluster()
    cluster.world.leaders = {}
    found = cluster.world.do(report(cluster.world.cluster, ["g"]))
    assert [one.problem for one in found.groups["g"].partitions] == [Problem.TOPIC_GONE] * 2
    assert cluster.world.asked("ListOffsets") == []
    assert not found.is_wrong
