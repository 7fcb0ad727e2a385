"""Reading a partition of an internal topic into a shard, a little per turn, so that other requests are served."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Protocol, TypeAlias

from lowwater.broker.partition import Partition
from lowwater.errors import ApiError, StorageError, WireError
from lowwater.log.batches import headers
from lowwater.log.partition_log import PartitionLog
from lowwater.log.slices import Slice
from lowwater.outcome import StateRecord
from lowwater.pending import Pending
from lowwater.types import Buffer
from lowwater.wire.control import read_end_marker
from lowwater.wire.plain_batch import read_pairs
from lowwater.wire.records import BatchHeader

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

logger = logging.getLogger(__name__)

SLICE_BYTES = 1 << 20
RECORDS_PER_TURN = 1000


Producer: TypeAlias = tuple[int, int]


class Replaying(Protocol):
    """Who takes what is read."""

    def replay(self, record: StateRecord, producer: Producer | None) -> None:
        """`producer` (id, epoch) when the record is part of its transaction."""

    def replay_end(self, producer: Producer, commit: bool) -> None:
        """That producer's transaction ends here."""


class ShardLoading:
    """Replays every record up to the log end of the beginning; nothing is written meanwhile."""

    def __init__(
        self,
        broker: Broker,
        partition: Partition,
        into: Replaying,
        done: Callable[[StorageError | None], None],
    ) -> None:
        self._broker = broker
        self._log = partition.log
        self._into = into
        self._done = done
        self._next_offset = 0
        self._end = 0
        self._cancelled = False
        self.records = 0

    def start(self) -> None:
        self._end = self._log.log_end
        self._next_offset = self._log.log_start
        self._broker.scheduler.call_soon(self._next_slice)

    def cancel(self) -> None:
        self._cancelled = True

    def _finish(self, error: StorageError | None) -> None:
        if not self._cancelled:
            self._cancelled = True
            self._done(error)

    def _make_durable(self) -> None:
        """Whoever is answered from what was read must be able to rely on it. After a start all of it is on disk."""
        if self._log.flushed_end >= self._end or not self._broker.waits_for_flush(-1):
            self._finish(None)
            return
        self._broker.commits.flushed([(self._log, self._end)]).on_done(self._flushed)

    def _flushed(self, done: Pending[dict[PartitionLog, BaseException]]) -> None:
        error = done.result().get(self._log)
        self._finish(None if error is None else StorageError(str(error)))

    def _next_slice(self) -> None:
        if self._cancelled:
            return
        try:
            found = self._log.read(self._next_offset, SLICE_BYTES, upto=self._end, min_one=True)
        except ApiError as error:
            self._finish(StorageError(str(error)))
            return
        except StorageError as error:
            self._finish(error)
            return
        if found.cached:
            self._take(found)
        else:
            self._broker.submit(found.warm, lambda _, error: self._warmed(found, error))

    def _warmed(self, found: Slice, error: BaseException | None) -> None:
        if error is not None:
            self._finish(error if isinstance(error, StorageError) else StorageError(str(error)))
        else:
            self._take(found)

    def _take(self, found: Slice) -> None:
        if not found.size:
            self._make_durable()
            return
        self._replay_some(self._records(found.buffers))

    def _records(self, buffers: list[Buffer]) -> Iterator[tuple[StateRecord, Producer | None]]:
        for buffer in buffers:
            view = memoryview(buffer)
            for position, header in headers(view, 0, len(view)):
                self._next_offset = header.next_offset
                batch = view[position : position + header.size]
                producer = (header.producer_id, header.producer_epoch) if header.is_transactional else None
                if header.is_control:
                    # All records before it have been taken: nothing is read ahead.
                    self._replay_control(batch, header)
                    continue
                for key, value in read_pairs(batch, header):
                    yield StateRecord(key, value), producer

    def _replay_control(self, batch: memoryview, header: BatchHeader) -> None:
        marker = read_end_marker(batch, header)
        if marker is not None:
            self._into.replay_end((header.producer_id, header.producer_epoch), marker.commit)

    def _replay(self, record: StateRecord, producer: Producer | None) -> None:
        """What nobody can read was not written by this broker; the others must not suffer for it."""
        try:
            self._into.replay(record, producer)
        except WireError as error:
            logger.warning("a record of %s is skipped, it cannot be read: %r", self._log.topic_partition, error)

    def _replay_some(self, records: Iterator[tuple[StateRecord, Producer | None]]) -> None:
        """A turn's worth, then the others' turn."""
        if self._cancelled:
            return
        before = self.records
        try:
            for record, producer in islice(records, RECORDS_PER_TURN):
                self.records += 1
                self._replay(record, producer)
        except Exception as error:  # whatever a record does: it must not leave the shard loading for ever
            self._finish(StorageError(f"{self._log.topic_partition} cannot be read: {error}"))
            return
        if self.records - before == RECORDS_PER_TURN:
            self._broker.scheduler.call_soon(lambda: self._replay_some(records))
        elif self._next_offset >= self._end:
            self._make_durable()
        else:
            self._broker.scheduler.call_soon(self._next_slice)
