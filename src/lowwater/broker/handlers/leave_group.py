"""LeaveGroup v0-5: take members out of a classic group. One member up to v2, many since v3, with reasons since v5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lowwater.broker.router import RequestContext, handles
from lowwater.pending import Pending
from lowwater.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

MANY_SINCE = 3


@handles(LeaveGroupRequest, pipelines=True)
def leave_group(broker: Broker, request: LeaveGroupRequest, context: RequestContext) -> Any:
    if context.api_version >= MANY_SINCE:
        return broker.groups.ask(request.group_id, request)
    request.members = [MemberIdentity(member_id=request.member_id)]
    answer = broker.groups.ask(request.group_id, request)
    return answer.map(_of_one) if isinstance(answer, Pending) else _of_one(answer)


def _of_one(response: LeaveGroupResponse) -> LeaveGroupResponse:
    """The one member's error is that of the request."""
    code = response.error_code or next((one.error_code for one in response.members), 0)
    return LeaveGroupResponse(error_code=code, members=[])
