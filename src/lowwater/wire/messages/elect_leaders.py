"""ElectLeaders: let the preferred, or any living, replica lead."""

from lowwater.wire.schema import Int8, Int16, Int32, String, message, since, struct


@struct
class TopicPartitions:
    """Partitions of one topic."""

    topic: String
    partitions: list[Int32]


@message(key=43, versions=(0, 2), flexible=2)
class ElectLeadersRequest:
    """`election_type`: 0 preferred, 1 unclean. Null partitions ask for all of them."""

    election_type: Int8 = since(1)
    topic_partitions: list[TopicPartitions] | None
    timeout_ms: Int32 = 60000


@struct
class PartitionResult:
    """What became of one partition."""

    partition_id: Int32
    error_code: Int16 = 0
    error_message: String | None = None


@struct
class ReplicaElectionResult:
    """Results for one topic."""

    topic: String
    partition_result: list[PartitionResult]


@message(key=43, versions=(0, 2), flexible=2)
class ElectLeadersResponse:
    """Results by topic."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = since(1)
    replica_election_results: list[ReplicaElectionResult]
