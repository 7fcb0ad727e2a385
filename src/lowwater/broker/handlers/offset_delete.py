"""OffsetDelete v0: forget what a group has committed for some partitions, unless it still reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.broker.router import RequestContext, handles
from lowwater.pending import Pending
from lowwater.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker


@handles(OffsetDeleteRequest, pipelines=True)
def offset_delete(
    broker: Broker, request: OffsetDeleteRequest, context: RequestContext
) -> OffsetDeleteResponse | Pending[OffsetDeleteResponse]:
    answer: OffsetDeleteResponse | Pending[OffsetDeleteResponse] = broker.groups.ask(request.group_id, request)
    return answer
