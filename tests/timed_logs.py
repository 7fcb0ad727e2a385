"""Topics in memory that answer as brokers do when asked for times: from the beginning of a log, markers too."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from lowwater.spark.aligning.logs import Rows, Stamp
from lowwater.spark.offsets import Range
from lowwater.spark.snapshot import Head, Snapshot
from lowwater.types import TopicPartition


@dataclass
class TimedLog:
    """Times by offset. `markers` are ends of transactions, which have a time and are no rows."""

    times_ms: list[int] = field(default_factory=list)
    markers: set[int] = field(default_factory=set)
    log_start: int = 0
    open_from: int | None = None
    """Where an open transaction begins: readers of committed records see nothing from there on."""

    def write(self, times_ms: Iterable[int]) -> None:
        self.times_ms += times_ms

    def end_transaction(self, time_ms: int) -> None:
        self.markers.add(len(self.times_ms))
        self.times_ms.append(time_ms)

    @property
    def end(self) -> int:
        return len(self.times_ms) if self.open_from is None else self.open_from

    @property
    def head(self) -> Head:
        return Head(self.log_start, self.end)

    def rows(self, start: int, end: int) -> Rows:
        offsets = [one for one in range(max(start, self.log_start), end) if one not in self.markers]
        return Rows(offsets, [self.times_ms[one] for one in offsets])


class TimedLogs:
    """`asked` counts the requests of one planning, `fetched` the rows that had to be looked at in all."""

    def __init__(self, logs: Mapping[TopicPartition, TimedLog]) -> None:
        self.logs = dict(logs)
        self.asked = 0
        self.lookups = 0
        self.fetched = 0

    @property
    def has_markers(self) -> bool:
        return any(log.markers for log in self.logs.values())

    def first_at(self, partitions: Collection[TopicPartition], time_ms: int) -> dict[TopicPartition, Stamp | None]:
        self.asked += 1
        self.lookups += 1
        return {one: self._first(self.logs[one], time_ms) for one in partitions}

    @staticmethod
    def _first(log: TimedLog, time_ms: int) -> Stamp | None:
        for offset in range(log.log_start, log.end):
            if log.times_ms[offset] >= time_ms:
                return Stamp(offset, log.times_ms[offset])
        return None

    def rows(self, ranges: Mapping[TopicPartition, Range]) -> dict[TopicPartition, Rows]:
        self.asked += 1
        found = {one: self.logs[one].rows(*each) for one, each in ranges.items()}
        self.fetched += sum(len(each.offsets) for each in found.values())
        return found

    def snapshot(self, now_ms: int = 0, own: Collection[TopicPartition] | None = None) -> Snapshot:
        heads = {one: log.head for one, log in sorted(self.logs.items())}
        mine = heads if own is None else {one: heads[one] for one in own}
        return Snapshot(mine, {}, now_ms, {one: head for one, head in heads.items() if one not in mine})
