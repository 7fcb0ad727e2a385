"""What a shard is asked, where the request alone does not say it: who asks, and quirks of old versions by name.

Sync, Heartbeat, Leave, OffsetDelete and ListGroups need nothing beside their wire requests and are commands as they are
(a Leave always with `members`, also that of an old version).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from lowwater.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from lowwater.wire.messages.join_group import JoinGroupRequest
from lowwater.wire.messages.offset_commit import OffsetCommitRequest
from lowwater.wire.messages.offset_fetch import OffsetFetchRequestGroup

Protocols: TypeAlias = tuple[tuple[str, bytes], ...]
"""What a classic member can do, as (name, metadata), dearest first."""


class Join:
    """JoinGroup. `asks_for_member_id`: a new member is told its id first and joins again with it (v4).

    `knows_skip_assignment`: a returning leader can be told that nothing is to be assigned (v9). The rebalance timeout
    is always set, also that of a v0.
    """

    __slots__ = ("asks_for_member_id", "client_host", "client_id", "knows_skip_assignment", "protocols", "request")

    def __init__(
        self,
        request: JoinGroupRequest,
        client_id: str,
        client_host: str,
        asks_for_member_id: bool,
        knows_skip_assignment: bool,
    ) -> None:
        self.request = request
        self.client_id = client_id
        self.client_host = client_host
        self.asks_for_member_id = asks_for_member_id
        self.knows_skip_assignment = knows_skip_assignment
        self.protocols: Protocols = tuple([(each.name, bytes(each.metadata)) for each in request.protocols])


class ConsumerHeartbeat(NamedTuple):
    """ConsumerGroupHeartbeat. `generates_member_id`: a v0 may join without an id and is given one."""

    request: ConsumerGroupHeartbeatRequest
    client_id: str
    client_host: str
    generates_member_id: bool


class Commit(NamedTuple):
    """OffsetCommit. `expire_after_ms` is the client's own retention (v2 to v4), -1 for that of the settings.

    `knows_consumer_groups`: the client can be a member of one, and knows the errors that came with them (v9).
    """

    request: OffsetCommitRequest
    by_id: bool
    expire_after_ms: int
    knows_consumer_groups: bool


class Fetch(NamedTuple):
    """OffsetFetch of one group. `topics` of None: everything it committed."""

    group: OffsetFetchRequestGroup
    by_id: bool
    require_stable: bool


class DescribeGroup(NamedTuple):
    """DescribeGroups of one group. `unknown_is_error`: a group that is not there is not described as Dead (v6)."""

    group_id: str
    unknown_is_error: bool


class DescribeConsumerGroup(NamedTuple):
    """ConsumerGroupDescribe of one group."""

    group_id: str


class DeleteGroup(NamedTuple):
    """DeleteGroups of one group."""

    group_id: str
