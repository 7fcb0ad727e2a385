"""CreatePartitions: let a topic grow."""

from lowwater.wire.schema import Bool, Int16, Int32, String, message, struct


@struct
class CreatePartitionsAssignment:
    """A manual placement of one new partition."""

    broker_ids: list[Int32]


@struct
class CreatePartitionsTopic:
    """The number of partitions a topic shall have."""

    name: String
    count: Int32
    assignments: list[CreatePartitionsAssignment] | None = None


@message(key=37, versions=(0, 3), flexible=2)
class CreatePartitionsRequest:
    """Add partitions, or only check whether that would work."""

    topics: list[CreatePartitionsTopic]
    timeout_ms: Int32
    validate_only: Bool = False


@struct
class CreatePartitionsTopicResult:
    """What became of one topic."""

    name: String
    error_code: Int16 = 0
    error_message: String | None = None


@message(key=37, versions=(0, 3), flexible=2)
class CreatePartitionsResponse:
    """Results by topic."""

    throttle_time_ms: Int32 = 0
    results: list[CreatePartitionsTopicResult]
