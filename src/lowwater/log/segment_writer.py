"""Writing a whole segment at once, durably; for compaction."""

from __future__ import annotations

from lowwater.errors import StorageError
from lowwater.log.aborted import AbortedTransaction, AbortedTransactions
from lowwater.log.sidecar import SegmentFacts, write_sidecar
from lowwater.log.tally import Tally
from lowwater.ports import Disk
from lowwater.types import Buffer
from lowwater.wire.records import CRC_START, BatchHeader

BUFFER_SIZE = 1024 * 1024


class SegmentWriter:
    """Writes `<stem>.log`; `finish` syncs it and adds its companions."""

    def __init__(self, disk: Disk, base_offset: int, stem: str, interval: int) -> None:
        self._disk = disk
        self._stem = stem
        self._interval = interval
        self._tally = Tally(base_offset, 0)
        self._tally.start_over()
        self._file = disk.open(f"{stem}.log", create=True)
        self._file.truncate(0)
        self._buffer = bytearray()
        self._written = 0

    def append(self, batch: Buffer) -> None:
        header = BatchHeader.parse(batch)
        prefix = bytes(memoryview(batch)[:CRC_START])
        self._tally.note(prefix, header.last_offset, header.max_timestamp, header.size, self._interval)
        self._buffer += batch
        if len(self._buffer) >= BUFFER_SIZE:
            self._write()

    def finish(self, modified_ms: int, aborted: list[AbortedTransaction]) -> SegmentFacts | None:
        """Durable on return, names apart; None when no batch came, and then no file stays."""
        self._write()
        if not self._tally.size:
            self._disk.unlink(f"{self._stem}.log")
            return None
        self._file.sync()
        self._tally.modified_ms = modified_ms
        self._tally.has_aborts = bool(aborted)
        facts = self._tally.facts
        write_sidecar(
            self._disk, self._stem, self._tally.base_offset, facts, self._tally.index, is_durable=True, sync=True
        )
        if aborted:
            AbortedTransactions(aborted).write(self._disk, self._stem, facts, sync=True)
        return facts

    def close(self) -> None:
        self._file.close()

    def _write(self) -> None:
        if self._file.pwrite(self._buffer, self._written) != len(self._buffer):
            raise StorageError(f"{self._stem}.log cannot be written: no space left", retriable=True)
        self._written += len(self._buffer)
        self._buffer.clear()
