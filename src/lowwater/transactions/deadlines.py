"""How long transactions may stay open: looked at now and then, all of them at once."""

from __future__ import annotations

from lowwater.outcome import Now
from lowwater.transactions.state import State, Transaction

FOREVER_MS = 2**31 - 1
"""The timeout of a transaction that only its client ends."""


class OpenTransactions:
    """When each has been open for too long.

    A start is stored by the wall clock, which may jump: what was begun in this life is measured by the other clock.
    """

    __slots__ = ("_deadlines",)

    def __init__(self) -> None:
        self._deadlines: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._deadlines)

    def began(self, transactional_id: str, timeout_ms: int, now: Now) -> None:
        self._deadlines[transactional_id] = now.monotonic_ms + timeout_ms

    def found(self, transaction: Transaction, now: Now) -> None:
        """It was open at a restart: what is left of its time, which is never more than all of it."""
        left_ms = transaction.started_ms + transaction.timeout_ms - now.wall_ms
        self.began(transaction.transactional_id, min(left_ms, transaction.timeout_ms), now)

    def ended(self, transactional_id: str) -> None:
        self._deadlines.pop(transactional_id, None)

    def is_overdue(self, transactional_id: str, now: Now) -> bool:
        return self._deadlines.get(transactional_id, now.monotonic_ms) < now.monotonic_ms

    def overdue(self, now: Now) -> list[str]:
        return [one for one, deadline_ms in self._deadlines.items() if deadline_ms < now.monotonic_ms]


def has_expired(transaction: Transaction, expiration_ms: int, now: Now) -> bool:
    """Nothing happened to the id for so long that nobody uses it any more. Never in a transaction."""
    if transaction.state in (State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT):
        return False
    return transaction.updated_ms <= now.wall_ms - expiration_ms
