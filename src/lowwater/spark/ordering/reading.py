"""How a worker reads a slice of time: where it lies in each partition, and its rows in order."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from lowwater.client.cluster import Cluster
from lowwater.client.errors import ClientError
from lowwater.client.offsets import EARLIEST, list_offsets_many
from lowwater.client.ranges import OffsetRange, RangeReading
from lowwater.client.releasing import Lost
from lowwater.spark.ordering.extents import Extent, end_ms, ended, start_ms, started
from lowwater.spark.ordering.keys import END
from lowwater.spark.ordering.partitions import Partitions, client_columns
from lowwater.spark.ordering.sorting import ROWS_MAX, Sorting
from lowwater.spark.splitting import Slice
from lowwater.types import TopicPartition

LOG = logging.getLogger("lowwater.spark")
HELD_BYTES_MAX = 128 * 1024 * 1024
"""So much of a slice is held in memory to be ordered; beyond that it goes to files."""
_PIECE_BYTES_MIN = 64 * 1024
_BYTES_PER_OFFSET = 160  # a guess: what is fetched beyond the end of a slice is fetched in vain
_LOOK_ROWS = 2 * ROWS_MAX


class Client(Protocol):
    """Connections, and how flows run on them."""

    @property
    def cluster(self) -> Cluster: ...
    @property
    def run(self) -> Callable[..., Any]: ...


class SliceReading:
    """One slice of some ranges. Its rows come in order; `late_rows` of them came later than their times."""

    def __init__(
        self,
        client: Client,
        ranges: Iterable[OffsetRange],
        part: Slice,
        columns: Sequence[str],
        *,
        on_lost: Callable[[Lost], None],
        patience_ms: float | None = None,
        held_bytes_max: int = HELD_BYTES_MAX,
    ) -> None:
        self._client = client
        self._ranges = {each.partition: each for each in ranges if each.start < each.end}
        self._slice = part
        self._columns = client_columns(columns)
        self._on_lost = on_lost
        self._patience_ms = patience_ms
        self._partitions = Partitions(self._ranges, part)
        self._sorting = Sorting(self._partitions, columns, held_bytes_max=held_bytes_max)
        self._extents: dict[TopicPartition, Extent] = {}
        self.read_rows = 0

    @property
    def late_rows(self) -> int:
        return self._partitions.late_rows

    @property
    def spilled(self) -> int:
        return self._sorting.spilled

    def batches(self) -> Iterator[Any]:
        """All rows of the slice."""
        try:
            self._extents = self._client.run(extents(self._client.cluster, self._ranges, self._slice))
            yield from self._read({one: OffsetRange(one, each.start, each.end) for one, each in self._extents.items()})
            yield from self._read(self._unsure())
            yield from self._sorting.rest()
        finally:
            self._sorting.close()
        if self.late_rows:
            LOG.info("%d rows came later than their times: see maxOutOfOrder", self.late_rows)

    def _unsure(self) -> dict[TopicPartition, OffsetRange]:
        """A marker, or a row that nobody sees, may have been taken for the first behind the slice: they go on."""
        self._extents = {
            one: Extent(each.end, each.limit, each.limit)
            for one, each in self._extents.items()
            if each.end < each.limit and not self._partitions.is_past(one)
        }
        return {one: OffsetRange(one, each.start, each.end) for one, each in self._extents.items()}

    def _read(self, ranges: dict[TopicPartition, OffsetRange]) -> Iterator[Any]:
        if not ranges:
            return
        whole = [each._replace(topic_id=self._ranges[one].topic_id) for one, each in ranges.items()]
        reading = RangeReading(
            self._client.cluster,
            whole,
            on_lost=self._on_lost,
            columns=self._columns,
            order="partition",
            partition_bytes=_piece_bytes(whole),
        )
        try:
            looked_at = self.read_rows
            while (batch := self._client.run(reading.next(), self._patience_ms)) is not None:
                self.read_rows += batch.num_rows
                self._sorting.add(batch)
                if self.read_rows - looked_at >= _LOOK_ROWS:
                    looked_at = self.read_rows
                    yield from self._due(reading)
        finally:
            with contextlib.suppress(ClientError):
                self._client.run(reading.close())

    def _due(self, reading: RangeReading) -> Iterator[Any]:
        """What may go by now, if it is worth a batch."""
        unread = reading.unread()
        for one in [one for one in unread if self._partitions.is_past(one)]:
            reading.drop(one)
        mark = self._mark(unread)
        if self._sorting.due_rows(mark) >= ROWS_MAX:
            yield from self._sorting.due(mark)

    def _mark(self, unread: Iterable[TopicPartition]) -> int:
        """No row that is to come has a place before it."""
        waiting = {*unread, *(one for one, each in self._extents.items() if each.end < each.limit)}
        return min(self._partitions.places_of(waiting), default=END)


def _piece_bytes(ranges: Iterable[OffsetRange]) -> int:
    largest = max(each.end - each.start for each in ranges)
    return max(largest * _BYTES_PER_OFFSET, _PIECE_BYTES_MIN)


async def extents(
    cluster: Cluster, ranges: dict[TopicPartition, OffsetRange], part: Slice
) -> dict[TopicPartition, Extent]:
    """Where a slice lies in the ranges; without those it has nothing of.

    By what was found when the batch was planned; otherwise by three requests per broker at most.
    """
    _look_up_new_partitions(cluster, ranges)
    if part.extents is not None:
        known = zip(ranges.values(), part.extents, strict=True)
        return {each.partition: Extent(*found, each.end) for each, found in known if found[0] < each.end}
    starting, ending = _asked(ranges, start_ms(part)), _asked(ranges, end_ms(part))
    log_starts = dict.fromkeys(starting, EARLIEST)
    starts, ends, firsts = await list_offsets_many(cluster, [starting, ending, log_starts])
    found = {
        one: Extent(started(each, starts[one], firsts[one].offset) if one in starts else each.start, each.end, each.end)
        for one, each in ranges.items()
    }
    return {one: ended(each, ends.get(one)) for one, each in found.items() if each.start < each.limit}


def _asked(ranges: Iterable[TopicPartition], time: int | None) -> dict[TopicPartition, int]:
    return {} if time is None else dict.fromkeys(ranges, time)


def _look_up_new_partitions(cluster: Cluster, ranges: Iterable[TopicPartition]) -> None:
    """Workers live long: what they know of a topic may be older than a partition of it."""
    for one in ranges:
        topic = cluster.known(one.topic)
        if topic is not None and one.partition not in topic.partitions:
            cluster.outdate([one.topic])
