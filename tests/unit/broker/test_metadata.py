"""Metadata, DescribeCluster, DescribeTopicPartitions. Codes are those of Apache Kafka 4.3."""

from __future__ import annotations

from typing import Any

import pytest

from lowwater.broker.answer_cache import AnswerCache
from lowwater.broker.broker import Endpoint
from lowwater.errors import ErrorCode
from lowwater.wire.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
)
from lowwater.wire.messages.create_partitions import CreatePartitionsTopic
from lowwater.wire.messages.create_topics import CreatableTopic
from lowwater.wire.messages.describe_topic_partitions import Cursor, TopicRequest
from lowwater.wire.messages.metadata import MetadataRequestTopic
from lowwater.wire.schema import ZERO_UUID

NOT_ASKED = -(2**31)
ALL_ON_TOPICS, ALL_ON_CLUSTER = 3576, 8096
UNKNOWN_ID = b"\x01" * 16


def create(node: Any, **partitions: int) -> None:
    topics = [
        CreatableTopic(name=name, num_partitions=count, replication_factor=1) for name, count in partitions.items()
    ]
    node.ask(CreateTopicsRequest(topics=topics))


def by_name(*names: str) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=name) for name in names]


def codes(response: Any) -> dict[str, ErrorCode]:
    return {topic.name: ErrorCode(topic.error_code) for topic in response.topics}


# ---- Metadata


@pytest.mark.parametrize("version", range(14))
def test_every_version_tells_the_broker_the_topic_and_its_partitions(node: Any, version: int) -> None:
    create(node, a=3)
    response = node.ask(MetadataRequest(topics=by_name("a")), version)
    (broker,) = response.brokers
    assert (broker.node_id, broker.host, broker.port) == (1, "broker.example", 9092)
    (topic,) = response.topics
    assert (topic.error_code, topic.name, topic.is_internal) == (0, "a", False)
    assert [(one.partition_index, one.leader_id, one.replica_nodes, one.isr_nodes) for one in topic.partitions] == [
        (index, 1, [1], [1]) for index in range(3)
    ]
    if version >= 2:
        assert response.cluster_id == node.broker.cluster_id
    if version >= 10:
        assert topic.topic_id == node.broker.topics.get("a").id


@pytest.mark.parametrize(
    ("version", "topics", "names"),
    [(0, [], ["a", "b"]), (1, [], []), (1, None, ["a", "b"]), (13, None, ["a", "b"]), (13, [], [])],
)
def test_all_topics_are_asked_for_by_null_and_in_v0_by_an_empty_list(
    node: Any, version: int, topics: Any, names: list[str]
) -> None:
    create(node, b=1, a=1)
    assert [topic.name for topic in node.ask(MetadataRequest(topics=topics), version).topics] == names


def test_a_topic_asked_for_twice_is_told_once(node: Any) -> None:
    create(node, a=1)
    assert len(node.ask(MetadataRequest(topics=by_name("a", "a"))).topics) == 1


def test_topics_are_asked_for_by_id_since_v12(node: Any) -> None:
    create(node, a=1)
    topic_id = node.broker.topics.get("a").id
    wanted = [MetadataRequestTopic(name=None, topic_id=one) for one in (topic_id, UNKNOWN_ID)]
    found, unknown = node.ask(MetadataRequest(topics=wanted), 12).topics
    assert (found.name, found.error_code) == ("a", 0)
    assert (unknown.name, unknown.topic_id, ErrorCode(unknown.error_code)) == (
        None,
        UNKNOWN_ID,
        ErrorCode.UNKNOWN_TOPIC_ID,
    )


@pytest.mark.parametrize("version", [10, 11])
def test_ids_before_v12_are_refused(node: Any, version: int) -> None:
    wanted = [MetadataRequestTopic(name=None, topic_id=UNKNOWN_ID)]
    assert codes(node.ask(MetadataRequest(topics=wanted), version)) == {"": ErrorCode.INVALID_REQUEST}


def test_leader_epochs_count_the_restarts_since_the_partition_came(node: Any) -> None:
    def epochs() -> list[int]:
        (topic,) = node.ask(MetadataRequest(topics=by_name("a"))).topics
        return [partition.leader_epoch for partition in topic.partitions]

    create(node, a=1)
    assert epochs() == [0]
    node.restart()
    grown = CreatePartitionsTopic(name="a", count=2)
    node.ask(CreatePartitionsRequest(topics=[grown], timeout_ms=1000))
    assert epochs() == [1, 0]
    node.restart()
    assert epochs() == [2, 1]


