"""The classic protocol as a table: what a group in a state does when asked. Checks that hold in all states come first.

An Empty group has no members: for it, who calls itself one is unknown. Nothing is asked of a Dead group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from lowwater.groups import classic_transitions as do
from lowwater.groups.classic_members import Member
from lowwater.groups.classic_rebalance import COMPLETING, EMPTY, PREPARING, STABLE, RebalancingGroup
from lowwater.groups.commands import Join
from lowwater.outcome import Now, Outcome, Token
from lowwater.wire.messages.sync_group import SyncGroupRequest

STATES = (EMPTY, PREPARING, COMPLETING, STABLE)

JoinStep: TypeAlias = Callable[[RebalancingGroup, Join, Token, Now, Outcome], None]
SyncStep: TypeAlias = Callable[[RebalancingGroup, SyncGroupRequest, Token, Now, Outcome], None]
HeartbeatStep: TypeAlias = Callable[[RebalancingGroup, Member, Token, Now, Outcome], None]
LeaveStep: TypeAlias = Callable[[RebalancingGroup, str, Now, Outcome], None]
Check: TypeAlias = Callable[[RebalancingGroup, Member, Now], None]

JOIN_WITHOUT_ID: Mapping[str, JoinStep] = {
    EMPTY: do.hand_out_id,
    PREPARING: do.hand_out_id,
    COMPLETING: do.hand_out_id,
    STABLE: do.hand_out_id,
}
"""A new dynamic member of a client that can be told an id first."""

JOIN_NEW: Mapping[str, JoinStep] = {
    EMPTY: do.join_and_rebalance,
    PREPARING: do.join_the_gathering,
    COMPLETING: do.join_and_rebalance,
    STABLE: do.join_and_rebalance,
}
"""With an id that was handed out, as a new static member, or without an id from an old client."""

JOIN_RETURNING: Mapping[str, JoinStep] = {
    PREPARING: do.replace_and_gather,
    COMPLETING: do.replace_and_rebalance,
    STABLE: do.replace_quietly,
}
"""Without an id, as a static member that is known. An Empty group knows none."""

JOIN_KNOWN: Mapping[str, JoinStep] = {
    EMPTY: do.unknown_member,
    PREPARING: do.gather_again,
    COMPLETING: do.repeat_answer_or_rebalance,
    STABLE: do.rebalance_for_leader_or_change,
}

SYNC: Mapping[str, SyncStep] = {
    EMPTY: do.unknown_member,
    PREPARING: do.sync_too_early,
    COMPLETING: do.take_sync,
    STABLE: do.answer_assignment,
}

HEARTBEAT: Mapping[str, HeartbeatStep] = {
    EMPTY: do.unknown_member,
    PREPARING: do.call_back,
    COMPLETING: do.keep_alive,
    STABLE: do.keep_alive,
}

LEAVE: Mapping[str, LeaveStep] = {
    EMPTY: do.nobody_left,
    PREPARING: do.gather_without,
    COMPLETING: do.rebalance_without,
    STABLE: do.rebalance_without,
}

COMMIT_AS_MEMBER: Mapping[str, Check] = {
    EMPTY: do.unknown_member,
    PREPARING: do.accept_as_heartbeat,
    COMPLETING: do.refuse_while_completing,
    STABLE: do.accept_as_heartbeat,
}

COMMIT_BY_NO_MEMBER: Mapping[str, Check] = {
    EMPTY: do.accept,
    PREPARING: do.unknown_member,
    COMPLETING: do.unknown_member,
    STABLE: do.unknown_member,
}
"""Generation -1: a consumer without a group, or an admin."""

TXN_COMMIT_BY_NO_MEMBER: Mapping[str, Check] = {
    EMPTY: do.accept,
    PREPARING: do.accept,
    COMPLETING: do.accept,
    STABLE: do.accept,
}

TXN_COMMIT_AS_MEMBER: Mapping[str, Check] = {
    EMPTY: do.unknown_member,
    PREPARING: do.accept,
    COMPLETING: do.accept,
    STABLE: do.accept,
}

DELETE: Mapping[str, Callable[[RebalancingGroup], None]] = {
    EMPTY: do.accept,
    PREPARING: do.refuse_with_members,
    COMPLETING: do.refuse_with_members,
    STABLE: do.refuse_with_members,
}
"""The tombstones are written by the shard: they are those of the offsets too."""

TABLE: Mapping[str, Mapping[str, Callable[..., None]]] = {
    "Join, no id, dynamic": JOIN_WITHOUT_ID,
    "Join, new": JOIN_NEW,
    "Join, no id, known instance": JOIN_RETURNING,
    "Join, known id": JOIN_KNOWN,
    "Sync": SYNC,
    "Heartbeat": HEARTBEAT,
    "Leave": LEAVE,
    "OffsetCommit, member": COMMIT_AS_MEMBER,
    "OffsetCommit, no member": COMMIT_BY_NO_MEMBER,
    "TxnOffsetCommit, no member": TXN_COMMIT_BY_NO_MEMBER,
    "TxnOffsetCommit, member": TXN_COMMIT_AS_MEMBER,
    "DeleteGroups": DELETE,
}
