"""ListGroups v0-5: all groups, filtered by state since v4 and by type since v5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lowwater.broker.router import RequestContext, handles
from lowwater.pending import Pending
from lowwater.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker


@handles(ListGroupsRequest, pipelines=True)
def list_groups(broker: Broker, request: ListGroupsRequest, context: RequestContext) -> Any:
    return Pending.gather(broker.groups.ask_each(request), _together)


def _together(answers: list[ListGroupsResponse]) -> ListGroupsResponse:
    return ListGroupsResponse(groups=[group for answer in answers for group in answer.groups])
