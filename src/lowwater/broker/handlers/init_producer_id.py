"""InitProducerId v0-5: a producer id for an idempotent producer.

v3 lets a producer name the id and epoch it had. Without a transactional id it gets a fresh id all the same, as its
sequence numbers start anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.broker.router import RequestContext, handles
from lowwater.errors import ApiError, ErrorCode
from lowwater.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker


@handles(InitProducerIdRequest)
async def init_producer_id(
    broker: Broker, request: InitProducerIdRequest, context: RequestContext
) -> InitProducerIdResponse:
    try:
        _check(request)
        producer_id = await broker.topics.new_producer_id()
    except ApiError as error:
        return InitProducerIdResponse(error_code=error.code, producer_id=-1, producer_epoch=-1)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _check(request: InitProducerIdRequest) -> None:
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        raise ApiError(ErrorCode.INVALID_REQUEST, "a producer id and its epoch come together")
    if request.transactional_id == "":
        raise ApiError(ErrorCode.INVALID_REQUEST, "a transactional id cannot be empty")
    if request.transactional_id is not None:
        raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "transactions are not served")
