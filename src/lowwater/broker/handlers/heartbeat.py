"""Heartbeat v0-4: a member of a classic group is alive. v3 adds the instance id of static members."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.broker.router import RequestContext, handles
from lowwater.errors import ApiError, ErrorCode
from lowwater.pending import Pending
from lowwater.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker


@handles(HeartbeatRequest, pipelines=True)
def heartbeat(
    broker: Broker, request: HeartbeatRequest, context: RequestContext
) -> HeartbeatResponse | Pending[HeartbeatResponse]:
    try:
        answer: HeartbeatResponse | Pending[HeartbeatResponse] = broker.groups.ask(request.group_id, request)
    except ApiError as refusal:
        if refusal.code is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            raise
        # Clients take that for the end. Members that are loaded have a fresh deadline anyway.
        return HeartbeatResponse()
    return answer
