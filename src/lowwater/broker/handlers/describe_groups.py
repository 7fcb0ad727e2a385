"""DescribeGroups v0-6: classic groups and their members.

v3 adds authorized operations; v4 instance ids; v6 says that a group is not there instead of calling it Dead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lowwater.broker.operations import ON_GROUPS
from lowwater.broker.router import RequestContext, handles
from lowwater.errors import ApiError
from lowwater.groups.commands import DescribeGroup
from lowwater.pending import Pending
from lowwater.wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

NOT_FOUND_SINCE = 6


@handles(DescribeGroupsRequest, pipelines=True)
def describe_groups(broker: Broker, request: DescribeGroupsRequest, context: RequestContext) -> Any:
    unknown_is_error = context.api_version >= NOT_FOUND_SINCE
    answers = [_describe(broker, DescribeGroup(name, unknown_is_error)) for name in dict.fromkeys(request.groups)]

    def response(groups: list[DescribedGroup]) -> DescribeGroupsResponse:
        if request.include_authorized_operations:
            for group in groups:
                if not group.error_code:
                    group.authorized_operations = ON_GROUPS
        return DescribeGroupsResponse(groups=groups)

    return Pending.gather(answers, response)


def _describe(broker: Broker, command: DescribeGroup) -> Any:
    def refused(error: ApiError) -> DescribedGroup:
        state = "Dead" if command.unknown_is_error else ""
        message = error.detail if command.unknown_is_error else None
        return DescribedGroup(
            error_code=error.code, error_message=message, group_id=command.group_id, group_state=state
        )

    return broker.groups.ask_or(command.group_id, command, refused)
