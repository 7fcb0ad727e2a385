"""OffsetDelete: forget what a group has committed for some partitions."""

from lowwater.wire.schema import Int16, Int32, String, message, since, struct


@struct
class OffsetDeleteRequestPartition:
    """One partition."""

    partition_index: Int32


@struct
class OffsetDeleteRequestTopic:
    """Partitions of one topic."""

    name: String
    partitions: list[OffsetDeleteRequestPartition]


@message(key=47, versions=(0, 0), flexible=None)
class OffsetDeleteRequest:
    """Of one group."""

    group_id: String
    topics: list[OffsetDeleteRequestTopic]


@struct
class OffsetDeleteResponsePartition:
    """How it went for one partition."""

    partition_index: Int32
    error_code: Int16 = 0


@struct
class OffsetDeleteResponseTopic:
    """How it went for the partitions of one topic."""

    name: String
    partitions: list[OffsetDeleteResponsePartition]


@message(key=47, versions=(0, 0), flexible=None)
class OffsetDeleteResponse:
    """`error_code` is that of the group; then no topic is listed."""

    error_code: Int16 = 0
    throttle_time_ms: Int32 = 0
    topics: list[OffsetDeleteResponseTopic] = since(0)
