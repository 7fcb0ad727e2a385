"""CreateTopics and CreatePartitions. Error codes are those of Apache Kafka 4.3."""

from __future__ import annotations

from typing import Any

import pytest

from lowwater.errors import ErrorCode
from lowwater.wire.messages import CreatePartitionsRequest, CreateTopicsRequest
from lowwater.wire.messages.create_partitions import CreatePartitionsAssignment, CreatePartitionsTopic
from lowwater.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig
from lowwater.wire.schema import ZERO_UUID


def topic(name: str, partitions: int = 1, replicas: int = 1, **more: Any) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=ids) for index, ids in more.get("assigned", [])
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in more.get("configs", [])],
    )


def create(node: Any, *topics: CreatableTopic, version: int = 7, validate_only: bool = False) -> list[Any]:
    request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
    results: list[Any] = node.ask(request, version).topics
    return results


def grown(name: str, count: int, assigned: list[list[int]] | None = None) -> CreatePartitionsTopic:
    assignments = None if assigned is None else [CreatePartitionsAssignment(broker_ids=ids) for ids in assigned]
    return CreatePartitionsTopic(name=name, count=count, assignments=assignments)


def grow(node: Any, *topics: CreatePartitionsTopic, validate_only: bool = False) -> list[ErrorCode]:
    request = CreatePartitionsRequest(topics=list(topics), timeout_ms=1000, validate_only=validate_only)
    return [ErrorCode(result.error_code) for result in node.ask(request).results]


# ---- CreateTopics


def test_a_created_topic_is_there_also_after_a_restart(node: Any) -> None:
    (result,) = create(node, topic("a", 3))
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 3, 1)
    assert result.topic_id != ZERO_UUID
    node.restart()
    found = node.broker.topics.get("a")
    assert (found.id, found.partition_count) == (result.topic_id, 3)


def test_the_answer_tells_the_settings_of_the_new_topic_and_where_they_come_from(new_node: Any) -> None:
    node = new_node({"message.max.bytes": "77"})
    (result,) = create(node, topic("a", configs=[("retention.ms", "1000")]))
    told = {config.name: (config.value, config.config_source) for config in result.configs}
    assert len(told) == 33
    assert told["retention.ms"] == ("1000", 1)
    assert told["max.message.bytes"] == ("77", 4)
    assert told["segment.bytes"] == ("1073741824", 5)


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version_creates(node: Any, version: int) -> None:
    (result,) = create(node, topic("a", 2), version=version)
    assert result.error_code == 0
    assert node.broker.topics.get("a").partition_count == 2


def test_defaults_stand_in_for_minus_one(new_node: Any) -> None:
    node = new_node({"num.partitions": "4"})
    (result,) = create(node, topic("a", -1, -1))
    assert (result.num_partitions, result.replication_factor) == (4, 1)


def test_a_validated_topic_is_not_created(node: Any) -> None:
    (result,) = create(node, topic("a", 3), validate_only=True)
    assert (result.error_code, result.num_partitions) == (0, 3)
    assert node.broker.topics.get("a") is None


