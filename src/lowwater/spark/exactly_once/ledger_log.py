"""The state of a sink out of the ledger's records.

Markers are looked at here, and not by the broker: what some other sink's driver left open holds back all readers of
committed records, and this sink's own records behind it would not be seen.
"""

from __future__ import annotations

from lowwater.spark.exactly_once.errors import LedgerError
from lowwater.spark.exactly_once.state import SinkState, from_value
from lowwater.types import Buffer
from lowwater.wire.control import read_end_marker
from lowwater.wire.records import HEADER_SIZE, BatchHeader, read_records


class LedgerLog:
    """Fed with pieces of the log, in order."""

    def __init__(self, sink: str) -> None:
        self._key = sink.encode()
        self._open: dict[int, bytes | None] = {}
        self._value: bytes | None = None
        self.has_record = False
        self.next_offset = 0

    def state(self) -> SinkState:
        return SinkState() if self._value is None else from_value(self._value)

    def feed(self, piece: Buffer) -> None:
        """Whole batches; the last may be cut off."""
        view = memoryview(piece)
        position = 0
        while len(view) - position >= HEADER_SIZE:
            header = BatchHeader.parse(view, position)
            batch = view[position : position + header.size]
            if len(batch) < header.size:
                return
            self._take(batch, header)
            self.next_offset = header.next_offset
            position += header.size

    def _take(self, batch: memoryview, header: BatchHeader) -> None:
        if header.next_offset <= self.next_offset:
            return  # a fetch begins with the whole batch that its offset lies in
        if header.is_control:
            self._end(batch, header)
            return
        for record in read_records(batch):
            if record.key != self._key:
                continue
            if header.is_transactional:
                self._open[header.producer_id] = record.value
            else:  # somebody has settled it by hand
                self._know(record.value)

    def _end(self, batch: memoryview, header: BatchHeader) -> None:
        marker = read_end_marker(batch, header)
        if marker is None or header.producer_id not in self._open:
            return
        value = self._open.pop(header.producer_id)
        if marker.commit:
            self._know(value)

    def _know(self, value: bytes | None) -> None:
        self._value, self.has_record = value, True

    def check_settled(self, topic: str) -> None:
        """Whoever has taken a sink finds none of its records undecided."""
        if self._open:
            raise LedgerError(f"records of the sink in {topic} belong to a transaction that is still open")
