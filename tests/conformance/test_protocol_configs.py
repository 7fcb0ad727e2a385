"""Settings, quotas and the descriptions of node, quorum, producers and disks at the level of requests."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conformance.asking import batch_of, eventually, new_producer, now_ms, produce
from tests.conformance.conftest import NewTopic
from tests.conformance.raw import Wire
from tests.conformance.under_test import UnderTest

from lowwater.errors import ErrorCode
from lowwater.wire.messages import (
    AlterClientQuotasRequest,
    AlterConfigsRequest,
    DescribeClientQuotasRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    DescribeProducersRequest,
    DescribeQuorumRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
    MetadataRequest,
)
from lowwater.wire.messages.alter_client_quotas import EntityData, EntryData, OpData
from lowwater.wire.messages.alter_configs import AlterableConfig, AlterConfigsResource
from lowwater.wire.messages.describe_client_quotas import ComponentData
from lowwater.wire.messages.describe_configs import DescribeConfigsResource
from lowwater.wire.messages.describe_log_dirs import DescribableLogDirTopic
from lowwater.wire.messages.describe_producers import TopicRequest
from lowwater.wire.messages.describe_quorum import QuorumPartition, QuorumTopic
from lowwater.wire.messages.incremental_alter_configs import AlterableConfig as Change
from lowwater.wire.messages.incremental_alter_configs import AlterConfigsResource as Changes

TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)
FROM_TOPIC, FROM_BROKER, FROM_CLUSTER, FROM_FILE, FROM_DEFAULT = 1, 2, 3, 4, 5
EXACT, DEFAULT, ANY = range(3)


def node_id(wire: Wire) -> str:
    return str(wire.ask(MetadataRequest(topics=[])).brokers[0].node_id)


def describe(wire: Wire, kind: int, name: str, *keys: str, version: int = 4, **more: Any) -> Any:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=list(keys) or None)
    return wire.ask(DescribeConfigsRequest(resources=[resource], **more), version).results[0]


def setting(wire: Wire, topic: str, key: str) -> tuple[str | None, int]:
    [entry] = describe(wire, TOPIC, topic, key).configs
    return entry.value, entry.config_source


def alter(wire: Wire, kind: int, name: str, config: dict[str, str | None], *, version: int = 2, **more: Any) -> int:
    entries = [AlterableConfig(name=key, value=value) for key, value in config.items()]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=entries)
    return int(wire.ask(AlterConfigsRequest(resources=[resource], **more), version).responses[0].error_code)


def change(
    wire: Wire, kind: int, name: str, *changes: tuple[str, int, str | None], version: int = 1, **more: Any
) -> int:
    entries = [Change(name=key, config_operation=operation, value=value) for key, operation, value in changes]
    resource = Changes(resource_type=kind, resource_name=name, configs=entries)
    return int(wire.ask(IncrementalAlterConfigsRequest(resources=[resource], **more), version).responses[0].error_code)


# ---- DescribeConfigs


@pytest.mark.parametrize("version", range(1, 5))
def test_every_version_describes_a_topics_settings(wire: Wire, version: int, new_topic: NewTopic) -> None:
    topic = new_topic(**{"retention.ms": "999"})
    answer = describe(wire, TOPIC, topic, version=version)
    assert (answer.error_code, answer.resource_type, answer.resource_name) == (0, TOPIC, topic)
    entries = {each.name: each for each in answer.configs}
    assert (entries["retention.ms"].value, entries["retention.ms"].config_source) == ("999", FROM_TOPIC)
    assert (entries["segment.bytes"].value, entries["segment.bytes"].config_source) == ("1073741824", FROM_DEFAULT)
    assert not any(each.read_only or each.is_sensitive for each in answer.configs)
    assert not any(each.synonyms for each in answer.configs)
    if version >= 3:
        kinds = {name: entries[name].config_type for name in ("retention.ms", "cleanup.policy", "preallocate")}
        assert kinds == {"retention.ms": 5, "cleanup.policy": 7, "preallocate": 1}


# Apache Kafka 4.3's settings of a topic, with their defaults and types.
TOPIC_SETTINGS = {
    "cleanup.policy": ("delete", 7),
    "compression.gzip.level": ("-1", 3),
    "compression.lz4.level": ("9", 3),
    "compression.type": ("producer", 2),
    "compression.zstd.level": ("3", 3),
    "delete.retention.ms": ("86400000", 5),
    "file.delete.delay.ms": ("60000", 5),
    "flush.messages": ("9223372036854775807", 5),
    "flush.ms": ("9223372036854775807", 5),
    "follower.replication.throttled.replicas": ("", 7),
    "index.interval.bytes": ("4096", 3),
    "leader.replication.throttled.replicas": ("", 7),
    "local.retention.bytes": ("-2", 5),
    "local.retention.ms": ("-2", 5),
    "max.compaction.lag.ms": ("9223372036854775807", 5),
    "max.message.bytes": ("1048588", 3),
    "message.timestamp.after.max.ms": ("3600000", 5),
    "message.timestamp.before.max.ms": ("9223372036854775807", 5),
    "message.timestamp.type": ("CreateTime", 2),
    "min.cleanable.dirty.ratio": ("0.5", 6),
    "min.compaction.lag.ms": ("0", 5),
    "min.insync.replicas": ("1", 3),
    "preallocate": ("false", 1),
    "remote.log.copy.disable": ("false", 1),
    "remote.log.delete.on.disable": ("false", 1),
    "remote.storage.enable": ("false", 1),
    "retention.bytes": ("-1", 5),
    "retention.ms": ("604800000", 5),
    "segment.bytes": ("1073741824", 3),
    "segment.index.bytes": ("10485760", 3),
    "segment.jitter.ms": ("0", 5),
    "segment.ms": ("604800000", 5),
    "unclean.leader.election.enable": ("false", 1),
}


def test_all_settings_of_a_topic_are_listed_with_default_and_type(wire: Wire, new_topic: NewTopic) -> None:
    answer = describe(wire, TOPIC, new_topic())
    found = {each.name: (each.value, each.config_type) for each in answer.configs}
    assert TOPIC_SETTINGS.items() <= found.items()


def test_only_the_asked_settings_are_described(wire: Wire, new_topic: NewTopic) -> None:
    answer = describe(wire, TOPIC, new_topic(), "retention.ms", "flush.ms", "no.such.setting")
    assert sorted(each.name for each in answer.configs) == ["flush.ms", "retention.ms"]


def test_synonyms_tell_every_place_a_value_could_come_from(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic(**{"max.message.bytes": "12345"})
    [entry] = describe(wire, TOPIC, topic, "max.message.bytes", include_synonyms=True).configs
    assert [(each.name, each.value, each.source) for each in entry.synonyms] == [
        ("max.message.bytes", "12345", FROM_TOPIC),
        ("message.max.bytes", "1048588", FROM_DEFAULT),
    ]


def test_documentation_comes_when_asked(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic()
    [entry] = describe(wire, TOPIC, topic, "retention.ms", include_documentation=True).configs
    assert entry.documentation
    [entry] = describe(wire, TOPIC, topic, "retention.ms").configs
    assert entry.documentation is None


def test_a_missing_topic_has_no_settings(wire: Wire, fresh_name: str) -> None:
    answer = describe(wire, TOPIC, fresh_name)
    assert (answer.error_code, answer.configs) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])
    assert describe(wire, TOPIC, "a b").error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("name", ["99", "not-a-number"])
def test_settings_of_another_broker_are_refused(wire: Wire, name: str) -> None:
    assert describe(wire, BROKER, name).error_code == ErrorCode.INVALID_REQUEST


def test_the_brokers_settings_are_described(wire: Wire) -> None:
    entries = {each.name: each for each in describe(wire, BROKER, node_id(wire)).configs}
    limit = entries["message.max.bytes"]
    assert (limit.value, limit.read_only, limit.config_source, limit.config_type) == ("1048588", False, FROM_DEFAULT, 3)
    assert entries["node.id"].read_only
    assert entries["node.id"].value == node_id(wire)
    assert entries["log.retention.hours"].value == "168"
    assert entries["num.partitions"].value == "1"


def test_cluster_wide_settings_show_only_what_was_set(wire: Wire) -> None:
    answer = describe(wire, BROKER, "", "log.retention.bytes")
    assert (answer.error_code, answer.configs) == (0, [])


def test_an_unknown_kind_of_resource_is_refused(wire: Wire) -> None:
    assert describe(wire, 99, "x").error_code == ErrorCode.INVALID_REQUEST


# ---- AlterConfigs


@pytest.mark.parametrize("version", range(3))
def test_altering_replaces_every_setting(wire: Wire, version: int, new_topic: NewTopic) -> None:
    topic = new_topic(**{"retention.ms": "999"})
    assert alter(wire, TOPIC, topic, {"segment.bytes": "2000000"}, version=version) == 0
    eventually(lambda: setting(wire, topic, "segment.bytes") == ("2000000", FROM_TOPIC))
    assert setting(wire, topic, "retention.ms") == ("604800000", FROM_DEFAULT)


BAD_SETTINGS = [
    {"no.such": "1"},
    {"retention.ms": "x"},
    {"cleanup.policy": "burn"},
    {"min.cleanable.dirty.ratio": "2"},
    {"segment.bytes": "0"},
    {"message.timestamp.type": "Never"},
    {"compression.type": "zip"},
    {"preallocate": "maybe"},
]


@pytest.mark.parametrize("config", BAD_SETTINGS, ids=lambda config: "=".join(*config.items()))
def test_bad_settings_are_refused_and_change_nothing(wire: Wire, config: dict[str, str], new_topic: NewTopic) -> None:
    topic = new_topic()
    assert alter(wire, TOPIC, topic, {"flush.ms": "5", **config}) == ErrorCode.INVALID_CONFIG
    changes = [(key, SET, value) for key, value in config.items()]
    assert change(wire, TOPIC, topic, ("flush.ms", SET, "5"), *changes) == ErrorCode.INVALID_CONFIG
    assert setting(wire, topic, "flush.ms") == ("9223372036854775807", FROM_DEFAULT)


def test_validating_alters_nothing(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic()
    assert alter(wire, TOPIC, topic, {"flush.ms": "5"}, validate_only=True) == 0
    assert alter(wire, TOPIC, topic, {"flush.ms": "x"}, validate_only=True) == ErrorCode.INVALID_CONFIG
    assert change(wire, TOPIC, topic, ("flush.ms", SET, "5"), validate_only=True) == 0
    assert change(wire, TOPIC, topic, ("flush.ms", SET, "x"), validate_only=True) == ErrorCode.INVALID_CONFIG
    assert setting(wire, topic, "flush.ms") == ("9223372036854775807", FROM_DEFAULT)


def test_settings_of_a_missing_topic_are_refused(wire: Wire, fresh_name: str) -> None:
    assert alter(wire, TOPIC, fresh_name, {"flush.ms": "5"}) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert change(wire, TOPIC, fresh_name, ("flush.ms", SET, "5")) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_null_values_are_refused(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic()
    assert alter(wire, TOPIC, topic, {"flush.ms": None}) == ErrorCode.INVALID_REQUEST
    assert change(wire, TOPIC, topic, ("flush.ms", SET, None)) == ErrorCode.INVALID_REQUEST


# ---- IncrementalAlterConfigs


@pytest.mark.parametrize("version", range(2))
def test_changes_leave_the_rest(wire: Wire, version: int, new_topic: NewTopic) -> None:
    topic = new_topic(**{"retention.ms": "999", "flush.ms": "7"})
    assert change(wire, TOPIC, topic, ("flush.ms", DELETE, None), ("segment.ms", SET, "8"), version=version) == 0
    eventually(lambda: setting(wire, topic, "segment.ms") == ("8", FROM_TOPIC))
    assert setting(wire, topic, "retention.ms") == ("999", FROM_TOPIC)
    assert setting(wire, topic, "flush.ms") == ("9223372036854775807", FROM_DEFAULT)


def test_lists_are_appended_to_and_subtracted_from(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic()
    assert change(wire, TOPIC, topic, ("cleanup.policy", APPEND, "compact")) == 0
    eventually(lambda: setting(wire, topic, "cleanup.policy") == ("delete,compact", FROM_TOPIC))
    assert change(wire, TOPIC, topic, ("cleanup.policy", SUBTRACT, "delete")) == 0
    eventually(lambda: setting(wire, topic, "cleanup.policy") == ("compact", FROM_TOPIC))


def test_only_lists_are_appended_to(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic()
    assert change(wire, TOPIC, topic, ("flush.ms", APPEND, "5")) == ErrorCode.INVALID_CONFIG
    assert change(wire, TOPIC, topic, ("flush.ms", SUBTRACT, "5")) == ErrorCode.INVALID_CONFIG


def test_a_setting_changed_twice_in_one_request_is_refused(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic()
    code = change(wire, TOPIC, topic, ("flush.ms", SET, "5"), ("flush.ms", SET, "6"))
    assert code == ErrorCode.INVALID_REQUEST


def test_an_unknown_operation_is_refused(wire: Wire, new_topic: NewTopic) -> None:
    # Apache Kafka says only that something went wrong: docs/differences.md.
    refused = (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.INVALID_REQUEST)
    assert change(wire, TOPIC, new_topic(), ("flush.ms", 9, "5")) in refused


def test_deleting_a_setting_that_is_not_set_changes_nothing(wire: Wire, new_topic: NewTopic) -> None:
    assert change(wire, TOPIC, new_topic(), ("flush.ms", DELETE, None)) == 0


def test_dynamic_settings_of_the_broker_take_effect_and_go_again(wire: Wire, new_topic: NewTopic) -> None:
    node = node_id(wire)
    name = "log.retention.ms"

    def value() -> Any:
        [entry] = describe(wire, BROKER, node, name).configs
        return entry.value, entry.config_source

    topic = new_topic()
    assert change(wire, BROKER, node, (name, SET, "88888888")) == 0
    try:
        eventually(lambda: value() == ("88888888", FROM_BROKER))
        assert setting(wire, topic, "retention.ms") == ("88888888", FROM_BROKER)
    finally:
        assert change(wire, BROKER, node, (name, DELETE, None)) == 0
    eventually(lambda: value()[1] == FROM_DEFAULT)
    assert setting(wire, topic, "retention.ms") == ("604800000", FROM_DEFAULT)


def test_cluster_wide_settings_apply_to_the_broker(wire: Wire) -> None:
    node, name = node_id(wire), "log.retention.bytes"

    def value() -> Any:
        [entry] = describe(wire, BROKER, node, name).configs
        return entry.value, entry.config_source

    assert change(wire, BROKER, "", (name, SET, "123456789")) == 0
    try:
        eventually(lambda: value() == ("123456789", FROM_CLUSTER))
        [entry] = describe(wire, BROKER, "", name).configs
        assert (entry.name, entry.value, entry.config_source) == (name, "123456789", FROM_CLUSTER)
    finally:
        assert change(wire, BROKER, "", (name, DELETE, None)) == 0
    eventually(lambda: value() == ("-1", FROM_DEFAULT))


def test_settings_that_need_a_restart_cannot_be_changed(wire: Wire) -> None:
    assert change(wire, BROKER, node_id(wire), ("node.id", SET, "7")) == ErrorCode.INVALID_REQUEST
    assert change(wire, BROKER, "99", ("log.retention.ms", SET, "7")) == ErrorCode.INVALID_REQUEST


# ---- ListConfigResources


def test_resources_are_listed_by_kind(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic()

    def listed(*kinds: int) -> set[tuple[int, str]]:
        answer = wire.ask(ListConfigResourcesRequest(resource_types=list(kinds)), 1)
        assert answer.error_code == 0
        return {(each.resource_type, each.resource_name) for each in answer.config_resources}

    assert {(TOPIC, topic), (BROKER, node_id(wire)), (LOGGER, node_id(wire))} <= listed()
    assert {kind for kind, _ in listed(TOPIC)} == {TOPIC}
    assert listed(BROKER) == {(BROKER, node_id(wire))}
    assert wire.ask(ListConfigResourcesRequest(resource_types=[99]), 1).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert wire.ask(ListConfigResourcesRequest(), 0).config_resources == []


# ---- DescribeCluster, DescribeQuorum, DescribeLogDirs, DescribeProducers, FindCoordinator


@pytest.mark.parametrize("version", range(3))
def test_every_version_describes_the_cluster(wire: Wire, version: int, broker: UnderTest) -> None:
    answer = wire.ask(DescribeClusterRequest(), version)
    [node] = answer.brokers
    assert (node.host, node.port, node.rack) == (*broker.address, None)
    assert (answer.error_code, answer.controller_id, answer.cluster_authorized_operations) == (
        0,
        node.broker_id,
        -2147483648,
    )
    assert answer.cluster_id == wire.ask(MetadataRequest(topics=[])).cluster_id
    asked = wire.ask(DescribeClusterRequest(include_cluster_authorized_operations=True), version)
    assert asked.cluster_authorized_operations == 0b1111110100000


def test_a_broker_does_not_describe_the_controllers(wire: Wire) -> None:
    assert wire.ask(DescribeClusterRequest(endpoint_type=2), 1).error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    assert wire.ask(DescribeClusterRequest(endpoint_type=9), 1).error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE


@pytest.mark.parametrize("version", range(3))
def test_the_quorum_is_this_node(wire: Wire, version: int) -> None:
    asked = QuorumTopic(topic_name="__cluster_metadata", partitions=[QuorumPartition(partition_index=0)])
    answer = wire.ask(DescribeQuorumRequest(topics=[asked]), version)
    assert answer.error_code == 0
    [partition] = answer.topics[0].partitions
    assert (partition.error_code, str(partition.leader_id)) == (0, node_id(wire))
    assert [str(each.replica_id) for each in partition.current_voters] == [node_id(wire)]
    assert partition.leader_epoch >= 0
    assert partition.high_watermark >= 0


def test_the_quorum_of_another_topic_is_unknown(wire: Wire) -> None:
    asked = QuorumTopic(topic_name="orders", partitions=[QuorumPartition(partition_index=0)])
    answer = wire.ask(DescribeQuorumRequest(topics=[asked]))
    assert [each.error_code for topic in answer.topics for each in topic.partitions] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ]


@pytest.mark.parametrize("version", range(1, 6))
def test_every_version_describes_the_disk(wire: Wire, version: int, new_topic: NewTopic, fresh_name: str) -> None:
    topic = new_topic(partitions=2)
    produce(wire, topic, batch_of(b"v" * 5000), partition=1)
    asked = [
        DescribableLogDirTopic(topic=topic, partitions=[0, 1, 7]),
        DescribableLogDirTopic(topic=fresh_name, partitions=[0]),
    ]
    [folder] = wire.ask(DescribeLogDirsRequest(topics=asked), version).results
    assert folder.error_code == 0
    assert folder.log_dir.startswith("/")
    sizes = {each.partition_index: (each.partition_size, each.offset_lag) for each in folder.topics[0].partitions}
    assert [one.name for one in folder.topics] == [topic]
    assert sizes == {0: (0, 0), 1: (len(batch_of(b"v" * 5000)), 0)}
    if version >= 4:
        assert folder.total_bytes > folder.usable_bytes > 0


def test_null_asks_for_every_topic_on_the_disk(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic()
    [folder] = wire.ask(DescribeLogDirsRequest(topics=None)).results
    assert topic in {each.name for each in folder.topics}


def test_producers_are_described_with_their_last_sequence(wire: Wire, new_topic: NewTopic, fresh_name: str) -> None:
    topic, (producer_id, epoch) = new_topic(), new_producer(wire)
    stamp = now_ms()
    batch = batch_of(b"1", b"2", timestamp=stamp, producer_id=producer_id, producer_epoch=epoch, base_sequence=0)
    assert produce(wire, topic, batch).error_code == 0
    asked = [
        TopicRequest(name=topic, partition_indexes=[0, 3]),
        TopicRequest(name=fresh_name, partition_indexes=[0]),
    ]
    answer = wire.ask(DescribeProducersRequest(topics=asked))
    found = {(one.name, each.partition_index): each for one in answer.topics for each in one.partitions}
    assert found[topic, 3].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert found[fresh_name, 0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    [state] = found[topic, 0].active_producers
    assert (state.producer_id, state.producer_epoch, state.last_sequence) == (producer_id, epoch, 1)
    assert (state.last_timestamp, state.coordinator_epoch, state.current_txn_start_offset) == (stamp, -1, -1)


@pytest.mark.parametrize("version", range(7))
def test_every_version_finds_a_groups_coordinator(wire: Wire, version: int, broker: UnderTest) -> None:
    if version < 4:
        request = FindCoordinatorRequest(key="g", key_type=0, coordinator_keys=[])
    else:
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])

    def answer() -> Any:
        found = wire.ask(request, version)
        return found if version < 4 else found.coordinators[0]

    # Apache Kafka first creates its internal topic.
    eventually(lambda: answer().error_code == 0)
    assert (answer().host, answer().port) == broker.address


# ---- client quotas


def quota(user: str, key: str, value: float | None, *, kind: str = "user") -> EntryData:
    operation = OpData(key=key, value=value or 0.0, remove=value is None)
    return EntryData(entity=[EntityData(entity_type=kind, entity_name=user)], ops=[operation])


def alter_quota(wire: Wire, entry: EntryData, **more: Any) -> int:
    return int(wire.ask(AlterClientQuotasRequest(entries=[entry], **more)).entries[0].error_code)


def quotas(wire: Wire, user: str | None, *, match: int = EXACT) -> dict[str, float]:
    component = ComponentData(entity_type="user", match_type=match, match=user)
    answer = wire.ask(DescribeClientQuotasRequest(components=[component], strict=False))
    assert answer.error_code == 0
    return {each.key: each.value for entry in answer.entries or [] for each in entry.values}


def test_quotas_are_set_described_and_removed(wire: Wire, fresh_name: str) -> None:
    assert alter_quota(wire, quota(fresh_name, "consumer_byte_rate", 5000.0)) == 0
    eventually(lambda: quotas(wire, fresh_name) == {"consumer_byte_rate": 5000.0})
    assert alter_quota(wire, quota(fresh_name, "consumer_byte_rate", None)) == 0
    eventually(lambda: quotas(wire, fresh_name) == {})


def test_validating_sets_no_quota(wire: Wire, fresh_name: str) -> None:
    assert alter_quota(wire, quota(fresh_name, "consumer_byte_rate", 5000.0), validate_only=True) == 0
    assert quotas(wire, fresh_name) == {}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (quota("u", "no_such_rate", 1.0), ErrorCode.INVALID_REQUEST),
        (quota("u", "consumer_byte_rate", -1.0), ErrorCode.INVALID_REQUEST),
        (quota("u", "consumer_byte_rate", 1.0, kind="colour"), ErrorCode.INVALID_REQUEST),
        (EntryData(entity=[], ops=[OpData(key="consumer_byte_rate", value=1.0)]), ErrorCode.INVALID_REQUEST),
    ],
    ids=["unknown-rate", "negative", "unknown-entity", "no-entity"],
)
def test_a_bad_quota_is_refused(wire: Wire, entry: EntryData, expected: ErrorCode) -> None:
    assert alter_quota(wire, entry) == expected


def test_a_bad_quota_question_is_refused(wire: Wire) -> None:
    component = ComponentData(entity_type="colour", match_type=EXACT, match="red")
    answer = wire.ask(DescribeClientQuotasRequest(components=[component], strict=False))
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    component = ComponentData(entity_type="colour", match_type=7, match=None)
    answer = wire.ask(DescribeClientQuotasRequest(components=[component], strict=False))
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    twice = [ComponentData(entity_type="user", match_type=ANY, match=None)] * 2
    assert wire.ask(DescribeClientQuotasRequest(components=twice)).error_code == ErrorCode.INVALID_REQUEST
