"""OffsetCommit: a group keeps how far it has read. Topics by id since v10."""

from lowwater.wire.schema import Int16, Int32, Int64, String, Uuid, between, message, since, struct, until


@struct
class OffsetCommitRequestPartition:
    """The next offset to read of one partition, with a note of the client."""

    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = since(6, default=-1, ignorable=True)
    committed_metadata: String | None = ""


@struct
class OffsetCommitRequestTopic:
    """Partitions of one topic."""

    name: String = until(9, ignorable=True)
    topic_id: Uuid = since(10, ignorable=True)
    partitions: list[OffsetCommitRequestPartition]


@message(key=8, versions=(2, 10), flexible=8)
class OffsetCommitRequest:
    """From a member, or from nobody: epoch -1 and an empty member id."""

    group_id: String
    generation_id_or_member_epoch: Int32 = since(1, default=-1, ignorable=True)
    member_id: String = since(1, ignorable=True)
    group_instance_id: String | None = since(7)
    retention_time_ms: Int64 = between(2, 4, default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic]


@struct
class OffsetCommitResponsePartition:
    """How it went for one partition."""

    partition_index: Int32
    error_code: Int16 = 0


@struct
class OffsetCommitResponseTopic:
    """How it went for the partitions of one topic."""

    name: String = until(9, ignorable=True)
    topic_id: Uuid = since(10, ignorable=True)
    partitions: list[OffsetCommitResponsePartition]


@message(key=8, versions=(2, 10), flexible=8)
class OffsetCommitResponse:
    """An error of the whole group stands at each of its partitions."""

    throttle_time_ms: Int32 = since(3, ignorable=True)
    topics: list[OffsetCommitResponseTopic]
