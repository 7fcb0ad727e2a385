"""EndTxn v0-5: commit or abort; answered as soon as that is decided for good, before the markers are written.

v2 knows PRODUCER_FENCED; v5 moves the producer on to its next epoch and tells it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.broker.router import RequestContext, handles
from lowwater.broker.writers import fenced_since
from lowwater.errors import ApiError, ErrorCode
from lowwater.transactions.commands import EndTransaction
from lowwater.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

FENCED_SINCE = 2
MOVES_ON_SINCE = 5


@handles(EndTxnRequest)
async def end_txn(broker: Broker, request: EndTxnRequest, context: RequestContext) -> EndTxnResponse:
    version = context.api_version
    command = EndTransaction(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        request.committed,
        2 if version >= MOVES_ON_SINCE else 0,
    )
    try:
        if not request.transactional_id:
            raise ApiError(ErrorCode.INVALID_REQUEST, "a transactional id cannot be empty")
        identity = await broker.transactions.identity(command)
    except ApiError as error:
        return EndTxnResponse(error_code=fenced_since(FENCED_SINCE, version, error.code))
    return EndTxnResponse(producer_id=identity.producer_id, producer_epoch=identity.producer_epoch)
