"""ApiVersions, FindCoordinator, InitProducerId and the APIs that only describe. Codes are those of Apache Kafka 4.3."""

from __future__ import annotations

from struct import pack
from typing import Any

import pytest

from lowwater.broker.router import SERVED_APIS, Peer
from lowwater.errors import ErrorCode
from lowwater.wire.messages import (
    API,
    ApiVersionsRequest,
    CreateTopicsRequest,
    DescribeLogDirsRequest,
    DescribeProducersRequest,
    DescribeQuorumRequest,
    ElectLeadersRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    OffsetForLeaderEpochRequest,
)
from lowwater.wire.messages.create_topics import CreatableTopic
from lowwater.wire.messages.describe_log_dirs import DescribableLogDirTopic
from lowwater.wire.messages.describe_producers import TopicRequest
from lowwater.wire.messages.describe_quorum import QuorumPartition, QuorumTopic
from lowwater.wire.messages.elect_leaders import TopicPartitions
from lowwater.wire.messages.offset_for_leader_epoch import OffsetForLeaderPartition, OffsetForLeaderTopic

OK = ErrorCode.NONE
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def node(node: Any) -> Any:
    node.ask(CreateTopicsRequest(topics=[CreatableTopic(name="a", num_partitions=2, replication_factor=1)]))
    return node


# ---- ApiVersions


def versions(name: str = "tests", version: str = "1.0") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


@pytest.mark.parametrize("version", range(5))
def test_every_served_api_is_told_with_the_versions_of_its_messages(node: Any, version: int) -> None:
    told = {one.api_key: (one.min_version, one.max_version) for one in node.ask(versions(), version).api_keys}
    expected = {key: (API[key].version_min, API[key].version_max) for key in SERVED_APIS}
    # Older clients take the absence of Produce v0-2 for the absence of compression.
    assert told == expected | {0: (0, API[0].version_max)}


@pytest.mark.parametrize(("name", "version"), [("", "1"), ("x", ""), ("a b", "1"), ("x", "1 2"), ("-x", "1")])
def test_a_client_with_an_impossible_name_is_refused(node: Any, name: str, version: str) -> None:
    response = node.ask(versions(name, version), 3)
    assert (ErrorCode(response.error_code), response.api_keys) == (ErrorCode.INVALID_REQUEST, [])


def test_a_version_from_the_future_gets_a_v0_answer_with_the_versions_of_this_api(node: Any) -> None:
    frame = memoryview(bytearray(pack(">hhih", 18, 99, 7, 0) + b"whatever follows"))
    reply = b"".join(node.router.dispatch(frame, Peer("127.0.0.1", "PLAINTEXT")))
    # As Apache Kafka 4.3 sends it.
    assert reply.hex() == "0000001000000007002300000001001200000004"


# ---- FindCoordinator


@pytest.mark.parametrize("key_type", [0, 1])
def test_this_node_coordinates_every_group_and_transactional_id(node: Any, key_type: int) -> None:
    for version in (4, 5, 6):
        response = node.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["g1", ""]), version)
        assert [(one.key, one.node_id, one.host, one.port, one.error_code) for one in response.coordinators] == [
            ("g1", 1, "broker.example", 9092, 0),
            ("", 1, "broker.example", 9092, 0),
        ]
    for version in (1, 2, 3):
        response = node.ask(FindCoordinatorRequest(key_type=key_type, key="g1"), version)
        assert (response.node_id, response.host, response.port) == (1, "broker.example", 9092)


def test_v0_asks_for_groups(node: Any) -> None:
    assert node.ask(FindCoordinatorRequest(key="g1"), 0).node_id == 1


@pytest.mark.parametrize("key_type", [2, 3])
def test_other_kinds_of_keys_have_no_coordinator(node: Any, key_type: int) -> None:
    (one,) = node.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["g1"]), 6).coordinators
    assert (ErrorCode(one.error_code), one.node_id, one.host, one.port) == (ErrorCode.INVALID_REQUEST, -1, "", -1)
    old = node.ask(FindCoordinatorRequest(key_type=key_type, key="g1"), 3)
    assert (ErrorCode(old.error_code), old.node_id) == (ErrorCode.INVALID_REQUEST, -1)


