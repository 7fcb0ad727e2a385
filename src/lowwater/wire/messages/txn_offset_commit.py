"""TxnOffsetCommit: committed offsets that become visible with their transaction, or not at all."""

from lowwater.wire.schema import Int16, Int32, Int64, String, message, since, struct


@struct
class TxnOffsetCommitRequestPartition:
    """The next offset to read of one partition, with a note of the client."""

    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = since(2, default=-1, ignorable=True)
    committed_metadata: String | None = ""


@struct
class TxnOffsetCommitRequestTopic:
    """Partitions of one topic."""

    name: String
    partitions: list[TxnOffsetCommitRequestPartition]


@message(key=28, versions=(0, 5), flexible=3)
class TxnOffsetCommitRequest:
    """From a member of the group since v3, or from nobody: generation -1 and an empty member id."""

    transactional_id: String
    group_id: String
    producer_id: Int64
    producer_epoch: Int16
    generation_id: Int32 = since(3, default=-1)
    member_id: String = since(3, default="")
    group_instance_id: String | None = since(3, default=None)
    topics: list[TxnOffsetCommitRequestTopic]


@struct
class TxnOffsetCommitResponsePartition:
    """How it went for one partition."""

    partition_index: Int32
    error_code: Int16 = 0


@struct
class TxnOffsetCommitResponseTopic:
    """How it went for the partitions of one topic."""

    name: String
    partitions: list[TxnOffsetCommitResponsePartition]


@message(key=28, versions=(0, 5), flexible=3)
class TxnOffsetCommitResponse:
    """An error of the whole request stands at each of its partitions."""

    throttle_time_ms: Int32 = 0
    topics: list[TxnOffsetCommitResponseTopic]
