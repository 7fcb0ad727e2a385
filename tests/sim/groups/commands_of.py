"""What the broker's handlers do around a shard: a request becomes commands, their replies become one response."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

from lowwater.errors import ApiError, ErrorCode
from lowwater.groups.commands import (
    Commit,
    ConsumerHeartbeat,
    DeleteGroup,
    DescribeConsumerGroup,
    DescribeGroup,
    Fetch,
    Join,
)
from lowwater.wire.messages import consumer_group_describe, describe_groups
from lowwater.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from lowwater.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from lowwater.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from lowwater.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from lowwater.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from lowwater.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from lowwater.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from lowwater.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from lowwater.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from lowwater.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from lowwater.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse, OffsetFetchResponseGroup
from lowwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from lowwater.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

HOST = "/127.0.0.1"


def commands_of(request: Any, version: int, client_id: str) -> Iterator[Any]:
    """The commands of one request; several when it asks about several groups."""
    match request:
        case JoinGroupRequest():
            yield Join(request, client_id, HOST, version >= 4, version >= 9)
        case ConsumerGroupHeartbeatRequest():
            yield ConsumerHeartbeat(request, client_id, HOST, version == 0)
        case LeaveGroupRequest():
            yield request if version >= 3 else _leave(request)
        case OffsetCommitRequest():
            yield _commit(request, version)
        case OffsetFetchRequest():
            for group in request.groups:
                yield Fetch(group, version >= 10, request.require_stable)
        case DescribeGroupsRequest():
            for name in request.groups:
                yield DescribeGroup(name, version >= 6)
        case ConsumerGroupDescribeRequest():
            for name in request.group_ids:
                yield DescribeConsumerGroup(name)
        case DeleteGroupsRequest():
            for name in request.groups_names:
                yield DeleteGroup(name)
        case _:
            yield request


def _leave(request: LeaveGroupRequest) -> LeaveGroupRequest:
    full = copy(request)
    full.members = [MemberIdentity(member_id=request.member_id)]
    return full


def _commit(request: OffsetCommitRequest, version: int) -> Commit:
    return Commit(request, version >= 10, request.retention_time_ms, version >= 9)


def response_of(request: Any, replies: list[Any]) -> Any:
    """One response of all replies, in the order of their commands. A reply may be an ApiError."""
    match request:
        case OffsetFetchRequest():
            asked = zip(request.groups, replies, strict=True)
            return OffsetFetchResponse(
                groups=[
                    OffsetFetchResponseGroup(group_id=group.group_id, topics=[], error_code=reply.code)
                    if isinstance(reply, ApiError)
                    else reply
                    for group, reply in asked
                ]
            )
        case DescribeGroupsRequest():
            rows = [_row(describe_groups.DescribedGroup, *pair) for pair in zip(request.groups, replies, strict=True)]
            return DescribeGroupsResponse(groups=rows)
        case ConsumerGroupDescribeRequest():
            names = zip(request.group_ids, replies, strict=True)
            return ConsumerGroupDescribeResponse(
                groups=[_row(consumer_group_describe.DescribedGroup, *pair) for pair in names]
            )
        case DeleteGroupsRequest():
            pairs = zip(request.groups_names, replies, strict=True)
            return DeleteGroupsResponse(results=[_row(DeletableGroupResult, *pair) for pair in pairs])
    [reply] = replies
    return refusal(request, reply.code) if isinstance(reply, ApiError) else reply


def _row(cls: Any, group: str, reply: Any) -> Any:
    return cls(group_id=group, error_code=reply.code) if isinstance(reply, ApiError) else reply


def refusal(request: Any, code: ErrorCode) -> Any:
    """The whole request is refused."""
    match request:
        case JoinGroupRequest():
            return JoinGroupResponse(error_code=code, member_id=request.member_id)
        case SyncGroupRequest():
            return SyncGroupResponse(error_code=code)
        case HeartbeatRequest():
            return HeartbeatResponse(error_code=code)
        case LeaveGroupRequest():
            return LeaveGroupResponse(error_code=code)
        case ConsumerGroupHeartbeatRequest():
            return ConsumerGroupHeartbeatResponse(error_code=code)
        case ListGroupsRequest():
            return ListGroupsResponse(error_code=code, groups=[])
        case OffsetDeleteRequest():
            return OffsetDeleteResponse(error_code=code)
        case OffsetCommitRequest():
            return OffsetCommitResponse(topics=[_refused_topic(topic, code) for topic in request.topics])
        case TxnOffsetCommitRequest():
            return TxnOffsetCommitResponse(topics=[_refused_in_transaction(topic, code) for topic in request.topics])
    return response_of(request, [ApiError(code, "")] * len(list(commands_of(request, 9, ""))))


def _refused_in_transaction(topic: Any, code: ErrorCode) -> TxnOffsetCommitResponseTopic:
    parts = [
        TxnOffsetCommitResponsePartition(partition_index=one.partition_index, error_code=code)
        for one in topic.partitions
    ]
    return TxnOffsetCommitResponseTopic(name=topic.name, partitions=parts)


def _refused_topic(topic: Any, code: ErrorCode) -> OffsetCommitResponseTopic:
    parts = [
        OffsetCommitResponsePartition(partition_index=one.partition_index, error_code=code) for one in topic.partitions
    ]
    return OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=parts)
