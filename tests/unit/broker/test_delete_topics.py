"""DeleteTopics and DeleteRecords. Error codes are those of Apache Kafka 4.3."""

from __future__ import annotations

from typing import Any

import pytest

from lowwater.errors import ErrorCode
from lowwater.wire.messages import CreateTopicsRequest, DeleteRecordsRequest, DeleteTopicsRequest
from lowwater.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig
from lowwater.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsTopic
from lowwater.wire.messages.delete_topics import DeleteTopicState
from lowwater.wire.schema import ZERO_UUID

UNKNOWN_ID = b"\x01" * 16


def create(node: Any, *names: str, configs: tuple[tuple[str, str], ...] = ()) -> list[bytes]:
    settings = [CreatableTopicConfig(name=name, value=value) for name, value in configs]
    topics = [CreatableTopic(name=name, num_partitions=2, replication_factor=1, configs=settings) for name in names]
    return [result.topic_id for result in node.ask(CreateTopicsRequest(topics=topics)).topics]


def state(name: str | None = None, topic_id: bytes = ZERO_UUID) -> DeleteTopicState:
    return DeleteTopicState(name=name, topic_id=topic_id)


def delete(node: Any, *states: DeleteTopicState) -> list[tuple[str | None, bytes, ErrorCode]]:
    response = node.ask(DeleteTopicsRequest(topics=list(states), timeout_ms=1000))
    return [(one.name, one.topic_id, ErrorCode(one.error_code)) for one in response.responses]


def delete_records(node: Any, topic: str, *wanted: tuple[int, int]) -> list[tuple[int, int, ErrorCode]]:
    partitions = [DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in wanted]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=partitions)], timeout_ms=1000)
    (answer,) = node.ask(request).topics
    return [(one.partition_index, one.low_watermark, ErrorCode(one.error_code)) for one in answer.partitions]


# ---- DeleteTopics


@pytest.mark.parametrize("version", range(1, 6))
def test_topics_are_deleted_by_name(node: Any, version: int) -> None:
    create(node, "a", "b")
    response = node.ask(DeleteTopicsRequest(topic_names=["a", "nosuch"], timeout_ms=1000), version)
    assert [(one.name, ErrorCode(one.error_code)) for one in response.responses] == [
        ("a", ErrorCode.NONE),
        ("nosuch", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert node.broker.topics.names() == ["b"]


def test_topics_are_deleted_by_name_or_id_since_v6(node: Any) -> None:
    by_name, by_id = create(node, "a", "b")
    assert delete(node, state("a"), state(topic_id=by_id), state("bad name"), state(topic_id=UNKNOWN_ID)) == [
        ("a", by_name, ErrorCode.NONE),
        ("b", by_id, ErrorCode.NONE),
        ("bad name", ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (None, UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID),
    ]
    node.restart()
    assert node.broker.topics.names() == []


def test_a_topic_asked_for_twice_in_whatever_way_stays(node: Any) -> None:
    (topic_id,) = create(node, "a")
    assert delete(node, state("a"), state("a")) == [("a", ZERO_UUID, ErrorCode.INVALID_REQUEST)]
    assert delete(node, state(topic_id=topic_id), state(topic_id=topic_id)) == [
        (None, topic_id, ErrorCode.INVALID_REQUEST)
    ]
    assert delete(node, state("a"), state(topic_id=topic_id)) == [("a", topic_id, ErrorCode.INVALID_REQUEST)]
    assert delete(node, state("a", topic_id)) == [("a", topic_id, ErrorCode.INVALID_REQUEST)]
    assert delete(node, state()) == [(None, ZERO_UUID, ErrorCode.INVALID_REQUEST)]
    assert node.broker.topics.names() == ["a"]


@pytest.mark.parametrize(("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)])
def test_deletion_can_be_forbidden(new_node: Any, version: int, code: ErrorCode) -> None:
    node = new_node({"delete.topic.enable": "false"})
    create(node, "a")
    response = node.ask(DeleteTopicsRequest(topic_names=["a"], timeout_ms=1000), version)
    assert [ErrorCode(one.error_code) for one in response.responses] == [code]
    assert node.broker.topics.names() == ["a"]


def test_the_files_of_a_deleted_topic_go_with_it(node: Any) -> None:
    create(node, "a", "b")
    node.append("a", 3)
    node.append("b", 3)
    assert len(node.disk.listdir("/data/topics")) == 2
    delete(node, state("a"))
    (left,) = node.disk.listdir("/data/topics")
    assert left.startswith("b-")


def test_a_name_can_be_used_again_and_begins_at_offset_0(node: Any) -> None:
    (first,) = create(node, "a")
    node.append("a", 3)
    delete(node, state("a"))
    (second,) = create(node, "a")
    assert first != second
    node.append("a", 1)
    assert node.broker.partition("a", 0).log.log_end == 1


# ---- DeleteRecords


def test_the_log_start_moves_up_and_stays_there_after_a_restart(node: Any) -> None:
    create(node, "a")
    node.append("a", 5)
    assert delete_records(node, "a", (0, 3)) == [(0, 3, ErrorCode.NONE)]
    node.restart()
    assert node.broker.partition("a", 0).log.log_start == 3
    assert delete_records(node, "a", (0, -1)) == [(0, 5, ErrorCode.NONE)]


def test_a_log_start_that_is_further_already_stays(node: Any) -> None:
    create(node, "a")
    node.append("a", 5)
    delete_records(node, "a", (0, 4))
    assert delete_records(node, "a", (0, 2)) == [(0, 4, ErrorCode.NONE)]


def test_offsets_and_partitions_that_are_not_there_are_refused(node: Any) -> None:
    create(node, "a")
    node.append("a", 5)
    assert delete_records(node, "a", (0, 6), (1, -2), (9, 0)) == [
        (0, -1, ErrorCode.OFFSET_OUT_OF_RANGE),
        (1, -1, ErrorCode.OFFSET_OUT_OF_RANGE),
        (9, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert delete_records(node, "nosuch", (0, 0)) == [(0, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


def test_of_two_offsets_for_a_partition_the_last_one_counts(node: Any) -> None:
    create(node, "a")
    node.append("a", 5)
    assert delete_records(node, "a", (0, 4), (0, 2)) == [(0, 2, ErrorCode.NONE)]


def test_a_topic_that_is_only_compacted_keeps_its_records(node: Any) -> None:
    create(node, "kept", configs=(("cleanup.policy", "compact"),))
    create(node, "both", configs=(("cleanup.policy", "compact,delete"),))
    assert delete_records(node, "kept", (0, 0)) == [(0, -1, ErrorCode.POLICY_VIOLATION)]
    assert delete_records(node, "both", (0, 0)) == [(0, 0, ErrorCode.NONE)]


def test_records_of_internal_topics_are_not_for_clients_to_delete(node: Any) -> None:
    create(node, "__consumer_offsets")
    assert delete_records(node, "__consumer_offsets", (0, 0)) == [(0, -1, ErrorCode.INVALID_TOPIC_EXCEPTION)]