# ---- InitProducerId


def init(node: Any, version: int = 5, **fields: Any) -> tuple[ErrorCode, int, int]:
    response = node.ask(InitProducerIdRequest(transaction_timeout_ms=1000, **fields), version)
    return ErrorCode(response.error_code), response.producer_id, response.producer_epoch


def test_each_producer_gets_an_id_of_its_own_also_after_a_restart(node: Any) -> None:
    assert init(node) == (OK, 0, 0)
    assert init(node, version=0) == (OK, 1, 0)
    assert init(node, producer_id=1, producer_epoch=3) == (OK, 2, 0)
    node.restart()
    assert init(node) == (OK, 1000, 0)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"producer_id": 5}, ErrorCode.INVALID_REQUEST),
        ({"producer_epoch": 5}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_producers_that_cannot_be_served_get_no_id(node: Any, fields: dict[str, Any], code: ErrorCode) -> None:
    assert init(node, **fields) == (code, -1, -1)


# ---- DescribeLogDirs


def log_dirs(node: Any, topics: dict[str, list[int]] | None, version: int = 5) -> Any:
    asked = None if topics is None else [DescribableLogDirTopic(topic=k, partitions=v) for k, v in topics.items()]
    (result,) = node.ask(DescribeLogDirsRequest(topics=asked), version).results
    return result


def test_the_sizes_of_partitions_are_told(node: Any) -> None:
    node.append("a", 3)
    result = log_dirs(node, None)
    assert (result.log_dir, result.is_cordoned) == ("/data", False)
    assert (result.total_bytes, result.usable_bytes) == (1 << 40, 1 << 40)
    (topic,) = result.topics
    sizes = {one.partition_index: one.partition_size for one in topic.partitions}
    assert sizes == {0: node.broker.partition("a", 0).log.size_bytes, 1: 0}
    assert sizes[0] > 200


def test_partitions_that_do_not_exist_are_left_out(node: Any) -> None:
    (topic,) = log_dirs(node, {"a": [0, 9, -1], "nosuch": [0]}).topics
    assert (topic.name, [one.partition_index for one in topic.partitions]) == ("a", [0])
    assert log_dirs(node, {}).topics == []


@pytest.mark.parametrize("version", range(1, 6))
def test_every_version_tells_the_directory(node: Any, version: int) -> None:
    assert log_dirs(node, None, version).log_dir == "/data"


# ---- DescribeProducers


def test_the_producers_of_a_partition_are_told(node: Any) -> None:
    node.append("a", 3, producer_id=77)
    request = DescribeProducersRequest(topics=[TopicRequest(name="a", partition_indexes=[0, 1])])
    first, second = node.ask(request).topics[0].partitions
    (producer,) = first.active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (77, 0, 2)
    assert producer.last_timestamp == node.clock.now_ms()
    assert (producer.coordinator_epoch, producer.current_txn_start_offset) == (-1, -1)
    assert second.active_producers == []


@pytest.mark.parametrize(
    ("topic", "index", "code"),
    [("a", 9, UNKNOWN), ("nosuch", 0, UNKNOWN), ("bad name", 0, ErrorCode.INVALID_TOPIC_EXCEPTION)],
)
def test_producers_of_what_does_not_exist_are_refused(node: Any, topic: str, index: int, code: ErrorCode) -> None:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[index])])
    (answer,) = node.ask(request).topics[0].partitions
    assert ErrorCode(answer.error_code) == code


# ---- OffsetForLeaderEpoch


def epoch_end(
    node: Any, topic: str, index: int, epoch: int, known: int = -1, version: int = 4
) -> tuple[ErrorCode, int, int]:
    asked = OffsetForLeaderPartition(partition=index, current_leader_epoch=known, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])])
    (answer,) = node.ask(request, version).topics[0].partitions
    return ErrorCode(answer.error_code), answer.leader_epoch, answer.end_offset


