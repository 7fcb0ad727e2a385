"""Reads exactly the given offsets of some partitions, on a cluster that is used for more than that.

Nothing is looked up: whoever asks knows where each range begins and ends. What is not there any more is told, range by
range; offsets that hold no record, because of compaction or transactions, are no loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

from lowwater.client.cluster import Cluster
from lowwater.client.driver import sleep
from lowwater.client.errors import LogTruncatedError, OffsetOutOfRangeError, TopicRecreatedError, UnknownTopicError
from lowwater.client.fetching.fetcher import Fetcher
from lowwater.client.offsets import LATEST, list_offsets
from lowwater.client.planning import Plan
from lowwater.client.releasing import Lost, Releasing
from lowwater.client.topic_ids import is_another
from lowwater.client.wanted import StopAt
from lowwater.types import TopicPartition
from lowwater.wire.schema import ZERO_UUID

BATCH_SIZE = 10_000
HELD_BYTES_MAX = 64 * 1024 * 1024


class OffsetRange(NamedTuple):
    """[start, end) of a partition; of this very topic, where its id is known."""

    partition: TopicPartition
    start: int
    end: int
    topic_id: bytes = ZERO_UUID


class RangeReading:
    """Rows of all ranges as they come. Everything is called in the driver's thread."""

    def __init__(
        self,
        cluster: Cluster,
        ranges: Iterable[OffsetRange],
        *,
        on_lost: Callable[[Lost], None],
        columns: Sequence[str] | None = None,
        order: Literal["partition"] | None = None,
        isolation: str | None = None,
        batch_size: int = BATCH_SIZE,
        held_bytes_max: int = HELD_BYTES_MAX,
        partition_bytes: int | None = None,
    ) -> None:
        """`on_lost` is told of offsets that are gone; what it raises, `next` raises.

        `order`: rows come about in order of time, those of each partition by offset as ever; None: as they come.
        `partition_bytes`: ranges are so short that it is not worth asking for more of each at once.
        """
        self._cluster = cluster
        self._driver = cluster.network.driver
        self._ranges = {each.partition: each for each in ranges if each.start < each.end}
        self._isolation = isolation
        self._on_lost = on_lost
        self._topic_ids = {each.partition.topic: each.topic_id for each in self._ranges.values()}
        self._has_begun = False
        self._tries = 0
        self._is_closed = False
        self._fetcher = Fetcher(
            cluster,
            bytes_max=held_bytes_max,
            held_bytes=lambda: self._releasing.held_bytes,
            reset="error",
            isolation=isolation,
            tell_ends=True,
            topic_ids=self._topic_ids,
            partition_bytes=partition_bytes,
        )
        self._releasing = Releasing(
            self._fetcher,
            order=order,
            batch_size=batch_size,
            held_bytes_max=held_bytes_max,
            columns=columns,
            now_ms=self._driver.now_ms(),
        )

    def _begin(self) -> None:
        """What the cluster is known to be may be older than the ranges are; of their topics that is looked up again."""
        self._has_begun = True
        for topic, topic_id in self._topic_ids.items():
            known = self._cluster.known(topic)
            if known is not None and is_another(topic_id, known.id):
                self._cluster.outdate([topic])
        self._fetcher.add({one: each.start for one, each in self._ranges.items()})
        self._releasing.add({one: _plan(each) for one, each in self._ranges.items()})

    async def next(self) -> Any:
        """The next batch of rows, or None when every range is read. TopicRecreatedError when a topic is another."""
        if not self._has_begun:
            self._begin()
        while True:
            batch, is_moved = self._step()
            if batch is not None:
                return batch
            if is_moved:
                continue
            if not self._releasing.is_finished:
                await self._fetcher.fetched()
            elif short := self._short():
                await self._look_at(short)
            else:
                return None

    def _step(self) -> tuple[Any, bool]:
        """A batch, if there is one; whether something was found to be gone instead."""
        try:
            return self._releasing.step(), False
        except (LogTruncatedError, TopicRecreatedError):
            raise  # rows that were handed over are not there any more, or never were: whoever has them begins again
        except OffsetOutOfRangeError as error:
            self._skip(error)
        except UnknownTopicError as error:
            if error.topic is None or error.partition is None:
                raise
            self._give_up(TopicPartition(error.topic, error.partition))
        return None, True

    def unread(self) -> list[TopicPartition]:
        """Of which there may be more to come."""
        progress = self._releasing.progress
        return [
            one
            for one, each in self._ranges.items()
            if one not in progress or progress[one].held_rows or progress[one].position < each.end
        ]

    def drop(self, one: TopicPartition) -> None:
        """Nothing more of it is wanted."""
        self._releasing.remove([one])
        del self._ranges[one]

    async def close(self) -> None:
        """Brokers need not remember what was asked for; the cluster goes on. Nothing can be read any more."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            await self._fetcher.aclose()
        finally:
            # The fetcher asks this object how much is held: rows would wait for the garbage collector, which comes when
            # there are many objects, not when they are large.
            del self._releasing

    # -- what is gone

    def _skip(self, error: OffsetOutOfRangeError) -> None:
        assert error.topic is not None
        assert error.partition is not None
        assert error.offset is not None
        one = TopicPartition(error.topic, error.partition)
        if error.offset > error.log_end or error.log_start >= self._ranges[one].end:
            self._give_up(one)
            return
        self._releasing.seek(one, error.log_start)
        self._on_lost(Lost(*one, error.offset, error.log_start))

    def _give_up(self, one: TopicPartition) -> None:
        """Nothing is left of its range from where it is now."""
        position = self._releasing.progress[one].position
        self._releasing.remove([one])
        end = self._ranges.pop(one).end
        self._on_lost(Lost(*one, position, end))

    def _short(self) -> list[TopicPartition]:
        """Those that ended before their range did."""
        progress = self._releasing.progress
        return [one for one, each in self._ranges.items() if progress[one].position < each.end]

    async def _look_at(self, short: list[TopicPartition]) -> None:
        """A new leader may not know yet how far others had it; it is asked until it does. Otherwise it is gone."""
        ends = await list_offsets(self._cluster, dict.fromkeys(short, LATEST), isolation=self._isolation)
        progress = self._releasing.progress
        for one in short:
            if ends[one].offset < self._ranges[one].end:
                self._give_up(one)
            else:
                self._releasing.seek(one, progress[one].position)
        self._tries += 1
        await sleep(self._driver, self._cluster.retry.wait_ms(self._tries))


def _plan(each: OffsetRange) -> Plan:
    """It had as much once."""
    return Plan(each.start, each.end, stop=StopAt(each.end))
