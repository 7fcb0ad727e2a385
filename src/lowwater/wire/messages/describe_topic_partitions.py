"""DescribeTopicPartitions: topics page by page."""

from lowwater.wire.schema import ZERO_UUID, Bool, Int16, Int32, String, Uuid, message, since, struct


@struct
class TopicRequest:
    """A topic by name."""

    name: String


@struct
class Cursor:
    """Where to go on."""

    topic_name: String
    partition_index: Int32


@message(key=75, versions=(0, 0), flexible=0)
class DescribeTopicPartitionsRequest:
    """Describe topics in the order of their names, from `cursor` on."""

    topics: list[TopicRequest]
    response_partition_limit: Int32 = 2000
    cursor: Cursor | None = None


@struct
class DescribeTopicPartitionsResponsePartition:
    """A partition, its leader and its replicas."""

    error_code: Int16 = 0
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Int32 = -1
    replica_nodes: list[Int32]
    isr_nodes: list[Int32]
    eligible_leader_replicas: list[Int32] | None = None
    last_known_elr: list[Int32] | None = None
    offline_replicas: list[Int32] = since(0)


@struct
class DescribeTopicPartitionsResponseTopic:
    """A topic and its partitions, or why it cannot be described."""

    error_code: Int16 = 0
    name: String | None = None
    topic_id: Uuid = ZERO_UUID
    is_internal: Bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition]
    topic_authorized_operations: Int32 = -0x80000000


@message(key=75, versions=(0, 0), flexible=0)
class DescribeTopicPartitionsResponse:
    """Topics, and where the next page begins."""

    throttle_time_ms: Int32 = 0
    topics: list[DescribeTopicPartitionsResponseTopic]
    next_cursor: Cursor | None = None
