"""Which records may be released in order, and which partitions wait meanwhile. Pure: counts, clocks and positions.

A partition is live when it has been read up to where it ended at the beginning, or up to the cutoff; it stays so. Until
then its clock, the largest timestamp that came of it, holds the mark: what is stamped later waits. A partition of which
nothing came yet holds everything.
"""

from __future__ import annotations

from collections.abc import Iterator

from lowwater.merge.mark import BEGINNING_MS, EVERYTHING, NOTHING, Mark
from lowwater.types import TopicPartition

ROWS_HELD_PER_BATCH = 5
"""Times the batch size: with more rows than that held, partitions that are ahead pause."""


class Progress:
    """One partition, from its start to the end it had at the beginning."""

    __slots__ = (
        "clock_ms",
        "end",
        "future_rows",
        "held_bytes",
        "held_rows",
        "is_live",
        "is_paused",
        "position",
        "start",
    )

    def __init__(self, start: int, end: int, *, is_live: bool) -> None:
        self.start = start
        self.end = end
        self.position = start
        self.clock_ms = BEGINNING_MS
        self.is_live = is_live
        self.is_paused = False
        self.held_rows = 0
        self.held_bytes = 0
        self.future_rows = 0


class Merging:
    """Told what arrives and what leaves; says how far to release and whom to pause or resume."""

    def __init__(self, *, batch_size: int, held_bytes_max: int, cutoff_ms: int | None = None) -> None:
        assert batch_size > 0, "a batch has at least one row"
        assert held_bytes_max > 0, "something has to be held to be ordered"
        self._cutoff_ms = cutoff_ms
        self._held_rows_max = ROWS_HELD_PER_BATCH * batch_size
        self._held_bytes_max = held_bytes_max
        self._partitions: dict[TopicPartition, Progress] = {}
        self._is_live = False
        self.held_rows = 0
        self.held_bytes = 0

    # -- partitions

    def add(self, one: TopicPartition, start: int, end: int) -> None:
        """Read it from `start`; `end` is where it ends now. Where all are live it is live too, and holds nobody."""
        assert one not in self._partitions, f"{one} is there already"
        self._partitions[one] = Progress(start, end, is_live=self._is_live or start >= end)

    def begin(self) -> None:
        """All partitions of the beginning are there."""
        self._look_whether_live()

    def remove(self, one: TopicPartition) -> None:
        """Its rows are dropped: it was revoked, or is gone."""
        gone = self._partitions.pop(one)
        self.held_rows -= gone.held_rows
        self.held_bytes -= gone.held_bytes
        if self._partitions:
            self._look_whether_live()

    def __getitem__(self, one: TopicPartition) -> Progress:
        return self._partitions[one]

    def __contains__(self, one: TopicPartition) -> bool:
        return one in self._partitions

    def __iter__(self) -> Iterator[tuple[TopicPartition, Progress]]:
        return iter(self._partitions.items())

    def __len__(self) -> int:
        return len(self._partitions)

    @property
    def is_live(self) -> bool:
        """Whether every partition was, at some moment; never false again."""
        return self._is_live

    def _look_whether_live(self) -> None:
        self._is_live = self._is_live or all(progress.is_live for progress in self._partitions.values())

    # -- rows

    def arrived(
        self,
        one: TopicPartition,
        position: int,
        *,
        newest_ms: int | None = None,
        rows: int = 0,
        size: int = 0,
        future_rows: int = 0,
    ) -> None:
        """It was read up to `position`, which may be behind a gap without any rows.

        `newest_ms` is the largest timestamp of these rows, but for those that claim to be of the future: they wait
        until the partition is live, without moving its clock.
        """
        progress = self._partitions[one]
        progress.position = position
        progress.held_rows += rows
        progress.held_bytes += size
        progress.future_rows += future_rows
        self.held_rows += rows
        self.held_bytes += size
        if newest_ms is not None and newest_ms > progress.clock_ms:
            progress.clock_ms = newest_ms
        if not progress.is_live and self._has_caught_up(progress):
            progress.is_live = True
            self._look_whether_live()

    def ended(self, one: TopicPartition) -> None:
        """There is nothing more of it now, also when that is before where it ended at the beginning."""
        self._partitions[one].is_live = True
        self._look_whether_live()

    def _has_caught_up(self, progress: Progress) -> bool:
        if progress.position >= progress.end:
            return True
        return self._cutoff_ms is not None and progress.clock_ms >= self._cutoff_ms

    def left(self, one: TopicPartition, rows: int, size: int) -> None:
        """Rows of it were released, and this many bytes are not held for it any more."""
        progress = self._partitions[one]
        progress.held_rows -= rows
        progress.held_bytes -= size
        self.held_rows -= rows
        self.held_bytes -= size
        assert progress.held_rows >= 0, "more was released than arrived"
        assert progress.held_bytes >= 0, "more was let go than was held"

    # -- decisions

    @property
    def mark(self) -> Mark:
        """The clock of the partition that is furthest behind, of those that are not live; also of a paused one."""
        if self._is_live:
            return EVERYTHING
        mark = EVERYTHING
        for one, progress in self._partitions.items():
            if progress.is_live:
                continue
            if progress.clock_ms == BEGINNING_MS:
                return NOTHING
            mark = min(mark, Mark(progress.clock_ms, *one))
        return mark

    @property
    def is_full(self) -> bool:
        return self.held_rows > self._held_rows_max or self.held_bytes > self._held_bytes_max

    @property
    def _has_room(self) -> bool:
        share = ROWS_HELD_PER_BATCH
        return self.held_rows * share < self._held_rows_max and self.held_bytes * share < self._held_bytes_max

    def balance(self) -> tuple[list[TopicPartition], list[TopicPartition]]:
        """Whom to pause and whom to resume. The one that holds the mark never pauses, so there is always progress."""
        if self.is_full:
            mark = self.mark
            paused = [one for one, progress in self if not progress.is_paused and _is_ahead(one, progress, mark)]
            return self._switch(paused, pause=True), self._resume_at(mark)
        if self._has_room:
            return [], self._switch([one for one, progress in self if progress.is_paused], pause=False)
        return [], self._resume_at(self.mark)

    def _resume_at(self, mark: Mark) -> list[TopicPartition]:
        """Those that wait although nobody is behind them any more."""
        behind = [one for one, progress in self if progress.is_paused and not _is_ahead(one, progress, mark)]
        return self._switch(behind, pause=False)

    def _switch(self, partitions: list[TopicPartition], *, pause: bool) -> list[TopicPartition]:
        for one in partitions:
            self._partitions[one].is_paused = pause
        return partitions


def _is_ahead(one: TopicPartition, progress: Progress, mark: Mark) -> bool:
    return progress.clock_ms != BEGINNING_MS and not mark.covers(progress.clock_ms, *one)
