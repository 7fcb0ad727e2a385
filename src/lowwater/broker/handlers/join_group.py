"""JoinGroup v0-9: become or stay a member of a classic group; answered when the rebalance has gathered its members.

v1 adds the rebalance timeout; v4 tells a new member its id first; v5 adds static members; v7 may leave the protocol
out; v9 tells a leader that returns that nothing is to be assigned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lowwater.broker.router import RequestContext, handles
from lowwater.errors import ApiError
from lowwater.groups.commands import Join
from lowwater.pending import Pending
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
    asks_for_member_id, knows_skip_assignment = version >= MEMBER_ID_REQUIRED_SINCE, version >= SKIP_ASSIGNMENT_SINCE
    client_id, client_host = context.client_id or "", "/" + context.client_host
    command = Join(request, client_id, client_host, asks_for_member_id, knows_skip_assignment)
    try:
        answer = broker.groups.ask(request.group_id, command)
    except ApiError as error:
        return _refused(error, request, version)
    if isinstance(answer, Pending):
        return answer.then(lambda done: _settled(done, request, version))
    return _told(answer, version)


def _settled(done: Pending[JoinGroupResponse], request: JoinGroupRequest, version: int) -> JoinGroupResponse:
    try:
        return _told(done.result(), version)
    except ApiError as error:
        return _refused(error, request, version)


def _refused(error: ApiError, request: JoinGroupRequest, version: int) -> JoinGroupResponse:
    response = JoinGroupResponse(error_code=error.code, protocol_name=None, member_id=request.member_id)
    return _told(response, version)


def _told(response: JoinGroupResponse, version: int) -> JoinGroupResponse:
    """Older clients cannot be told that there is no protocol."""
    if response.protocol_name is None and version < NULL_PROTOCOL_SINCE:
        response.protocol_name = ""
    return response