def test_manual_assignments_to_this_node_make_partitions(node: Any) -> None:
    (result,) = create(node, topic("a", -1, -1, assigned=[(1, [1]), (0, [1])]))
    assert (result.error_code, result.num_partitions) == (0, 2)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (topic("there"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (topic("there", configs=[("nosuch", "x")]), ErrorCode.TOPIC_ALREADY_EXISTS),
        (topic("bad name", 0, 9), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic(".."), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("__cluster_metadata"), ErrorCode.INVALID_REQUEST),
        (topic("a", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("a", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("a", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("a", 0, 1), ErrorCode.INVALID_PARTITIONS),
        (topic("a", -2, 1), ErrorCode.INVALID_PARTITIONS),
        (topic("a", 0, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("a", 0, 2), ErrorCode.INVALID_PARTITIONS),
        (topic("a", 10_001), ErrorCode.POLICY_VIOLATION),
        (topic("a", configs=[("retention.ms", "x")]), ErrorCode.INVALID_CONFIG),
        (topic("a", configs=[("retention.ms", None)]), ErrorCode.INVALID_CONFIG),
        (topic("a", 1, 2, configs=[("nosuch", "x")]), ErrorCode.INVALID_CONFIG),
        (topic("a", -1, 1, assigned=[(0, [1])]), ErrorCode.INVALID_REQUEST),
        (topic("a", 1, -1, assigned=[(0, [1])]), ErrorCode.INVALID_REQUEST),
        (topic("a", -1, -1, assigned=[(0, [1]), (2, [1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("a", -1, -1, assigned=[(0, [1]), (0, [1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("a", -1, -1, assigned=[(0, [9])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("a", -1, -1, assigned=[(0, [])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("a", -1, -1, assigned=[(0, [1, 1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_a_topic_that_cannot_be_is_refused(node: Any, asked: CreatableTopic, code: ErrorCode) -> None:
    create(node, topic("there"))
    (result,) = create(node, asked)
    assert ErrorCode(result.error_code) == code
    assert result.error_message
    assert (result.topic_id, result.num_partitions, result.configs) == (ZERO_UUID, -1, [])
    assert node.broker.topics.names() == ["there"]


def test_each_topic_of_a_request_is_judged_by_itself(node: Any) -> None:
    results = create(node, topic("ok"), topic("bad name"), topic("twice"), topic("twice"))
    assert {result.name: ErrorCode(result.error_code) for result in results} == {
        "ok": ErrorCode.NONE,
        "bad name": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "twice": ErrorCode.INVALID_REQUEST,
    }
    assert len(results) == 3
    assert node.broker.topics.names() == ["ok"]


def test_a_request_is_bounded_by_the_partitions_of_all_its_topics(node: Any) -> None:
    results = create(node, topic("a", 9_000), topic("b", 9_000))
    assert [ErrorCode(result.error_code) for result in results] == [ErrorCode.POLICY_VIOLATION] * 2


def test_ten_thousand_partitions_are_one_record(node: Any) -> None:
    version = node.broker.topics.version
    (result,) = create(node, topic("many", 10_000))
    assert result.error_code == 0
    assert node.broker.topics.version == version + 1


def test_two_requests_for_one_topic_create_it_once(node: Any) -> None:
    node.offload.hold = True
    request = CreateTopicsRequest(topics=[topic("a")])
    first, second = node.begin(request), node.begin(request)
    node.offload.release()
    codes = [node.decode(pending.result(), 19, 7).topics[0].error_code for pending in (first, second)]
    assert codes == [ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS]


# ---- CreatePartitions


def test_a_topic_grows(node: Any) -> None:
    create(node, topic("a", 2))
    assert grow(node, grown("a", 5)) == [ErrorCode.NONE]
    assert node.broker.topics.get("a").partition_count == 5
    node.restart()
    assert node.broker.topics.get("a").partition_count == 5


def test_a_validated_growth_does_not_happen(node: Any) -> None:
    create(node, topic("a", 2))
    assert grow(node, grown("a", 5), validate_only=True) == [ErrorCode.NONE]
    assert node.broker.topics.get("a").partition_count == 2


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (grown("a", 3), ErrorCode.INVALID_PARTITIONS),
        (grown("a", 1), ErrorCode.INVALID_PARTITIONS),
        (grown("a", -1), ErrorCode.INVALID_PARTITIONS),
        (grown("nosuch", 5), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (grown("bad name", 5), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (grown("a", 4, [[1]]), ErrorCode.NONE),
        (grown("a", 5, [[1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grown("a", 4, []), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grown("a", 4, [[7]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grown("a", 4, [[]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grown("a", 4, [[1, 1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grown("a", 20_000), ErrorCode.POLICY_VIOLATION),
    ],
)
def test_growth_is_judged_as_kafka_judges_it(node: Any, asked: CreatePartitionsTopic, code: ErrorCode) -> None:
    create(node, topic("a", 3))
    assert grow(node, asked) == [code]
    assert node.broker.topics.get("a").partition_count == (4 if code == ErrorCode.NONE else 3)


def test_a_topic_named_twice_does_not_grow(node: Any) -> None:
    create(node, topic("a", 3))
    assert grow(node, grown("a", 5), grown("a", 6)) == [ErrorCode.INVALID_REQUEST]
    assert node.broker.topics.get("a").partition_count == 3
