"""An append-only file of framed records: [u32 length][u32 crc32c][payload].

A torn tail is cut when the journal is opened. Good frames beyond a damaged one are not dropped in silence: the file is
kept aside, `damage` says so, and `beyond` holds them for owners to whom a gap does not matter.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterable, Iterator

from crc32c import crc32c

from lowwater.errors import StorageError
from lowwater.log.atomic_file import is_disk_full, replace_file
from lowwater.ports import Disk, File

logger = logging.getLogger(__name__)

_FRAME = struct.Struct(">II")
FRAME_SIZE = _FRAME.size


class Journal:
    """`append` writes, `sync` makes it durable. One writer; `sync` alone may run in another thread."""

    __slots__ = ("_disk", "_file", "_names_durable", "beyond", "damage", "failure", "path", "size")

    def __init__(self, disk: Disk, path: str, file: File, size: int) -> None:
        self._disk = disk
        self._file = file
        self._names_durable = False
        self.path = path
        self.size = size
        self.failure: str | None = None
        self.damage: str | None = None
        self.beyond: list[bytes] = []

    @classmethod
    def open(cls, disk: Disk, path: str) -> tuple[Journal, list[bytes]]:
        """The journal, created if missing, and the payloads in it."""
        existed = disk.exists(path)
        content = disk.read(path) if existed else b""
        records, end = _read_frames(content, 0)
        beyond = [record for _, record in _frames_beyond(content, end)]
        aside = _keep_aside(disk, path, content) if beyond else ""
        file = disk.open(path, create=True)
        journal = cls(disk, path, file, end)
        if end < len(content):
            logger.warning("%s ends in %d bytes that are no whole record; they are dropped", path, len(content) - end)
            file.truncate(end)
            file.sync()
        if beyond:
            journal.damage = f"{path} is damaged at byte {end}; {len(beyond)} good records follow. Copy kept: {aside}"
            journal.beyond = beyond
            logger.error(journal.damage)
        return journal, records

    def append(self, payloads: Iterable[bytes]) -> None:
        """Write the records in one piece; nothing of them stays when that fails."""
        if self.failure is not None:
            raise StorageError(self.failure)
        data = _frames(payloads)
        try:
            written = self._file.pwrite(data, self.size)
        except OSError as error:
            self._undo()
            raise StorageError(f"{self.path} cannot be written: {error}", retriable=is_disk_full(error)) from error
        if written != len(data):
            self._undo()
            raise StorageError(f"{self.path} cannot be written: no space left", retriable=True)
        self.size += len(data)

    def sync(self) -> None:
        """Return when everything appended so far is durable. A failure is final: what is on disk is unknown."""
        if self.failure is not None:
            raise StorageError(self.failure)
        try:
            self._file.sync()
            if not self._names_durable:
                self._disk.sync_dir(self.path.rpartition("/")[0])
                self._names_durable = True
        except OSError as error:
            self.failure = f"{self.path} could not be made durable: {error}"
            raise StorageError(self.failure) from error

    def rewrite(self, payloads: Iterable[bytes]) -> None:
        """Replace the content, atomically and durably."""
        data = _frames(payloads)
        replace_file(self._disk, self.path, data)
        self._file.close()
        self._file = self._disk.open(self.path)
        self._names_durable = True
        self.size = len(data)

    def rewrite_if_room(self, payloads: Iterable[bytes]) -> bool:
        """The same at a start, when what was read may be in memory only. A full disk must not prevent the start."""
        try:
            self.rewrite(payloads)
        except (OSError, StorageError) as error:
            if not (error.retriable if isinstance(error, StorageError) else is_disk_full(error)):
                raise
            logger.warning("%s stays as it is, there is no room to write it anew: %s", self.path, error)
            return False
        return True

    def close(self) -> None:
        self._file.close()

    def _undo(self) -> None:
        try:
            self._file.truncate(self.size)
        except OSError as error:
            # Harmless: the next append overwrites it, and a torn frame is cut at the next start.
            logger.warning("%s could not be cut back to %d bytes: %s", self.path, self.size, error)


def _frames(payloads: Iterable[bytes]) -> bytes:
    return b"".join(_FRAME.pack(len(one), crc32c(one)) + one for one in payloads)


def _read_frames(content: bytes, position: int) -> tuple[list[bytes], int]:
    """The good frames from `position` on, and where the first bad one begins."""
    records = []
    while (record := _frame_at(content, position)) is not None:
        records.append(record)
        position += FRAME_SIZE + len(record)
    return records, position


def _frame_at(content: bytes, position: int) -> bytes | None:
    if len(content) - position < FRAME_SIZE:
        return None
    length, crc = _FRAME.unpack_from(content, position)
    if not 0 < length <= len(content) - position - FRAME_SIZE:
        return None
    payload = content[position + FRAME_SIZE : position + FRAME_SIZE + length]
    return payload if crc32c(payload) == crc else None


def _frames_beyond(content: bytes, position: int) -> Iterator[tuple[int, bytes]]:
    """Good frames after the first bad one, wherever they begin."""
    position += 1
    while position < len(content):
        record = _frame_at(content, position)
        if record is None:
            position += 1
            continue
        yield position, record
        position += FRAME_SIZE + len(record)


def _keep_aside(disk: Disk, path: str, content: bytes) -> str:
    number = 1
    while disk.exists(aside := f"{path}.damaged-{number}"):
        number += 1
    replace_file(disk, aside, content)
    return aside
