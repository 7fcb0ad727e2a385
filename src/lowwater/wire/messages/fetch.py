"""Fetch: read batches. Sessions since v7, topics by id since v13. Some tags are for replicas only."""

from lowwater.wire.schema import (
    Int8,
    Int16,
    Int32,
    Int64,
    RecordsParts,
    String,
    Uuid,
    message,
    since,
    struct,
    tagged,
    until,
)


@struct
class ReplicaState:
    """Who fetches, when it is a replica."""

    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


@struct
class FetchPartition:
    """From where to read one partition, and how much at most."""

    partition: Int32
    current_leader_epoch: Int32 = since(9, default=-1, ignorable=True)
    fetch_offset: Int64
    last_fetched_epoch: Int32 = since(12, default=-1)
    log_start_offset: Int64 = since(5, default=-1, ignorable=True)
    partition_max_bytes: Int32
    replica_directory_id: Uuid = tagged(0, since=17, ignorable=True)
    high_watermark: Int64 = tagged(1, since=18, default=0x7FFFFFFFFFFFFFFF, ignorable=True)


@struct
class FetchTopic:
    """Partitions of one topic to be added to the session, or read."""

    topic: String = until(12, ignorable=True)
    topic_id: Uuid = since(13, ignorable=True)
    partitions: list[FetchPartition]


@struct
class ForgottenTopic:
    """Partitions to be dropped from the session."""

    topic: String = until(12, ignorable=True)
    topic_id: Uuid = since(13, ignorable=True)
    partitions: list[Int32]


@message(key=1, versions=(4, 18), flexible=12)
class FetchRequest:
    """Wait up to `max_wait_ms` for `min_bytes`."""

    cluster_id: String | None = tagged(0, since=12, ignorable=True)
    replica_id: Int32 = until(14, default=-1)
    replica_state: ReplicaState | None = tagged(1, since=15)
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = 0x7FFFFFFF
    isolation_level: Int8 = 0
    session_id: Int32 = since(7, ignorable=True)
    session_epoch: Int32 = since(7, default=-1, ignorable=True)
    topics: list[FetchTopic]
    forgotten_topics_data: list[ForgottenTopic] = since(7)
    rack_id: String = since(11, ignorable=True)


@struct
class EpochEndOffset:
    """Where the log of a follower parts from ours."""

    epoch: Int32 = -1
    end_offset: Int64 = -1


@struct
class LeaderIdAndEpoch:
    """Who leads now, for a client that asked the wrong broker."""

    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


@struct
class SnapshotId:
    """The snapshot to fetch instead."""

    end_offset: Int64 = -1
    epoch: Int32 = -1


@struct
class AbortedTransaction:
    """From `first_offset` on, records of this producer are to be dropped, up to its next marker."""

    producer_id: Int64
    first_offset: Int64


@struct
class PartitionData:
    """Batches of one partition, as stored."""

    partition_index: Int32
    error_code: Int16 = 0
    high_watermark: Int64
    last_stable_offset: Int64 = -1
    log_start_offset: Int64 = since(5, default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset | None = tagged(0, since=12)
    current_leader: LeaderIdAndEpoch | None = tagged(1, since=12)
    snapshot_id: SnapshotId | None = tagged(2, since=12)
    aborted_transactions: list[AbortedTransaction] | None = None
    preferred_read_replica: Int32 = since(11, default=-1)
    records: RecordsParts | None = None


@struct
class FetchableTopicResponse:
    """What was read of one topic."""

    topic: String = until(12, ignorable=True)
    topic_id: Uuid = since(13, ignorable=True)
    partitions: list[PartitionData]


@struct
class NodeEndpoint:
    """Where a leader named in this response can be reached."""

    node_id: Int32
    host: String
    port: Int32
    rack: String | None = None


@message(key=1, versions=(4, 18), flexible=12)
class FetchResponse:
    """Batches by topic and partition."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = since(7, ignorable=True)
    session_id: Int32 = since(7)
    responses: list[FetchableTopicResponse]
    node_endpoints: list[NodeEndpoint] = tagged(0, since=16)
