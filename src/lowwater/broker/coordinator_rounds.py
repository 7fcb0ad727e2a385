"""What was decided and is not durable yet: in rounds, with the replies that wait for each."""

from __future__ import annotations

from typing import Any, NamedTuple

from lowwater.errors import ApiError
from lowwater.outcome import StateRecord
from lowwater.pending import Pending


class Ticket(Pending[Any]):
    """Someone who waits for a reply."""

    __slots__ = ("has_reply",)

    def __init__(self) -> None:
        Pending.__init__(self)  # super() would cost as much again, and each request that waits has one
        self.has_reply = False

    def settle(self, response: Any) -> None:
        if isinstance(response, ApiError):
            self.fail(response)
        else:
            self.resolve(response)


class Part(NamedTuple):
    """What becomes one batch: records of a producer's transaction (id, epoch), or of none."""

    producer: tuple[int, int] | None
    records: list[StateRecord]


class Round:
    """What was decided since the last write, and what waits until it is durable: replies, and things to do."""

    __slots__ = ("effects", "keys", "number", "parts", "records", "replies")

    def __init__(self, number: int) -> None:
        self.number = number
        self.parts: list[Part] = []
        self.records = 0
        self.replies: list[tuple[Ticket, Any]] = []
        self.effects: list[Any] = []
        self.keys: list[str] = []

    def add(self, records: list[StateRecord], producer: tuple[int, int] | None) -> None:
        self.records += len(records)
        parts = self.parts
        if not parts or parts[-1].producer != producer:
            parts.append(Part(producer, []))
        parts[-1].records.extend(records)


class Rounds:
    """One is open and takes what is decided; those before it are being written. They become durable in order."""

    __slots__ = ("_changed", "_changed_all", "_number", "open", "pending")

    def __init__(self) -> None:
        self._number = 0
        self.open: Round | None = None
        self.pending: list[Round] = []
        # The last round that changed each key (a group, a transactional id), as long as it is not durable; and the last
        # that may concern any.
        self._changed: dict[str, Round] = {}
        self._changed_all: Round | None = None

    def changed(self, key: str | None) -> Round:
        """The open round, which from now on holds a change of this key, or of any when None."""
        current = self.open
        if current is None:
            self._number += 1
            current = self.open = Round(self._number)
            self.pending.append(current)
        if key is None:
            self._changed_all = current
        elif self._changed.get(key) is not current:
            self._changed[key] = current
            current.keys.append(key)
        return current

    def latest_about(self, key: str | None) -> Round | None:
        """The last round that changed what a reply about this key, or about all of them, may tell."""
        if not self.pending:
            return None
        if key is None:
            return self.pending[-1]
        own, all_ = self._changed.get(key), self._changed_all
        if own is None or all_ is None:
            return own or all_
        return own if own.number > all_.number else all_

    def durable(self, written: Round) -> None:
        """Answer those who waited for it."""
        self.pending.remove(written)
        for key in written.keys:
            if self._changed[key] is written:
                del self._changed[key]
        if self._changed_all is written:
            self._changed_all = None
        replies, written.replies = written.replies, []
        for ticket, response in replies:
            ticket.settle(response)

    def abandon(self) -> list[Ticket]:
        """Forget everything; return those who wait."""
        tickets = [ticket for one in self.pending for ticket, _ in one.replies]
        self.open = self._changed_all = None
        self.pending.clear()
        self._changed.clear()
        return tickets
