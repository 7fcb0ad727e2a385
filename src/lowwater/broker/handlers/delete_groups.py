"""DeleteGroups v0-2: forget groups without members, each by itself, with all they have committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lowwater.broker.router import RequestContext, handles
from lowwater.errors import ApiError
from lowwater.groups.commands import DeleteGroup
from lowwater.pending import Pending
from lowwater.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker


@handles(DeleteGroupsRequest, pipelines=True)
def delete_groups(broker: Broker, request: DeleteGroupsRequest, context: RequestContext) -> Any:
    names = dict.fromkeys(request.groups_names)
    return Pending.gather([_delete(broker, name) for name in names], lambda all_: DeleteGroupsResponse(results=all_))


def _delete(broker: Broker, name: str) -> Any:
    def refused(error: ApiError) -> DeletableGroupResult:
        return DeletableGroupResult(group_id=name, error_code=error.code)

    return broker.groups.ask_or(name, DeleteGroup(name), refused)
