"""SyncGroup v0-5: the leader hands in the assignments; every member waits for its own.

v3 adds the instance id of static members, v5 the protocol, which is then checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.broker.router import RequestContext, handles
from lowwater.errors import ApiError, ErrorCode
from lowwater.pending import Pending
from lowwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

PROTOCOL_SINCE = 5


@handles(SyncGroupRequest)
def sync_group(
    broker: Broker, request: SyncGroupRequest, context: RequestContext
) -> SyncGroupResponse | Pending[SyncGroupResponse]:
    if context.api_version >= PROTOCOL_SINCE and (request.protocol_type is None or request.protocol_name is None):
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "a member names its protocol")
    try:
        answer: SyncGroupResponse | Pending[SyncGroupResponse] = broker.groups.ask(request.group_id, request)
    except ApiError as refusal:
        if refusal.code is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            raise
        # Clients take that for the end; what waited for the leader before the restart begins again with a Join.
        raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS, refusal.detail) from refusal
    return answer
