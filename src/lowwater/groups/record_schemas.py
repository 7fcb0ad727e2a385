"""What Apache Kafka 4.3 stores in `__consumer_offsets`: the keys, told apart by their type, and the values of each."""

from lowwater.wire.schema import Bytes, Int8, Int32, Int64, String, Uuid, between, message, since, struct, tagged


@message(key=0, versions=(0, 0), flexible=None)
class LegacyOffsetCommitKey:
    """A committed offset, as Kafka before 0.8.2 named it. Only read."""

    group: String
    topic: String
    partition: Int32


@message(key=0, versions=(0, 0), flexible=None)
class LegacyOffsetCommitValue:
    """The value of such a key. Only read."""

    offset: Int64
    metadata: String
    commit_timestamp: Int64


@message(key=1, versions=(0, 0), flexible=None)
class OffsetCommitKey:
    """A committed offset."""

    group: String
    topic: String
    partition: Int32


@message(key=1, versions=(0, 4), flexible=4)
class OffsetCommitValue:
    """How far a group has read one partition. `expire_timestamp`: -1 for never by itself."""

    offset: Int64
    leader_epoch: Int32 = since(3, default=-1, ignorable=True)
    metadata: String = ""
    commit_timestamp: Int64
    expire_timestamp: Int64 = between(1, 1, default=-1, ignorable=True)
    topic_id: Uuid = tagged(0, since=4, ignorable=True)


@message(key=2, versions=(0, 0), flexible=None)
class GroupMetadataKey:
    """A classic group."""

    group: String


@struct
class MemberMetadata:
    """A member of a classic group, as of its generation."""

    member_id: String
    group_instance_id: String | None = since(3, ignorable=True)
    client_id: String
    client_host: String
    rebalance_timeout: Int32 = since(1, default=-1, ignorable=True)
    session_timeout: Int32
    subscription: Bytes
    assignment: Bytes


@message(key=2, versions=(0, 4), flexible=4)
class GroupMetadataValue:
    """A generation of a classic group. An empty group has neither protocol nor leader."""

    protocol_type: String
    generation: Int32
    protocol: String | None
    leader: String | None
    current_state_timestamp: Int64 = since(2, default=-1, ignorable=True)
    members: list[MemberMetadata]


@message(key=3, versions=(0, 0), flexible=None)
class ConsumerGroupMetadataKey:
    """A consumer group."""

    group_id: String


@message(key=3, versions=(0, 0), flexible=0)
class ConsumerGroupMetadataValue:
    """The epoch of the group, and of what topics: a hash over what it subscribes to."""

    epoch: Int32
    metadata_hash: Int64 = tagged(0, since=0)


@message(key=4, versions=(0, 0), flexible=None)
class ConsumerGroupPartitionMetadataKey:
    """The topics of a consumer group, as Kafka 4.0 kept them. Only read."""

    group_id: String


@struct
class PartitionMetadata:
    """The racks of one partition."""

    partition: Int32
    racks: list[String]


@struct
class TopicMetadata:
    """One topic of a consumer group."""

    topic_id: Uuid
    topic_name: String
    num_partitions: Int32
    partition_metadata: list[PartitionMetadata]


@message(key=4, versions=(0, 0), flexible=0)
class ConsumerGroupPartitionMetadataValue:
    """The topics of a consumer group, as Kafka 4.0 kept them. Only read."""

    topics: list[TopicMetadata]


@message(key=5, versions=(0, 0), flexible=None)
class ConsumerGroupMemberMetadataKey:
    """A member of a consumer group."""

    group_id: String
    member_id: String


@struct
class ClassicProtocol:
    """A way of assigning that a classic member knows."""

    name: String
    metadata: Bytes


@struct
class ClassicMemberMetadata:
    """What is known only of members that speak the classic protocol in a consumer group."""

    session_timeout_ms: Int32
    supported_protocols: list[ClassicProtocol]


@message(key=5, versions=(0, 0), flexible=0)
class ConsumerGroupMemberMetadataValue:
    """What a member of a consumer group told of itself.

    A member that speaks the newer protocol has None for `classic_member_metadata`; that has to be said.
    """

    instance_id: String | None = ""
    rack_id: String | None = ""
    client_id: String
    client_host: String
    subscribed_topic_names: list[String]
    subscribed_topic_regex: String | None = ""
    rebalance_timeout_ms: Int32 = -1
    server_assignor: String | None = ""
    classic_member_metadata: ClassicMemberMetadata | None = tagged(0, since=0, null=0, default=ClassicMemberMetadata)


@message(key=6, versions=(0, 0), flexible=None)
class ConsumerGroupTargetAssignmentMetadataKey:
    """The target assignment of a consumer group, apart from its members'."""

    group_id: String


@message(key=6, versions=(0, 0), flexible=0)
class ConsumerGroupTargetAssignmentMetadataValue:
    """The group epoch that the target assignment was made for, and when."""

    assignment_epoch: Int32
    assignment_timestamp: Int64 = tagged(0, since=0, ignorable=True)


@message(key=7, versions=(0, 0), flexible=None)
class ConsumerGroupTargetAssignmentMemberKey:
    """What a member of a consumer group shall have."""

    group_id: String
    member_id: String


@struct
class TargetTopicPartitions:
    """Partitions of one topic."""

    topic_id: Uuid
    partitions: list[Int32]


@message(key=7, versions=(0, 0), flexible=0)
class ConsumerGroupTargetAssignmentMemberValue:
    """What a member of a consumer group shall have."""

    topic_partitions: list[TargetTopicPartitions]


@message(key=8, versions=(0, 0), flexible=None)
class ConsumerGroupCurrentMemberAssignmentKey:
    """What a member of a consumer group has."""

    group_id: String
    member_id: String


@struct
class TopicPartitions:
    """Partitions of one topic, and since which epoch each is assigned."""

    topic_id: Uuid
    partitions: list[Int32]
    assignment_epochs: list[Int32] | None = tagged(0, since=0, default=[])


@message(key=8, versions=(0, 0), flexible=0)
class ConsumerGroupCurrentMemberAssignmentValue:
    """What a member of a consumer group has, and what it has yet to give up.

    `state`: 0 stable, 1 has partitions to revoke, 2 waits for partitions of others, 127 unknown.
    """

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: list[TopicPartitions]
    partitions_pending_revocation: list[TopicPartitions]


@message(key=16, versions=(0, 0), flexible=None)
class ConsumerGroupRegularExpressionKey:
    """A regular expression to which members of a consumer group subscribe."""

    group_id: String
    regular_expression: String


@message(key=16, versions=(0, 0), flexible=0)
class ConsumerGroupRegularExpressionValue:
    """The topics that matched it, and when: `version` is that of the metadata."""

    topics: list[String]
    version: Int64
    timestamp: Int64
