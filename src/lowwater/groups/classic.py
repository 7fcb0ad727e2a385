"""The classic consumer-group protocol: clients join, their leader assigns, all sync. The checks stand here in order;
what follows them is the state's, in `classic_table`.
"""

from __future__ import annotations

from collections.abc import Mapping

from lowwater.errors import ApiError, ErrorCode
from lowwater.groups import classic_table as table
from lowwater.groups.classic_logged import join_refusal
from lowwater.groups.classic_members import NOBODY, Member
from lowwater.groups.classic_rebalance import COMPLETING, DEAD, EMPTY, PREPARING, STABLE, RebalancingGroup
from lowwater.groups.classic_table import JoinStep
from lowwater.groups.commands import Join
from lowwater.groups.config import GroupConfig
from lowwater.groups.consumer_protocol import PROTOCOL_TYPE
from lowwater.outcome import Now, Outcome, Token
from lowwater.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from lowwater.wire.messages.heartbeat import HeartbeatRequest
from lowwater.wire.messages.join_group import JoinGroupRequest
from lowwater.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from lowwater.wire.messages.sync_group import SyncGroupRequest

__all__ = ["COMPLETING", "DEAD", "EMPTY", "PREPARING", "STABLE", "ClassicGroup", "check_join", "nobody_leaves"]

REASONS_MAX = 3


def check_join(request: JoinGroupRequest, config: GroupConfig) -> None:
    """What is refused whatever the group: before one is looked up or made."""
    if not request.group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID)
    if not config.session_timeout_min_ms <= request.session_timeout_ms <= config.session_timeout_max_ms:
        raise ApiError(ErrorCode.INVALID_SESSION_TIMEOUT)


def nobody_leaves(request: LeaveGroupRequest) -> LeaveGroupResponse:
    """The answer for a group that is not there: the request is in order, its members are unknown."""
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=identity.member_id,
                group_instance_id=identity.group_instance_id,
                error_code=ErrorCode.UNKNOWN_MEMBER_ID,
            )
            for identity in request.members
        ]
    )


