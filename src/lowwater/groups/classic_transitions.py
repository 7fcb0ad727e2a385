"""What a classic group does when asked, by name. Which of these it does in which state stands in `classic_table`."""

from __future__ import annotations

from lowwater.errors import ApiError, ErrorCode
from lowwater.groups.classic_logged import join_refusal
from lowwater.groups.classic_members import HandedOutId, Member
from lowwater.groups.classic_rebalance import RebalancingGroup
from lowwater.groups.commands import Join
from lowwater.outcome import Now, Outcome, Token
from lowwater.wire.messages.heartbeat import HeartbeatResponse
from lowwater.wire.messages.join_group import JoinGroupRequest
from lowwater.wire.messages.sync_group import SyncGroupRequest

# Answers without contents of their own are made once. Nobody changes a message that was answered.
_ALIVE = HeartbeatResponse()
_JOIN_AGAIN = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)

# Clients may tell a reason of any length.
REASON_MAX = 255
# A client's id may be as long as a string can be; with a member id made of all of it no record could be written.
NAME_IN_ID_MAX = 1_000


def unknown_member(*_: object) -> None:
    """No member is left in this group."""
    raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)


# Join of a client that is no member yet


def hand_out_id(group: RebalancingGroup, join: Join, token: Token, now: Now, out: Outcome) -> None:
    """So that a client whose first answer is lost does not become a second member."""
    handed_out = HandedOutId(group, new_member_id(group, join))
    group.roster.handed_out[handed_out.member_id] = handed_out
    group.timers.set(handed_out, now.monotonic_ms + join.request.session_timeout_ms)
    out.reply(token, join_refusal(ErrorCode.MEMBER_ID_REQUIRED, handed_out.member_id))


def join_and_rebalance(group: RebalancingGroup, join: Join, token: Token, now: Now, out: Outcome) -> None:
    member = _add(group, join, token, now)
    group.prepare(f"member {member.name} joins: {_reason(join.request)}", now, out)


def join_the_gathering(group: RebalancingGroup, join: Join, token: Token, now: Now, out: Outcome) -> None:
    _add(group, join, token, now)
    group.note_newcomer()
    group.complete_if_all_joined(now, out)


def _add(group: RebalancingGroup, join: Join, token: Token, now: Now) -> Member:
    handed_out = group.roster.handed_out.get(join.request.member_id)
    if handed_out is not None:
        group.forget_id(handed_out)
    member = _made(group, join, join.request.member_id or new_member_id(group, join))
    member.is_new = True
    group.roster.add(member, join.request.protocol_type)
    group.roster.wait_for_join(member, token)
    group.timers.set(member, now.monotonic_ms + group.config.new_member_join_timeout_ms)
    return member


def _made(group: RebalancingGroup, join: Join, member_id: str) -> Member:
    member = Member(group, member_id, join.request.group_instance_id)
    member.client_id, member.client_host = join.client_id, join.client_host
    member.session_timeout_ms = join.request.session_timeout_ms
    member.rebalance_timeout_ms = join.request.rebalance_timeout_ms
    member.protocols = join.protocols
    return member


def new_member_id(group: RebalancingGroup, join: Join) -> str:
    digits = group.ids.uuid().hex()
    unique = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    name = join.request.group_instance_id or join.client_id
    return f"{name[:NAME_IN_ID_MAX]}-{unique}"


# Join of a static member that has restarted


def replace_and_gather(group: RebalancingGroup, join: Join, token: Token, now: Now, out: Outcome) -> None:
    group.park_join(_replace(group, join, now, out), token, out)
    group.complete_if_all_joined(now, out)


def replace_and_rebalance(group: RebalancingGroup, join: Join, token: Token, now: Now, out: Outcome) -> None:
    """The leader may be assigning to the old id at this moment: that would give the new one nothing."""
    member = _replace(group, join, now, out)
    group.park_join(member, token, out)
    group.prepare(f"static member {member.name} joins again: {_reason(join.request)}", now, out)


def replace_quietly(group: RebalancingGroup, join: Join, token: Token, now: Now, out: Outcome) -> None:
    """A restart within the session changes nothing for the others, unless another protocol is voted for."""
    assert join.request.group_instance_id is not None
    old = group.roster.instances[join.request.group_instance_id]
    leader = group.leader
    assignments = {member.member_id: member.assignment for member in group.roster.members.values()}
    member = _replace(group, join, now, out)
    if group.roster.vote() != group.protocol:
        group.park_join(member, token, out)
        group.prepare(f"static member {member.name} joins with other protocols: {_reason(join.request)}", now, out)
        return
    assignments[member.member_id] = assignments.pop(old.member_id)
    group.write(group.generation, group.protocol, group.roster.heir, assignments, now, out)
    out.reply(token, group.returned_answer(member, leader, join.knows_skip_assignment))


