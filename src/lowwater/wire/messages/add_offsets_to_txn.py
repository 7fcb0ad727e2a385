"""AddOffsetsToTxn: the offsets of a group become part of a transaction."""

from lowwater.wire.schema import Int16, Int32, Int64, String, message


@message(key=25, versions=(0, 4), flexible=3)
class AddOffsetsToTxnRequest:
    """Announce that offsets of this group will be committed in the transaction."""

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    group_id: String


@message(key=25, versions=(0, 4), flexible=3)
class AddOffsetsToTxnResponse:
    """How it went."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
