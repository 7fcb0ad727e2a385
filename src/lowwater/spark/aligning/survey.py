"""Where all partitions would end at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lowwater.spark.aligning.logs import Edge, Logs, Stamp
from lowwater.spark.aligning.windows import Reach, Standing, Windows
from lowwater.spark.offsets import TIME_MAX
from lowwater.types import TopicPartition


@dataclass(frozen=True, slots=True)
class Reached:
    """At one time, by partition; those without anything to read are left out."""

    time_ms: int
    reaches: Mapping[TopicPartition, Reach]
    count: int
    """Offsets up to there, of all of them together."""

    @property
    def ahead(self) -> int:
        return sum(each.ahead for each in self.reaches.values())

    @property
    def next_ms(self) -> int:
        """The earliest row to come, of those that are known; the time itself, where none is."""
        return min((each.next_ms for each in self.reaches.values() if each.next_ms is not None), default=self.time_ms)

    @property
    def short(self) -> list[TopicPartition]:
        """Those that have more before the time than was looked at."""
        return sorted(one for one, each in self.reaches.items() if each.is_short)


class Survey:
    """One planning. What was asked once is known."""

    def __init__(
        self,
        logs: Logs,
        edges: Mapping[TopicPartition, Edge],
        windows: Windows,
        *,
        span_ms: int,
        now_ms: int,
        is_live: bool = False,
    ) -> None:
        """`is_live`: there may be more rows soon than there are now."""
        self._logs = logs
        self._windows = windows
        self._span_ms = span_ms
        self._now_ms = now_ms
        self._is_live = is_live
        self._known: dict[int, Reached] = {}
        self.edges = edges
        self.unread = {one: edge for one, edge in sorted(edges.items()) if edge.size}
        self._heads = {one: edge.head for one, edge in self.unread.items()}
        windows.forget_read(edges)

    def at(self, time_ms: int) -> Reached:
        if time_ms not in self._known:
            self._known[time_ms] = self._find(time_ms)
        return self._known[time_ms]

    def _find(self, time_ms: int) -> Reached:
        found = self._logs.first_at(self.unread.keys(), time_ms) if time_ms < TIME_MAX else dict.fromkeys(self.unread)
        reaches = {one: self._certain(one, found[one], time_ms) for one in self.unread}
        doubtful = {one: self._place(one, found[one]) for one, each in reaches.items() if each is None}
        looked = self._windows.reach(doubtful, self._heads, time_ms, self._future_ms(time_ms), self._logs)
        every = {one: each if each is not None else looked[one] for one, each in reaches.items()}
        return self._counted(time_ms, every)

    def _counted(self, time_ms: int, reaches: Mapping[TopicPartition, Reach]) -> Reached:
        return Reached(time_ms, reaches, sum(each.end - self.unread[one].start for one, each in reaches.items()))

    def _certain(self, one: TopicPartition, stamp: Stamp | None, time_ms: int) -> Reach | None:
        """None: it has to be looked at."""
        edge = self.unread[one]
        if stamp is None or stamp.offset > edge.head:
            return Reach(edge.head, Standing.OPEN)  # what came behind the head is for the next planning
        if stamp.offset == edge.head:
            return Reach(edge.head, Standing.PAST, next_ms=stamp.time_ms)
        if stamp.offset <= edge.start or stamp.time_ms >= time_ms + self._span_ms:
            return None  # a row out of its time, or a transaction's end, perhaps
        return Reach(stamp.offset, Standing.PAST, next_ms=stamp.time_ms)

    def confirmed(self, reached: Reached) -> Reached:
        """The same; but no partition ends at the end of a transaction, when earlier rows are behind that."""
        if not self._logs.has_markers:
            return reached
        ends = {one: each.end for one, each in reached.reaches.items() if each.standing is Standing.PAST}
        markers = self._windows.without_row(
            {one: end for one, end in ends.items() if end < self._heads[one]}, self._logs
        )
        if not markers:
            return reached
        places = {one: ends[one] for one in markers}
        time_ms = reached.time_ms
        looked = self._windows.reach(places, self._heads, time_ms, self._future_ms(time_ms), self._logs)
        self._known[time_ms] = self._counted(time_ms, {**reached.reaches, **looked})
        return self._known[time_ms]

    def _place(self, one: TopicPartition, stamp: Stamp | None) -> int:
        start = self.unread[one].start
        return start if stamp is None else max(stamp.offset, start)

    def _future_ms(self, time_ms: int) -> int:
        """What is stamped later than this is not waited for. Times that are all to come are taken as they are.

        In a stream that goes on only where its cuts are there already: one row is not to take it along.
        """
        spans = 4 if self._is_live else 1  # a cut lies three ahead at most, when rows that are waited for make it
        return self._soon_ms if time_ms <= self._now_ms + spans * self._span_ms else 1 << 63

    @property
    def _soon_ms(self) -> int:
        return self._now_ms + 2 * self._span_ms

    def earliest_ms(self) -> int:
        """Of the next rows of all partitions, fetched; now, when there are none.

        Nor does a stream that goes on begin with a few rows of the far future: all that was looked for has to agree.
        """
        starts = {one: edge.start for one, edge in self.unread.items()}
        self._windows.look_at(starts, self._heads, self._logs)
        found = [self._windows.earliest(one, at, self._soon_ms) for one, at in starts.items()]
        earliest_ms = min((each for each in found if each is not None), default=self._now_ms)
        if self._is_live and earliest_ms > self._soon_ms and not self._windows.is_much(starts):
            return self._now_ms
        return earliest_ms