def _replace(group: RebalancingGroup, join: Join, now: Now, out: Outcome) -> Member:
    """Whoever still asks under the old id is fenced."""
    assert join.request.group_instance_id is not None
    old = group.roster.instances[join.request.group_instance_id]
    member = _made(group, join, new_member_id(group, join))
    member.holds = old.holds
    led = group.roster.heir == old.member_id
    protocol_type = group.roster.protocol_type
    group.remove(old, ErrorCode.FENCED_INSTANCE_ID, out, told_id=old.member_id)
    group.roster.add(member, protocol_type)
    if led:
        group.roster.heir = member.member_id
    group.start_session(member, now)
    return member


# Join of a member


def gather_again(group: RebalancingGroup, join: Join, token: Token, now: Now, out: Outcome) -> None:
    _rejoin(group, join, token, out)
    group.complete_if_all_joined(now, out)


def repeat_answer_or_rebalance(group: RebalancingGroup, join: Join, token: Token, now: Now, out: Outcome) -> None:
    """The same as before: its answer was lost, so it gets it again."""
    member = group.roster.members[join.request.member_id]
    if join.protocols == member.protocols:
        out.reply(token, group.join_answer(member))
        return
    _rejoin_and_rebalance(group, join, token, now, out)


def rebalance_for_leader_or_change(group: RebalancingGroup, join: Join, token: Token, now: Now, out: Outcome) -> None:
    """A leader may join again for reasons that the broker does not see, as a topic that has grown."""
    member = group.roster.members[join.request.member_id]
    if member.member_id != group.leader and join.protocols == member.protocols:
        out.reply(token, group.join_answer(member))
        return
    _rejoin_and_rebalance(group, join, token, now, out)


def _rejoin_and_rebalance(group: RebalancingGroup, join: Join, token: Token, now: Now, out: Outcome) -> None:
    member = _rejoin(group, join, token, out)
    part = "leader" if member.member_id == group.leader else "member"
    group.prepare(f"{part} {member.name} joins again: {_reason(join.request)}", now, out)


def _rejoin(group: RebalancingGroup, join: Join, token: Token, out: Outcome) -> Member:
    member = group.roster.members[join.request.member_id]
    group.roster.set_protocols(member, join.protocols)
    member.session_timeout_ms = join.request.session_timeout_ms
    member.rebalance_timeout_ms = join.request.rebalance_timeout_ms
    group.park_join(member, token, out)
    return member


def _reason(request: JoinGroupRequest) -> str:
    return f"the client says {request.reason[:REASON_MAX]!r}" if request.reason else "no reason told"


# Sync


def sync_too_early(*_: object) -> None:
    raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)


def take_sync(group: RebalancingGroup, request: SyncGroupRequest, token: Token, now: Now, out: Outcome) -> None:
    """Members wait for the leader's."""
    member = group.roster.members[request.member_id]
    group.park_sync(member, token, out)
    if member.member_id == group.leader:
        assignments = {assigned.member_id: bytes(assigned.assignment) for assigned in request.assignments}
        group.complete_sync(assignments, now, out)


def answer_assignment(group: RebalancingGroup, request: SyncGroupRequest, token: Token, now: Now, out: Outcome) -> None:
    member = group.roster.members[request.member_id]
    group.note_sync(member)
    group.start_session(member, now)
    out.reply(token, group.sync_answer(member.assignment))


# Heartbeat


def call_back(group: RebalancingGroup, member: Member, token: Token, now: Now, out: Outcome) -> None:
    member.deadline_ms = now.monotonic_ms + member.session_timeout_ms
    out.replies.append((token, _JOIN_AGAIN))


def keep_alive(group: RebalancingGroup, member: Member, token: Token, now: Now, out: Outcome) -> None:
    member.deadline_ms = now.monotonic_ms + member.session_timeout_ms
    out.replies.append((token, _ALIVE))


# Leave: the members are out already


def nobody_left(*_: object) -> None:
    """An id that was handed out is all that an Empty group can lose."""


def gather_without(group: RebalancingGroup, reason: str, now: Now, out: Outcome) -> None:
    group.complete_if_all_joined(now, out)


def rebalance_without(group: RebalancingGroup, reason: str, now: Now, out: Outcome) -> None:
    group.prepare(reason, now, out)


# OffsetCommit, TxnOffsetCommit, DeleteGroups: may it be?


def accept(*_: object) -> None:
    """Nothing stands against it."""


def accept_as_heartbeat(group: RebalancingGroup, member: Member, now: Now) -> None:
    member.deadline_ms = now.monotonic_ms + member.session_timeout_ms


def refuse_while_completing(*_: object) -> None:
    """The member knows this generation but not yet what is its own in it."""
    raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)


def refuse_with_members(*_: object) -> None:
    raise ApiError(ErrorCode.NON_EMPTY_GROUP)
