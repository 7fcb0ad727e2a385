"""Stretches of a log that were looked at row by row, because brokers cannot say where a time is in them.

They search from the beginning of a log: one row stamped in the far future, or the end of a transaction, which has the
broker's time although its rows are old, is their answer for every later time from then on.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from lowwater.spark.aligning.logs import Edge, Logs, Rows
from lowwater.spark.offsets import Range
from lowwater.types import TopicPartition

LOOK = 1_000
"""So many offsets are looked at to find out whether a partition is that far, or only one row of it."""
SCAN = 200_000
"""So many at most to find the time; then the batch ends there, and the next one goes on."""
SCAN_ALL = 1_000_000
"""The same of all partitions together: what was looked at is kept."""


class Standing(Enum):
    """Of a partition, at a time: its next row is not before it; some are and then one is not; or all there is are."""

    AHEAD = "ahead"
    PAST = "past"
    OPEN = "open"


class Reach(NamedTuple):
    """Where a partition is to end at a time. `ahead`: rows before that end stamped at or after the time.

    `next_ms`: of the row behind the end, or, where that is AHEAD, the earliest of the rows to come. `is_short`: there
    is more before the time.
    """

    end: int
    standing: Standing
    ahead: int = 0
    next_ms: int | None = None
    is_short: bool = False


@dataclass(slots=True)
class Window:
    """The rows of [first, behind)."""

    first: int
    behind: int
    offsets: array[int] = field(default_factory=lambda: array("q"))
    times_ms: array[int] = field(default_factory=lambda: array("q"))

    def add(self, behind: int, rows: Rows) -> None:
        self.offsets.extend(rows.offsets)
        self.times_ms.extend(rows.times_ms)
        self.behind = behind

    def drop_before(self, at: int) -> None:
        """They are read."""
        if at > self.first:
            place = bisect_left(self.offsets, at)
            del self.offsets[:place], self.times_ms[:place]
            self.first = at

    def reach(self, time_ms: int, future_ms: int) -> Reach:
        """From its first offset on. A row at or after the time counts for nothing when earlier ones are behind it.

        Nor does one stamped after `future_ms`: nobody can wait for that.
        """
        times = self.times_ms
        early = next((place for place, each in enumerate(times) if each < time_ms), None)
        if early is None:
            waited_for = [each for each in times if each <= future_ms]
            if waited_for:
                return Reach(self.first, Standing.AHEAD, next_ms=min(waited_for))
            return Reach(self.behind, Standing.OPEN, ahead=len(times))
        ahead = early
        for place in range(early, len(times)):
            if times[place] > future_ms:
                ahead += 1
            elif times[place] >= time_ms:
                return Reach(self.offsets[place], Standing.PAST, ahead, times[place])
        return Reach(self.behind, Standing.OPEN, ahead)


class Windows:
    """Kept from one planning to the next: what was looked at need not be fetched again."""

    def __init__(self, *, look: int = LOOK, scan: int = SCAN) -> None:
        self._look = look
        self._scan = scan
        self._windows: dict[TopicPartition, Window] = {}
        self._rows: dict[TopicPartition, int] = {}

    def forget_read(self, edges: Mapping[TopicPartition, Edge]) -> None:
        for one in list(self._windows):
            if one not in edges or self._windows[one].behind < edges[one].start:
                del self._windows[one]
            else:
                self._windows[one].drop_before(edges[one].start)

    def without_row(self, places: Mapping[TopicPartition, int], logs: Logs) -> list[TopicPartition]:
        """Those that have no row at that offset."""
        unsure = {one: at for one, at in places.items() if self._rows.get(one) != at and not self._has_row(one, at)}
        if not unsure:
            return []
        found = logs.rows({one: Range(at, at + 1) for one, at in unsure.items()})
        self._rows |= {one: at for one, at in unsure.items() if found[one].offsets}
        return [one for one in unsure if not found[one].offsets]

    def _has_row(self, one: TopicPartition, at: int) -> bool:
        window = self._windows.get(one)
        if window is None:
            return False
        place = bisect_left(window.offsets, at)
        return place < len(window.offsets) and window.offsets[place] == at

    def is_much(self, places: Mapping[TopicPartition, int]) -> bool:
        """Whether as many rows as are looked at of one partition were seen from there on."""
        return sum(len(self._from(one, at).offsets) for one, at in places.items()) >= self._look

    def _covers(self, one: TopicPartition, at: int) -> bool:
        window = self._windows.get(one)
        return window is not None and window.first <= at <= window.behind

    def look_at(self, places: Mapping[TopicPartition, int], heads: Mapping[TopicPartition, int], logs: Logs) -> None:
        """A few rows from each of those places on."""
        for one, at in places.items():
            if not self._covers(one, at):
                self._windows[one] = Window(at, at)
        behind = {one: min(at + self._look, heads[one]) for one, at in places.items()}
        self._read({one: end for one, end in behind.items() if end > self._windows[one].behind}, logs)

    def reach(
        self,
        places: Mapping[TopicPartition, int],
        heads: Mapping[TopicPartition, int],
        time_ms: int,
        future_ms: int,
        logs: Logs,
    ) -> dict[TopicPartition, Reach]:
        """From each of those places on; as many rows are fetched as it takes, up to the bound."""
        self.look_at(places, heads, logs)
        piece = self._look
        bound = max(min(self._scan, SCAN_ALL // max(len(places), 1)), self._look)
        while True:
            found = {one: self._from(one, at).reach(time_ms, future_ms) for one, at in places.items()}
            more = {
                one: min(self._windows[one].behind + piece, heads[one], places[one] + bound)
                for one, each in found.items()
                if each.standing is Standing.OPEN
            }
            more = {one: end for one, end in more.items() if end > self._windows[one].behind}
            if not more:
                break
            piece *= 8
            self._read(more, logs)
        return {one: self._marked(each, heads[one]) for one, each in found.items()}

    def _from(self, one: TopicPartition, at: int) -> Window:
        window = self._windows[one]
        if at == window.first:
            return window
        place = bisect_left(window.offsets, at)
        return Window(at, window.behind, window.offsets[place:], window.times_ms[place:])

    def _read(self, ends: Mapping[TopicPartition, int], logs: Logs) -> None:
        if not ends:
            return
        rows = logs.rows({one: Range(self._windows[one].behind, end) for one, end in ends.items()})
        for one, end in ends.items():
            self._windows[one].add(end, rows[one])

    def earliest(self, one: TopicPartition, at: int, future_ms: int) -> int | None:
        """Of what was looked at from there on: the earliest time, or else the earliest of the future."""
        times = self._from(one, at).times_ms
        return min((each for each in times if each <= future_ms), default=min(times, default=None))

    @staticmethod
    def _marked(reach: Reach, head: int) -> Reach:
        is_short = reach.standing is Standing.OPEN and reach.end < head
        return reach._replace(is_short=True) if is_short else reach
