"""The order of things in a simulated world: callbacks by their time, then by their registration."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Protocol


class Moving(Protocol):
    """A clock with timers of its own."""

    @property
    def elapsed_ms(self) -> float: ...

    def move_to(self, when_ms: float) -> None:
        """Let time pass until then; whatever is due on the way happens at its time."""


class Events:
    """A queue of what the network, the clients and the faults will do."""

    def __init__(self, clock: Moving) -> None:
        self._clock = clock
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    @property
    def now_ms(self) -> float:
        return self._clock.elapsed_ms

    def after(self, delay_ms: float, call: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (self.now_ms + max(0.0, delay_ms), next(self._order), call))

    def run_until(self, end_ms: float) -> None:
        while self._queue and self._queue[0][0] <= end_ms:
            self._clock.move_to(self._queue[0][0])
            # Moving the clock may have scheduled something earlier.
            _, _, call = heapq.heappop(self._queue)
            call()
        self._clock.move_to(end_ms)
