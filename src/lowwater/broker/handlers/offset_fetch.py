"""OffsetFetch v1-10: how far groups have read.

v2 asks for everything by leaving the topics out; v7 can insist on offsets no transaction may still change; v8 asks for
many groups; v9 names the member that asks; v10 names topics by id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lowwater.broker.router import RequestContext, handles
from lowwater.errors import ApiError
from lowwater.groups.commands import Fetch
from lowwater.pending import Pending
from lowwater.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

GROUP_ERROR_SINCE = 2
MANY_GROUPS_SINCE = 8
IDS_SINCE = 10


@handles(OffsetFetchRequest, pipelines=True)
def offset_fetch(broker: Broker, request: OffsetFetchRequest, context: RequestContext) -> Any:
    version = context.api_version
    if version < MANY_GROUPS_SINCE:
        group = _as_group(request)
        answer = _ask(broker, group, request, version)
        if isinstance(answer, Pending):
            return answer.map(lambda response: _as_one(response, group, version))
        return _as_one(answer, group, version)
    answers = [_ask(broker, group, request, version) for group in request.groups]
    return Pending.gather(answers, lambda groups: OffsetFetchResponse(groups=groups))


def _ask(broker: Broker, group: OffsetFetchRequestGroup, request: OffsetFetchRequest, version: int) -> Any:
    """An error is that group's alone."""
    command = Fetch(group, by_id=version >= IDS_SINCE, require_stable=request.require_stable)
    return broker.groups.ask_or(group.group_id, command, lambda error: _refused(group, error))


def _refused(group: OffsetFetchRequestGroup, error: ApiError) -> OffsetFetchResponseGroup:
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=[], error_code=error.code)


def _as_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=one.name, partition_indexes=one.partition_indexes) for one in request.topics
        ]
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)


def _as_one(response: OffsetFetchResponseGroup, asked: OffsetFetchRequestGroup, version: int) -> OffsetFetchResponse:
    """The answer for one group in the older form; before v2 an error stands at each partition."""
    if response.error_code and version < GROUP_ERROR_SINCE:
        return OffsetFetchResponse(topics=_error_everywhere(asked, response.error_code))
    topics = [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=one.partition_index,
                    committed_offset=one.committed_offset,
                    committed_leader_epoch=one.committed_leader_epoch,
                    metadata=one.metadata,
                    error_code=one.error_code,
                )
                for one in topic.partitions
            ],
        )
        for topic in response.topics
    ]
    return OffsetFetchResponse(topics=topics, error_code=response.error_code)


def _error_everywhere(asked: OffsetFetchRequestGroup, code: int) -> list[OffsetFetchResponseTopic]:
    return [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(partition_index=index, committed_offset=-1, error_code=code)
                for index in topic.partition_indexes
            ],
        )
        for topic in asked.topics or ()
    ]
