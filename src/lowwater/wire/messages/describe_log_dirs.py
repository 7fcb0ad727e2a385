"""DescribeLogDirs: sizes on disk."""

from lowwater.wire.schema import Bool, Int16, Int32, Int64, String, message, since, struct


@struct
class DescribableLogDirTopic:
    """Partitions of one topic."""

    topic: String
    partitions: list[Int32]


@message(key=35, versions=(1, 5), flexible=2)
class DescribeLogDirsRequest:
    """Null topics ask for all of them."""

    topics: list[DescribableLogDirTopic] | None


@struct
class DescribeLogDirsPartition:
    """The size of one partition."""

    partition_index: Int32
    partition_size: Int64
    offset_lag: Int64
    is_future_key: Bool = False


@struct
class DescribeLogDirsTopic:
    """Sizes for one topic."""

    name: String
    partitions: list[DescribeLogDirsPartition]


@struct
class DescribeLogDirsResult:
    """One log directory and what it holds."""

    error_code: Int16 = 0
    log_dir: String
    topics: list[DescribeLogDirsTopic]
    total_bytes: Int64 = since(4, default=-1, ignorable=True)
    usable_bytes: Int64 = since(4, default=-1, ignorable=True)
    is_cordoned: Bool = since(5, ignorable=True)


@message(key=35, versions=(1, 5), flexible=2)
class DescribeLogDirsResponse:
    """Results by directory."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = since(3, ignorable=True)
    results: list[DescribeLogDirsResult]
