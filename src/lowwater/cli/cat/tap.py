"""Prints what a fetcher brings, and knows when it is enough."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lowwater.cli.cat.asked import Looks, Where
from lowwater.cli.cat.pouring import Output, RowSink, Sink
from lowwater.cli.cat.talk import CatError, Talk
from lowwater.client.errors import ClientError
from lowwater.client.fetching.events import AtEnd, Event, Failed, Fetched, Reset, Truncated
from lowwater.client.fetching.fetcher import Fetcher
from lowwater.client.loading import MissingExtraError, load
from lowwater.client.offsets import Resolved
from lowwater.types import TopicPartition

if TYPE_CHECKING:
    from lowwater.client.cluster import Cluster

MANY_ROWS = 200_000
"""From here on it pays to load what makes columns of records."""
COLUMNS = "lowwater.cli.cat.columns"


class Tap:
    """`keeps`: a partition whose end was reached is still read, and not at its end any more when something comes.

    `positions` says by partition up to where everything was printed. What has to be told to the fetcher is told by
    `settle`, in the driver's thread; everything else happens in the caller's.
    """

    def __init__(
        self, cluster: Cluster, fetcher: Fetcher, where: Where, looks: Looks, talk: Talk, *, keeps: bool = False
    ) -> None:
        self._cluster = cluster
        self._fetcher = fetcher
        self._where = where
        self._looks = looks
        self._talk = talk
        self._keeps = keeps
        self._output = Output(is_unbuffered=looks.is_unbuffered)
        self._sink: Sink = RowSink(where, looks, self._broker_of, self._output, talk)
        self._left = where.count
        self._ends: dict[TopicPartition, int] = {}
        self._at_end: set[TopicPartition] = set()
        self._finished: set[TopicPartition] = set()
        self._stopped_at: dict[TopicPartition, int] = {}
        self._seeks: dict[TopicPartition, int] = {}
        self._removals: list[TopicPartition] = []
        self.positions: dict[TopicPartition, int] = {}
        self.is_done = False

    def begin(self, resolved: Resolved) -> None:
        """These partitions are read from now on, from these starts; they ended there a moment ago."""
        self._ends.update(resolved.ends)
        self._prepare(sum(max(resolved.ends[one] - start, 0) for one, start in resolved.starts.items()))

    def give_up(self, partitions: Iterable[TopicPartition]) -> None:
        """These are read by others from now on."""
        for one in partitions:
            self._ends.pop(one, None)
            self.positions.pop(one, None)
            self._seeks.pop(one, None)
            self._at_end.discard(one)
            self._finished.discard(one)
        self._look_whether_done()

    def settle(self) -> None:
        """Tell the fetcher what is not wanted any more, or once more."""
        removals, self._removals = self._removals, []
        seeks, self._seeks = self._seeks, {}
        self._fetcher.remove(removals)
        for one, offset in seeks.items():
            self._fetcher.seek(one, offset)

    def _prepare(self, backlog: int) -> None:
        rows = backlog if self._left is None else min(backlog, self._left)
        is_plain = self._looks.unpack or self._looks.is_unbuffered
        if rows < MANY_ROWS or is_plain or not isinstance(self._sink, RowSink):
            return
        try:
            columns = load(COLUMNS)
        except MissingExtraError:
            return  # slower, and the same
        self._sink = columns.ColumnSink(self._where, self._looks, self._broker_of, self._output)

    def _broker_of(self, topic: str, partition: int) -> int:
        return self._cluster.leader(TopicPartition(topic, partition))

    def patience_ms(self) -> float | None:
        """How long to wait for what comes: not beyond the time at which to stop."""
        if self._where.stop_ms is None or not self._at_end:
            return None
        return max(self._where.stop_ms - self._now_ms(), 0) + 1

    def _now_ms(self) -> int:
        return self._cluster.network.driver.now_ms()

    # ---- what comes

    def pour(self, answers: Sequence[Fetched]) -> None:
        for answer in answers:
            if self.is_done:
                answer.release()
                continue
            if answer.slices:
                self._print(answer if self._keeps or not self._finished else self._still_read(answer))
            for event in answer.events:
                if not self.is_done:
                    self._happened(event)
        if self._is_over():
            for one in list(self._at_end - self._finished):
                self._finish(one)

    def _print(self, answer: Fetched) -> None:
        poured = self._sink.pour(answer, self._left)
        self.positions |= poured.behind
        self._at_end -= poured.behind.keys()
        if self._where.stop_ms is None:
            self._finished -= poured.behind.keys()
        self._seeks.update((one, poured.behind[one]) for one in poured.unread)
        if self._left is not None:
            self._left -= poured.rows
            self.is_done = self._left <= 0
        if self.is_done:
            return
        if poured.error is not None:
            raise poured.error
        self._stopped_at = poured.stopped_at | self._stopped_at
        for one, position in poured.behind.items():
            # What is stamped before the stop may stand behind what is stamped after it: all that was there is read.
            if one in self._stopped_at and position >= self._ends[one]:
                self._finish_at_stop(one)

    def _still_read(self, answer: Fetched) -> Fetched:
        """Without what came of partitions that are finished."""
        pairs = zip(answer.slices, answer.positions, strict=True)
        kept = [(one, position) for one, position in pairs if one.partition not in self._finished]
        return answer._replace(slices=[one for one, _ in kept], positions=[position for _, position in kept])

    def _happened(self, event: Event) -> None:
        match event:
            case AtEnd(one, offset):
                self._came_to_end(one, offset)
            case Reset(one, offset, position, log_start, log_end):
                self._talk.say(
                    f"{one.topic} [{one.partition}]: offset {offset} is not within [{log_start}, {log_end}], "
                    f"reading goes on at {position} (auto.offset.reset)"
                )
            case Truncated(one, diverged, position, goes_on):
                self._was_truncated(one, diverged, position, goes_on)
            case Failed(one, error):
                self._failed(one, error)

    def _came_to_end(self, one: TopicPartition, offset: int) -> None:
        if one in self._stopped_at:
            self._finish_at_stop(one)
            return
        self._at_end.add(one)
        if self._where.exits_at_end or self._is_over():
            self._finish(one)
        self._talk.say(f"Reached end of topic {one.topic} [{one.partition}] at offset {offset}{self._exiting}")

    def _was_truncated(self, one: TopicPartition, diverged: int, position: int, goes_on: bool) -> None:
        what = f"{one.topic} [{one.partition}]: the log was truncated, offsets {diverged} to {position - 1} are gone"
        if not goes_on:
            raise CatError(what)
        self._talk.say(f"{what}, reading goes on at {diverged}")
        self._seeks[one] = diverged

    def _failed(self, one: TopicPartition, error: ClientError) -> None:
        what = f"Topic {one.topic} [{one.partition}] error: {error.what}"
        if not error.retriable:
            raise CatError(what)
        self._talk.trouble(what)

    # ---- enough

    def _is_over(self) -> bool:
        return self._where.stop_ms is not None and self._now_ms() >= self._where.stop_ms

    @property
    def _exiting(self) -> str:
        return ": exiting" if self.is_done else ""

    def _finish_at_stop(self, one: TopicPartition) -> None:
        if one in self._finished:
            return
        self._finish(one)
        where = f"{one.topic} [{one.partition}] at offset {self._stopped_at[one]}"
        self._talk.say(f"Reached stop timestamp for topic {where}{self._exiting}")

    def _finish(self, one: TopicPartition) -> None:
        self._finished.add(one)
        if not self._keeps:
            self._removals.append(one)
        self._look_whether_done()

    def _look_whether_done(self) -> None:
        self.is_done = bool(self._finished) and self._finished >= self._ends.keys()
