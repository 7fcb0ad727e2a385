"""FindCoordinator v0-6: this node, for every group and every transactional id.

v1 adds the kind of key; v4 asks for many keys at once; v6 is for share groups, which are not served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.broker.router import RequestContext, handles
from lowwater.errors import ErrorCode
from lowwater.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

GROUP, TRANSACTION = 0, 1
MANY_KEYS_SINCE = 4
NOT_SERVED = "coordinators are known for groups (0) and transactional ids (1) only"


@handles(FindCoordinatorRequest)
def find_coordinator(
    broker: Broker, request: FindCoordinatorRequest, context: RequestContext
) -> FindCoordinatorResponse:
    keys = request.coordinator_keys if context.api_version >= MANY_KEYS_SINCE else [request.key]
    served = request.key_type in (GROUP, TRANSACTION)
    found = [_this_node(broker, key) if served else _nobody(key) for key in keys]
    if context.api_version >= MANY_KEYS_SINCE:
        return FindCoordinatorResponse(coordinators=found)
    (one,) = found
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


def _this_node(broker: Broker, key: str) -> Coordinator:
    return Coordinator(
        key=key,
        node_id=broker.node_id,
        host=broker.advertised.host,
        port=broker.advertised.port,
        error_message="",
    )


def _nobody(key: str) -> Coordinator:
    return Coordinator(
        key=key, node_id=-1, host="", port=-1, error_code=ErrorCode.INVALID_REQUEST, error_message=NOT_SERVED
    )
