"""One after the other, in the order of arrival: what has to wait does not let those behind it pass."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

from lowwater.pending import Pending
from lowwater.ports import Scheduler

K = TypeVar("K", bound=Hashable)


class Turns(Generic[K]):
    """A line for each key that anyone waits for."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._lines: dict[K, deque[Pending[None]]] = {}

    def is_busy(self, key: K) -> bool:
        return key in self._lines

    def take(self, key: K) -> Pending[None]:
        """Settled when it is one's turn, which lasts until `end`."""
        turn: Pending[None] = Pending()
        line = self._lines.setdefault(key, deque())
        line.append(turn)
        if len(line) == 1:
            turn.resolve(None)
        return turn

    def end(self, key: K) -> None:
        line = self._lines[key]
        line.popleft()
        if not line:
            del self._lines[key]
            return
        # Not at once: a long line would become a deep stack.
        self._scheduler.call_soon(lambda: line[0].resolve(None))
