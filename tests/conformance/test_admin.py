"""The admin calls of every library that has them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.conformance.asking import eventually
from tests.conformance.clients import clients
from tests.conformance.clients.base import (
    EARLIEST,
    LATEST,
    Can,
    ClientError,
    Driver,
    PartitionInfo,
    Producing,
    Record,
)
from tests.conformance.conftest import NewTopic
from tests.conformance.under_test import UnderTest

from lowwater.errors import ErrorCode


def refusal(call: Callable[[], object]) -> ErrorCode:
    with pytest.raises(ClientError) as refused:
        call()
    return refused.value.code


@clients(Can.CREATE_TOPICS, Can.LIST_TOPICS, Can.DESCRIBE_TOPICS)
def test_a_created_topic_is_listed_and_described(client: Driver, fresh_name: str) -> None:
    client.create_topic(fresh_name, partitions=3)
    eventually(lambda: fresh_name in client.list_topics())
    [node] = client.describe_cluster().nodes
    expected = {partition: PartitionInfo(node, (node,), (node,)) for partition in range(3)}
    eventually(lambda: client.describe_topic(fresh_name) == expected)


@clients(Can.LIST_TOPICS)
def test_topics_are_listed(client: Driver, new_topic: NewTopic) -> None:
    assert {new_topic(), new_topic()} <= client.list_topics()


@clients(Can.CREATE_TOPICS)
def test_a_topic_that_exists_is_not_created_again(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    assert refusal(lambda: client.create_topic(topic)) == ErrorCode.TOPIC_ALREADY_EXISTS


@clients(Can.CREATE_TOPICS)
@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"replication": 2}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"replication": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"partitions": 0}, ErrorCode.INVALID_PARTITIONS),
        ({"config": {"no.such.setting": "1"}}, ErrorCode.INVALID_CONFIG),
        ({"config": {"retention.ms": "soon"}}, ErrorCode.INVALID_CONFIG),
    ],
    ids=["two-replicas", "no-replica", "no-partition", "unknown-setting", "bad-value"],
)
def test_a_topic_that_cannot_be_is_refused(
    client: Driver, wanted: dict[str, object], expected: ErrorCode, fresh_name: str
) -> None:
    if client.name == "confluent" and wanted.get("partitions") == 0:
        return  # librdkafka refuses by itself
    assert refusal(lambda: client.create_topic(fresh_name, **wanted)) == expected
    assert fresh_name not in client.list_topics()


@clients(Can.CREATE_TOPICS)
@pytest.mark.parametrize("name", ["a b", "a/b", "..", "x" * 250, "ü"])
def test_a_bad_topic_name_is_refused(client: Driver, name: str) -> None:
    assert refusal(lambda: client.create_topic(name)) == ErrorCode.INVALID_TOPIC_EXCEPTION


@clients(Can.DELETE_TOPICS)
def test_a_deleted_topic_is_gone_and_can_be_created_anew_and_empty(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    client.produce(topic, [Record(b"old"), Record(b"older")])
    client.delete_topic(topic)
    eventually(lambda: topic not in client.list_topics())
    client.create_topic(topic)
    eventually(lambda: topic in client.list_topics())
    eventually(lambda: end_of(client, topic) == 0)
    assert end_of(client, topic) == 0


def end_of(client: Driver, topic: str) -> int:
    try:
        return client.offset_at(topic, LATEST).offset
    except ClientError as problem:
        if not problem.code.retriable:
            raise
        return -1


@clients(Can.DELETE_TOPICS)
def test_deleting_a_topic_that_does_not_exist_is_refused(client: Driver, fresh_name: str) -> None:
    assert refusal(lambda: client.delete_topic(fresh_name)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@clients(Can.CREATE_PARTITIONS)
def test_partitions_are_added_and_usable(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=1)
    client.create_partitions(topic, 4)
    eventually(lambda: len(client.describe_topic(topic)) == 4)
    client.produce(topic, [Record(b"3")], partition=3)
    [received] = client.consume(topic, 1, partition=3)
    assert (received.offset, received.record.value) == (0, b"3")


@clients(Can.CREATE_PARTITIONS)
@pytest.mark.parametrize("total", [2, 1])
def test_partitions_cannot_be_taken_away(client: Driver, total: int, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=2)
    assert refusal(lambda: client.create_partitions(topic, total)) == ErrorCode.INVALID_PARTITIONS


@clients(Can.CREATE_PARTITIONS)
def test_a_missing_topic_gets_no_partitions(client: Driver, fresh_name: str) -> None:
    assert refusal(lambda: client.create_partitions(fresh_name, 3)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@clients(Can.DESCRIBE_CONFIGS)
def test_a_topics_settings_show_their_values_and_where_they_come_from(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic(**{"retention.ms": "123456", "cleanup.policy": "compact"})
    config = client.describe_config("topic", topic)
    assert (config["retention.ms"].value, config["cleanup.policy"].value) == ("123456", "compact")
    assert not config["retention.ms"].is_default
    assert config["segment.bytes"].value == "1073741824"
    assert config["segment.bytes"].is_default
    assert config["max.message.bytes"].value == "1048588"
    assert not any(entry.read_only or entry.sensitive for entry in config.values())


@clients(Can.DESCRIBE_CONFIGS)
def test_a_brokers_settings_are_described(client: Driver) -> None:
    [node] = client.describe_cluster().nodes
    config = client.describe_config("broker", str(node))
    assert config["message.max.bytes"].value == "1048588"
    assert config["num.partitions"].value == "1"
    assert config["auto.create.topics.enable"].value == "true"
    assert config["node.id"].read_only
    assert not config["message.max.bytes"].read_only


@clients(Can.ALTER_CONFIGS)
def test_altering_replaces_all_settings_of_a_topic(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic(**{"retention.ms": "123456"})
    client.alter_config(topic, {"segment.bytes": "2000000"})
    # kafka-python reads the present settings and sends them along.
    kept = "123456" if client.name == "kafka_python" else "604800000"
    eventually(lambda: client.describe_config("topic", topic)["segment.bytes"].value == "2000000")
    assert client.describe_config("topic", topic)["retention.ms"].value == kept


@clients(Can.INCREMENTAL_ALTER_CONFIGS)
def test_changing_leaves_the_other_settings_of_a_topic(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic(**{"retention.ms": "123456", "flush.ms": "77"})
    client.change_config(topic, set_to={"segment.bytes": "2000000"}, delete=["flush.ms"])
    eventually(lambda: client.describe_config("topic", topic)["segment.bytes"].value == "2000000")
    config = client.describe_config("topic", topic)
    assert config["retention.ms"].value == "123456"
    assert config["flush.ms"].is_default


@clients(Can.ALTER_CONFIGS)
@pytest.mark.parametrize("setting", [("no.such.setting", "1"), ("retention.ms", "soon"), ("cleanup.policy", "burn")])
def test_a_bad_setting_is_refused_and_changes_nothing(
    client: Driver, setting: tuple[str, str], new_topic: NewTopic
) -> None:
    topic = new_topic()
    name, value = setting
    assert refusal(lambda: client.alter_config(topic, {name: value})) == ErrorCode.INVALID_CONFIG
    if Can.INCREMENTAL_ALTER_CONFIGS in client.can:
        assert refusal(lambda: client.change_config(topic, set_to={name: value})) == ErrorCode.INVALID_CONFIG
    assert client.describe_config("topic", topic)["retention.ms"].is_default


@clients(Can.ALTER_CONFIGS)
def test_a_changed_limit_takes_effect(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    client.produce(topic, [Record(b"x" * 5000)])
    client.alter_config(topic, {"max.message.bytes": "1000"})
    eventually(lambda: client.describe_config("topic", topic)["max.message.bytes"].value == "1000")
    assert refusal(lambda: client.produce(topic, [Record(b"x" * 5000)])) == ErrorCode.MESSAGE_TOO_LARGE


@clients(Can.DELETE_RECORDS)
def test_deleted_records_are_gone_and_the_rest_keeps_its_offsets(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    client.produce(topic, [Record(b"%d" % each) for each in range(10)])
    assert client.delete_records(topic, 4) == 4
    assert client.offset_at(topic, EARLIEST).offset == 4
    assert [each.record.value for each in client.consume(topic, 6)] == [b"4", b"5", b"6", b"7", b"8", b"9"]
    assert client.delete_records(topic, 2) == 4


@clients(Can.DELETE_RECORDS)
def test_all_records_can_be_deleted_and_offsets_go_on(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    client.produce(topic, [Record(b"%d" % each) for each in range(10)])
    assert client.delete_records(topic, -1) == 10
    assert client.offset_at(topic, EARLIEST).offset == client.offset_at(topic, LATEST).offset == 10
    client.produce(topic, [Record(b"next")])
    [received] = client.consume(topic, 1)
    assert (received.offset, received.record.value) == (10, b"next")


@clients(Can.DELETE_RECORDS)
def test_records_beyond_the_end_cannot_be_deleted(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    client.produce(topic, [Record(b"only")])
    assert refusal(lambda: client.delete_records(topic, 5)) == ErrorCode.OFFSET_OUT_OF_RANGE
    assert client.offset_at(topic, EARLIEST).offset == 0


@clients(Can.DESCRIBE_CLUSTER)
def test_the_cluster_is_one_node_that_is_its_own_controller(client: Driver, broker: UnderTest) -> None:
    cluster = client.describe_cluster()
    assert list(cluster.nodes.values()) == [broker.address]
    assert cluster.controller in cluster.nodes
    if client.name != "kcat":
        assert cluster.cluster_id


@clients(Can.DESCRIBE_LOG_DIRS)
def test_log_dirs_tell_the_size_of_each_partition(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=2)
    client.produce(topic, [Record(b"x" * 10_000)], partition=1)
    sizes = client.log_dir_sizes(topic)
    assert sizes[0] == 0
    assert 10_000 < sizes[1] < 10_200


@clients(Can.DESCRIBE_PRODUCERS, Can.IDEMPOTENCE)
def test_idempotent_producers_are_described(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    assert client.describe_producers(topic) == []
    client.produce(topic, [Record(b"%d" % each) for each in range(5)], Producing(idempotent=True))
    [producer] = client.describe_producers(topic)
    assert producer.producer_id >= 0
    assert (producer.epoch, producer.last_sequence) == (0, 4)


@clients(Can.DESCRIBE_QUORUM)
def test_the_quorum_is_led_by_this_node(client: Driver) -> None:
    assert client.quorum_leader() in client.describe_cluster().nodes


@clients(Can.DESCRIBE_FEATURES)
def test_features_have_levels(client: Driver) -> None:
    low, high = client.features()["metadata.version"]
    assert 0 < low <= high


@clients(Can.ELECT_LEADERS)
def test_the_preferred_leader_leads_already(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    assert refusal(lambda: client.elect_leader(topic)) == ErrorCode.ELECTION_NOT_NEEDED


@clients(Can.ELECT_LEADERS)
def test_a_missing_partition_elects_no_leader(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    assert refusal(lambda: client.elect_leader(topic, partition=9)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@clients(Can.LIST_CONFIG_RESOURCES)
def test_resources_with_settings_are_listed(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    resources = client.config_resources()
    assert topic in resources["topic"]
    assert {str(node) for node in client.describe_cluster().nodes} <= resources["broker"]


@clients(Can.DESCRIBE_TOPIC_PARTITIONS)
def test_a_topic_is_described_page_by_page(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=3)
    assert client.describe_topic_partitions(topic) == client.describe_topic(topic)
    assert sorted(client.describe_topic_partitions(topic)) == [0, 1, 2]


@clients(Can.DESCRIBE_TOPICS)
def test_describing_a_missing_topic_is_refused_and_creates_nothing(client: Driver, fresh_name: str) -> None:
    if client.name in ("aiokafka", "kafka_python"):
        return  # they ask for metadata with auto-creation on
    assert refusal(lambda: client.describe_topic(fresh_name)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert fresh_name not in client.list_topics()


@clients(Can.CLIENT_QUOTAS)
def test_quotas_are_kept(client: Driver, fresh_name: str) -> None:
    assert client.quotas(fresh_name) == {}
    client.set_quota(fresh_name, "producer_byte_rate", 1_000_000.0)
    eventually(lambda: client.quotas(fresh_name) == {"producer_byte_rate": 1_000_000.0})
    client.set_quota(fresh_name, "producer_byte_rate", None)
    eventually(lambda: client.quotas(fresh_name) == {})
