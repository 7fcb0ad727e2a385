"""InitProducerId: an identity for an idempotent or transactional producer."""

from lowwater.wire.schema import Int16, Int32, Int64, String, message, since


@message(key=22, versions=(0, 5), flexible=2)
class InitProducerIdRequest:
    """Ask for a producer id, or for the next epoch of one."""

    transactional_id: String | None = None
    transaction_timeout_ms: Int32
    producer_id: Int64 = since(3, default=-1)
    producer_epoch: Int16 = since(3, default=-1)


@message(key=22, versions=(0, 5), flexible=2)
class InitProducerIdResponse:
    """The producer id and epoch to use."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = -1
    producer_epoch: Int16
