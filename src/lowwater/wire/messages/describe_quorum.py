"""DescribeQuorum: the state of the metadata quorum."""

from lowwater.wire.schema import Int16, Int32, Int64, String, UInt16, Uuid, message, since, struct


@struct
class QuorumPartition:
    """One partition of the metadata topic."""

    partition_index: Int32


@struct
class QuorumTopic:
    """Partitions of one topic."""

    topic_name: String
    partitions: list[QuorumPartition]


@message(key=55, versions=(0, 2), flexible=0)
class DescribeQuorumRequest:
    """Ask about the metadata topic."""

    topics: list[QuorumTopic]


@struct
class ReplicaState:
    """How far one replica has come."""

    replica_id: Int32
    replica_directory_id: Uuid = since(2)
    log_end_offset: Int64
    last_fetch_timestamp: Int64 = since(1, default=-1, ignorable=True)
    last_caught_up_timestamp: Int64 = since(1, default=-1, ignorable=True)


@struct
class QuorumPartitionResult:
    """Leader, voters and observers of one partition."""

    partition_index: Int32
    error_code: Int16 = 0
    error_message: String | None = since(2, ignorable=True)
    leader_id: Int32
    leader_epoch: Int32
    high_watermark: Int64
    current_voters: list[ReplicaState]
    observers: list[ReplicaState]


@struct
class QuorumTopicResult:
    """Results for one topic."""

    topic_name: String
    partitions: list[QuorumPartitionResult]


@struct
class Listener:
    """An endpoint of a voter."""

    name: String
    host: String
    port: UInt16


@struct
class Node:
    """A voter and its endpoints."""

    node_id: Int32
    listeners: list[Listener]


@message(key=55, versions=(0, 2), flexible=0)
class DescribeQuorumResponse:
    """The state of the quorum."""

    error_code: Int16 = 0
    error_message: String | None = since(2, ignorable=True)
    topics: list[QuorumTopicResult]
    nodes: list[Node] = since(2)
