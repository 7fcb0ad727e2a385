"""An ordered reader of rows, the plainest that follows what `Merging` decides."""

from __future__ import annotations

from dataclasses import dataclass

from lowwater.merge.merging import Merging
from lowwater.types import TopicPartition

ROW_BYTES = 10


@dataclass(frozen=True, order=True)
class Row:
    timestamp_ms: int
    topic: str
    partition: int
    offset: int


class PlainReader:
    """Holds rows in a list and sorts all of them each time."""

    def __init__(
        self,
        logs: dict[TopicPartition, list[int | None]],
        *,
        batch_size: int = 100,
        held_bytes_max: int = 1_000_000,
        cutoff_ms: int | None = None,
        created_ms: int = 1 << 60,
    ) -> None:
        """`logs`: by partition the timestamps of its offsets from 0 on; None is a gap."""
        self.logs = logs
        self.batch_size = batch_size
        self.created_ms = created_ms
        self.merging = Merging(batch_size=batch_size, held_bytes_max=held_bytes_max, cutoff_ms=cutoff_ms)
        self.held: list[Row] = []
        self.held_most = 0
        for one, log in logs.items():
            self.merging.add(one, 0, len(log))

    def fetch(self, one: TopicPartition, count: int) -> None:
        """The next `count` offsets of a partition, if it is not paused."""
        progress = self.merging[one]
        if progress.is_paused:
            return
        start, end = progress.position, min(progress.position + count, len(self.logs[one]))
        rows = [Row(ts, *one, at) for at, ts in enumerate(self.logs[one][start:end], start) if ts is not None]
        future = [row for row in rows if row.timestamp_ms > self.created_ms and row.offset < progress.end]
        past = [row.timestamp_ms for row in rows if row not in future]
        self.held += rows
        self.merging.arrived(
            one,
            end,
            newest_ms=max(past, default=None),
            rows=len(rows),
            size=ROW_BYTES * len(rows),
            future_rows=len(future),
        )
        self.held_most = max(self.held_most, self.merging.held_rows)
        self.merging.balance()

    def poll(self) -> list[Row]:
        mark = self.merging.mark
        self.held.sort()
        released = [row for row in self.held if mark.covers(row.timestamp_ms, row.topic, row.partition)]
        released = released[: self.batch_size]
        for row in released:
            self.held.remove(row)
            self.merging.left(TopicPartition(row.topic, row.partition), 1, ROW_BYTES)
        self.merging.balance()
        return released
