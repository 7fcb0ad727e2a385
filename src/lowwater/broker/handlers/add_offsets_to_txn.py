"""AddOffsetsToTxn v0-4: the partition that keeps a group's offsets becomes part of a transaction.

v2 knows PRODUCER_FENCED. Who has a new epoch for each transaction does not ask: TxnOffsetCommit adds the partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.broker.router import RequestContext, handles
from lowwater.broker.writers import fenced_since
from lowwater.errors import ApiError, ErrorCode
from lowwater.transactions.commands import AddPartitions
from lowwater.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

FENCED_SINCE = 2


@handles(AddOffsetsToTxnRequest)
async def add_offsets_to_txn(
    broker: Broker, request: AddOffsetsToTxnRequest, context: RequestContext
) -> AddOffsetsToTxnResponse:
    place = frozenset({broker.groups.place_of(request.group_id)})
    command = AddPartitions(request.transactional_id, request.producer_id, request.producer_epoch, place, 0)
    try:
        if not request.transactional_id:
            raise ApiError(ErrorCode.INVALID_REQUEST, "a transactional id cannot be empty")
        await broker.transactions.add(command)
    except ApiError as error:
        return AddOffsetsToTxnResponse(error_code=fenced_since(FENCED_SINCE, context.api_version, error.code))
    return AddOffsetsToTxnResponse()
