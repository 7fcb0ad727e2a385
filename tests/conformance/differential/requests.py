"""Requests made of a few interesting values each: known and unknown topics, good and bad offsets, epochs, settings."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.conformance.asking import NO_ID, UNKNOWN_ID, Ask, batch_of, fetch_request
from tests.conformance.differential.shots import Ids, Shot

from lowwater.wire.messages import (
    alter_client_quotas,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_producers,
    describe_quorum,
    describe_topic_partitions,
    elect_leaders,
    incremental_alter_configs,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)

T = 1_700_000_000_000
TRIMMED = "trimmed"  # the one topic of which records are deleted
EXISTING: dict[str, dict[str, str]] = {"one": {}, "two": {}, TRIMMED: {}, "compacted": {"cleanup.policy": "compact"}}
TOPICS = [*EXISTING, "missing", "a b", "x" * 250]
PARTITIONS = [0, 0, 0, 1, 1, 2, 5, -1, 2**31 - 1]
OFFSETS = [0, 1, 2, 3, 5, 8, 12, 50, -1, -2, 2**62]
TIMES = [-1, -2, -3, -4, -5, -6, -7, 0, 1, T, T + 5, T + 20, 2**62]
EPOCHS = [-1, -1, -1, 0, 0, 1, 5, -2]
SETTINGS = [
    ("retention.ms", ["5", "x", "-1", "-2", "9223372036854775808"]),
    ("retention.bytes", ["-1", "-2", "7"]),
    ("cleanup.policy", ["compact", "delete,compact", "burn", "compact,compact"]),
    ("compression.type", ["lz4", "zip"]),
    ("compression.gzip.level", ["9", "99"]),
    ("min.cleanable.dirty.ratio", ["1.0", "1.1", "abc"]),
    ("min.insync.replicas", ["2", "0"]),
    ("max.message.bytes", ["0", "-1"]),
    ("message.timestamp.type", ["LogAppendTime", "Never"]),
    ("message.timestamp.after.max.ms", ["0", "-1"]),
    ("segment.ms", ["1", "0"]),
    ("segment.index.bytes", ["4", "3"]),
    ("preallocate", ["true", "yes"]),
    ("flush.messages", ["1", "0"]),
    ("leader.replication.throttled.replicas", ["*", "0:1", "zz"]),
    ("unclean.leader.election.enable", ["true", "1"]),
    ("delete.retention.ms", ["0", "-1"]),
    ("index.interval.bytes", ["0", "-1"]),
    ("no.such.setting", ["1"]),
]

BROKER = 4


def id_of(ids: Ids, topic: str) -> bytes:
    return ids.get(topic, UNKNOWN_ID)


def produce_shot(pick: random.Random) -> Shot:
    version = pick.randrange(3, 14)
    topic, partition, acks, batch = pick.choice(TOPICS), pick.choice(PARTITIONS), pick.choice([-1, 1]), _batch(pick)

    def make(ids: Ids) -> Any:
        data = [produce.PartitionProduceData(index=partition, records=bytearray(batch))]
        named = produce.TopicProduceData(name=topic, topic_id=id_of(ids, topic), partition_data=data)
        return produce.ProduceRequest(acks=acks, timeout_ms=5000, topic_data=[named])

    return Shot("produce", version, make)


def _batch(pick: random.Random) -> bytearray:
    header: dict[str, int] = {"codec": pick.choice([0, 0, 0, 1, 2, 3, 4])}
    if pick.random() < 0.4:
        header |= {"producer_id": pick.choice([900_001, 900_002]), "producer_epoch": pick.choice([0, 0, 0, 1, 2])}
        header["base_sequence"] = pick.choice([0, 1, 2, 3, 4, 5, 6, 2**31 - 1])
    values = [pick.choice([b"v", None, b""]) for _ in range(pick.choice([1, 1, 2, 3]))]
    batch = batch_of(*values, key=pick.choice([b"k", b"k", None]), timestamp=T + pick.randrange(30), **header)
    return batch if pick.random() > 0.05 else batch[: pick.randrange(len(batch))]


def fetch_shot(pick: random.Random) -> Shot:
    version = pick.randrange(4, 19)
    topics = sorted({pick.choice(TOPICS) for _ in range(pick.choice([1, 1, 2, 3]))})
    if version >= 13:  # there, all unknown ones have the same id
        topics = [topic for topic in topics if topic in EXISTING] or ["missing"]
    wishes = [(topic, pick.choice(OFFSETS), pick.choice(PARTITIONS), pick.choice(EPOCHS)) for topic in topics]
    last_epoch = pick.choice(EPOCHS) if version >= 12 else -1
    isolation, limit = pick.choice([0, 1]), pick.choice([0, 1, 1 << 20])

    def make(ids: Ids) -> Any:
        asks = [
            Ask(topic, offset, partition, 1 << 20, epoch, last_epoch, id_of(ids, topic))
            for topic, offset, partition, epoch in wishes
        ]
        return fetch_request(*asks, max_bytes=limit, isolation_level=isolation)

    return Shot("fetch", version, make)


def list_offsets_shot(pick: random.Random) -> Shot:
    version = pick.randrange(1, 12)
    isolation = pick.choice([0, 1]) if version >= 2 else 0
    name = pick.choice(TOPICS)
    # Apache Kafka may answer -3 with an offset below the log start: docs/differences.md.
    times = [each for each in TIMES if each != -3 or name != TRIMMED]
    wishes = [
        list_offsets.ListOffsetsPartition(
            partition_index=pick.choice(PARTITIONS),
            timestamp=pick.choice(times),
            current_leader_epoch=pick.choice(EPOCHS),
        )
        for _ in range(pick.choice([1, 1, 2]))
    ]
    topic = list_offsets.ListOffsetsTopic(name=name, partitions=wishes)
    return Shot(
        "list_offsets",
        version,
        lambda ids: list_offsets.ListOffsetsRequest(isolation_level=isolation, topics=[topic]),
    )


def metadata_shot(pick: random.Random) -> Shot:
    version = pick.randrange(4, 14)
    topics = sorted({pick.choice(TOPICS) for _ in range(pick.choice([1, 2, 3]))})
    by_id = version >= 12 and pick.random() < 0.3
    told = version >= 8 and pick.random() < 0.3

    def make(ids: Ids) -> Any:
        asked = [
            metadata.MetadataRequestTopic(topic_id=id_of(ids, topic), name=None)
            if by_id
            else metadata.MetadataRequestTopic(topic_id=NO_ID, name=topic)
            for topic in topics
        ]
        return metadata.MetadataRequest(
            topics=asked, allow_auto_topic_creation=False, include_topic_authorized_operations=told
        )

    return Shot("metadata", version, make)


def epoch_shot(pick: random.Random) -> Shot:
    wish = offset_for_leader_epoch.OffsetForLeaderPartition(
        partition=pick.choice(PARTITIONS),
        current_leader_epoch=pick.choice(EPOCHS),
        leader_epoch=pick.choice([-1, 0, 1, 5]),
    )
    topic = offset_for_leader_epoch.OffsetForLeaderTopic(topic=pick.choice(TOPICS), partitions=[wish])
    request = offset_for_leader_epoch.OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic])
    return Shot("offset_for_leader_epoch", pick.randrange(2, 5), lambda ids: request)


def delete_records_shot(pick: random.Random) -> Shot:
    wish = delete_records.DeleteRecordsPartition(
        partition_index=pick.choice(PARTITIONS), offset=pick.choice([0, 1, 2, -1, -2, 100])
    )
    name = pick.choice([TRIMMED, TRIMMED, "compacted", "missing", "a b"])
    topic = delete_records.DeleteRecordsTopic(name=name, partitions=[wish])
    request = delete_records.DeleteRecordsRequest(topics=[topic], timeout_ms=3000)
    return Shot("delete_records", pick.randrange(3), lambda ids: request)


def setting(pick: random.Random) -> tuple[str, str]:
    name, values = pick.choice(SETTINGS)
    return name, pick.choice(values)


def create_topics_shot(pick: random.Random) -> Shot:
    name = pick.choice(["new", "new", "one", "a b", "", "..", "n" * 249, "n" * 250, "новый", "__cluster_metadata"])
    counts = pick.choice([(1, 1), (1, 1), (1, 1), (-1, -1), (0, 1), (-2, 1), (1, 0), (1, 2), (3, -3)])
    settings = [setting(pick) for _ in range(pick.choice([0, 1, 1, 2]))]
    topic = create_topics.CreatableTopic(
        name=name,
        num_partitions=counts[0],
        replication_factor=counts[1],
        assignments=[],
        configs=[create_topics.CreatableTopicConfig(name=key, value=value) for key, value in dict(settings).items()],
    )
    request = create_topics.CreateTopicsRequest(topics=[topic], validate_only=True)
    return Shot("create_topics", pick.randrange(2, 7), lambda ids: request)


def create_partitions_shot(pick: random.Random) -> Shot:
    wish = create_partitions.CreatePartitionsTopic(
        name=pick.choice(["one", "missing", "", "a b"]), count=pick.choice([0, -1, 1, 2, 3, 4, 10_001])
    )
    request = create_partitions.CreatePartitionsRequest(topics=[wish], timeout_ms=3000, validate_only=True)
    return Shot("create_partitions", pick.randrange(4), lambda ids: request)


def delete_topics_shot(pick: random.Random) -> Shot:
    state = delete_topics.DeleteTopicState(name=pick.choice(["missing", "", "a b"]))
    request = delete_topics.DeleteTopicsRequest(topics=[state], topic_names=[], timeout_ms=3000)
    return Shot("delete_topics", 6, lambda ids: request)


def change_config_shot(pick: random.Random) -> Shot:
    kind, name = pick.choice([(2, "one"), (2, "one"), (2, "one"), (4, "1"), (4, "9"), (4, "zz"), (99, "q")])
    key, value = setting(pick)
    if kind == BROKER and key == "min.insync.replicas":  # Apache Kafka guards it as its own
        key = "log.retention.ms"
    operation = pick.choice([0, 0, 0, 1, 2, 3])
    change = incremental_alter_configs.AlterableConfig(
        name=key, config_operation=operation, value=None if operation == 1 else value
    )
    resource = incremental_alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[change])
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)
    return Shot("incremental_alter_configs", pick.randrange(2), lambda ids: request)


def describe_configs_shot(pick: random.Random) -> Shot:
    kind, name = pick.choice(
        [(2, "one"), (2, "missing"), (2, ""), (2, "a b"), (4, "9"), (4, "zz"), (99, "q"), (0, "x")]
    )
    keys = pick.choice([["retention.ms", "segment.bytes"], ["max.message.bytes"], ["x"]])
    resource = describe_configs.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    request = describe_configs.DescribeConfigsRequest(resources=[resource], include_synonyms=pick.random() < 0.5)
    return Shot("describe_configs", pick.randrange(1, 5), lambda ids: request)


def describe_partitions_shot(pick: random.Random) -> Shot:
    asked = [describe_topic_partitions.TopicRequest(name=topic) for topic in sorted(set(pick.choices(TOPICS, k=2)))]
    request = describe_topic_partitions.DescribeTopicPartitionsRequest(
        topics=asked, response_partition_limit=pick.choice([2000, 1, 2])
    )
    return Shot("describe_topic_partitions", 0, lambda ids: request)


def describe_producers_shot(pick: random.Random) -> Shot:
    asked = describe_producers.TopicRequest(name=pick.choice(TOPICS), partition_indexes=[pick.choice(PARTITIONS)])
    request = describe_producers.DescribeProducersRequest(topics=[asked])
    return Shot("describe_producers", 0, lambda ids: request)


def elect_leaders_shot(pick: random.Random) -> Shot:
    asked = elect_leaders.TopicPartitions(topic=pick.choice(TOPICS), partitions=[pick.choice(PARTITIONS)])
    request = elect_leaders.ElectLeadersRequest(topic_partitions=[asked], timeout_ms=3000)
    return Shot("elect_leaders", pick.randrange(3), lambda ids: request)


def quota_shot(pick: random.Random) -> Shot:
    kind, name = pick.choice(["user", "client-id", "ip", "colour"]), pick.choice(["u", None, "", "127.0.0.1", "no ip"])
    key = pick.choice(["producer_byte_rate", "request_percentage", "connection_creation_rate", "no_such_rate"])
    change = alter_client_quotas.OpData(key=key, value=pick.choice([1.0, 0.0, -1.0, 1.5]), remove=pick.random() < 0.2)
    entry = alter_client_quotas.EntryData(
        entity=[alter_client_quotas.EntityData(entity_type=kind, entity_name=name)], ops=[change]
    )
    request = alter_client_quotas.AlterClientQuotasRequest(entries=[entry], validate_only=True)
    return Shot("alter_client_quotas", pick.randrange(2), lambda ids: request)


def describe_quotas_shot(pick: random.Random) -> Shot:
    component = describe_client_quotas.ComponentData(
        entity_type=pick.choice(["user", "client-id", "ip", "colour", ""]),
        match_type=pick.choice([0, 1, 2, 7]),
        match=pick.choice(["u", None]),
    )
    request = describe_client_quotas.DescribeClientQuotasRequest(components=[component])
    return Shot("describe_client_quotas", pick.randrange(2), lambda ids: request)


def describe_cluster_shot(pick: random.Random) -> Shot:
    version = pick.randrange(3)
    kind = pick.choice([0, 1, 2, 3]) if version >= 1 else 1
    request = describe_cluster.DescribeClusterRequest(endpoint_type=kind)
    return Shot("describe_cluster", version, lambda ids: request)


def describe_quorum_shot(pick: random.Random) -> Shot:
    name, partition = pick.choice([("__cluster_metadata", 1), ("x", 0)])
    asked = describe_quorum.QuorumTopic(
        topic_name=name, partitions=[describe_quorum.QuorumPartition(partition_index=partition)]
    )
    return Shot("describe_quorum", pick.randrange(3), lambda ids: describe_quorum.DescribeQuorumRequest(topics=[asked]))


SHOTS: list[Callable[[random.Random], Shot]] = [
    produce_shot,
    produce_shot,
    produce_shot,
    fetch_shot,
    fetch_shot,
    fetch_shot,
    list_offsets_shot,
    list_offsets_shot,
    metadata_shot,
    epoch_shot,
    delete_records_shot,
    create_topics_shot,
    create_topics_shot,
    create_partitions_shot,
    delete_topics_shot,
    change_config_shot,
    change_config_shot,
    describe_configs_shot,
    describe_partitions_shot,
    describe_producers_shot,
    elect_leaders_shot,
    quota_shot,
    describe_quotas_shot,
    describe_cluster_shot,
    describe_quorum_shot,
]
