"""Metadata: brokers, topics and their partitions."""

from lowwater.wire.schema import Bool, Int16, Int32, String, Uuid, between, message, since, struct


@struct
class MetadataRequestTopic:
    """A topic by name or, since v10, by id."""

    topic_id: Uuid = since(10, ignorable=True)
    name: String | None = since(0, null=10)


@message(key=3, versions=(0, 13), flexible=9)
class MetadataRequest:
    """Null topics ask for all of them; in v0 an empty list does."""

    topics: list[MetadataRequestTopic] | None = since(0, null=1)
    allow_auto_topic_creation: Bool = since(4, default=True)
    include_cluster_authorized_operations: Bool = between(8, 10)
    include_topic_authorized_operations: Bool = since(8)


@struct
class MetadataResponseBroker:
    """A broker and where it can be reached."""

    node_id: Int32
    host: String
    port: Int32
    rack: String | None = since(1, ignorable=True)


@struct
class MetadataResponsePartition:
    """A partition, its leader and its replicas."""

    error_code: Int16 = 0
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Int32 = since(7, default=-1, ignorable=True)
    replica_nodes: list[Int32]
    isr_nodes: list[Int32]
    offline_replicas: list[Int32] = since(5, ignorable=True)


@struct
class MetadataResponseTopic:
    """A topic and its partitions, or why it cannot be described."""

    error_code: Int16 = 0
    name: String | None = since(0, null=12)
    topic_id: Uuid = since(10, ignorable=True)
    is_internal: Bool = since(1, ignorable=True)
    partitions: list[MetadataResponsePartition]
    topic_authorized_operations: Int32 = since(8, default=-0x80000000)


@message(key=3, versions=(0, 13), flexible=9)
class MetadataResponse:
    """Brokers and topics."""

    throttle_time_ms: Int32 = since(3, ignorable=True)
    brokers: list[MetadataResponseBroker]
    cluster_id: String | None = since(2, ignorable=True)
    controller_id: Int32 = since(1, default=-1, ignorable=True)
    topics: list[MetadataResponseTopic]
    cluster_authorized_operations: Int32 = between(8, 10, default=-0x80000000)
    error_code: Int16 = since(13, ignorable=True)
