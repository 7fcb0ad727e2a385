"""DescribeProducers: who writes to a partition."""

from lowwater.wire.schema import Int16, Int32, Int64, String, message, struct


@struct
class TopicRequest:
    """Partitions of one topic."""

    name: String
    partition_indexes: list[Int32]


@message(key=61, versions=(0, 0), flexible=0)
class DescribeProducersRequest:
    """Ask for the active producers of partitions."""

    topics: list[TopicRequest]


@struct
class ProducerState:
    """One producer and where it stands."""

    producer_id: Int64
    producer_epoch: Int32
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32
    current_txn_start_offset: Int64 = -1


@struct
class PartitionResponse:
    """Producers of one partition."""

    partition_index: Int32
    error_code: Int16 = 0
    error_message: String | None = None
    active_producers: list[ProducerState]


@struct
class TopicResponse:
    """Producers for one topic."""

    name: String
    partitions: list[PartitionResponse]


@message(key=61, versions=(0, 0), flexible=0)
class DescribeProducersResponse:
    """Producers by topic."""

    throttle_time_ms: Int32 = 0
    topics: list[TopicResponse]
