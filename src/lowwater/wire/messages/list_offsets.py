"""ListOffsets: offsets by time. v0 is the form of old simple consumers, which Kafka itself no longer serves."""

from lowwater.wire.schema import Int8, Int16, Int32, Int64, String, message, since, struct, until


@struct
class ListOffsetsPartition:
    """The wish for one partition: a time in ms, or -1 latest, -2 earliest, -3 maximum timestamp."""

    partition_index: Int32
    current_leader_epoch: Int32 = since(4, default=-1, ignorable=True)
    timestamp: Int64
    max_num_offsets: Int32 = until(0, default=1)


@struct
class ListOffsetsTopic:
    """Wishes for one topic."""

    name: String
    partitions: list[ListOffsetsPartition]


@message(key=2, versions=(0, 11), flexible=6)
class ListOffsetsRequest:
    """Look up offsets for many partitions."""

    replica_id: Int32 = -1
    isolation_level: Int8 = since(2)
    topics: list[ListOffsetsTopic]
    timeout_ms: Int32 = since(10, ignorable=True)


@struct
class ListOffsetsPartitionResponse:
    """The offset found, or -1; v0 has a descending list instead."""

    partition_index: Int32
    error_code: Int16 = 0
    old_style_offsets: list[Int64] = until(0)
    timestamp: Int64 = since(1, default=-1)
    offset: Int64 = since(1, default=-1)
    leader_epoch: Int32 = since(4, default=-1)


@struct
class ListOffsetsTopicResponse:
    """Answers for one topic."""

    name: String
    partitions: list[ListOffsetsPartitionResponse]


@message(key=2, versions=(0, 11), flexible=6)
class ListOffsetsResponse:
    """Answers by topic."""

    throttle_time_ms: Int32 = since(2, ignorable=True)
    topics: list[ListOffsetsTopicResponse]
