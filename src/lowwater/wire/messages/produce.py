"""Produce: append batches. v3 has batches of format 2; from v13 topics go by id."""

from lowwater.wire.schema import Int16, Int32, Int64, Records, String, Uuid, message, since, struct, tagged, until


@struct
class PartitionProduceData:
    """One batch for one partition."""

    index: Int32
    records: Records | None


@struct
class TopicProduceData:
    """What to append to one topic."""

    name: String = until(12, ignorable=True)
    topic_id: Uuid = since(13, ignorable=True)
    partition_data: list[PartitionProduceData]


@message(key=0, versions=(3, 13), flexible=9)
class ProduceRequest:
    """`acks`: 0 no reply, 1 written, -1 durable."""

    transactional_id: String | None = None
    acks: Int16
    timeout_ms: Int32
    topic_data: list[TopicProduceData]


@struct
class BatchIndexAndErrorMessage:
    """Why one record of a refused batch was not acceptable."""

    batch_index: Int32
    batch_index_error_message: String | None = None


@struct
class LeaderIdAndEpoch:
    """Who leads now, for a client that asked the wrong broker."""

    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


@struct
class PartitionProduceResponse:
    """Where the batch was placed."""

    index: Int32
    error_code: Int16 = 0
    base_offset: Int64
    log_append_time_ms: Int64 = -1
    log_start_offset: Int64 = since(5, default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = since(8, ignorable=True)
    error_message: String | None = since(8, ignorable=True)
    current_leader: LeaderIdAndEpoch | None = tagged(0, since=10)


@struct
class TopicProduceResponse:
    """Answers for one topic."""

    name: String = until(12, ignorable=True)
    topic_id: Uuid = since(13, ignorable=True)
    partition_responses: list[PartitionProduceResponse]


@struct
class NodeEndpoint:
    """Where a leader named in this response can be reached."""

    node_id: Int32
    host: String
    port: Int32
    rack: String | None = None


@message(key=0, versions=(3, 13), flexible=9)
class ProduceResponse:
    """Answers by topic; the throttle time stands last here."""

    responses: list[TopicProduceResponse]
    throttle_time_ms: Int32 = 0
    node_endpoints: list[NodeEndpoint] = tagged(0, since=10)
