"""How lag went on, for charts: of every group as a whole, of single partitions as long as there are not too many."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from lowwater.lag.report import GroupLag, Report
from lowwater.types import TopicPartition

POINTS = 180
TREND_POINTS = 30
PARTITIONS_MAX = 5_000
"""Beyond that the courses of partitions are kept only for groups that somebody looks at."""


class Point(NamedTuple):
    at_ms: int
    lag: int | None
    time_lag_ms: int | None


class Courses:
    """Written by one thread; who reads at the same time gets what is there."""

    def __init__(self) -> None:
        self._groups: dict[str, deque[Point]] = {}
        self._partitions: dict[str, dict[TopicPartition, deque[Point]]] = {}
        self._wanted: set[str] = set()

    def take(self, report: Report) -> None:
        count = sum(len(group.partitions) for group in report.groups.values())
        for name, group in report.groups.items():
            points = self._groups.setdefault(name, deque(maxlen=POINTS))
            points.append(Point(report.at_ms, group.lag, group.time_lag_ms))
            if count <= PARTITIONS_MAX or name in self._wanted:
                self._take_partitions(report.at_ms, group)
        # Who is missing while a part of the cluster does not answer is not gone.
        for name in () if report.faults else self._groups.keys() - report.groups.keys():
            del self._groups[name]
            self._partitions.pop(name, None)
            self._wanted.discard(name)

    def _take_partitions(self, at_ms: int, group: GroupLag) -> None:
        mine = self._partitions.setdefault(group.group, {})
        for one in group.partitions:
            points = mine.setdefault(one.where, deque(maxlen=POINTS))
            points.append(Point(at_ms, one.lag, one.time_lag_ms))

    def trend(self, group: str) -> list[int | None]:
        """The last lags of a group."""
        points = list(self._groups.get(group, ()))[-TREND_POINTS:]
        return [one.lag for one in points]

    def of(self, group: str) -> dict[str, Any]:
        """By partition, over the same times; null where nothing is known."""
        if group in self._groups:
            self._wanted.add(group)
        times = [one.at_ms for one in list(self._groups.get(group, ()))]
        rows = []
        for one, points in sorted(self._partitions.get(group, {}).items()):
            known = {point.at_ms: point for point in list(points)}
            course = [known.get(at_ms) for at_ms in times]
            rows.append(
                {
                    "topic": one.topic,
                    "partition": one.partition,
                    "lag": [None if point is None else point.lag for point in course],
                    "time_lag_ms": [None if point is None else point.time_lag_ms for point in course],
                }
            )
        return {"times": times, "partitions": rows}
