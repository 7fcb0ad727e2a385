"""The group APIs in every version: old forms, and what is said while groups are being loaded."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.broker.group_talk import (
    begin_join,
    commit,
    commit_request,
    fetch,
    join_request,
    list_groups,
    old_fetch_request,
    stable_member,
    sync_request,
)
from tests.unit.broker.talk import ALL, PRODUCE_BY_NAME, batch, create, produce_request

from lowwater.errors import ErrorCode
from lowwater.testing.virtual_time import VirtualBroker
from lowwater.wire.messages import (
    API,
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    CreatePartitionsRequest,
    DeleteGroupsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    IncrementalAlterConfigsRequest,
    LeaveGroupRequest,
    ListConfigResourcesRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
)
from lowwater.wire.messages.create_partitions import CreatePartitionsTopic
from lowwater.wire.messages.describe_configs import DescribeConfigsResource
from lowwater.wire.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from lowwater.wire.messages.leave_group import MemberIdentity
from lowwater.wire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from lowwater.wire.messages.offset_delete import OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from lowwater.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics

OK = ErrorCode.NONE
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
OFFSETS = "__consumer_offsets"
ON_GROUPS = 3400  # as Apache Kafka 4.3 tells
GROUP = 32


@pytest.fixture
def broker() -> VirtualBroker:
    started = VirtualBroker({"group.initial.rebalance.delay.ms": "0"})
    create(started, "t", 3)
    return started


def versions(key: int) -> range:
    return range(API[key].version_min, API[key].version_max + 1)


# -- OffsetCommit, OffsetFetch


@pytest.mark.parametrize("version", versions(8))
def test_every_version_commits(broker: VirtualBroker, version: int) -> None:
    topic = broker.broker.topics.get("t")
    assert topic is not None
    part = OffsetCommitRequestPartition(
        partition_index=1, committed_offset=5, committed_leader_epoch=3, committed_metadata="note"
    )
    topics = [OffsetCommitRequestTopic(name="t", topic_id=topic.id, partitions=[part])]
    answer = broker.ask(OffsetCommitRequest(group_id="g", topics=topics), version)
    assert [one.error_code for one in answer.topics[0].partitions] == [OK]
    assert answer.topics[0].topic_id == (topic.id if version >= 10 else bytes(16))
    assert fetch(broker, "g", index=1) == 5


@pytest.mark.parametrize("version", versions(9))
def test_every_version_fetches(broker: VirtualBroker, version: int) -> None:
    topic = broker.broker.topics.get("t")
    assert topic is not None
    request = commit_request("g", 5)
    request.topics[0].partitions[0].committed_leader_epoch = 3
    request.topics[0].partitions[0].committed_metadata = "note"
    broker.ask(request, 9)
    if version < 8:
        answer = broker.ask(old_fetch_request("g", [0, 1]), version)
        assert answer.error_code == OK
    else:
        topics = [OffsetFetchRequestTopics(name="t", topic_id=topic.id, partition_indexes=[0, 1])]
        whole = broker.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)]), version)
        [answer] = whole.groups
    first, second = answer.topics[0].partitions
    assert (first.committed_offset, first.metadata, first.error_code) == (5, "note", OK)
    assert first.committed_leader_epoch == (3 if version >= 5 else -1)
    assert (second.committed_offset, second.metadata, second.error_code) == (-1, "", OK)


@pytest.mark.parametrize("version", [version for version in versions(9) if version >= 2])
def test_everything_is_fetched_when_no_topics_are_named(broker: VirtualBroker, version: int) -> None:
    commit(broker, "g", 5, index=0)
    commit(broker, "g", 6, index=2)
    if version < 8:
        answer = broker.ask(OffsetFetchRequest(group_id="g", topics=None), version)
    else:
        groups = [OffsetFetchRequestGroup(group_id="g", topics=None)]
        [answer] = broker.ask(OffsetFetchRequest(groups=groups), version).groups
    [topic] = answer.topics
    assert {one.partition_index: one.committed_offset for one in topic.partitions} == {0: 5, 2: 6}


def test_many_groups_are_fetched_at_once(broker: VirtualBroker) -> None:
    for number in range(3):
        commit(broker, f"g{number}", number)
    groups = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in ("g2", "none", "g0")]
    answer = broker.ask(OffsetFetchRequest(groups=groups))
    assert [group.group_id for group in answer.groups] == ["g2", "none", "g0"]
    assert [len(group.topics) for group in answer.groups] == [1, 0, 1]


@pytest.mark.parametrize(("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_member_of_no_group_gets_the_error_its_version_knows(
    broker: VirtualBroker, version: int, code: ErrorCode
) -> None:
    request = commit_request("g", 5, member_id="m", generation_id_or_member_epoch=3)
    assert broker.ask(request, version).topics[0].partitions[0].error_code == code


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_retention_of_the_client_is_kept(broker: VirtualBroker, version: int) -> None:
    broker.ask(commit_request("g", 5, retention_time_ms=60_000), version)
    broker.time.advance(10 * 60_000)
    assert fetch(broker, "g") == -1


def test_a_commit_of_nothing_makes_no_group(broker: VirtualBroker) -> None:
    assert broker.ask(OffsetCommitRequest(group_id="g", topics=[]), 9).topics == []
    assert list_groups(broker) == {}


# -- membership


@pytest.mark.parametrize("version", versions(11))
def test_every_version_joins(broker: VirtualBroker, version: int) -> None:
    asked = begin_join(broker, "g", version)
    broker.time.settle()
    first = asked.response
    if version >= 4:
        assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
        first = broker.ask(join_request("g", first.member_id), version)
    assert first.error_code == OK
    assert first.leader == first.member_id
    assert [one.member_id for one in first.members] == [first.member_id]
    assert (first.generation_id, first.protocol_name) == (1, "range")
    assert first.protocol_type == ("consumer" if version >= 7 else None)


@pytest.mark.parametrize("version", versions(11))
def test_a_refused_join_names_the_member_in_every_version(broker: VirtualBroker, version: int) -> None:
    answer = broker.ask(join_request("g", "stranger"), version)
    assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "stranger")


def test_before_version_1_the_session_timeout_is_that_of_rebalances(broker: VirtualBroker) -> None:
    first = broker.ask(join_request("g"), 0)
    broker.ask(sync_request("g", first.member_id, 1, first.member_id), 0)
    second = begin_join(broker, "g", 0)
    broker.time.advance(9_000)
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id=first.member_id)
    assert broker.ask(request).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    broker.time.advance(1_000)
    assert second.response.error_code == OK, "the other member did not join again within its 10 seconds"


@pytest.mark.parametrize("version", versions(14))
def test_every_version_syncs(broker: VirtualBroker, version: int) -> None:
    joined = broker.ask(join_request("g"), 3)
    request = sync_request("g", joined.member_id, joined.generation_id, joined.member_id)
    request.protocol_type, request.protocol_name = "consumer", "range"
    answer = broker.ask(request, version)
    assert (answer.error_code, answer.assignment) == (OK, b"a:" + joined.member_id.encode())


def test_a_sync_that_can_name_its_protocol_has_to(broker: VirtualBroker) -> None:
    joined = broker.ask(join_request("g"), 3)
    answer = broker.ask(sync_request("g", joined.member_id, joined.generation_id), 5)
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", versions(13))
def test_every_version_leaves(broker: VirtualBroker, version: int) -> None:
    member_id, _ = stable_member(broker, "g")
    for expected in (OK, ErrorCode.UNKNOWN_MEMBER_ID):
        if version < 3:
            request = LeaveGroupRequest(group_id="g", member_id=member_id)
        else:
            request = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=member_id)])
        answer = broker.ask(request, version)
        if version < 3:
            assert answer.error_code == expected
        else:
            assert answer.error_code == OK
            assert [one.error_code for one in answer.members] == [expected]
    assert list_groups(broker) == {"g": "Empty"}


@pytest.mark.parametrize("version", versions(12))
def test_every_version_beats(broker: VirtualBroker, version: int) -> None:
    member_id, generation = stable_member(broker, "g")
    request = HeartbeatRequest(group_id="g", generation_id=generation, member_id=member_id)
    assert broker.ask(request, version).error_code == OK


@pytest.mark.parametrize("version", versions(68))
def test_every_version_joins_a_consumer_group(broker: VirtualBroker, version: int) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="" if version == 0 else "m",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    answer = broker.ask(request, version)
    assert answer.error_code == OK
    assert answer.member_id
    [described] = broker.ask(ConsumerGroupDescribeRequest(group_ids=["g"], include_authorized_operations=True)).groups
    assert (described.error_code, described.authorized_operations) == (OK, ON_GROUPS)
    [member] = described.members
    assert (member.member_id, member.client_host) == (answer.member_id, "/127.0.0.1")
    assert sorted(member.assignment.topic_partitions[0].partitions) == [0, 1, 2]


def test_a_group_can_have_times_of_its_own(broker: VirtualBroker) -> None:
    def heartbeat(epoch: int = 0) -> Any:
        joins = epoch == 0
        return broker.ask(
            ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id="m",
                member_epoch=epoch,
                rebalance_timeout_ms=60_000 if joins else -1,
                subscribed_topic_names=["t"] if joins else None,
                topic_partitions=[] if joins else None,
            )
        )

    def alter(name: str, value: str | None, group: str = "g") -> ErrorCode:
        config = AlterableConfig(name=name, config_operation=0 if value else 1, value=value)
        resource = AlterConfigsResource(resource_type=GROUP, resource_name=group, configs=[config])
        return ErrorCode(broker.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses[0].error_code)

    assert heartbeat().heartbeat_interval_ms == 5_000
    assert alter("consumer.heartbeat.interval.ms", "7000") == OK
    assert heartbeat(heartbeat().member_epoch).heartbeat_interval_ms == 7_000
    assert alter("consumer.heartbeat.interval.ms", "1") == ErrorCode.INVALID_CONFIG
    assert alter("consumer.session.timeout.ms", "61000") == ErrorCode.INVALID_CONFIG
    assert alter("consumer.no.such", "1") == ErrorCode.INVALID_CONFIG
    assert alter("consumer.heartbeat.interval.ms", "7000", group="") == ErrorCode.INVALID_REQUEST
    broker.kill()
    broker.start()
    broker.time.settle()
    asked = DescribeConfigsResource(resource_type=GROUP, resource_name="g", configuration_keys=None)
    [result] = broker.ask(DescribeConfigsRequest(resources=[asked], include_synonyms=True)).results
    told = {one.name: (one.value, one.config_source) for one in result.configs}
    assert told["consumer.heartbeat.interval.ms"] == ("7000", 8)
    assert told["consumer.session.timeout.ms"] == ("45000", 5)
    listed = broker.ask(ListConfigResourcesRequest(resource_types=[GROUP])).config_resources
    assert [one.resource_name for one in listed] == ["g"]
    assert alter("consumer.heartbeat.interval.ms", None) == OK
    assert broker.ask(ListConfigResourcesRequest(resource_types=[GROUP])).config_resources == []


# -- administration


@pytest.mark.parametrize("version", versions(15))
def test_every_version_describes(broker: VirtualBroker, version: int) -> None:
    member_id, _ = stable_member(broker, "g")
    request = DescribeGroupsRequest(groups=["g", "none"], include_authorized_operations=version >= 3)
    found, unknown = broker.ask(request, version).groups
    assert (found.group_state, found.protocol_type, found.protocol_data) == ("Stable", "consumer", "range")
    [member] = found.members
    assert (member.member_id, member.client_id, member.client_host) == (member_id, "virtual", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (b"m", b"a:" + member_id.encode())
    assert (unknown.group_state, unknown.error_code) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else OK)
    if version >= 3:
        assert found.authorized_operations == ON_GROUPS


@pytest.mark.parametrize("version", versions(16))
def test_every_version_lists(broker: VirtualBroker, version: int) -> None:
    stable_member(broker, "g")
    commit(broker, "h", 1)
    request = ListGroupsRequest(
        states_filter=["Stable"] if version >= 4 else [], types_filter=["classic"] if version >= 5 else []
    )
    groups = {one.group_id: one.protocol_type for one in broker.ask(request, version).groups}
    assert groups == ({"g": "consumer"} if version >= 4 else {"g": "consumer", "h": ""})


@pytest.mark.parametrize("version", versions(42))
def test_every_version_deletes_groups_each_by_itself(broker: VirtualBroker, version: int) -> None:
    commit(broker, "a", 1)
    stable_member(broker, "b")
    answer = broker.ask(DeleteGroupsRequest(groups_names=["a", "b", "c"]), version)
    codes = {one.group_id: one.error_code for one in answer.results}
    assert codes == {"a": OK, "b": ErrorCode.NON_EMPTY_GROUP, "c": ErrorCode.GROUP_ID_NOT_FOUND}
    assert list_groups(broker) == {"b": "Stable"}


# -- while groups are being loaded

PARTS = [OffsetDeleteRequestPartition(partition_index=0)]
HEARTBEAT = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=1)
WHILE_LOADING = [
    (commit_request("g", 5), 9, lambda answer: answer.topics[0].partitions[0].error_code),
    (
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)]),
        9,
        lambda answer: answer.groups[0].error_code,
    ),
    (old_fetch_request("g"), 7, lambda answer: answer.error_code),
    (old_fetch_request("g"), 1, lambda answer: answer.topics[0].partitions[0].error_code),
    (join_request("g"), 9, lambda answer: answer.error_code),
    (LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m")]), 5, lambda answer: answer.error_code),
    (LeaveGroupRequest(group_id="g", member_id="m"), 2, lambda answer: answer.error_code),
    (DescribeGroupsRequest(groups=["g"]), 6, lambda answer: answer.groups[0].error_code),
    (DescribeGroupsRequest(groups=["g"]), 0, lambda answer: answer.groups[0].error_code),
    (ListGroupsRequest(), 5, lambda answer: answer.error_code),
    (DeleteGroupsRequest(groups_names=["g"]), 2, lambda answer: answer.results[0].error_code),
    (
        OffsetDeleteRequest(group_id="g", topics=[OffsetDeleteRequestTopic(name="t", partitions=PARTS)]),
        0,
        lambda answer: answer.error_code,
    ),
    (HEARTBEAT, 1, lambda answer: answer.error_code),
    (ConsumerGroupDescribeRequest(group_ids=["g"]), 1, lambda answer: answer.groups[0].error_code),
]


@pytest.mark.parametrize(
    ("request_", "version", "code_of"),
    WHILE_LOADING,
    ids=[f"{type(one[0]).__name__} v{one[1]}" for one in WHILE_LOADING],
)
def test_every_api_says_that_groups_are_being_loaded(
    broker: VirtualBroker, request_: Any, version: int, code_of: Any
) -> None:
    commit(broker, "g", 5)
    broker.kill()
    broker.start()
    assert code_of(broker.send(request_, version).response) == LOADING


@pytest.mark.parametrize(
    ("request_", "version", "code"),
    [
        (HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4, OK),
        (sync_request("g", "m", 1), 3, ErrorCode.REBALANCE_IN_PROGRESS),
    ],
)
def test_members_of_groups_that_are_being_loaded_are_told_what_they_can_bear(
    broker: VirtualBroker, request_: Any, version: int, code: ErrorCode
) -> None:
    """aiokafka and Java's client give up for good when these two are answered with the code of the others."""
    commit(broker, "g", 5)
    broker.kill()
    broker.start()
    assert broker.send(request_, version).response.error_code == code


# -- the internal topic and clients


@pytest.mark.parametrize(("client_id", "code"), [("anyone", ErrorCode.INVALID_TOPIC_EXCEPTION), ("__admin_client", OK)])
def test_clients_do_not_write_to_the_internal_topic(broker: VirtualBroker, client_id: str, code: ErrorCode) -> None:
    commit(broker, "g", 5)
    request = produce_request({(OFFSETS, 0): batch(broker, b"v")}, acks=ALL)
    asked = broker.send(request, PRODUCE_BY_NAME, client_id=client_id)
    broker.time.settle()
    assert asked.response.responses[0].partition_responses[0].error_code == code


def test_the_internal_topic_does_not_grow(broker: VirtualBroker) -> None:
    commit(broker, "g", 5)
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=OFFSETS, count=5, assignments=None)], timeout_ms=1000
    )
    assert broker.ask(request).results[0].error_code == ErrorCode.INVALID_PARTITIONS
