"""Where a batch is cut into slices of time, so that each has about as many bytes. Pure: told what brokers answered.

What is known of a partition is a curve: by time, how far it is read when everything stamped earlier is. It has a few
points that brokers told, and goes straight between them. The sum of all curves says how many bytes lie before a moment.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from lowwater.spark.offsets import TIME_MAX, Bound, Range
from lowwater.types import TopicPartition

SHARE_MAX = 1.2
"""A slice may be estimated at so much of the mean before the bounds are looked at again; 1.5 is the promise."""
_HOT = 0.25  # of the mean: a moment with as much is worth being split
_READ_MAX = 2.0  # times the bytes of the batch: slices that read more, because of rows out of order, are too many


@dataclass(slots=True)
class Curve:
    """`points`: by time, the offset of the first row stamped then or later, of those that are known; both rise."""

    range: Range
    bytes_per_offset: float = 1.0
    points: list[tuple[int, int]] = field(default_factory=list)
    jumped_ms: int | None = None

    def learn(self, at_ms: int, offset: int) -> None:
        """What does not fit to what is known is left out: rows need not be in order, and brokers answer in between.

        Of several rows of one moment the first counts.
        """
        place = bisect_left(self.points, (at_ms, -1))
        before = self.points[place - 1][1] if place else self.range.start
        after = self.points[place][1] if place < len(self.points) else self.range.end
        is_behind_jump = self.jumped_ms is not None and at_ms > self.jumped_ms
        if is_behind_jump or not before <= offset <= after:
            return
        if place < len(self.points) and self.points[place][0] == at_ms:
            self.points[place] = (at_ms, offset)
        else:
            self.points.insert(place, (at_ms, offset))

    def jump(self, at_ms: int, offset: int) -> None:
        """From that row on all count as of that time: a row so far ahead of its time makes those behind it late."""
        self.points = [point for point in self.points if point[1] <= offset and point[0] < at_ms]
        self.points.append((at_ms, offset))
        self.jumped_ms = at_ms

    def pieces(self) -> Iterable[tuple[int, int, float]]:
        """[from, to) of time, and how many bytes lie there. What has one moment is a millisecond wide."""
        if not self.points:
            return
        yield self.points[0][0], self.points[0][0] + 1, self._bytes(self.range.start, self.points[0][1])
        for (from_ms, first), (to_ms, behind) in pairwise(self.points):
            yield from_ms, max(to_ms, from_ms + 1), self._bytes(first, behind)
        yield self.points[-1][0], self.points[-1][0] + 1, self._bytes(self.points[-1][1], self.range.end)

    def _bytes(self, start: int, end: int) -> float:
        return (end - start) * self.bytes_per_offset

    def offset_at(self, at_ms: int) -> int:
        """About where the first row lies that is stamped then or later."""
        place = bisect_right(self.points, (at_ms, self.range.end))
        if place == 0:
            return self.range.start
        from_ms, first = self.points[place - 1]
        if from_ms == at_ms:
            return first
        if place == len(self.points):
            return self.range.end
        to_ms, behind = self.points[place]
        return first + (behind - first) * (at_ms - from_ms) // (to_ms - from_ms)


class Total:
    """The sum of the curves, as the bytes before each moment at which one of them bends."""

    def __init__(self, curves: Iterable[Curve]) -> None:
        changes: dict[int, float] = {}
        for curve in curves:
            for from_ms, to_ms, size in curve.pieces():
                slope = size / (to_ms - from_ms)
                changes[from_ms] = changes.get(from_ms, 0.0) + slope
                changes[to_ms] = changes.get(to_ms, 0.0) - slope
        self._times = sorted(changes)
        self._sizes: list[float] = []
        size = slope = 0.0
        before = self._times[0] if self._times else 0
        for at_ms in self._times:
            size += slope * (at_ms - before)
            slope += changes[at_ms]
            before = at_ms
            self._sizes.append(size)

    @property
    def bytes(self) -> float:
        return self._sizes[-1] if self._sizes else 0.0

    def before(self, at_ms: int) -> float:
        """How many bytes are stamped before that."""
        place = bisect_right(self._times, at_ms)
        if place == 0:
            return 0.0
        if place == len(self._times):
            return self.bytes
        from_ms, to_ms = self._times[place - 1], self._times[place]
        low, high = self._sizes[place - 1], self._sizes[place]
        return low + (high - low) * (at_ms - from_ms) / (to_ms - from_ms)

    def steep(self, size: float) -> Iterable[int]:
        """Where pieces begin that have more than that, but for those that are a millisecond wide."""
        for place, (low, high) in enumerate(pairwise(self._sizes)):
            if high - low > size and self._times[place + 1] - self._times[place] > 1:
                yield self._times[place]

    def moment(self, size: float) -> int:
        """The last moment with no more than that before it."""
        place = bisect_right(self._sizes, size)
        if place == 0:
            return self._times[0]
        if place == len(self._sizes):
            return self._times[-1]
        low, high = self._sizes[place - 1], self._sizes[place]
        from_ms, to_ms = self._times[place - 1], self._times[place]
        return from_ms + int((to_ms - from_ms) * (size - low) / (high - low))


def cut(curves: Mapping[TopicPartition, Curve], count: int) -> tuple[Bound, ...]:
    """At most so many slices of about the same size; fewer where there are fewer moments or rows."""
    total = Total(curves.values())
    mean = total.bytes / count
    if not mean:
        return ()
    bounds: list[Bound] = []
    for number in range(1, count):
        bound = _bound(curves, total, number * mean, mean)
        if bound > (bounds[-1] if bounds else _first(total)):
            bounds.append(bound)
    return tuple(bounds)


def unevenness(curves: Mapping[TopicPartition, Curve], bounds: Sequence[Bound], count: int) -> float:
    """What the largest slice between these bounds is over the mean of `count` slices, by what is known now."""
    total = Total(curves.values())
    if not total.bytes:
        return 1.0
    sizes = [0.0, *(_before(curves, total, bound) for bound in bounds), total.bytes]
    return max(after - before for before, after in pairwise(sizes)) * count / total.bytes


def worth_asking(curves: Mapping[TopicPartition, Curve], bounds: Sequence[Bound], *, is_first: bool) -> list[int]:
    """Times at which to know more would make the slices more even: their bounds first.

    When those did not do it: where the curves rise steeply from a moment on, most of that may be of that moment alone.
    """
    times = {bound.key_ms: None for bound in bounds}
    times |= {bound.key_ms + 1: None for bound in bounds if bound.topic}
    if not is_first:
        total = Total(curves.values())
        steep = total.bytes / (len(bounds) + 1) * _HOT
        times |= {at_ms + 1: None for at_ms in total.steep(steep)}
    return [time for time in times if 0 <= time <= TIME_MAX]


def _first(total: Total) -> Bound:
    return Bound(total.moment(0.0))


def _bound(curves: Mapping[TopicPartition, Curve], total: Total, size: float, mean: float) -> Bound:
    at_ms = total.moment(size)
    low, high = total.before(at_ms), total.before(at_ms + 1)
    if high - low <= _HOT * mean:
        return Bound(at_ms if size - low <= high - size else at_ms + 1)
    return _within(curves, at_ms, size - low)


def _within(curves: Mapping[TopicPartition, Curve], at_ms: int, size: float) -> Bound:
    """Behind so many bytes of one moment, whose rows go by topic, partition and offset."""
    for one, curve in sorted(curves.items()):
        first, behind = curve.offset_at(at_ms), curve.offset_at(at_ms + 1)
        mine = (behind - first) * curve.bytes_per_offset
        if mine > size:
            offset = first + int(size / curve.bytes_per_offset)
            return Bound(at_ms, one.topic, one.partition, offset) if offset > first else Bound(at_ms, *one)
        size -= mine
    return Bound(at_ms + 1)


def _before(curves: Mapping[TopicPartition, Curve], total: Total, bound: Bound) -> float:
    size = total.before(bound.key_ms)
    if not bound.topic:
        return size
    for one, curve in curves.items():
        first, behind = curve.offset_at(bound.key_ms), curve.offset_at(bound.key_ms + 1)
        place = (bound.topic, bound.partition)
        if one < place:
            size += (behind - first) * curve.bytes_per_offset
        elif one == place:
            size += (bound.offset - first) * curve.bytes_per_offset if bound.offset > first else 0
    return size


def fewer(curves: Mapping[TopicPartition, Curve], bounds: tuple[Bound, ...], out_of_order_ms: int) -> tuple[Bound, ...]:
    """The same, or fewer slices: each reads `out_of_order_ms` beyond its end, and others read that once more."""
    total = Total(curves.values())
    while bounds and _read(total, bounds, out_of_order_ms) > _READ_MAX * total.bytes:
        bounds = cut(curves, (len(bounds) + 1) // 2)
    return bounds


def _read(total: Total, bounds: Sequence[Bound], out_of_order_ms: int) -> float:
    starts = [0.0, *(total.before(bound.key_ms) for bound in bounds)]
    ends = [*(total.before(bound.key_ms + out_of_order_ms) for bound in bounds), total.bytes]
    return sum(end - start for start, end in zip(starts, ends, strict=True))