def test_authorized_operations_are_told_only_when_asked(node: Any) -> None:
    create(node, a=1)
    silent = node.ask(MetadataRequest(topics=by_name("a")), 10)
    assert (silent.topics[0].topic_authorized_operations, silent.cluster_authorized_operations) == (NOT_ASKED,) * 2
    asked = MetadataRequest(
        topics=by_name("a"),
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    told = node.ask(asked, 10)
    assert told.topics[0].topic_authorized_operations == ALL_ON_TOPICS
    assert told.cluster_authorized_operations == ALL_ON_CLUSTER


def test_internal_topics_are_marked(node: Any) -> None:
    create(node, __consumer_offsets=1)
    (topic,) = node.ask(MetadataRequest(topics=None)).topics
    assert topic.is_internal


def test_the_rack_is_told(new_node: Any) -> None:
    node = new_node({"broker.rack": "r1"})
    assert node.ask(MetadataRequest(topics=[])).brokers[0].rack == "r1"


# ---- creation on the way


def test_a_missing_topic_is_created_while_the_first_answer_still_lacks_it(new_node: Any) -> None:
    node = new_node({"num.partitions": "3"})
    assert codes(node.ask(MetadataRequest(topics=by_name("a")))) == {"a": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    (topic,) = node.ask(MetadataRequest(topics=by_name("a"))).topics
    assert (topic.error_code, len(topic.partitions)) == (0, 3)


@pytest.mark.parametrize(
    ("settings", "allowed", "version"),
    [({"auto.create.topics.enable": "false"}, True, 13), ({}, False, 13), ({}, False, 4)],
)
def test_both_sides_can_forbid_creation(new_node: Any, settings: dict[str, str], allowed: bool, version: int) -> None:
    node = new_node(settings)
    for _ in range(2):
        response = node.ask(MetadataRequest(topics=by_name("a"), allow_auto_topic_creation=allowed), version)
        assert codes(response) == {"a": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_before_v4_a_client_always_allows_creation(node: Any) -> None:
    node.ask(MetadataRequest(topics=by_name("a")), 3)
    assert node.broker.topics.names() == ["a"]


def test_asking_twice_at_the_same_time_creates_once(node: Any) -> None:
    node.offload.hold = True
    for _ in range(2):
        node.ask(MetadataRequest(topics=by_name("a")))
    version = node.broker.topics.version
    node.offload.release()
    assert node.broker.topics.version == version + 1


@pytest.mark.parametrize("name", ["bad name", "", ".", "x" * 250])
def test_an_illegal_name_is_refused_and_not_created(node: Any, name: str) -> None:
    assert codes(node.ask(MetadataRequest(topics=by_name(name)))) == {name: ErrorCode.INVALID_TOPIC_EXCEPTION}
    assert node.broker.topics.names() == []


def test_internal_topics_are_not_created_by_looking_at_them(node: Any) -> None:
    (topic,) = node.ask(MetadataRequest(topics=by_name("__consumer_offsets"))).topics
    assert (ErrorCode(topic.error_code), topic.is_internal) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True)
    assert node.broker.topics.names() == []


# ---- answers that are kept


def test_an_answer_is_made_once_until_something_changes(node: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    create(node, a=2, b=1)
    first = node.ask(MetadataRequest(topics=None))
    with monkeypatch.context() as patch:
        patch.setattr("lowwater.broker.handlers.metadata._found", None)
        assert node.ask(MetadataRequest(topics=None)) == first
    create(node, c=1)
    assert len(node.ask(MetadataRequest(topics=None)).topics) == 3
    node.ask(DeleteTopicsRequest(topic_names=["a"], timeout_ms=1000), 5)
    assert codes(node.ask(MetadataRequest(topics=None))) == {"b": ErrorCode.NONE, "c": ErrorCode.NONE}


def test_answers_differ_by_version_by_what_was_asked_and_by_where_clients_are_sent(node: Any) -> None:
    create(node, a=1, b=1)
    for _ in range(2):
        assert len(node.ask(MetadataRequest(topics=by_name("a"))).topics) == 1
        assert len(node.ask(MetadataRequest(topics=by_name("a", "b"))).topics) == 2
        assert node.ask(MetadataRequest(topics=by_name("a")), 1).topics[0].topic_id == ZERO_UUID
        assert node.ask(MetadataRequest(topics=by_name("a")), 12).topics[0].topic_id != ZERO_UUID
    node.broker.advertised = Endpoint("elsewhere", 1)
    assert node.ask(MetadataRequest(topics=by_name("a"))).brokers[0].host == "elsewhere"


def test_kept_answers_are_bounded_in_bytes() -> None:
    cache = AnswerCache(bytes_max=10)
    assert cache.put("a", b"123456") == b"123456"
    assert cache.get("a") == b"123456"
    cache.put("b", b"12345")
    assert (cache.get("a"), cache.get("b")) == (None, b"12345")
    assert cache.put("huge", b"x" * 11) == b"x" * 11
    assert (cache.get("huge"), cache.get("b")) == (None, b"12345")


# ---- DescribeCluster


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_this_node(node: Any, version: int) -> None:
    response = node.ask(DescribeClusterRequest(), version)
    assert (response.cluster_id, response.controller_id) == (node.broker.cluster_id, 1)
    (broker,) = response.brokers
    assert (broker.broker_id, broker.host, broker.port, broker.is_fenced) == (1, "broker.example", 9092, False)
    assert response.cluster_authorized_operations == NOT_ASKED


def test_operations_on_the_cluster_are_told_on_demand(node: Any) -> None:
    response = node.ask(DescribeClusterRequest(include_cluster_authorized_operations=True))
    assert response.cluster_authorized_operations == ALL_ON_CLUSTER


@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_only_brokers_can_be_asked_for(node: Any, endpoint_type: int, code: ErrorCode) -> None:
    response = node.ask(DescribeClusterRequest(endpoint_type=endpoint_type))
    assert (ErrorCode(response.error_code), response.endpoint_type, response.brokers) == (code, 1, [])


# ---- DescribeTopicPartitions


def page(node: Any, names: list[str], limit: int = 2000, cursor: tuple[str, int] | None = None) -> Any:
    return node.ask(
        DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=cursor and Cursor(topic_name=cursor[0], partition_index=cursor[1]),
        )
    )


def told(response: Any) -> list[tuple[str, list[int]]]:
    return [(topic.name, [one.partition_index for one in topic.partitions]) for topic in response.topics]


def after(response: Any) -> tuple[str, int] | None:
    cursor = response.next_cursor
    return cursor and (cursor.topic_name, cursor.partition_index)


def test_topics_are_described_in_the_order_of_their_names(node: Any) -> None:
    create(node, r2=2, r1=3)
    response = page(node, ["r2", "r1", "r2"])
    assert told(response) == [("r1", [0, 1, 2]), ("r2", [0, 1])]
    assert after(response) is None
    partition = response.topics[0].partitions[0]
    assert (partition.leader_id, partition.leader_epoch, partition.isr_nodes) == (1, 0, [1])
    assert partition.eligible_leader_replicas == partition.last_known_elr == partition.offline_replicas == []
    assert response.topics[0].topic_authorized_operations == ALL_ON_TOPICS


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("names", [[], ["r1", "r2", "r3"]])
def test_pages_lead_through_everything_whatever_their_size(node: Any, names: list[str], limit: int) -> None:
    create(node, r1=3, r2=1, r3=2)
    seen: list[tuple[str, int]] = []
    cursor = None
    while True:
        response = page(node, names, limit, cursor)
        seen += [(name, index) for name, indexes in told(response) for index in indexes]
        cursor = after(response)
        if cursor is None:
            break
    assert seen == [("r1", 0), ("r1", 1), ("r1", 2), ("r2", 0), ("r3", 0), ("r3", 1)]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_page_has_one_partition_at_least(node: Any, limit: int) -> None:
    create(node, r1=3)
    response = page(node, ["r1"], limit)
    assert (told(response), after(response)) == ([("r1", [0])], ("r1", 1))


def test_the_broker_bounds_a_page_too(new_node: Any) -> None:
    node = new_node({"max.request.partition.size.limit": "2"})
    create(node, r1=3)
    assert after(page(node, [])) == ("r1", 2)


def test_a_cursor_beyond_the_partitions_of_its_topic_goes_on_with_the_next(node: Any) -> None:
    create(node, r1=3, r2=1)
    assert told(page(node, ["r1", "r2"], cursor=("r1", 7))) == [("r1", []), ("r2", [0])]


@pytest.mark.parametrize("cursor", [("r1", -1), ("nosuch", 0)])
def test_a_cursor_that_fits_no_topic_asked_for_is_refused(node: Any, cursor: tuple[str, int]) -> None:
    create(node, r1=1)
    response = page(node, ["r1"], cursor=cursor)
    assert [ErrorCode(topic.error_code) for topic in response.topics] == [ErrorCode.INVALID_REQUEST]


def test_unknown_topics_are_told_apart_from_illegal_names(node: Any) -> None:
    create(node, r1=1)
    response = page(node, ["nosuch", "bad name", "r1"])
    assert codes(response) == {
        "bad name": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "nosuch": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "r1": ErrorCode.NONE,
    }


def test_a_topic_asked_over_and_over_is_kept_once(node: Any) -> None:
    create(node, orders=1)
    for times in (1, 2, 500):
        assert len(node.ask(MetadataRequest(topics=by_name(*["orders"] * times))).topics) == 1
    assert len(node.broker.topics.answers._answers) == 1
