"""What Apache Kafka 4.3 stores in `__transaction_state`: one key, a transactional id, and where that id stands."""

from lowwater.wire.schema import Int8, Int16, Int32, Int64, String, message, struct, tagged


@message(key=0, versions=(0, 0), flexible=None)
class TransactionLogKey:
    """A transactional id."""

    transactional_id: String


@struct
class TransactionLogPartitions:
    """Partitions of one topic that are in the transaction."""

    topic: String
    partition_ids: list[Int32]


@message(key=0, versions=(0, 1), flexible=1)
class TransactionLogValue:
    """Where a transactional id stands. An empty one has None for its partitions.

    `previous_producer_id` is that of the last transaction, `next_producer_id` the one that its producer goes on with
    when the epochs of this one are used up.
    """

    producer_id: Int64
    previous_producer_id: Int64 = tagged(0, since=1, default=-1)
    next_producer_id: Int64 = tagged(1, since=1, default=-1)
    producer_epoch: Int16
    next_producer_epoch: Int16 = tagged(3, since=1, default=-1)
    transaction_timeout_ms: Int32
    transaction_status: Int8
    transaction_partitions: list[TransactionLogPartitions] | None
    transaction_last_update_timestamp_ms: Int64
    transaction_start_timestamp_ms: Int64
    client_transaction_version: Int16 = tagged(2, since=1, default=0)
