"""EndTxn: commit or abort. Since v5 every end moves the producer to its next epoch."""

from lowwater.wire.schema import Bool, Int16, Int32, Int64, String, message, since


@message(key=26, versions=(0, 5), flexible=3)
class EndTxnRequest:
    """End the transaction of this producer."""

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    committed: Bool


@message(key=26, versions=(0, 5), flexible=3)
class EndTxnResponse:
    """The producer id and epoch of the next transaction, since v5."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = since(5, default=-1, ignorable=True)
    producer_epoch: Int16 = since(5, default=-1, ignorable=True)
