"""How a classic group comes from one generation to the next: gather the members, log the generation, wait for Syncs.

All of this is forgotten when the broker stops: who waits, which ids were handed out, which timers run.
"""

from __future__ import annotations

from collections.abc import Mapping

from lowwater.errors import ErrorCode
from lowwater.groups import records
from lowwater.groups.classic_history import RebalanceHistory
from lowwater.groups.classic_logged import NO_ASSIGNMENTS, LoggedGroup, join_refusal
from lowwater.groups.classic_members import HandedOutId, Member
from lowwater.groups.config import GroupConfig
from lowwater.groups.metrics import GroupMetrics
from lowwater.groups.record_schemas import GroupMetadataValue
from lowwater.groups.timers import Timer, Timers
from lowwater.outcome import Now, Outcome, StateRecord, Token
from lowwater.ports import Ids
from lowwater.wire.messages.sync_group import SyncGroupResponse

EMPTY = "Empty"
PREPARING = "PreparingRebalance"
COMPLETING = "CompletingRebalance"
STABLE = "Stable"
DEAD = "Dead"

# How long a group of which only static members are left, none of whom has joined, is waited for at least.
PATIENCE_MIN_MS = 1_000


class RebalancingGroup(LoggedGroup):
    """A classic group below its requests: states and timers."""

    __slots__ = ("_history", "_initial_until_ms", "_newcomers", "_phase", "state")

    def __init__(self, group_id: str, config: GroupConfig, ids: Ids, timers: Timers, metrics: GroupMetrics) -> None:
        super().__init__(group_id, config, ids, timers, metrics)
        self.state = EMPTY
        self._history = RebalanceHistory(group_id, metrics)
        # Preparing: how long members may join. Completing and Stable: how long they may take to sync.
        self._phase = Timer(self)
        # The first rebalance of an empty group waits for more members, at most until then.
        self._initial_until_ms: float | None = None
        self._newcomers = False

    # Members come and go

    def start_session(self, member: Member, now: Now) -> None:
        self.timers.set(member, now.monotonic_ms + member.session_timeout_ms)

    def park_join(self, member: Member, token: Token, out: Outcome) -> None:
        """A Join of the same member that still waits was given up by its client."""
        given_up = self.roster.wait_for_join(member, token)
        if given_up is not None:
            out.reply(given_up, join_refusal(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))

    def remove(self, member: Member, error: ErrorCode, out: Outcome, *, told_id: str = "") -> None:
        """Take a member out; its waiting requests get `error`, its Join along with the id to go on with."""
        self.timers.stop(member)
        join_token = self.roster.end_join(member)
        if join_token is not None:
            out.reply(join_token, join_refusal(error, told_id))
        self._end_sync(member, SyncGroupResponse(error_code=error), out)
        self.roster.remove(member)

    def forget_id(self, handed_out: HandedOutId) -> None:
        self.timers.stop(handed_out)
        del self.roster.handed_out[handed_out.member_id]

    def _end_sync(self, member: Member, response: SyncGroupResponse, out: Outcome) -> bool:
        token, member.sync_token = member.sync_token, None
        if token is not None:
            out.reply(token, response)
        return token is not None

    # Gather the members

    def prepare(self, reason: str, now: Now, out: Outcome) -> None:
        """Leave Empty, Completing or Stable: members have to join again."""
        if self.state == COMPLETING:
            self._interrupt_syncs(now, out)
        was_empty = self.state == EMPTY
        self.state = PREPARING
        self.timers.stop(self._phase)
        self._history.began(reason, self.generation, now)
        if was_empty:
            self._wait_for_more(now, out)
        elif not self.roster.members or self.roster.all_have_joined():
            self.complete_join(now, out)
        else:
            self.timers.set(self._phase, now.monotonic_ms + self.roster.rebalance_timeout_ms())

    def _interrupt_syncs(self, now: Now, out: Outcome) -> None:
        response = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        for member in self.roster.members.values():
            member.holds = b""
            if self._end_sync(member, response, out):
                self.start_session(member, now)

    def _wait_for_more(self, now: Now, out: Outcome) -> None:
        delay_ms = self.config.initial_rebalance_delay_ms
        if delay_ms == 0:
            self.complete_join(now, out)
            return
        self._newcomers = False
        self._initial_until_ms = now.monotonic_ms + max(self.roster.rebalance_timeout_ms(), delay_ms)
        self.timers.set(self._phase, now.monotonic_ms + delay_ms)

    def note_newcomer(self) -> None:
        """The first rebalance may wait for yet more."""
        self._newcomers = True

    def _initial_delay_over(self, until_ms: float, now: Now, out: Outcome) -> None:
        if not self._newcomers or now.monotonic_ms >= until_ms:
            self.complete_join(now, out)
            return
        self._newcomers = False
        self.timers.set(self._phase, min(now.monotonic_ms + self.config.initial_rebalance_delay_ms, until_ms))

    def complete_if_all_joined(self, now: Now, out: Outcome) -> None:
        """The first rebalance of a group takes its time all the same."""
        if self.state == PREPARING and self._initial_until_ms is None and self.roster.all_have_joined():
            self.complete_join(now, out)

    def complete_join(self, now: Now, out: Outcome) -> None:
        """Go on with those who joined. Static members may be restarting: they are kept."""
        absent = [member for member in self.roster.members.values() if member.join_token is None]
        for member in absent:
            if member.instance_id is None:
                self.remove(member, ErrorCode.UNKNOWN_MEMBER_ID, out)
        leader = self.roster.elect()
        if leader is None and self.roster.members:
            # A rebalance timeout of 0 must not make this the same moment, again and again.
            patience_ms = max(self.roster.rebalance_timeout_ms(), PATIENCE_MIN_MS)
            self.timers.set(self._phase, now.monotonic_ms + patience_ms)
            return
        self._initial_until_ms = None
        self.timers.stop(self._phase)
        if leader is None:
            self._become_empty(now, out)
        else:
            self._begin_generation(leader, now, out)

    def _become_empty(self, now: Now, out: Outcome) -> None:
        self.state = EMPTY
        self.write(self.generation + 1, None, None, NO_ASSIGNMENTS, now, out)
        self._history.emptied(self.generation + 1, now)

    def _begin_generation(self, leader: Member, now: Now, out: Outcome) -> None:
        """Log the generation before anyone hears of it: a crash must not lead to a second one of the same number."""
        roster, generation, protocol = self.roster, self.generation + 1, self.roster.vote()
        self.write(generation, protocol, leader.member_id, NO_ASSIGNMENTS, now, out)
        self.state = COMPLETING
        roster.unsynced = set(roster.members)
        for member in roster.members.values():
            token = roster.end_join(member)
            member.is_new = False
            self.start_session(member, now)
            if token is not None:
                told = self.members_told(protocol) if member is leader else []
                out.reply(token, self.generation_answer(member, generation, protocol, leader.member_id, told))
        self.timers.set(self._phase, now.monotonic_ms + roster.rebalance_timeout_ms())

    # Wait for Syncs

    def park_sync(self, member: Member, token: Token, out: Outcome) -> None:
        """A Sync of the same member that still waits was given up by its client."""
        self._end_sync(member, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS), out)
        member.sync_token = token
        self.note_sync(member)

    def note_sync(self, member: Member) -> None:
        self.roster.unsynced.discard(member.member_id)
        if not self.roster.unsynced:
            self.timers.stop(self._phase)

    def complete_sync(self, assignments: Mapping[str, bytes], now: Now, out: Outcome) -> None:
        """The leader has assigned. Whoever it left out has nothing to do."""
        self.write(self.generation, self.protocol, self.leader, assignments, now, out)
        self.state = STABLE
        for member in self.roster.members.values():
            member.holds = assignments.get(member.member_id, b"")
            if self._end_sync(member, self.sync_answer(member.holds), out):
                self.start_session(member, now)
        self._history.ended(self.generation, self.roster, assignments, now)
        self._history.warn_if_frequent(self.roster, self.config.session_timeout_max_ms, now)

    # Timers

    def due(self, timer: Timer, now: Now, out: Outcome) -> None:
        """The time of a member, of an id or of a phase has come."""
        self.assert_replayed()
        if isinstance(timer, Member):
            self._session_over(timer, now, out)
        elif isinstance(timer, HandedOutId):
            self.forget_id(timer)
            self.complete_if_all_joined(now, out)
        elif self.state == PREPARING:
            self._join_over(now, out)
        else:
            self._sync_over(now, out)

    def _session_over(self, member: Member, now: Now, out: Outcome) -> None:
        """Who waits for an answer cannot send heartbeats; only a first Join is not waited with forever."""
        if member.sync_token is not None or (member.join_token is not None and not member.is_new):
            return
        self._history.silent(now)
        self.remove(member, ErrorCode.UNKNOWN_MEMBER_ID, out)
        if self.state == PREPARING:
            self.complete_if_all_joined(now, out)
        else:
            self.prepare(f"member {member.name} was silent for {member.session_timeout_ms} ms", now, out)

    def _join_over(self, now: Now, out: Outcome) -> None:
        if self._initial_until_ms is not None:
            self._initial_delay_over(self._initial_until_ms, now, out)
        else:
            self.complete_join(now, out)

    def _sync_over(self, now: Now, out: Outcome) -> None:
        laggards = [self.roster.members[member_id] for member_id in self.roster.unsynced]
        if not laggards:
            return
        for member in laggards:
            self.remove(member, ErrorCode.UNKNOWN_MEMBER_ID, out)
        names = ", ".join(sorted(member.name for member in laggards))
        self.prepare(f"no SyncGroup from {names} in time", now, out)

    def loaded(self, now: Now, out: Outcome) -> None:
        """The whole log was replayed. Every member has its full time to call again.

        A generation without any assignment was left by a crash before its leader had assigned: members join again.
        """
        members = self.roster.members
        for member in members.values():
            self.start_session(member, now)
        if not members:
            self.state = EMPTY
            return
        self.state = STABLE
        if not any(member.assignment for member in members.values()):
            self.prepare("the broker stopped during a rebalance", now, out)
        elif len(members) > self.config.group_size_max:
            self.prepare(f"{len(members)} members are more than the {self.config.group_size_max} allowed", now, out)

    def take_over(self, value: GroupMetadataValue, held: Mapping[str, bytes], now: Now, out: Outcome) -> None:
        """Go on as `value` tells, with what was a group of the other protocol; that is logged with this decision.

        The request that brought this about finds the group as it is to be; the replay of `value` adds nothing to it.
        `held` is what each member has until it joins again: nobody else may be given that.
        """
        out.records.append(StateRecord(records.group_key(self.group_id), records.encode_value(value)))
        self.replay_metadata(value)
        self._replayed_ahead += 1
        for member in self.roster.members.values():
            member.holds = held[member.member_id]
        self.loaded(now, out)

    def send_away(self, out: Outcome) -> None:
        """The group goes over to the other protocol: whoever waits asks again and finds its place there."""
        for member in list(self.roster.members.values()):
            self.remove(member, ErrorCode.REBALANCE_IN_PROGRESS, out, told_id=member.member_id)
        self.die()

    def die(self) -> None:
        """Final. The group is out of the shard's books; whoever still holds it is sent away."""
        self.state = DEAD
        self.timers.stop(self._phase)
        for handed_out in list(self.roster.handed_out.values()):
            self.forget_id(handed_out)
