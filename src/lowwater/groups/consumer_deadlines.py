"""Until when the members of a consumer group have to be heard of, and to have done what they were told to."""

from __future__ import annotations

from typing import Any

from lowwater.groups.consumer_reconciliation import CurrentAssignment, MemberState
from lowwater.groups.timers import Timer, Timers


class SessionTimer(Timer):
    """A member that is not heard of until then is gone."""

    __slots__ = ("member_id",)

    def __init__(self, group: Any, member_id: str) -> None:
        super().__init__(group)
        self.member_id = member_id


class DutyTimer(SessionTimer):
    """A member that has not given up partitions, or of the classic protocol not joined or synced, is put out then."""

    __slots__ = ()


class Deadlines:
    """The timers of one group's members."""

    __slots__ = ("_duties", "_group", "_timers", "sessions")

    def __init__(self, group: Any, timers: Timers) -> None:
        self._group = group
        self._timers = timers
        self.sessions: dict[str, SessionTimer] = {}
        self._duties: dict[str, DutyTimer] = {}

    def heard_of(self, member_id: str, until_ms: float) -> None:
        timer = self.sessions.get(member_id)
        if timer is None:
            timer = self.sessions[member_id] = SessionTimer(self._group, member_id)
        self._timers.set(timer, until_ms)

    def revoking(self, member_id: str, current: CurrentAssignment, until_ms: float) -> None:
        """What the member has changed: a new deadline when it has something to give up, none otherwise."""
        self.is_done(member_id)
        if current.state is MemberState.UNREVOKED_PARTITIONS:
            self.owes(member_id, until_ms)

    def owes(self, member_id: str, until_ms: float) -> None:
        """The member was told to do something; to be told again gives it no more time."""
        if member_id not in self._duties:
            timer = self._duties[member_id] = DutyTimer(self._group, member_id)
            self._timers.set(timer, until_ms)

    def is_done(self, member_id: str) -> None:
        self._stop(self._duties.pop(member_id, None))

    def forget(self, member_id: str) -> None:
        self.is_done(member_id)
        self._stop(self.sessions.pop(member_id, None))

    def silent(self, now_ms: float) -> set[str]:
        """All whose session is over: a crash of many members is one change of the group."""
        return {member_id for member_id, timer in self.sessions.items() if timer.deadline_ms <= now_ms}

    def _stop(self, timer: Timer | None) -> None:
        if timer is not None:
            self._timers.stop(timer)
