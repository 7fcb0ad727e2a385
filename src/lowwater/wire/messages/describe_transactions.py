"""DescribeTransactions: where transactional ids stand."""

from lowwater.wire.schema import Int16, Int32, Int64, String, message, struct


@message(key=65, versions=(0, 0), flexible=0)
class DescribeTransactionsRequest:
    """Ask about these ids; none means none."""

    transactional_ids: list[String]


@struct
class TopicData:
    """Partitions of one topic that are in the transaction."""

    topic: String
    partitions: list[Int32]


@struct
class TransactionState:
    """One transactional id. `topics` are those that still lack a marker when the transaction is ending."""

    error_code: Int16 = 0
    transactional_id: String
    transaction_state: String
    transaction_timeout_ms: Int32
    transaction_start_time_ms: Int64
    producer_id: Int64
    producer_epoch: Int16
    topics: list[TopicData]


@message(key=65, versions=(0, 0), flexible=0)
class DescribeTransactionsResponse:
    """States in the order of the ids."""

    throttle_time_ms: Int32 = 0
    transaction_states: list[TransactionState]
