"""Deadlines of members and groups: one heap for a shard, which a heartbeat never touches.

A deadline that moves later only changes a number; the heap learns of it when the old one has passed.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any

NEVER = float("inf")

# Fewer stopped timers than this may stay in the heap until their time has come.
STOPPED_MAX = 1024


class Timer:
    """Whatever has a deadline: a subclass is a member, a waiting member id, a phase of a group."""

    __slots__ = ("deadline_ms", "group", "queued_ms")

    def __init__(self, group: Any) -> None:
        self.group = group
        self.deadline_ms = NEVER
        # Where it stands in the heap: never after the deadline, so that it is looked at in time.
        self.queued_ms = NEVER


class Timers:
    """Times are monotonic milliseconds. A timer that is due is handed out once and is then stopped."""

    __slots__ = ("_heap", "_sequence", "_stopped")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._sequence = 0
        self._stopped = 0

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def next_deadline_ms(self) -> float | None:
        """When to look again; nothing is due before that."""
        return self._heap[0][0] if self._heap else None

    def set(self, timer: Timer, deadline_ms: float) -> None:
        """Start `timer` or move it. To move it later, setting its `deadline_ms` is enough."""
        timer.deadline_ms = deadline_ms
        if deadline_ms < timer.queued_ms:
            timer.queued_ms = deadline_ms
            self._sequence += 1
            heappush(self._heap, (deadline_ms, self._sequence, timer))

    def stop(self, timer: Timer) -> None:
        """It is not handed out any more, unless set again."""
        if timer.deadline_ms == NEVER:
            return
        timer.deadline_ms = NEVER
        self._stopped += 1
        if self._stopped > max(STOPPED_MAX, len(self._heap) // 2):
            self._sweep()

    def take_due(self, now_ms: float) -> Timer | None:
        """The timer whose deadline passed first, taken out; None when there is no more."""
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            queued_ms, _, timer = heappop(heap)
            if timer.queued_ms != queued_ms:
                continue
            timer.queued_ms = NEVER
            if timer.deadline_ms <= now_ms:
                timer.deadline_ms = NEVER
                return timer
            if timer.deadline_ms < NEVER:
                self.set(timer, timer.deadline_ms)
        return None

    def _sweep(self) -> None:
        """Let go of what was stopped: members that come and go must not fill the heap."""
        kept = [entry for entry in self._heap if entry[2].queued_ms == entry[0] and entry[2].deadline_ms < NEVER]
        for _, _, timer in self._heap:
            if timer.deadline_ms == NEVER:
                timer.queued_ms = NEVER
        heapify(kept)
        self._heap = kept
        self._stopped = 0
