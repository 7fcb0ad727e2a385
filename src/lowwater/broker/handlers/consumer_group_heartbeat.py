"""ConsumerGroupHeartbeat v0-1: join, stay in and leave a group whose partitions the broker assigns.

v1 adds subscriptions by pattern, and members choose their own ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.broker.router import RequestContext, handles
from lowwater.groups.commands import ConsumerHeartbeat
from lowwater.pending import Pending
from lowwater.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

OWN_IDS_SINCE = 1


@handles(ConsumerGroupHeartbeatRequest, pipelines=True)
def consumer_group_heartbeat(
    broker: Broker, request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> ConsumerGroupHeartbeatResponse | Pending[ConsumerGroupHeartbeatResponse]:
    command = ConsumerHeartbeat(
        request,
        context.client_id or "",
        "/" + context.client_host,
        generates_member_id=context.api_version < OWN_IDS_SINCE,
    )
    answer: ConsumerGroupHeartbeatResponse | Pending[ConsumerGroupHeartbeatResponse]
    answer = broker.groups.ask(request.group_id, command)
    return answer
