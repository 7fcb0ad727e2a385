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
    """Fed with pieces of the log, in order. Without a `sink` it learns of all."""

    def __init__(self, sink: str | None = None) -> None:
        self._only = None if sink is None else sink.encode()
        self._open: dict[int, dict[bytes, bytes | None]] = {}
        self._known: dict[bytes, bytes | None] = {}
        self.next_offset = 0

    @property
    def has_record(self) -> bool:
        return bool(self._known)

    def states(self) -> dict[str, SinkState]:
        """Of every sink that is known."""
        return {key.decode(): from_value(value) for key, value in self._known.items() if value is not None}

    def state(self) -> SinkState:
        """Of the one sink."""
        return next(iter(self.states().values()), SinkState())

    def feed(self, piece: Buffer) -> None:
        """Whole batches; the last may be cut off."""
        view = memoryview(piece)
        position = 0
        while len(view) - position >= HEADER_SIZE:
            header = BatchHeader.parse(view, position)
            batch = view[position : position + header.size]
            if len(batch) < header.size:
                return
            # A fetch begins with the whole batch that its offset lies in.
            if header.next_offset > self.next_offset:
                self._take(batch, header)
                self.next_offset = header.next_offset
            position += header.size

    def _take(self, batch: memoryview, header: BatchHeader) -> None:
        if header.is_control:
            self._end(batch, header)
            return
        found = {record.key: record.value for record in read_records(batch) if record.key is not None}
        if self._only is not None:
            found = {key: value for key, value in found.items() if key == self._only}
        if found and header.is_transactional:
            self._open.setdefault(header.producer_id, {}).update(found)
        else:  # somebody has settled it by hand
            self._known.update(found)

    def _end(self, batch: memoryview, header: BatchHeader) -> None:
        marker = read_end_marker(batch, header)
        if marker is None:
            return
        found = self._open.pop(header.producer_id, {})
        if marker.commit:
            self._known.update(found)

    def check_settled(self, topic: str) -> None:
        """Whoever has taken a sink finds none of its records undecided."""
        if self._open:
            raise LedgerError(f"records of the sink in {topic} belong to a transaction that is still open")
