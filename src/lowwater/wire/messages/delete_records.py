"""DeleteRecords: raise the log start offset."""

from lowwater.wire.schema import Int16, Int32, Int64, String, message, struct


@struct
class DeleteRecordsPartition:
    """Delete what is before `offset`; -1 is the high watermark."""

    partition_index: Int32
    offset: Int64


@struct
class DeleteRecordsTopic:
    """Partitions of one topic."""

    name: String
    partitions: list[DeleteRecordsPartition]


@message(key=21, versions=(0, 2), flexible=2)
class DeleteRecordsRequest:
    """Raise log start offsets."""

    topics: list[DeleteRecordsTopic]
    timeout_ms: Int32


@struct
class DeleteRecordsPartitionResult:
    """The log start offset of one partition now."""

    partition_index: Int32
    low_watermark: Int64
    error_code: Int16 = 0


@struct
class DeleteRecordsTopicResult:
    """Results for one topic."""

    name: String
    partitions: list[DeleteRecordsPartitionResult]


@message(key=21, versions=(0, 2), flexible=2)
class DeleteRecordsResponse:
    """Results by topic."""

    throttle_time_ms: Int32 = 0
    topics: list[DeleteRecordsTopicResult]
