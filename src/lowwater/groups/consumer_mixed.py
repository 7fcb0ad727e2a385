"""Members of the classic protocol in a consumer group: while the clients of a group change to the new protocol.

To such a member its epoch is a generation. It is told by REBALANCE_IN_PROGRESS that there is something new for it,
joins again with what it still owns, and is given its assignment by Sync: the coordinator's, in the form in which a
leader would have given it. There is no leader.
"""

from __future__ import annotations

from lowwater.errors import ApiError, ErrorCode
from lowwater.groups.classic_logged import join_refusal
from lowwater.groups.commands import Join
from lowwater.groups.consumer import ConsumerGroup
from lowwater.groups.consumer_admission import known, known_static
from lowwater.groups.consumer_members import NEW_MEMBER, Member, MemberMetadata
from lowwater.groups.consumer_migration import downgraded
from lowwater.groups.consumer_protocol import (
    PROTOCOL_TYPE,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_subscription,
    encode_assignment,
    version_of,
)
from lowwater.groups.consumer_reconciliation import Held, MemberState, Partitions
from lowwater.groups.consumer_step import Subscriptions
from lowwater.groups.record_schemas import ClassicMemberMetadata, ClassicProtocol, GroupMetadataValue
from lowwater.groups.records import decode
from lowwater.outcome import Now, Outcome, StateRecord, Token
from lowwater.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from lowwater.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from lowwater.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from lowwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class MixedGroup(ConsumerGroup):
    """A consumer group that answers both protocols."""

    def as_classic(self, now: Now) -> GroupMetadataValue | None:
        """The classic group that it has to become, when the last member of the new protocol is gone."""
        durable = self._durable
        if not 0 < durable.classic_count == len(durable.members):
            return None
        return downgraded(durable, self.config, now)

    def become(self, records: list[StateRecord], now: Now, out: Outcome) -> None:
        """What a classic group was turned into; the log says the same in a moment."""
        for record in records:
            decoded = decode(record)
            assert decoded is not None
            self.replay(*decoded)
        self.loaded(now, out)

    def retire(self) -> None:
        """Another group takes its place and its members."""
        self._metrics.total_members -= len(self._durable.members)
        for member_id in self._durable.members:
            self._deadlines.forget(member_id)

    def speaks_classic(self, member_id: str) -> bool:
        member = self._durable.members.get(member_id)
        return member is not None and member.metadata.classic is not None

    # -- Join

    def join(self, join: Join, token: Token, now: Now, out: Outcome) -> None:
        request = join.request
        self._check_size(request.member_id)
        self._check_protocols(request)
        if join.asks_for_member_id and not request.member_id and request.group_instance_id is None:
            out.reply(token, join_refusal(ErrorCode.MEMBER_ID_REQUIRED, self._new_id()))
            return
        subscription = decode_subscription(request.protocols[0].metadata)
        if subscription is None:
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "the subscription cannot be read")
        member_id = request.member_id or self._new_id()
        before = self._before_join(request, member_id)
        step = self._step(member_id, before, _metadata(join, subscription))
        self._advance(step, self._owned(subscription), now, out)
        self._deadlines.is_done(member_id)
        self._deadlines.owes(member_id, now.monotonic_ms + request.rebalance_timeout_ms)
        out.reply(token, _joined(member_id, step.current.epoch, request.protocols[0].name))

    def _before_join(self, request: JoinGroupRequest, member_id: str) -> Member:
        instance_id = request.group_instance_id
        if instance_id is None:
            return self._durable.members.get(member_id, NEW_MEMBER)
        if request.member_id:
            return known_static(self._durable, instance_id, member_id)
        return self._durable.member_of_instance(instance_id) or NEW_MEMBER

    def _check_protocols(self, request: JoinGroupRequest) -> None:
        """All classic members have to have one protocol in common, or they could not go back to a classic group.

        What the member itself supported before counts too, as in Kafka.
        """
        common = {protocol.name for protocol in request.protocols}
        for member in self._durable.members.values():
            if member.metadata.classic is not None:
                common &= {protocol.name for protocol in member.metadata.classic.supported_protocols}
        if request.protocol_type != PROTOCOL_TYPE or not common:
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def _owned(self, subscription: ConsumerProtocolSubscription) -> Partitions:
        """A member that gives up everything before it joins says nothing here."""
        named = ((self._topics.topic_id(one.topic), one.partitions) for one in subscription.owned_partitions)
        return {topic_id: frozenset(partitions) for topic_id, partitions in named if topic_id is not None}

    # -- Sync and Heartbeat

    def sync(self, request: SyncGroupRequest, token: Token, now: Now, out: Outcome) -> None:
        member, classic = self._classic_caller(request.member_id, request.group_instance_id, request.generation_id)
        protocol = classic.supported_protocols[0]
        if request.protocol_type not in (None, PROTOCOL_TYPE) or request.protocol_name not in (None, protocol.name):
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if self._durable.epoch > member.current.epoch and member.current.state is not MemberState.UNREVOKED_PARTITIONS:
            raise self._has_to_rejoin(member, now)
        self._deadlines.is_done(member.member_id)
        self._deadlines.heard_of(member.member_id, self._session_end_ms(member.metadata, now))
        out.reply(
            token,
            SyncGroupResponse(
                protocol_type=PROTOCOL_TYPE,
                protocol_name=protocol.name,
                assignment=self._told(member.current.assigned, classic),
            ),
        )

    def _told(self, partitions: Held, classic: ClassicMemberMetadata) -> bytes:
        """An assignment as a leader would have given it."""
        named = ((self._topics.topic_name(topic_id), held) for topic_id, held in partitions.items())
        assignment = ConsumerProtocolAssignment(
            assigned_partitions=[
                TopicPartition(topic=name, partitions=sorted(partitions))
                for name, partitions in named
                if name is not None
            ]
        )
        return encode_assignment(assignment, version_of(classic.supported_protocols[0].metadata))

    def assignments_of_classic(self) -> dict[str, bytes]:
        """What each classic member has, or has still to give up."""
        return {
            member_id: self._told(member.current.held, member.metadata.classic)
            for member_id, member in self._durable.members.items()
            if member.metadata.classic is not None
        }

    def heartbeat_of_classic(self, request: HeartbeatRequest, token: Token, now: Now, out: Outcome) -> None:
        self._metrics.heartbeats_total += 1
        member, _ = self._classic_caller(request.member_id, request.group_instance_id, request.generation_id)
        self._deadlines.heard_of(member.member_id, self._session_end_ms(member.metadata, now))
        epoch = self._look_at_topics(now, out)
        if epoch > member.current.epoch or self._may_go_on(member):
            refusal = self._has_to_rejoin(member, now)
            out.reply(token, HeartbeatResponse(error_code=refusal.code))
        else:
            out.reply(token, HeartbeatResponse())

    def _may_go_on(self, member: Member) -> bool:
        """Whether a Join would tell the member more: it has to give up partitions, or those it waits for are free."""
        current = member.current
        if current.state is not MemberState.UNRELEASED_PARTITIONS:
            return current.state is MemberState.UNREVOKED_PARTITIONS
        own = (member.member_id,)
        return not any(
            self._durable.is_taken(topic_id, partition, own)
            for topic_id, partitions in self._durable.target_of(member.member_id).items()
            for partition in partitions
        )

    def _look_at_topics(self, now: Now, out: Outcome) -> int:
        """As a heartbeat of the new protocol does: there may be none for a while. Returns the group's epoch."""
        if self._topics.version == self._topics_version:
            return self._durable.epoch
        after = Subscriptions(self.group_id, self._durable, self._topics, self._patterns)
        after.renew((), NEW_MEMBER.metadata, now.wall_ms, changed=False)
        self._topics_version = self._topics.version
        out.records += after.records
        return after.epoch

    def _has_to_rejoin(self, member: Member, now: Now) -> ApiError:
        self._deadlines.owes(member.member_id, now.monotonic_ms + member.metadata.rebalance_timeout_ms)
        return ApiError(ErrorCode.REBALANCE_IN_PROGRESS)

    def _classic_caller(
        self, member_id: str, instance_id: str | None, generation: int
    ) -> tuple[Member, ClassicMemberMetadata]:
        if instance_id is None:
            member = known(self._durable, member_id)
        else:
            member = known_static(self._durable, instance_id, member_id)
        classic = member.metadata.classic
        if classic is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id!r} speaks the consumer protocol")
        if generation != member.current.epoch:
            raise ApiError(
                ErrorCode.ILLEGAL_GENERATION, f"generation {generation}; the member is in {member.current.epoch}"
            )
        return member, classic

    # -- Leave

    def leave(self, request: LeaveGroupRequest, token: Token, now: Now, out: Outcome) -> None:
        """Also an administrator's way to remove members of either protocol."""
        leaving: dict[str, Member] = {}
        out.reply(token, LeaveGroupResponse(members=[self._let_go(one, leaving) for one in request.members]))
        if leaving:
            self._remove(list(leaving.values()), "left", now, out)

    def _let_go(self, identity: MemberIdentity, leaving: dict[str, Member]) -> MemberResponse:
        answer = MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id)
        try:
            member = self._leaving(identity)
        except ApiError as refusal:
            answer.error_code = refusal.code
        else:
            leaving[member.member_id] = member
        return answer

    def _leaving(self, identity: MemberIdentity) -> Member:
        if identity.group_instance_id is None:
            return known(self._durable, identity.member_id)
        holder = self._durable.member_of_instance(identity.group_instance_id)
        if holder is not None and not identity.member_id:
            return holder
        return known_static(self._durable, identity.group_instance_id, identity.member_id)


def _metadata(join: Join, subscription: ConsumerProtocolSubscription) -> MemberMetadata:
    request = join.request
    protocols = [ClassicProtocol(name=one.name, metadata=bytes(one.metadata)) for one in request.protocols]
    return MemberMetadata(
        instance_id=request.group_instance_id,
        rack_id=subscription.rack_id or None,
        client_id=join.client_id,
        client_host=join.client_host,
        topics=frozenset(subscription.topics),
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        classic=ClassicMemberMetadata(session_timeout_ms=request.session_timeout_ms, supported_protocols=protocols),
    )


def _joined(member_id: str, epoch: int, protocol: str) -> JoinGroupResponse:
    return JoinGroupResponse(
        member_id=member_id, generation_id=epoch, protocol_type=PROTOCOL_TYPE, protocol_name=protocol, leader=""
    )