class ClassicGroup(RebalancingGroup):
    """Requests to one group. A plain refusal is raised as ApiError."""

    __slots__ = ()

    kind = "classic"

    @property
    def is_empty(self) -> bool:
        return self.state == EMPTY

    @property
    def empty_since_ms(self) -> int | None:
        """By the wall clock. None while it is not empty, and for a group that never had members."""
        return self.since_ms if self.state == EMPTY and self.protocol_type else None

    def subscribes_to(self, topic: str) -> bool:
        return self.roster.subscribes_to(topic)

    # Requests

    def join(self, join: Join, token: Token, now: Now, out: Outcome) -> None:
        request = join.request
        self._check_alive()
        if not self._has_room(request):
            self._turn_away(request, token, now, out)
            return
        if not self.roster.supports(request.protocol_type, join.protocols):
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        self._row_of_join(join)[self.state](self, join, token, now, out)

    def _row_of_join(self, join: Join) -> Mapping[str, JoinStep]:
        """Who joins; a member is checked here."""
        request = join.request
        if request.member_id:
            if request.member_id in self.roster.handed_out and request.group_instance_id is None:
                return table.JOIN_NEW
            self._caller(request.member_id, request.group_instance_id, self.generation)
            return table.JOIN_KNOWN
        if request.group_instance_id is not None:
            return table.JOIN_RETURNING if request.group_instance_id in self.roster.instances else table.JOIN_NEW
        return table.JOIN_WITHOUT_ID if join.asks_for_member_id else table.JOIN_NEW

    def _has_room(self, request: JoinGroupRequest) -> bool:
        """A rebalance counts those who joined again: of a group that was allowed more, the last to come are out."""
        member = self.roster.members.get(request.member_id)
        if member is None and not request.member_id and request.group_instance_id is not None:
            member = self.roster.instances.get(request.group_instance_id)
        if self.state == PREPARING:
            is_counted = member is not None and member.join_token is not None
            return is_counted or self.roster.joined < self.config.group_size_max
        return self.state == EMPTY or member is not None or len(self.roster.members) < self.config.group_size_max

    def _turn_away(self, request: JoinGroupRequest, token: Token, now: Now, out: Outcome) -> None:
        """The group goes on without it."""
        out.reply(token, join_refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, ""))
        handed_out = self.roster.handed_out.get(request.member_id)
        member = self.roster.members.get(request.member_id)
        if handed_out is not None:
            self.forget_id(handed_out)
        elif member is not None:
            self.remove(member, ErrorCode.GROUP_MAX_SIZE_REACHED, out)
        self.complete_if_all_joined(now, out)

    def sync(self, request: SyncGroupRequest, token: Token, now: Now, out: Outcome) -> None:
        self._check_alive()
        if self._caller(request.member_id, request.group_instance_id, request.generation_id) is not NOBODY:
            self._check_protocol(request)
        table.SYNC[self.state](self, request, token, now, out)

    def heartbeat(self, request: HeartbeatRequest, token: Token, now: Now, out: Outcome) -> None:
        """The most frequent request by far: a member that is right about everything passes one look."""
        self.metrics.heartbeats_total += 1
        member = self.roster.members.get(request.member_id)
        instance_id = request.group_instance_id
        if (
            member is None
            or request.generation_id != self.generation
            or (instance_id is not None and instance_id != member.instance_id)
            or self.state == DEAD
        ):
            self._check_alive()
            member = self._caller(request.member_id, instance_id, request.generation_id)
        table.HEARTBEAT[self.state](self, member, token, now, out)

    def leave(self, request: LeaveGroupRequest, token: Token, now: Now, out: Outcome) -> None:
        """Each member has its own answer; the group is rebalanced once for all who left."""
        self._check_alive()
        left: list[MemberIdentity] = []
        answers = [self._let_go(identity, left, out) for identity in request.members]
        out.reply(token, LeaveGroupResponse(members=answers))
        if left:
            table.LEAVE[self.state](self, _reason_of_leave(left), now, out)

    def _let_go(self, identity: MemberIdentity, left: list[MemberIdentity], out: Outcome) -> MemberResponse:
        answer = MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id)
        handed_out = self.roster.handed_out.get(identity.member_id)
        try:
            if handed_out is not None:
                self.forget_id(handed_out)
            else:
                self.remove(self._leaving(identity), ErrorCode.UNKNOWN_MEMBER_ID, out)
            left.append(identity)
        except ApiError as refusal:
            answer.error_code = refusal.code
        return answer

    def _leaving(self, identity: MemberIdentity) -> Member:
        """An admin removes a static member by its instance alone."""
        if not identity.member_id and identity.group_instance_id in self.roster.instances:
            return self.roster.instances[identity.group_instance_id]
        return self._check_member(identity.member_id, identity.group_instance_id)

    # May it be? Refusals are raised

    def check_commit(self, member_id: str, instance_id: str | None, generation: int, now: Now) -> None:
        self._check_alive()
        by_member = generation >= 0 or bool(member_id) or instance_id is not None
        if not by_member or (generation < 0 and self.state == EMPTY):
            table.COMMIT_BY_NO_MEMBER[self.state](self, NOBODY, now)
            return
        member = self._caller(member_id, instance_id, generation)
        table.COMMIT_AS_MEMBER[self.state](self, member, now)

    def check_txn_commit(self, member_id: str, instance_id: str | None, generation: int, now: Now) -> None:
        self._check_alive()
        by_member = generation >= 0 or bool(member_id) or instance_id is not None
        if not by_member or (generation < 0 and self.state == EMPTY):
            table.TXN_COMMIT_BY_NO_MEMBER[self.state](self, NOBODY, now)
            return
        member = self._caller(member_id, instance_id, generation)
        table.TXN_COMMIT_AS_MEMBER[self.state](self, member, now)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Anyone may know how far a classic group has read."""
        if self.state == DEAD:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND)

    def check_offset_delete(self) -> None:
        """Consumers say which topics they read; what others read is not known, so they have to be gone."""
        if self.state == DEAD:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND)
        if self.state != EMPTY and self.protocol_type != PROTOCOL_TYPE:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP)

    def check_delete(self) -> None:
        if self.state == DEAD:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND)
        table.DELETE[self.state](self)

    # Checks that hold in all states, in the order in which requests make them

    def _check_alive(self) -> None:
        self.assert_replayed()
        if self.state == DEAD:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def _caller(self, member_id: str, instance_id: str | None, generation: int) -> Member:
        """The member that asks. An Empty group has none: what it answers stands in the table."""
        if self.state == EMPTY:
            return NOBODY
        member = self._check_member(member_id, instance_id)
        if generation != self.generation:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION)
        return member

    def _check_member(self, member_id: str, instance_id: str | None) -> Member:
        if instance_id is not None:
            owner = self.roster.instances.get(instance_id)
            if owner is None:
                raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
            if owner.member_id != member_id:
                raise ApiError(ErrorCode.FENCED_INSTANCE_ID)
        member = self.roster.members.get(member_id)
        if member is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    def _check_protocol(self, request: SyncGroupRequest) -> None:
        """Old clients do not say which, and a group that was empty has not chosen one yet."""
        for named, own in ((request.protocol_type, self.protocol_type), (request.protocol_name, self.protocol)):
            if named is not None and own is not None and named != own:
                raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    # Introspection

    def describe(self) -> DescribedGroup:
        """What members can do is told of a Stable group only, what they were given until they are given anew."""
        return DescribedGroup(
            group_id=self.group_id,
            group_state=self.state,
            protocol_type=self.protocol_type,
            protocol_data=(self.protocol or "") if self.state == STABLE else "",
            members=[self._described(member) for member in self.roster.members.values()],
        )

    def _described(self, member: Member) -> DescribedGroupMember:
        return DescribedGroupMember(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=member.metadata(self.protocol) if self.state == STABLE else b"",
            member_assignment=member.holds,
        )


def _reason_of_leave(left: list[MemberIdentity]) -> str:
    names = ", ".join(
        f"{identity.member_id or identity.group_instance_id!r}"
        + (f" ({identity.reason[:255]!r})" if identity.reason else "")
        for identity in left[:REASONS_MAX]
    )
    more = f" and {len(left) - REASONS_MAX} more" if len(left) > REASONS_MAX else ""
    return f"{names}{more} left"