def test_an_epoch_ends_where_the_next_one_begins(node: Any) -> None:
    node.append("a", 3)
    assert epoch_end(node, "a", 0, 0) == (OK, 0, 3)
    node.restart()
    node.append("a", 2)
    assert epoch_end(node, "a", 0, 0) == (OK, 0, 3)
    assert epoch_end(node, "a", 0, 1, known=1, version=2) == (OK, 1, 5)


def test_an_epoch_that_never_was_has_no_end(node: Any) -> None:
    assert epoch_end(node, "a", 0, 5) == (OK, -1, -1)
    assert epoch_end(node, "a", 0, -1) == (OK, -1, -1)
    assert epoch_end(node, "a", 0, 0) == (OK, 0, 0)


def test_a_client_with_another_idea_of_the_epoch_is_fenced(node: Any) -> None:
    node.restart()
    assert epoch_end(node, "a", 0, 0, known=0) == (ErrorCode.FENCED_LEADER_EPOCH, -1, -1)
    assert epoch_end(node, "a", 0, 0, known=9) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)
    assert epoch_end(node, "a", 9, 0) == (UNKNOWN, -1, -1)
    assert epoch_end(node, "nosuch", 0, 0) == (UNKNOWN, -1, -1)


# ---- ElectLeaders


def elect(node: Any, election_type: int, topics: dict[str, list[int]] | None, version: int = 2) -> Any:
    asked = None if topics is None else [TopicPartitions(topic=k, partitions=v) for k, v in topics.items()]
    return node.ask(ElectLeadersRequest(election_type=election_type, topic_partitions=asked), version)


@pytest.mark.parametrize("election_type", [0, 1])
def test_no_election_is_needed_where_there_is_one_node(node: Any, election_type: int) -> None:
    response = elect(node, election_type, {"a": [0, 9], "nosuch": [0]})
    codes = {
        (topic.topic, one.partition_id): ErrorCode(one.error_code)
        for topic in response.replica_election_results
        for one in topic.partition_result
    }
    assert codes == {("a", 0): ErrorCode.ELECTION_NOT_NEEDED, ("a", 9): UNKNOWN, ("nosuch", 0): UNKNOWN}


def test_all_topics_are_listed_without_partitions(node: Any) -> None:
    results = elect(node, 0, None).replica_election_results
    assert [(one.topic, one.partition_result) for one in results] == [("a", [])]
    assert elect(node, 0, {}).replica_election_results == []


def test_an_unknown_type_of_election_is_refused_everywhere(node: Any) -> None:
    response = elect(node, 2, {"a": [0]})
    assert ErrorCode(response.error_code) == ErrorCode.INVALID_REQUEST
    assert response.replica_election_results[0].partition_result[0].error_code == ErrorCode.INVALID_REQUEST


def test_v0_elects_preferred_leaders(node: Any) -> None:
    (topic,) = elect(node, 0, {"a": [0]}, version=0).replica_election_results
    assert topic.partition_result[0].error_code == ErrorCode.ELECTION_NOT_NEEDED


# ---- DescribeQuorum


def quorum(node: Any, topic: str, index: int, version: int = 2) -> Any:
    asked = QuorumTopic(topic_name=topic, partitions=[QuorumPartition(partition_index=index)])
    return node.ask(DescribeQuorumRequest(topics=[asked]), version)


@pytest.mark.parametrize("version", range(3))
def test_the_quorum_is_this_node(node: Any, version: int) -> None:
    response = quorum(node, "__cluster_metadata", 0, version)
    (partition,) = response.topics[0].partitions
    assert (partition.error_code, partition.leader_id, partition.observers) == (0, 1, [])
    assert partition.high_watermark == node.broker.topics.version
    assert [voter.replica_id for voter in partition.current_voters] == [1]
    assert [one.node_id for one in response.nodes] == ([1] if version == 2 else [])


@pytest.mark.parametrize(("topic", "index"), [("__cluster_metadata", 1), ("a", 0)])
def test_nothing_else_has_a_quorum(node: Any, topic: str, index: int) -> None:
    response = quorum(node, topic, index)
    assert ErrorCode(response.topics[0].partitions[0].error_code) == UNKNOWN
    assert response.nodes == []
