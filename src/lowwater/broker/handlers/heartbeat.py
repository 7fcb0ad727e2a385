"""Heartbeat v0-4: a member of a classic group is alive. v3 adds the instance id of static members."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.broker.pending import Pending
from lowwater.broker.router import RequestContext, handles
from lowwater.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker


@handles(HeartbeatRequest, pipelines=True)
def heartbeat(
    broker: Broker, request: HeartbeatRequest, context: RequestContext
) -> HeartbeatResponse | Pending[HeartbeatResponse]:
    answer: HeartbeatResponse | Pending[HeartbeatResponse] = broker.groups.ask(request.group_id, request)
    return answer
