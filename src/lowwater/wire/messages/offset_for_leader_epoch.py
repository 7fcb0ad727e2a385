"""OffsetForLeaderEpoch: where an epoch of leadership ended, so that a consumer can notice truncation."""

from lowwater.wire.schema import Int16, Int32, Int64, String, message, since, struct


@struct
class OffsetForLeaderPartition:
    """One partition and the epoch asked about."""

    partition: Int32
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32


@struct
class OffsetForLeaderTopic:
    """Partitions of one topic."""

    topic: String
    partitions: list[OffsetForLeaderPartition]


@message(key=23, versions=(2, 4), flexible=4)
class OffsetForLeaderEpochRequest:
    """Ask where epochs ended."""

    replica_id: Int32 = since(3, default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic]


@struct
class EpochEndOffset:
    """Where the epoch ended in one partition."""

    error_code: Int16 = 0
    partition: Int32
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


@struct
class OffsetForLeaderTopicResult:
    """Results for one topic."""

    topic: String
    partitions: list[EpochEndOffset]


@message(key=23, versions=(2, 4), flexible=4)
class OffsetForLeaderEpochResponse:
    """Results by topic."""

    throttle_time_ms: Int32 = 0
    topics: list[OffsetForLeaderTopicResult]
