"""ConsumerGroupDescribe: state, members and assignments of groups whose partitions are assigned by the broker."""

from lowwater.wire.schema import Bool, Int8, Int16, Int32, String, Uuid, message, since, struct


@message(key=69, versions=(0, 1), flexible=0)
class ConsumerGroupDescribeRequest:
    """Groups by name."""

    group_ids: list[String]
    include_authorized_operations: Bool = False


@struct
class TopicPartitions:
    """Partitions of one topic."""

    topic_id: Uuid
    topic_name: String
    partitions: list[Int32]


@struct
class Assignment:
    """Partitions of one member."""

    topic_partitions: list[TopicPartitions]


@struct
class Member:
    """A member: what it has now, and what it shall have. `member_type`: 0 classic, 1 consumer."""

    member_id: String
    instance_id: String | None = None
    rack_id: String | None = None
    member_epoch: Int32
    client_id: String
    client_host: String
    subscribed_topic_names: list[String]
    subscribed_topic_regex: String | None = None
    assignment: Assignment
    target_assignment: Assignment
    member_type: Int8 = since(1, default=-1, ignorable=True)


@struct
class DescribedGroup:
    """A group and its members, or why it cannot be described."""

    error_code: Int16 = 0
    error_message: String | None = None
    group_id: String
    group_state: String = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor_name: String = ""
    members: list[Member] = since(0)
    authorized_operations: Int32 = -0x80000000


@message(key=69, versions=(0, 1), flexible=0)
class ConsumerGroupDescribeResponse:
    """One row for each group that was asked for."""

    throttle_time_ms: Int32 = 0
    groups: list[DescribedGroup]
