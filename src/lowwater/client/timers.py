"""Timers of the blocking driver: a heap, from which cancelled ones are cleared when they are the most of it."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

CLEAR_FROM = 64


class HeapTimer:
    __slots__ = ("_timers", "callback")

    def __init__(self, timers: Timers, callback: Callable[[], None]) -> None:
        self._timers = timers
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback = None
            self._timers.one_cancelled()


class Timers:
    def __init__(self) -> None:
        self._heap: list[tuple[float, int, HeapTimer]] = []
        self._order = itertools.count()
        self._cancelled = 0

    def __len__(self) -> int:
        return len(self._heap) - self._cancelled

    def add(self, due_ms: float, callback: Callable[[], None]) -> HeapTimer:
        timer = HeapTimer(self, callback)
        heapq.heappush(self._heap, (due_ms, next(self._order), timer))
        return timer

    def next_ms(self) -> float | None:
        """When the next one is due."""
        while self._heap and self._heap[0][2].callback is None:
            heapq.heappop(self._heap)
            self._cancelled -= 1
        return self._heap[0][0] if self._heap else None

    def take_due(self, now_ms: float) -> list[Callable[[], None]]:
        due: list[Callable[[], None]] = []
        while (at_ms := self.next_ms()) is not None and at_ms <= now_ms:
            timer = heapq.heappop(self._heap)[2]
            if timer.callback is not None:
                due.append(timer.callback)
                timer.callback = None
        return due

    def one_cancelled(self) -> None:
        self._cancelled += 1
        if self._cancelled > CLEAR_FROM and self._cancelled * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].callback is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def clear(self) -> None:
        self._heap.clear()
        self._cancelled = 0
