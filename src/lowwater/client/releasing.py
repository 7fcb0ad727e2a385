"""Between fetching and the caller: what came is held, what may go is released, whoever is too far ahead waits.

Nothing here waits. `step` takes what the fetcher has and gives the next batch, if there is one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lowwater.client.errors import ClientError, truncated
from lowwater.client.fetching.asker import MOST_BYTES
from lowwater.client.fetching.events import AtEnd, Event, Failed, Fetched, Reset, Truncated
from lowwater.client.fetching.fetcher import Fetcher
from lowwater.client.loading import READING, load
from lowwater.client.planning import Plan
from lowwater.client.slices import Arrival, Left
from lowwater.client.wanted import StopAt
from lowwater.merge.mark import EVERYTHING, NOTHING, Mark
from lowwater.merge.merging import Merging, Progress
from lowwater.types import TopicPartition

LOG = logging.getLogger("lowwater.reader")
_HALF, _A_QUARTER, _AN_EIGHTH = 2, 4, 8
_TRUNCATED_ADVICE = 'undo what was made of them and seek to {}, or go on there by itself: on_lost="earliest"'


class Lost(NamedTuple):
    """Offsets [first, behind) of a partition that were gone before they could be read.

    `is_truncated`: they were returned, and are not in the log any more; others stand there now, and come.
    """

    topic: str
    partition: int
    first: int
    behind: int
    is_truncated: bool = False


class Releasing:
    """The rows of all partitions of one reader, from their arrival to their release."""

    def __init__(
        self,
        fetcher: Fetcher,
        *,
        order: Any = "timestamp",
        batch_size: int,
        held_bytes_max: int,
        now_ms: int,
        cutoff_ms: int | None = None,
        columns: Sequence[str] | None = None,
    ) -> None:
        self._fetcher = fetcher
        self._order = order
        self._batch_size = batch_size
        self._held_bytes_max = held_bytes_max
        # A batch is a copy: with large rows it must not be as large as all that is held.
        self._batch_bytes_max = max(held_bytes_max // _AN_EIGHTH, 1)
        # Half is for those who are ahead; the other half lets those who are behind come on.
        self._merging = Merging(
            batch_size=batch_size, held_bytes_max=max(held_bytes_max // _HALF, 1), cutoff_ms=cutoff_ms
        )
        self._held = load(READING).Held(
            order=order, created_ms=now_ms, slack_bytes=held_bytes_max // _A_QUARTER, columns=columns
        )
        self._plans: dict[TopicPartition, Plan] = {}
        self._open: set[TopicPartition] = set()  # those that have not come to their stop
        self._failures: dict[TopicPartition, ClientError] = {}
        self._goal: dict[TopicPartition, int] | None = None
        self._has_more = False
        self._now_ms = now_ms
        self._is_in_time = False
        self.is_live = False
        self.lost: list[Lost] = []
        self.rows = 0
        self.batches = 0
        self._look_whether_live()

    # -- partitions

    def add(self, plans: Mapping[TopicPartition, Plan]) -> None:
        """Their rows may come from now on, by the fetcher, unless there is nothing to read up to their stop."""
        for one, plan in plans.items():
            self._plans[one] = plan
            self._merging.add(one, plan.start, min(plan.end, plan.stop_offset))
            self._held.add(one, plan.start, plan.end, stop=plan.stop_offset, stop_ms=plan.stop_ms)
            if not plan.is_empty:
                self._open.add(one)
                self._fetcher.stop_at(one, plan.stop_offset)
            else:
                self._fetcher.remove([one])
        self._look_whether_live()

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Rows that are held of them are dropped."""
        gone = [one for one in partitions if one in self._merging]
        self._fetcher.remove(gone)
        for one in gone:
            self._plans.pop(one)
            self._open.discard(one)
            self._failures.pop(one, None)
            self._merging.remove(one)
            self._leave(self._held.remove(one))

    def seek(self, one: TopicPartition, offset: int) -> None:
        """Read on from there; nothing that is held of it is released any more."""
        plan = self._plans[one]
        self.remove([one])
        self.add({one: plan._replace(start=offset)})
        if one in self._open:
            self._fetcher.add({one: offset})

    def stop_at(self, one: TopicPartition, offset: int) -> None:
        """It is read up to there, which was not known when it was added."""
        if one not in self._merging:
            return
        self._plans[one] = self._plans[one]._replace(stop=StopAt(offset, self._plans[one].stop_ms))
        self._held.stop_at(one, offset)
        self._fetcher.stop_at(one, offset)
        self._look_whether_done(one)

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        return frozenset(self._plans)

    @property
    def progress(self) -> dict[TopicPartition, Progress]:
        return dict(self._merging)

    # -- one step

    def step(self) -> Any:
        """The next batch, or None. Raises what is wrong with a partition once its rows before that are out."""
        if (self._has_more or self._merging.is_full) and (batch := self._release()) is not None:
            return batch  # what may go goes before more comes: the less is held, the faster it is merged
        if self._merging.is_full:
            # Before more is taken: a caller who polls over an error would have more and more of what cannot go held.
            self._raise_failures(with_rows=False)
        behind: set[TopicPartition] = set()
        for answer in self._fetcher.take():
            self._take(answer, behind)
        self._raise_failures(with_rows=False)
        batch = self._release()
        if batch is None and self._merging.held_bytes > self._held_bytes_max:
            self._put_back()
        self._balance()
        if batch is None:
            self._raise_failures(with_rows=True)
        return batch

    def last_without(self, batch: Any, partitions: Iterable[TopicPartition]) -> Any:
        """The batch that `step` gave last, without the rows of these; None when there are no others."""
        return self._held.last_without(batch, partitions)

    @property
    def is_finished(self) -> bool:
        """Whether every partition came to its stop, and every row of it went."""
        return not self._open and not self._merging.held_rows

    # -- arriving

    def _take(self, answer: Fetched, behind: set[TopicPartition]) -> None:
        """`behind`: those that did not come as far as the fetcher expects; what follows that does not count."""
        expected = {one.partition: position for one, position in zip(answer.slices, answer.positions, strict=True)}
        slices = [one for one in answer.slices if one.partition not in behind]
        for arrival in self._held.take(slices, let_go=answer.release):
            if not self._arrived(arrival, expected[arrival.partition]):
                behind.add(arrival.partition)
        for event in answer.events:
            if event.partition in self._merging and event.partition not in behind:
                self._heard(event)

    def _arrived(self, arrival: Arrival, expected: int) -> bool:
        """Whether it could be taken up to where the fetcher expects."""
        one = arrival.partition
        self._merging.arrived(
            one,
            arrival.position,
            newest_ms=arrival.newest_ms,
            rows=arrival.rows,
            size=arrival.size,
            future_rows=arrival.future_rows,
        )
        if self._is_in_time:
            self._fetcher.stands_at(one, arrival.position, self._merging[one].clock_ms)
        if arrival.error is not None:
            self._failures[one] = arrival.error
            self._fetcher.pause([one])
            return False
        if not self._look_whether_done(one) and arrival.position != expected:
            # The rest did not fit into memory once it was unpacked; it comes again, when it is its turn.
            self._fetcher.put_back({one: (arrival.position, self._merging[one].clock_ms)})
            return False
        return True

    def _look_whether_done(self, one: TopicPartition) -> bool:
        plan, position = self._plans[one], self._merging[one].position
        is_in_doubt = position == plan.start > plan.end  # that is out of range, unless the broker says otherwise
        if position < plan.stop_offset or is_in_doubt:
            return False
        self._done(one)
        return True

    def _done(self, one: TopicPartition) -> None:
        self._open.discard(one)
        self._merging.ended(one)
        if one in self._fetcher:
            self._fetcher.finish(one)

    def _heard(self, event: Event) -> None:
        one = event.partition
        match event:
            case Failed():
                self._failures[one] = event.error
            case Reset():
                self._was_reset(event)
            case Truncated():
                self._was_truncated(event)
            case AtEnd():
                self._move(one, event.offset)
                self._merging.ended(one)
                # It had as much once: what is missing up to the stop will not come any more.
                if self._plans[one].stop_offset <= self._plans[one].end:
                    self._done(one)

    def _was_reset(self, event: Reset) -> None:
        one = event.partition
        if event.lost is not None:
            first, behind = event.lost
            self.lost.append(Lost(*one, first, min(behind, max(self._plans[one].stop_offset, first))))
        bounds = f"[{event.log_start}, {event.log_end}]"
        LOG.warning("%s: offset %d is not within %s; reading goes on at %d", one, event.offset, bounds, event.position)
        self._move(one, event.position)
        self._look_whether_done(one)

    def _was_truncated(self, event: Truncated) -> None:
        """What is held of it may not be in the log any more: nobody misses what he never got."""
        one, diverged = event.partition, event.diverged
        returned = self.released()[one]
        bounds = self._fetcher.bounds(one) if one in self._fetcher else None
        self.seek(one, min(diverged, returned))
        if returned <= diverged:
            return
        if event.goes_on:
            self.lost.append(Lost(*one, diverged, returned, is_truncated=True))
            LOG.warning("%s: offsets [%d, %d) were returned and are not in its log any more", one, diverged, returned)
            return
        error = truncated(one, diverged, returned, _TRUNCATED_ADVICE.format(diverged))
        self._failures[one] = error if bounds is None else error.within(bounds.log_start, bounds.high_watermark)
        if one in self._fetcher:
            self._fetcher.pause([one])

    def _move(self, one: TopicPartition, offset: int) -> None:
        position = min(offset, self._plans[one].stop_offset)
        self._held.move(one, position)
        self._merging.arrived(one, position)

    # -- leaving

    @property
    def _mark(self) -> Mark:
        return EVERYTHING if self._order is None else self._merging.mark

    def _release(self) -> Any:
        mark = self._mark
        batch = None
        if self._merging.held_rows and mark != NOTHING:
            released = self._held.release(mark, self._batch_size, bytes_max=self._batch_bytes_max)
            batch, self._has_more = released.batch, released.is_cut_off
            self._leave(released.left)
        if batch is not None:
            self.rows += batch.num_rows
            self.batches += 1
        self._look_whether_live()
        return batch

    def _leave(self, left: Iterable[Left]) -> None:
        self._merging.left_all(left)

    def _balance(self) -> None:
        """In order of time nobody is asked for before his turn, also while the one whose turn it is cannot be reached:
        the fetcher need not be told who is ahead."""
        paused, resumed = self._merging.balance()
        if self._is_in_time:
            return
        self._fetcher.pause(one for one in paused if one in self._fetcher)
        if resumed:
            self._fetcher.resume(one for one in resumed if one in self._fetcher and one not in self._failures)

    def _put_back(self) -> None:
        """More is held than is allowed, and nothing of it may go before others came: what is due last is dropped, until
        there is some room, and fetched again when it is due. What is due first stays.

        If that is not enough, by far, those who are waited for and bring only rows of the future are believed.
        """
        self._drop(self._merging.can_be_put_back(), is_believed=False)
        if self._merging.held_bytes > self._held_bytes_max + MOST_BYTES:
            self._drop(self._merging.claim_the_future(), is_believed=True)

    def _drop(self, partitions: Iterable[TopicPartition], *, is_believed: bool) -> None:
        chosen = [one for one in partitions if one not in self._failures]
        if not chosen:
            return
        dropped, left = self._held.put_back(chosen, self._held_bytes_max // _HALF)
        self._leave(left)
        for one, each in dropped:
            self._merging.put_back(one, each.offset, each.key_ms, future_rows=each.future_rows, is_believed=is_believed)
            self._open.add(one)
        self._fetcher.put_back({one: (each.offset, self._merging[one].clock_ms) for one, each in dropped})

    def _look_whether_live(self) -> None:
        """Live to the caller, and for good: everything that was there when the last partition became live is released
        as well. One that comes before that, or is moved, is waited for like those of the beginning."""
        if self.is_live:
            return
        self._read_in_time(self._order is not None and not self._merging.is_live)
        if not self._merging.is_live:
            self._goal = None
            return
        if self._goal is None:
            self._goal = {one: progress.position for one, progress in self._merging}
        released = self._held.committable() if self._merging.held_rows else {}
        self.is_live = all(released.get(one, goal) >= goal for one, goal in self._goal.items())
        if self.is_live:
            self._merging.stay_live()

    def _read_in_time(self, is_in_time: bool) -> None:
        if is_in_time == self._is_in_time:
            return
        self._is_in_time = is_in_time
        self._fetcher.read_in_time(self._now_ms if is_in_time else None, self._merging.waits_for)

    def _raise_failures(self, *, with_rows: bool) -> None:
        for one, error in self._failures.items():
            if with_rows or not self._merging[one].held_rows:
                if error.retriable:
                    del self._failures[one]
                raise error

    # -- what there is to say

    def released(self) -> dict[TopicPartition, int]:
        """By partition, the offset up to which every row was released."""
        positions: dict[TopicPartition, int] = self._held.committable()
        return positions

    @property
    def mark_ms(self) -> int | None:
        """The low-water mark; None while there is none, and when everything may go."""
        mark = self._mark
        return None if mark in (NOTHING, EVERYTHING) else mark.timestamp_ms

    @property
    def held_rows(self) -> int:
        return self._merging.held_rows

    @property
    def held_bytes(self) -> int:
        return self._merging.held_bytes

    @property
    def late_rows(self) -> int:
        return int(self._held.late_rows)
