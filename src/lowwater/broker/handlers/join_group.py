"""JoinGroup v0-9: become or stay a member of a classic group; answered when the rebalance has gathered its members.

v1 adds the rebalance timeout; v4 tells a new member its id first; v5 adds static members; v7 may leave the protocol
out; v9 tells a leader that returns that nothing is to be assigned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lowwater.broker.pending import Pending
from lowwater.broker.router import RequestContext, handles
from lowwater.errors import ApiError
from lowwater.groups.commands import Join
from lowwater.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

REBALANCE_TIMEOUT_SINCE = 1
MEMBER_ID_REQUIRED_SINCE = 4
NULL_PROTOCOL_SINCE = 7
SKIP_ASSIGNMENT_SINCE = 9


@handles(JoinGroupRequest)
def join_group(broker: Broker, request: JoinGroupRequest, context: RequestContext) -> Any:
    version = context.api_version
    if version < REBALANCE_TIMEOUT_SINCE:
        request.rebalance_timeout_ms = request.session_timeout_ms
    command = Join(
        request,
        context.client_id or "",
        "/" + context.client_host,
        asks_for_member_id=version >= MEMBER_ID_REQUIRED_SINCE,
        knows_skip_assignment=version >= SKIP_ASSIGNMENT_SINCE,
    )

    def refused(error: ApiError) -> JoinGroupResponse:
        return JoinGroupResponse(error_code=error.code, protocol_name=None, member_id=request.member_id)

    answer = broker.groups.ask_or(request.group_id, command, refused)
    if version >= NULL_PROTOCOL_SINCE:
        return answer
    return answer.map(_with_protocol) if isinstance(answer, Pending) else _with_protocol(answer)


def _with_protocol(response: JoinGroupResponse) -> JoinGroupResponse:
    """Older clients cannot be told that there is none."""
    response.protocol_name = response.protocol_name or ""
    return response
