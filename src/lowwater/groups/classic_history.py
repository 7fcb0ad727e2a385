"""What is told of a group's rebalances: one line in the log for each, counters, and a warning when there are many.

Group and member ids and clients' reasons are quoted: none of them can forge a line of the log.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from lowwater.groups.classic_members import Roster
from lowwater.groups.consumer_protocol import PROTOCOL_TYPE, decode_assignment
from lowwater.groups.metrics import GroupMetrics
from lowwater.outcome import Now

logger = logging.getLogger(__name__)

# More rebalances than this in this time are worth a warning, once in that time.
FREQUENT = 10
WINDOW_MS = 600_000
# Silence that ended a session is best answered by a session this much longer.
LONGER = 3


class RebalanceHistory:
    """The rebalance that is under way, and when the last ones were."""

    __slots__ = ("_began_ms", "_group_id", "_metrics", "_reason", "_recent_ms", "_silences_ms", "_warned_ms")

    def __init__(self, group_id: str, metrics: GroupMetrics) -> None:
        self._group_id = group_id
        self._metrics = metrics
        self._began_ms: float | None = None
        self._reason = ""
        self._recent_ms: list[float] = []
        self._silences_ms: list[float] = []
        self._warned_ms = -float(WINDOW_MS)

    def began(self, reason: str, generation: int, now: Now) -> None:
        """A rebalance that interrupts another goes on in its name: members were without work since then."""
        logger.debug("group %r leaves generation %d: %s", self._group_id, generation, reason)
        if self._began_ms is None:
            self._began_ms, self._reason = now.monotonic_ms, reason

    def silent(self, now: Now) -> None:
        """A member's session has ended."""
        self._metrics.member_timeouts += 1
        self._silences_ms = [*self._since(self._silences_ms, now), now.monotonic_ms]

    def ended(self, generation: int, roster: Roster, assignments: Mapping[str, bytes], now: Now) -> None:
        """All members have work again."""
        took_ms, reason = self._close(now)
        self._metrics.rebalanced(took_ms)
        self._recent_ms = [*self._since(self._recent_ms, now), now.monotonic_ms]
        if logger.isEnabledFor(logging.INFO):
            logger.info(
                "group %r is in generation %d after %d ms: %d members, %s partitions; %s",
                self._group_id,
                generation,
                took_ms,
                len(roster.members),
                _partitions(roster.protocol_type, assignments),
                reason,
            )

    def emptied(self, generation: int, now: Now) -> None:
        """The last member is gone."""
        _, reason = self._close(now)
        logger.info(
            "group %r is empty in generation %d: 0 members, 0 partitions; %s", self._group_id, generation, reason
        )

    def warn_if_frequent(self, roster: Roster, session_timeout_max_ms: int, now: Now) -> None:
        """With a session timeout that would help."""
        if len(self._recent_ms) <= FREQUENT or now.monotonic_ms - self._warned_ms < WINDOW_MS:
            return
        self._warned_ms = now.monotonic_ms
        longest_ms = max(member.session_timeout_ms for member in roster.members.values())
        logger.warning(
            "group %r rebalanced more than %d times within %d minutes, and %d times a member was silent for too long; "
            "consider a session timeout of %d ms (the longest is %d ms)",
            self._group_id,
            FREQUENT,
            WINDOW_MS // 60_000,
            len(self._since(self._silences_ms, now)),
            min(LONGER * longest_ms, session_timeout_max_ms),
            longest_ms,
        )

    def _close(self, now: Now) -> tuple[float, str]:
        began_ms = now.monotonic_ms if self._began_ms is None else self._began_ms
        self._began_ms = None
        return now.monotonic_ms - began_ms, self._reason

    @staticmethod
    def _since(times_ms: list[float], now: Now) -> list[float]:
        return [time_ms for time_ms in times_ms[-FREQUENT:] if time_ms > now.monotonic_ms - WINDOW_MS]


def _partitions(protocol_type: str, assignments: Mapping[str, bytes]) -> int | str:
    """How many are assigned, where the members are consumers and say so."""
    if protocol_type != PROTOCOL_TYPE:
        return "unknown"
    count = 0
    for assignment in assignments.values():
        decoded = decode_assignment(assignment) if assignment else None
        if decoded is not None:
            count += sum(len(topic.partitions) for topic in decoded.assigned_partitions)
    return count
