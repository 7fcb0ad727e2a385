"""Rows of one call on their way: who they belong to, and which of them are in which batch."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lowwater.client.errors import ClientError
from lowwater.client.producing.identity import NOBODY, Identity
from lowwater.client.producing.reports import Failure, Report
from lowwater.types import TopicPartition
from lowwater.wire import compression
from lowwater.wire.records import HEADER_SIZE, BatchHeader, fill_header

_UNBOUNDED = 1 << 31
_WORTH_A_THREAD_BYTES = 512 * 1024


class Call:
    """A record batch that was handed in for one topic. `numbers` says which rows of the call its rows are."""

    __slots__ = (
        "deadline_ms",
        "left",
        "number",
        "numbers",
        "on_end",
        "on_failure",
        "report",
        "rows",
        "size",
        "source",
        "topic",
    )

    def __init__(
        self, topic: str, source: Any, rows: Any, numbers: Any, size: int, report: Report, deadline_ms: float
    ) -> None:
        self.topic = topic
        self.source = source
        self.rows = rows
        self.numbers = numbers
        self.size = size
        self.report = report
        self.deadline_ms = deadline_ms
        self.number = 0
        self.left: int = rows.count
        self.on_end: Callable[[Call], None] | None = None
        self.on_failure: Callable[[ClientError], None] | None = None

    @property
    def everything(self) -> Any:
        """All its rows. Numbers ascend, so that their order is that of the rows."""
        return self.numbers.argsort()

    def written(self, partition: TopicPartition, chosen: Any, base_offset: int) -> None:
        self.report.written(partition, self.numbers[chosen], base_offset)
        self._count(len(chosen))

    def failed(self, partition: int | None, chosen: Any, error: ClientError) -> None:
        if not len(chosen):
            return
        # First: a transaction must know that it is broken before somebody learns that its rows are settled.
        if self.on_failure is not None:
            self.on_failure(error)
        self.report.refused(Failure(self.topic, partition, self.numbers[chosen], error, self.source, chosen))
        self._count(len(chosen))

    def _count(self, rows: int) -> None:
        self.left -= rows
        if not self.left and self.on_end is not None:
            self.on_end(self)


class Batch:
    """Rows of a call for one partition, as records behind the room for a header."""

    __slots__ = ("_base_timestamp", "_is_packed", "_newest", "call", "chosen", "data", "identity", "sequence", "tries")

    def __init__(self, call: Call, chosen: Any, data: bytearray | memoryview, base_timestamp: int, newest: int) -> None:
        self.call = call
        self.chosen = chosen
        self.data = data
        self.identity = NOBODY
        self.sequence = -1
        self.tries = 0
        self._base_timestamp = base_timestamp
        self._newest = newest
        self._is_packed = False

    @property
    def order(self) -> tuple[int, int]:
        """Of its partition's batches, smaller is to be written first."""
        return self.call.number, int(self.chosen[0])

    def pack(self, codec: int, level: int | None) -> None:
        """Compress, once."""
        if codec and not self._is_packed:
            packed = bytearray(HEADER_SIZE)
            packed += compression.compress(codec, memoryview(self.data)[HEADER_SIZE:].toreadonly(), level)
            self.data = packed
        self._is_packed = True

    def stamp(self, identity: Identity, sequence: int, attributes: int) -> None:
        """Write the header. The sequence stays through every retry, unless the broker does not know the identity."""
        self.identity, self.sequence = identity, sequence
        count = len(self.chosen)
        header = BatchHeader(
            base_offset=0,
            batch_length=0,
            leader_epoch=-1,
            magic=2,
            crc=0,
            attributes=attributes,
            last_offset_delta=count - 1,
            base_timestamp=self._base_timestamp,
            max_timestamp=self._newest,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            base_sequence=sequence,
            record_count=count,
        )
        fill_header(self.data, header)

    def halves(self) -> tuple[Batch, Batch]:
        """The same rows in two batches, not yet packed nor stamped."""
        half = len(self.chosen) // 2
        return self._part(self.chosen[:half]), self._part(self.chosen[half:])

    def _part(self, chosen: Any) -> Batch:
        encoded = self.call.rows.encode(chosen, bytes_max=_UNBOUNDED)
        header = BatchHeader.parse(encoded.data)
        part = Batch(self.call, chosen, encoded.data, header.base_timestamp, header.max_timestamp)
        part.tries = self.tries
        return part


def pack_all(batches: Sequence[Batch], codec: int, level: int | None) -> None:
    """Compress them, by two threads where there is enough to do: codecs let other threads run meanwhile."""
    if len(batches) > 1 and sum(len(batch.data) for batch in batches) >= _WORTH_A_THREAD_BYTES:
        other = threading.Thread(target=_pack, args=(batches[1::2], codec, level), name="lowwater-packing")
        with contextlib.suppress(RuntimeError):  # there is none to be had: then one does it all
            other.start()
        if other.ident is not None:
            try:
                _pack(batches[::2], codec, level)
            finally:
                other.join()
    _pack(batches, codec, level)


def _pack(batches: Iterable[Batch], codec: int, level: int | None) -> None:
    for batch in batches:
        batch.pack(codec, level)
