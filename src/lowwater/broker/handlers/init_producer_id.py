"""InitProducerId v0-5: a producer id for an idempotent producer, and an epoch for each instance of a transactional one.

v3 lets a producer name the id and epoch it had. Without a transactional id it gets a fresh id all the same, as its
sequence numbers start anew. v4 knows PRODUCER_FENCED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.broker.router import RequestContext, handles
from lowwater.broker.writers import fenced_since
from lowwater.errors import ApiError, ErrorCode
from lowwater.transactions.commands import InitProducer, ProducerIdentity
from lowwater.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

FENCED_SINCE = 4


@handles(InitProducerIdRequest)
async def init_producer_id(
    broker: Broker, request: InitProducerIdRequest, context: RequestContext
) -> InitProducerIdResponse:
    try:
        identity = await _identity(broker, request)
    except ApiError as error:
        code = fenced_since(FENCED_SINCE, context.api_version, error.code)
        return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
    return InitProducerIdResponse(producer_id=identity.producer_id, producer_epoch=identity.producer_epoch)


async def _identity(broker: Broker, request: InitProducerIdRequest) -> ProducerIdentity:
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        raise ApiError(ErrorCode.INVALID_REQUEST, "a producer id and its epoch come together")
    if request.transactional_id is None:
        return ProducerIdentity(await broker.topics.new_producer_id(), 0)
    if not request.transactional_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "a transactional id cannot be empty")
    command = InitProducer(
        request.transactional_id, request.transaction_timeout_ms, request.producer_id, request.producer_epoch
    )
    return await broker.transactions.identity(command)
