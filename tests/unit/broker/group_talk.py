"""Short forms of group requests over a virtual broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lowwater.errors import ErrorCode
from lowwater.testing.virtual_time import Asked, VirtualBroker
from lowwater.wire.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from lowwater.wire.messages.join_group import JoinGroupRequestProtocol
from lowwater.wire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from lowwater.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from lowwater.wire.messages.sync_group import SyncGroupRequestAssignment

BY_NAME = 9
NOTHING = -1


def commit_request(group: str, offset: int, topic: str = "t", index: int = 0, **fields: Any) -> OffsetCommitRequest:
    part = OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata="")
    topics = [OffsetCommitRequestTopic(name=topic, partitions=[part])]
    return OffsetCommitRequest(group_id=group, topics=topics, **fields)


def begin_commit(broker: VirtualBroker, group: str, offset: int, **fields: Any) -> Asked:
    return broker.send(commit_request(group, offset, **fields), BY_NAME)


def committed(asked: Asked) -> ErrorCode:
    return ErrorCode(asked.response.topics[0].partitions[0].error_code)


def commit(broker: VirtualBroker, group: str, offset: int, **fields: Any) -> ErrorCode:
    asked = begin_commit(broker, group, offset, **fields)
    broker.time.settle()
    return committed(asked)


def begin_fetch(broker: VirtualBroker, group: str, topic: str = "t", index: int = 0) -> Asked:
    topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=[index])]
    return broker.send(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)]), BY_NAME)


def fetched(asked: Asked) -> int | ErrorCode:
    """The offset, or the error of the group."""
    [group] = asked.response.groups
    if group.error_code:
        return ErrorCode(group.error_code)
    offset: int = group.topics[0].partitions[0].committed_offset
    return offset


def fetch(broker: VirtualBroker, group: str, topic: str = "t", index: int = 0) -> int | ErrorCode:
    asked = begin_fetch(broker, group, topic, index)
    broker.time.settle()
    return fetched(asked)


def old_fetch_request(group: str, indexes: Sequence[int] = (0,), topic: str = "t") -> OffsetFetchRequest:
    topics = [OffsetFetchRequestTopic(name=topic, partition_indexes=list(indexes))]
    return OffsetFetchRequest(group_id=group, topics=topics)


def list_groups(broker: VirtualBroker, **filters: list[str]) -> dict[str, str]:
    """Group -> state."""
    answer = broker.ask(ListGroupsRequest(**filters))
    assert answer.error_code == 0
    return {group.group_id: group.group_state for group in answer.groups}


def join_request(group: str, member_id: str = "", **fields: Any) -> JoinGroupRequest:
    values: dict[str, Any] = {
        "group_id": group,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"m")],
    }
    return JoinGroupRequest(**{**values, **fields})


def begin_join(broker: VirtualBroker, group: str, version: int = 3, **fields: Any) -> Asked:
    """Without being asked for a member id first, unless in a newer version."""
    return broker.send(join_request(group, **fields), version)


def sync_request(group: str, member_id: str, generation: int, *assigned: str) -> SyncGroupRequest:
    assignments = [SyncGroupRequestAssignment(member_id=one, assignment=b"a:" + one.encode()) for one in assigned]
    return SyncGroupRequest(group_id=group, generation_id=generation, member_id=member_id, assignments=assignments)


def stable_member(broker: VirtualBroker, group: str) -> tuple[str, int]:
    """A group of one member; needs an initial delay of 0."""
    joined = begin_join(broker, group)
    broker.time.settle()
    member_id, generation = joined.response.member_id, joined.response.generation_id
    synced = broker.ask(sync_request(group, member_id, generation, member_id), 3)
    assert synced.error_code == 0
    return member_id, generation


def beat(broker: VirtualBroker, group: str, member_id: str, generation: int) -> ErrorCode:
    request = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id)
    return ErrorCode(broker.ask(request).error_code)
