"""AddPartitionsToTxn: what a transaction writes to. Clients speak of one transaction, v4 and later of many at once."""

from lowwater.wire.schema import Bool, Int16, Int32, Int64, String, message, since, struct, until


@struct
class AddPartitionsToTxnTopic:
    """Partitions of one topic."""

    name: String
    partitions: list[Int32]


@struct
class AddPartitionsToTxnTransaction:
    """Partitions for one transaction, to be added, or only to be looked for in it."""

    transactional_id: String = since(4)
    producer_id: Int64 = since(4)
    producer_epoch: Int16 = since(4)
    verify_only: Bool = since(4, default=False)
    topics: list[AddPartitionsToTxnTopic] = since(4)


@message(key=24, versions=(0, 5), flexible=3)
class AddPartitionsToTxnRequest:
    """One transaction up to v3, any number of them since v4."""

    transactions: list[AddPartitionsToTxnTransaction] = since(4)
    v3_and_below_transactional_id: String = until(3)
    v3_and_below_producer_id: Int64 = until(3)
    v3_and_below_producer_epoch: Int16 = until(3)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = until(3)


@struct
class AddPartitionsToTxnPartitionResult:
    """How it went for one partition."""

    partition_index: Int32
    partition_error_code: Int16 = 0


@struct
class AddPartitionsToTxnTopicResult:
    """How it went for the partitions of one topic."""

    name: String
    results_by_partition: list[AddPartitionsToTxnPartitionResult]


@struct
class AddPartitionsToTxnResult:
    """How it went for one transaction."""

    transactional_id: String = since(4)
    topic_results: list[AddPartitionsToTxnTopicResult] = since(4)


@message(key=24, versions=(0, 5), flexible=3)
class AddPartitionsToTxnResponse:
    """By topic up to v3, by transaction since v4."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = since(4, ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = since(4)
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = until(3)
