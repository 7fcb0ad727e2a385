"""OffsetCommit v2-10: a group keeps how far it has read; answered when that is durable.

v2 to v4 carry a retention of their own; v6 adds leader epochs, v7 static members; v9 is for the consumer protocol and
knows its errors; v10 names topics by id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.broker.router import RequestContext, handles
from lowwater.groups.commands import Commit
from lowwater.pending import Pending
from lowwater.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

CONSUMER_GROUPS_SINCE = 9
IDS_SINCE = 10


@handles(OffsetCommitRequest, pipelines=True)
def offset_commit(
    broker: Broker, request: OffsetCommitRequest, context: RequestContext
) -> OffsetCommitResponse | Pending[OffsetCommitResponse]:
    version = context.api_version
    command = Commit(request, version >= IDS_SINCE, request.retention_time_ms, version >= CONSUMER_GROUPS_SINCE)
    answer: OffsetCommitResponse | Pending[OffsetCommitResponse] = broker.groups.ask(request.group_id, command)
    return answer
