"""ConsumerGroupHeartbeat: join, stay in, and leave a group whose partitions are assigned by the broker."""

from lowwater.wire.schema import Int16, Int32, String, Uuid, message, since, struct


@struct
class TopicPartitions:
    """Partitions of one topic."""

    topic_id: Uuid
    partitions: list[Int32]


@message(key=68, versions=(0, 1), flexible=0)
class ConsumerGroupHeartbeatRequest:
    """Epoch 0 joins, -1 leaves, -2 leaves for a while. What is None has not changed since the last heartbeat."""

    group_id: String
    member_id: String
    member_epoch: Int32
    instance_id: String | None = None
    rack_id: String | None = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: list[String] | None = None
    subscribed_topic_regex: String | None = since(1)
    server_assignor: String | None = None
    topic_partitions: list[TopicPartitions] | None = None


@struct
class Assignment:
    """What the member may read."""

    topic_partitions: list[TopicPartitions]


@message(key=68, versions=(0, 1), flexible=0)
class ConsumerGroupHeartbeatResponse:
    """`assignment` is None when it has not changed."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Assignment | None = None
