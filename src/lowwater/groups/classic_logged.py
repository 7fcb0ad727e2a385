"""A classic group as the log has it, and the answers that are told from it.

Generation, protocol, leader and assignments are set by `replay_metadata` alone, in life as after a restart.
"""

from __future__ import annotations

from collections.abc import Mapping

from lowwater.errors import ErrorCode
from lowwater.groups import records
from lowwater.groups.classic_members import Member, Roster
from lowwater.groups.config import GroupConfig
from lowwater.groups.metrics import GroupMetrics
from lowwater.groups.record_schemas import GroupMetadataValue, MemberMetadata
from lowwater.groups.timers import Timers
from lowwater.outcome import Now, Outcome, StateRecord
from lowwater.ports import Ids
from lowwater.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from lowwater.wire.messages.sync_group import SyncGroupResponse

NO_ASSIGNMENTS: Mapping[str, bytes] = {}


class LoggedGroup:
    """The durable part of a group, beside the roster of its members, which is ahead of the log in a rebalance."""

    __slots__ = (
        "_logged_type",
        "_replayed_ahead",
        "_unreplayed",
        "_written",
        "config",
        "generation",
        "group_id",
        "ids",
        "leader",
        "metrics",
        "protocol",
        "roster",
        "since_ms",
        "timers",
    )

    def __init__(self, group_id: str, config: GroupConfig, ids: Ids, timers: Timers, metrics: GroupMetrics) -> None:
        self.group_id = group_id
        self.config = config
        self.ids = ids
        self.timers = timers
        self.metrics = metrics
        self.roster = Roster(metrics)
        self.generation = 0
        self._logged_type = ""
        self.protocol: str | None = None
        self.leader: str | None = None
        # When this was logged, by the wall clock.
        self.since_ms: int | None = None
        self._unreplayed = 0
        # The last record of this group as bytes, and what they say: nobody has to read what was just written.
        self._written: tuple[bytes, GroupMetadataValue] | None = None
        self._replayed_ahead = 0

    @property
    def protocol_type(self) -> str:
        """That of the members, or of the last there were; empty for a group that never had any."""
        return self.roster.protocol_type if self.roster.members else self._logged_type

    def write(
        self,
        generation: int,
        protocol: str | None,
        leader: str | None,
        assignments: Mapping[str, bytes],
        now: Now,
        out: Outcome,
    ) -> None:
        """Log the group as it is to be; it is so once that is replayed."""
        value = GroupMetadataValue(
            protocol_type=self.roster.protocol_type,
            generation=generation,
            protocol=protocol,
            leader=leader,
            current_state_timestamp=now.wall_ms,
            members=[
                _stored(member, protocol, assignments.get(member.member_id, b""))
                for member in self.roster.members.values()
            ],
        )
        stored = records.encode_value(value)
        out.records.append(StateRecord(records.group_key(self.group_id), stored))
        self._written = stored, value
        self._unreplayed += 1

    def assert_replayed(self) -> None:
        assert not self._unreplayed, f"group {self.group_id!r} decides before its last record was replayed"

    def just_written(self, stored: bytes) -> GroupMetadataValue | None:
        """What these bytes say, if they are those that this group wrote last."""
        written, self._written = self._written, None
        return written[1] if written is not None and written[0] is stored else None

    def replay_metadata(self, value: GroupMetadataValue) -> None:
        """Take over what the log tells, live and at a start."""
        if self._replayed_ahead:
            self._replayed_ahead -= 1
            return
        self._unreplayed = max(0, self._unreplayed - 1)
        self.generation = value.generation
        self._logged_type = value.protocol_type
        self.protocol = value.protocol
        self.leader = self.roster.heir = value.leader
        self.since_ms = None if value.current_state_timestamp < 0 else value.current_state_timestamp
        members = self.roster.members
        for member_id in members.keys() - {stored.member_id for stored in value.members}:
            self.timers.stop(members[member_id])
            self.roster.remove(members[member_id])
        for stored in value.members:
            self._replay_member(stored, value)

    def _replay_member(self, stored: MemberMetadata, value: GroupMetadataValue) -> None:
        member = self.roster.members.get(stored.member_id)
        if member is None:
            member = Member(self, stored.member_id, stored.group_instance_id)
            self.roster.add(member, value.protocol_type)
        # A live member knows more protocols than the log tells of.
        told = (value.protocol or "", bytes(stored.subscription))
        if told not in member.protocols:
            self.roster.set_protocols(member, (told,))
        member.client_id, member.client_host = stored.client_id, stored.client_host
        member.session_timeout_ms = stored.session_timeout
        # Records of old brokers have no rebalance timeout.
        member.rebalance_timeout_ms = (
            stored.session_timeout if stored.rebalance_timeout < 0 else stored.rebalance_timeout
        )
        member.assignment = bytes(stored.assignment)
        member.holds = member.assignment or member.holds

    def forget(self, out: Outcome) -> None:
        """Take the group out of the log; its shard lets go of it when that is replayed."""
        out.records.append(StateRecord(records.group_key(self.group_id), None))

    def join_answer(self, member: Member) -> JoinGroupResponse:
        """The current generation once more."""
        told = self.members_told(self.protocol) if member.member_id == self.leader else []
        return self.generation_answer(member, self.generation, self.protocol, self.leader or "", told)

    def returned_answer(self, member: Member, leader: str | None, knows_skip_assignment: bool) -> JoinGroupResponse:
        """For a static member that is back. A leader that cannot be told to assign nothing is not told that it leads.

        `leader` is who led before: its old id, if that was the member itself.
        """
        if not knows_skip_assignment:
            return self.generation_answer(member, self.generation, self.protocol, leader or "", [])
        leads = member.member_id == self.roster.heir
        told = self.members_told(self.protocol) if leads else []
        answer = self.generation_answer(member, self.generation, self.protocol, self.roster.heir or "", told)
        answer.skip_assignment = leads
        return answer

    def generation_answer(
        self, member: Member, generation: int, protocol: str | None, leader: str, told: list[JoinGroupResponseMember]
    ) -> JoinGroupResponse:
        return JoinGroupResponse(
            generation_id=generation,
            protocol_type=self.roster.protocol_type,
            protocol_name=protocol,
            leader=leader,
            member_id=member.member_id,
            members=told,
        )

    def members_told(self, protocol: str | None) -> list[JoinGroupResponseMember]:
        return [
            JoinGroupResponseMember(
                member_id=member.member_id, group_instance_id=member.instance_id, metadata=member.metadata(protocol)
            )
            for member in self.roster.members.values()
        ]

    def sync_answer(self, assignment: bytes) -> SyncGroupResponse:
        return SyncGroupResponse(protocol_type=self._logged_type, protocol_name=self.protocol, assignment=assignment)


def join_refusal(error: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error, protocol_name=None, member_id=member_id)


def _stored(member: Member, protocol: str | None, assignment: bytes) -> MemberMetadata:
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.metadata(protocol),
        assignment=assignment,
    )
