"""Which records may be released in order, and which partitions wait meanwhile. Pure: counts, clocks and positions.

A partition is live when it has been read up to where it ended at the beginning, or up to the cutoff; it stays so. Until
then its clock, the largest timestamp that came of it, holds the mark: what is stamped later waits. A partition of which
nothing came yet holds everything.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

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
        self._batch_size = batch_size
        self._partitions: dict[TopicPartition, Progress] = {}
        self._priming: set[TopicPartition] = set()  # those that are not live
        self._silent: set[TopicPartition] = set()  # those of them of which nothing came yet
        self._clocks: list[Mark] = []  # a heap; of each of the others its clock, and perhaps older ones
        self._paused: dict[TopicPartition, None] = {}  # in the order in which they were paused
        self._stays_live = False
        self.held_rows = 0
        self.held_bytes = 0

    # -- partitions

    def add(self, one: TopicPartition, start: int, end: int) -> None:
        """Read it from `start`; `end` is where it ends now. It is waited for, unless all are to stay live."""
        assert one not in self._partitions, f"{one} is there already"
        is_live = self._stays_live or start >= end
        self._partitions[one] = Progress(start, end, is_live=is_live)
        if not is_live:
            self._priming.add(one)
            self._silent.add(one)

    def stay_live(self) -> None:
        """The caller was told so: whoever comes from now on, or comes again, is live and holds nobody."""
        assert self.is_live, "nothing is promised before it is so"
        self._stays_live = True

    def remove(self, one: TopicPartition) -> None:
        """Its rows are dropped, and it is not waited for: it was revoked, is gone, or comes again from elsewhere."""
        gone = self._partitions.pop(one)
        self.held_rows -= gone.held_rows
        self.held_bytes -= gone.held_bytes
        self._priming.discard(one)
        self._silent.discard(one)
        self._paused.pop(one, None)

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
        """Whether every partition is. Where none is left, those to come may have to be ordered."""
        return self._stays_live or (bool(self._partitions) and not self._priming)

    def waits_for(self, one: TopicPartition) -> bool:
        """Whether others may have to wait until more of it comes."""
        return one in self._priming

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
            self._silent.discard(one)
            if one in self._priming:
                heapq.heappush(self._clocks, Mark(newest_ms, *one))
        if one in self._priming and self._has_caught_up(progress):
            self._go_live(one)

    def ended(self, one: TopicPartition) -> None:
        """There is nothing more of it now, also when that is before where it ended at the beginning."""
        self._go_live(one)

    def _go_live(self, one: TopicPartition) -> None:
        self._partitions[one].is_live = True
        self._priming.discard(one)
        self._silent.discard(one)

    def _has_caught_up(self, progress: Progress) -> bool:
        if progress.position >= progress.end:
            return True
        return self._cutoff_ms is not None and progress.clock_ms >= self._cutoff_ms

    def left(self, one: TopicPartition, rows: int, size: int) -> None:
        """Rows of it were released, and this many bytes are not held for it any more."""
        self.left_all([(one, rows, size)])

    def left_all(self, left: Iterable[tuple[TopicPartition, int, int]]) -> None:
        """The same, of several partitions."""
        partitions = self._partitions
        all_rows = all_bytes = 0
        for one, rows, size in left:
            progress = partitions[one]
            progress.held_rows -= rows
            progress.held_bytes -= size
            assert progress.held_rows >= 0, "more was released than arrived"
            assert progress.held_bytes >= 0, "more was let go than was held"
            all_rows += rows
            all_bytes += size
        self.held_rows -= all_rows
        self.held_bytes -= all_bytes

    def put_back(
        self, one: TopicPartition, position: int, key_ms: int, *, future_rows: int, is_believed: bool = False
    ) -> None:
        """What was held of it was dropped, from `position` on; the first of these rows is ordered by `key_ms`.

        It is read again when they are due. Until it has come so far again it holds the mark there. `is_believed`: also
        if that is in the future, and nobody knows yet what follows it.
        """
        progress = self._partitions[one]
        progress.position = position
        progress.future_rows -= future_rows
        knows_all = progress.is_live or is_believed
        progress.clock_ms = key_ms if knows_all else min(progress.clock_ms, key_ms)
        heapq.heappush(self._clocks, Mark(progress.clock_ms, *one))
        self._silent.discard(one)
        self._priming.add(one)

    def can_be_put_back(self) -> list[TopicPartition]:
        """Those of which rows are held, and who are not waited for."""
        mark = self.mark
        return [one for one, progress in self._partitions.items() if progress.held_rows and self._is_ahead(one, mark)]

    def claim_the_future(self) -> list[TopicPartition]:
        """Those who are waited for, and of which rows are held that claim to be of the future."""
        mark = self.mark
        return [
            one for one, progress in self._partitions.items() if progress.future_rows and not self._is_ahead(one, mark)
        ]

    def _is_ahead(self, one: TopicPartition, mark: Mark) -> bool:
        clock_ms = self._partitions[one].clock_ms
        return clock_ms != BEGINNING_MS and not mark.covers(clock_ms, *one)

    # -- decisions

    @property
    def mark(self) -> Mark:
        """The clock of the partition that is furthest behind, of those that are not live; also of a paused one."""
        if self._stays_live:
            return EVERYTHING
        if self._silent:
            return NOTHING
        clocks = self._clocks
        while clocks and not self._holds(clocks[0]):
            heapq.heappop(clocks)
        return clocks[0] if clocks else EVERYTHING

    def _holds(self, mark: Mark) -> bool:
        """Whether this is the clock of a partition that is waited for, and not an older one."""
        one = TopicPartition(mark.topic, mark.partition)
        return one in self._priming and self._partitions[one].clock_ms == mark.timestamp_ms

    @property
    def is_full(self) -> bool:
        return self.held_rows > self._held_rows_max or self.held_bytes > self._held_bytes_max

    @property
    def _has_room(self) -> bool:
        share = ROWS_HELD_PER_BATCH
        return self.held_rows * share < self._held_rows_max and self.held_bytes * share < self._held_bytes_max

    def balance(self) -> tuple[list[TopicPartition], list[TopicPartition]]:
        """Whom to pause and whom to resume. The one that holds the mark never pauses, so there is always progress."""
        if self._has_room:
            return [], self._resume(list(self._paused))
        mark = self.mark
        waiting = self._can_wait(mark)
        resumed = self._resume([one for one in self._paused if one not in waiting])
        if not self.is_full:
            return [], resumed
        return self._pause([one for one in waiting if one not in self._paused]), resumed

    def _can_wait(self, mark: Mark) -> dict[TopicPartition, Progress]:
        """Those that are ahead, and have enough to be so for a while.

        Of many partitions that stand closely together the one behind them all would otherwise come alone, and then the
        next one. When there are half as many bytes again as are allowed there is no other way.
        """
        rows = size = 0.0
        if 2 * self.held_bytes <= 3 * self._held_bytes_max:
            rows, size = self._batch_size / len(self), self._held_bytes_max / len(self)
        # Not by a call, or a tuple, for each: this is asked for with every answer, however many they are.
        mark_ms, holder = mark.timestamp_ms, TopicPartition(mark.topic, mark.partition)
        return {
            one: progress
            for one, progress in self._partitions.items()
            if (progress.held_rows >= rows or progress.held_bytes >= size)
            and (progress.clock_ms > mark_ms or (progress.clock_ms == mark_ms and one > holder))
            and progress.clock_ms != BEGINNING_MS
        }

    def _pause(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        for one in partitions:
            self._paused[one] = None
            self._partitions[one].is_paused = True
        return partitions

    def _resume(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        resumed = list(partitions)
        for one in resumed:
            del self._paused[one]
            self._partitions[one].is_paused = False
        return resumed
