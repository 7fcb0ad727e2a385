"""Creating, growing, describing and deleting topics at the level of requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.conformance.asking import NO_ID, UNKNOWN_ID, batch_of, eventually, names, produce, topic_id
from tests.conformance.conftest import NewTopic
from tests.conformance.raw import Wire
from tests.conformance.under_test import UnderTest

from lowwater.errors import ErrorCode
from lowwater.wire.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeTopicPartitionsRequest,
    ElectLeadersRequest,
    MetadataRequest,
)
from lowwater.wire.messages.create_partitions import CreatePartitionsAssignment, CreatePartitionsTopic
from lowwater.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig
from lowwater.wire.messages.delete_topics import DeleteTopicState
from lowwater.wire.messages.describe_topic_partitions import Cursor, TopicRequest
from lowwater.wire.messages.elect_leaders import TopicPartitions
from lowwater.wire.messages.metadata import MetadataRequestTopic

PREFERRED, UNCLEAN = 0, 1


def wanted(name: str, *, partitions: int = 1, replication: int = 1, **more: Any) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication,
        assignments=more.get("assignments", []),
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in more.get("config", {}).items()],
    )


def create(wire: Wire, *topics: CreatableTopic, version: int = 7, **more: Any) -> list[Any]:
    answers = wire.ask(CreateTopicsRequest(topics=list(topics), **more), version).topics
    return sorted(answers, key=lambda each: each.name)


def create_one(wire: Wire, topic: CreatableTopic, **more: Any) -> Any:
    [answer] = create(wire, topic, **more)
    return answer


def listed(wire: Wire) -> set[str]:
    return names(wire.ask(MetadataRequest(topics=None)).topics)


def assignment(*brokers: int, partition: int = 0) -> CreatableReplicaAssignment:
    return CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version_creates(wire: Wire, version: int, fresh_name: str) -> None:
    answer = create_one(wire, wanted(fresh_name, partitions=3, config={"retention.ms": "777"}), version=version)
    assert (answer.error_code, answer.error_message) == (0, None)
    if version >= 5:
        assert (answer.num_partitions, answer.replication_factor) == (3, 1)
        config = {each.name: (each.value, each.config_source, each.read_only) for each in answer.configs}
        assert config["retention.ms"] == ("777", 1, False)
        assert config["cleanup.policy"] == ("delete", 5, False)
    assert (bytes(answer.topic_id) != NO_ID) == (version >= 7)


def test_minus_one_means_the_brokers_defaults(wire: Wire, fresh_name: str) -> None:
    answer = create_one(wire, wanted(fresh_name, partitions=-1, replication=-1))
    assert (answer.error_code, answer.num_partitions, answer.replication_factor) == (0, 1, 1)


def test_validating_creates_nothing(wire: Wire, fresh_name: str, new_topic: NewTopic) -> None:
    answer = create_one(wire, wanted(fresh_name, partitions=4), validate_only=True)
    assert (answer.error_code, answer.num_partitions) == (0, 4)
    assert fresh_name not in listed(wire)
    taken = create_one(wire, wanted(new_topic()), validate_only=True)
    assert taken.error_code == ErrorCode.TOPIC_ALREADY_EXISTS


REFUSED: dict[str, tuple[dict[str, Any], ErrorCode]] = {
    "no-partitions": ({"partitions": 0}, ErrorCode.INVALID_PARTITIONS),
    "negative-partitions": ({"partitions": -2}, ErrorCode.INVALID_PARTITIONS),
    "no-replicas": ({"replication": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
    "negative-replicas": ({"replication": -2}, ErrorCode.INVALID_REPLICATION_FACTOR),
    "two-replicas": ({"replication": 2}, ErrorCode.INVALID_REPLICATION_FACTOR),
    "unknown-setting": ({"config": {"no.such": "1"}}, ErrorCode.INVALID_CONFIG),
    "bad-number": ({"config": {"retention.ms": "x"}}, ErrorCode.INVALID_CONFIG),
    "out-of-range": ({"config": {"min.insync.replicas": "0"}}, ErrorCode.INVALID_CONFIG),
    "null-setting": ({"config": {"retention.ms": None}}, ErrorCode.INVALID_CONFIG),
    "bad-policy": ({"config": {"cleanup.policy": "shred"}}, ErrorCode.INVALID_CONFIG),
    "assignment-and-count": (
        {"assignments": [assignment(1)], "partitions": 1, "replication": -1},
        ErrorCode.INVALID_REQUEST,
    ),
    "assignment-and-replication": (
        {"assignments": [assignment(1)], "partitions": -1, "replication": 1},
        ErrorCode.INVALID_REQUEST,
    ),
    "assignment-to-a-stranger": (
        {"assignments": [assignment(99)], "partitions": -1, "replication": -1},
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    ),
    "assignment-twice-to-one": (
        {"assignments": [assignment(1, 1)], "partitions": -1, "replication": -1},
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    ),
    "assignment-to-nobody": (
        {"assignments": [assignment()], "partitions": -1, "replication": -1},
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    ),
    "assignment-with-a-hole": (
        {"assignments": [assignment(1), assignment(1, partition=2)], "partitions": -1, "replication": -1},
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    ),
    "assignment-twice-for-one": (
        {"assignments": [assignment(1), assignment(1)], "partitions": -1, "replication": -1},
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_topic_that_cannot_be_is_refused(wire: Wire, name: str, fresh_name: str) -> None:
    wish, expected = REFUSED[name]
    answer = create_one(wire, wanted(fresh_name, **wish))
    assert answer.error_code == expected
    assert answer.error_message
    assert fresh_name not in listed(wire)


def test_a_manual_assignment_is_taken(wire: Wire, fresh_name: str) -> None:
    node = wire.ask(MetadataRequest(topics=[])).brokers[0].node_id
    places = [assignment(node), assignment(node, partition=1)]
    answer = create_one(wire, wanted(fresh_name, partitions=-1, replication=-1, assignments=places))
    assert (answer.error_code, answer.num_partitions, answer.replication_factor) == (0, 2, 1)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "x" * 250, "ä"])
def test_a_bad_name_is_refused(wire: Wire, name: str) -> None:
    assert create_one(wire, wanted(name)).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_the_longest_name_is_taken(wire: Wire, fresh_name: str) -> None:
    name = fresh_name + "x" * (249 - len(fresh_name))
    assert create_one(wire, wanted(name)).error_code == 0


def test_names_that_differ_only_in_dot_and_underscore_collide(wire: Wire, fresh_name: str) -> None:
    assert create_one(wire, wanted(f"{fresh_name}.a_b")).error_code == 0
    assert create_one(wire, wanted(f"{fresh_name}_a.b")).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_an_existing_topic_is_refused_beside_a_new_one(wire: Wire, new_topic: NewTopic, fresh_name: str) -> None:
    taken = new_topic()
    answers = create(wire, wanted(taken), wanted(fresh_name))
    assert {each.name: each.error_code for each in answers} == {taken: ErrorCode.TOPIC_ALREADY_EXISTS, fresh_name: 0}


def test_one_topic_twice_in_a_request_is_refused(wire: Wire, fresh_name: str) -> None:
    answers = create(wire, wanted(fresh_name), wanted(fresh_name))
    assert [each.error_code for each in answers] == [ErrorCode.INVALID_REQUEST]
    assert fresh_name not in listed(wire)


# ---- CreatePartitions


def grow(wire: Wire, name: str, count: int, *, version: int = 3, validate_only: bool = False, to: Any = None) -> int:
    topic = CreatePartitionsTopic(name=name, count=count, assignments=to)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=10_000, validate_only=validate_only)
    return int(wire.ask(request, version).results[0].error_code)


def partitions_of(wire: Wire, topic: str) -> int:
    described = describe(wire, topic)
    return len(described.topics[0].partitions)


def describe(wire: Wire, *topics: str, limit: int = 2000, cursor: Cursor | None = None) -> Any:
    asked = [TopicRequest(name=name) for name in topics]
    return wire.ask(DescribeTopicPartitionsRequest(topics=asked, response_partition_limit=limit, cursor=cursor))


@pytest.mark.parametrize("version", range(4))
def test_every_version_adds_partitions(wire: Wire, version: int, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=2)
    assert grow(wire, topic, 5, version=version) == 0
    eventually(lambda: partitions_of(wire, topic) == 5)


def test_partitions_that_cannot_be_added_are_refused(wire: Wire, new_topic: NewTopic, fresh_name: str) -> None:
    topic = new_topic(partitions=2)
    assert grow(wire, topic, 2) == ErrorCode.INVALID_PARTITIONS
    assert grow(wire, topic, 1) == ErrorCode.INVALID_PARTITIONS
    assert grow(wire, topic, 0) == ErrorCode.INVALID_PARTITIONS
    assert grow(wire, topic, -1) == ErrorCode.INVALID_PARTITIONS
    assert grow(wire, fresh_name, 3) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert partitions_of(wire, topic) == 2


def test_validating_adds_no_partitions(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=2)
    assert grow(wire, topic, 4, validate_only=True) == 0
    assert partitions_of(wire, topic) == 2


def test_assignments_of_new_partitions_are_checked(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=1)
    node = wire.ask(MetadataRequest(topics=[])).brokers[0].node_id

    def to(*brokers: int) -> CreatePartitionsAssignment:
        return CreatePartitionsAssignment(broker_ids=list(brokers))

    assert grow(wire, topic, 3, to=[to(node)]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert grow(wire, topic, 2, to=[to(99)]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert grow(wire, topic, 2, to=[to()]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert grow(wire, topic, 2, to=[to(node, node)]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert grow(wire, topic, 2, to=[to(node)]) == 0


def test_one_topic_twice_is_not_grown(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=1)
    wishes = [CreatePartitionsTopic(name=topic, count=count) for count in (2, 3)]
    answer = wire.ask(CreatePartitionsRequest(topics=wishes, timeout_ms=10_000))
    assert [each.error_code for each in answer.results] == [ErrorCode.INVALID_REQUEST]
    assert partitions_of(wire, topic) == 1


# ---- DeleteTopics


@pytest.mark.parametrize("version", range(1, 7))
def test_every_version_deletes(wire: Wire, version: int, new_topic: NewTopic, fresh_name: str) -> None:
    topic = new_topic()
    asked = [topic, fresh_name]
    states = [DeleteTopicState(name=name) for name in asked] if version >= 6 else []
    request = DeleteTopicsRequest(topic_names=asked, topics=states, timeout_ms=10_000)
    answers = wire.ask(request, version).responses
    assert {each.name: each.error_code for each in answers} == {
        topic: 0,
        fresh_name: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    eventually(lambda: topic not in listed(wire))


def delete(wire: Wire, *states: DeleteTopicState) -> list[Any]:
    answers = wire.ask(DeleteTopicsRequest(topics=list(states), topic_names=[], timeout_ms=10_000), 6).responses
    return [(each.name, bytes(each.topic_id), each.error_code) for each in answers]


def test_a_topic_is_deleted_by_id(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic()
    id = topic_id(wire, topic)
    assert delete(wire, DeleteTopicState(topic_id=id)) == [(topic, id, 0)]
    eventually(lambda: topic not in listed(wire))
    assert delete(wire, DeleteTopicState(topic_id=id)) == [(None, id, ErrorCode.UNKNOWN_TOPIC_ID)]
    assert delete(wire, DeleteTopicState(topic_id=UNKNOWN_ID)) == [(None, UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID)]


def test_a_deletion_by_both_name_and_id_or_by_neither_is_refused(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic()
    id = topic_id(wire, topic)
    [(_, _, code)] = delete(wire, DeleteTopicState(name=topic, topic_id=id))
    assert code == ErrorCode.INVALID_REQUEST
    [(_, _, code)] = delete(wire, DeleteTopicState())
    assert code == ErrorCode.INVALID_REQUEST
    assert topic in listed(wire)


def test_a_topic_named_twice_is_not_deleted(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic()
    answers = delete(wire, DeleteTopicState(name=topic), DeleteTopicState(name=topic))
    assert [code for _, _, code in answers] == [ErrorCode.INVALID_REQUEST]
    assert topic in listed(wire)


# ---- DescribeTopicPartitions


def test_topics_are_described_in_the_order_of_their_names(wire: Wire, new_topic: NewTopic, fresh_name: str) -> None:
    first, second = sorted([new_topic("zeta", partitions=2), new_topic("alpha")])
    answer = describe(wire, second, first, fresh_name)
    assert [(each.name, each.error_code, len(each.partitions)) for each in answer.topics] == [
        (first, 0, 1),
        (fresh_name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0),
        (second, 0, 2),
    ]
    assert answer.next_cursor is None
    partition = answer.topics[0].partitions[0]
    assert (partition.eligible_leader_replicas, partition.last_known_elr, partition.offline_replicas) == ([], [], [])
    assert answer.topics[0].topic_authorized_operations == 0b110111111000


def test_a_limit_gives_pages_that_a_cursor_continues(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=5)
    seen, cursor, pages = [], None, 0
    while pages == 0 or cursor is not None:
        answer = describe(wire, topic, limit=2, cursor=cursor)
        seen += [each.partition_index for each in answer.topics[0].partitions]
        cursor, pages = answer.next_cursor, pages + 1
    assert (seen, pages) == ([0, 1, 2, 3, 4], 3)


def test_no_names_ask_for_all_topics(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic()
    assert topic in names(describe(wire).topics)


# ---- ElectLeaders


def elect(wire: Wire, topics: Any, *, kind: int = PREFERRED, version: int = 2) -> tuple[int, dict[Any, int]]:
    answer = wire.ask(ElectLeadersRequest(election_type=kind, topic_partitions=topics), version)
    results = {
        (each.topic, one.partition_id): one.error_code
        for each in answer.replica_election_results
        for one in each.partition_result
    }
    return answer.error_code, results


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("kind", [PREFERRED, UNCLEAN])
def test_no_election_is_needed(wire: Wire, version: int, kind: int, new_topic: NewTopic, fresh_name: str) -> None:
    if version == 0 and kind == UNCLEAN:
        return  # the first version knows one kind only
    topic = new_topic()
    asked = [TopicPartitions(topic=topic, partitions=[0, 5]), TopicPartitions(topic=fresh_name, partitions=[0])]
    assert elect(wire, asked, kind=kind, version=version) == (
        0,
        {
            (topic, 0): ErrorCode.ELECTION_NOT_NEEDED,
            (topic, 5): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            (fresh_name, 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        },
    )


def test_an_election_for_all_partitions_tells_only_of_those_that_changed(wire: Wire, new_topic: NewTopic) -> None:
    new_topic()
    assert elect(wire, None) == (0, {})


# ---- settings of the broker that decide about topics


def test_a_broker_can_forbid_deletion_and_automatic_creation(own_broker: Callable[..., UnderTest]) -> None:
    broker = own_broker({"delete.topic.enable": "false", "auto.create.topics.enable": "false", "num.partitions": "3"})
    with Wire(broker.address) as wire:
        answer = create_one(wire, wanted("kept", partitions=-1, replication=-1, config={"min.insync.replicas": "2"}))
        assert (answer.error_code, answer.num_partitions) == (0, 3)
        assert delete(wire, DeleteTopicState(name="kept"))[0][2] == ErrorCode.TOPIC_DELETION_DISABLED
        request = MetadataRequest(topics=[MetadataRequestTopic(name="missing")], allow_auto_topic_creation=True)
        assert wire.ask(request).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert listed(wire) == {"kept"}
        # min.insync.replicas never asks for more replicas than the topic has.
        assert eventual_code(wire, "kept", acks=-1) == 0


def eventual_code(wire: Wire, topic: str, *, acks: int) -> int:
    """The answer once the new topic has its logs."""
    not_yet = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    codes: list[int] = []

    def settled() -> bool:
        codes.append(produce(wire, topic, batch_of(b"v"), acks=acks).error_code)
        return codes[-1] not in not_yet

    eventually(settled)
    return codes[-1]
