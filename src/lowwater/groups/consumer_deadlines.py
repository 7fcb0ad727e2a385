"""Until when the members of a consumer group have to be heard of, and to have given up partitions."""

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


class RevocationTimer(SessionTimer):
    """A member that has not given up its partitions until then is put out."""

    __slots__ = ()


class Deadlines:
    """The timers of one group's members."""

    __slots__ = ("_group", "_revocations", "_timers", "sessions")

    def __init__(self, group: Any, timers: Timers) -> None:
        self._group = group
        self._timers = timers
        self.sessions: dict[str, SessionTimer] = {}
        self._revocations: dict[str, RevocationTimer] = {}

    def heard_of(self, member_id: str, until_ms: float) -> None:
        timer = self.sessions.get(member_id)
        if timer is None:
            timer = self.sessions[member_id] = SessionTimer(self._group, member_id)
        self._timers.set(timer, until_ms)

    def revoking(self, member_id: str, current: CurrentAssignment, until_ms: float) -> None:
        """What the member has changed: a new deadline when it has something to give up, none otherwise."""
        self._stop(self._revocations.pop(member_id, None))
        if current.state is MemberState.UNREVOKED_PARTITIONS:
            timer = self._revocations[member_id] = RevocationTimer(self._group, member_id)
            self._timers.set(timer, until_ms)

    def forget(self, member_id: str) -> None:
        self._stop(self._revocations.pop(member_id, None))
        self._stop(self.sessions.pop(member_id, None))

    def silent(self, now_ms: float) -> set[str]:
        """All whose session is over: a crash of many members is one change of the group."""
        return {member_id for member_id, timer in self.sessions.items() if timer.deadline_ms <= now_ms}

    def _stop(self, timer: Timer | None) -> None:
        if timer is not None:
            self._timers.stop(timer)
