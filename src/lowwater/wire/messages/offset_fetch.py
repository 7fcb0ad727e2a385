"""OffsetFetch: how far a group has read. One group up to v7, many since v8; topics by id since v10."""

from lowwater.wire.schema import Bool, Int16, Int32, Int64, String, Uuid, between, message, since, struct, until


@struct
class OffsetFetchRequestTopic:
    """Partitions of one topic, up to v7."""

    name: String
    partition_indexes: list[Int32]


@struct
class OffsetFetchRequestTopics:
    """Partitions of one topic, since v8."""

    name: String = until(9, ignorable=True)
    topic_id: Uuid = since(10, ignorable=True)
    partition_indexes: list[Int32]


@struct
class OffsetFetchRequestGroup:
    """One group; `topics` is None for all that it has committed."""

    group_id: String
    member_id: String | None = since(9, ignorable=True)
    member_epoch: Int32 = since(9, default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None


@message(key=9, versions=(1, 10), flexible=6)
class OffsetFetchRequest:
    """`group_id` and `topics` up to v7, `groups` since v8. `topics` is None for all, since v2."""

    group_id: String = until(7)
    topics: list[OffsetFetchRequestTopic] | None = until(7, null=2, default=[])
    groups: list[OffsetFetchRequestGroup] = since(8)
    require_stable: Bool = since(7)


@struct
class OffsetFetchResponsePartition:
    """What was committed for one partition, up to v7; offset -1: nothing."""

    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = since(5, default=-1, ignorable=True)
    metadata: String | None = ""
    error_code: Int16 = 0


@struct
class OffsetFetchResponseTopic:
    """What was committed for one topic, up to v7."""

    name: String
    partitions: list[OffsetFetchResponsePartition]


@struct
class OffsetFetchResponsePartitions:
    """What was committed for one partition, since v8; offset -1: nothing."""

    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = -1
    metadata: String | None = ""
    error_code: Int16 = 0


@struct
class OffsetFetchResponseTopics:
    """What was committed for one topic, since v8."""

    name: String = until(9, ignorable=True)
    topic_id: Uuid = since(10, ignorable=True)
    partitions: list[OffsetFetchResponsePartitions]


@struct
class OffsetFetchResponseGroup:
    """What one group has committed."""

    group_id: String
    topics: list[OffsetFetchResponseTopics]
    error_code: Int16 = 0


@message(key=9, versions=(1, 10), flexible=6)
class OffsetFetchResponse:
    """`topics` and `error_code` up to v7, `groups` since v8."""

    throttle_time_ms: Int32 = since(3, ignorable=True)
    topics: list[OffsetFetchResponseTopic] = until(7)
    error_code: Int16 = between(2, 7, ignorable=True)
    groups: list[OffsetFetchResponseGroup] = since(8)
