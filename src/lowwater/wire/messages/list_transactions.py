"""ListTransactions: the transactional ids of a broker that pass all filters."""

from lowwater.wire.schema import Int16, Int32, Int64, String, message, since, struct


@message(key=66, versions=(0, 2), flexible=0)
class ListTransactionsRequest:
    """An empty filter passes everything, as do a duration below zero and no pattern."""

    state_filters: list[String]
    producer_id_filters: list[Int64]
    duration_filter: Int64 = since(1, default=-1)
    transactional_id_pattern: String | None = since(2, default=None)


@struct
class TransactionState:
    """One transactional id."""

    transactional_id: String
    producer_id: Int64
    transaction_state: String


@message(key=66, versions=(0, 2), flexible=0)
class ListTransactionsResponse:
    """What passed, and which names of states nobody knows."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    unknown_state_filters: list[String]
    transaction_states: list[TransactionState]
