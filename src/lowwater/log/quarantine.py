"""Batches that no longer fit into their log are kept aside, never deleted in silence."""

from __future__ import annotations

import re

from crc32c import crc32c

from lowwater.ports import Disk, File
from lowwater.wire.records import CRC_START, HEADER_SIZE, MAGIC_POSITION, BatchHeader, is_plausible

DIRECTORY = "quarantine"
CHUNK = 4 * 1024 * 1024
_MAGIC = re.compile(b"\x02")
_EFFORT_MIN = 64 * 1024 * 1024
_EFFORT_FACTOR = 16


def has_batches(view: memoryview, start: int, end: int) -> bool:
    """Whether a whole batch with a right CRC begins anywhere in [start, end)."""
    effort = _EFFORT_MIN + _EFFORT_FACTOR * (end - start)
    for match in _MAGIC.finditer(view, start + MAGIC_POSITION, end):
        position = match.start() - MAGIC_POSITION
        if end - position < HEADER_SIZE:
            return False
        header = BatchHeader.parse(view, position)
        if not is_plausible(header) or header.size > end - position:
            continue
        with view[position + CRC_START : position + header.size] as covered:
            if crc32c(covered) == header.crc:
                return True
        effort -= header.size
        if effort < 0:  # bytes made to look like batches: keep them rather than look on for hours
            return True
    return False


class Quarantine:
    """A folder beside the segments."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = f"{directory}/{DIRECTORY}"

    def keep_tail(self, path: str, position: int) -> str:
        """Copy what `path` holds from `position` on; durable on return."""
        stem = path.rpartition("/")[2].removesuffix(".log")
        target = self._free_name(f"{stem}-from-{position}")
        source = self._disk.open(path)
        copy = self._disk.open(target, create=True)
        try:
            _copy(source, copy, position)
            copy.sync()
        finally:
            source.close()
            copy.close()
        self._disk.sync_dir(self._directory)
        return target

    def keep_file(self, path: str) -> str:
        """Move a whole file; durable on return."""
        stem = path.rpartition("/")[2].removesuffix(".log")
        target = self._free_name(stem)
        self._disk.rename(path, target)
        self._disk.sync_dir(self._directory)
        return target

    def _free_name(self, stem: str) -> str:
        if not self._disk.exists(self._directory):
            self._disk.mkdir(self._directory)
            self._disk.sync_dir(self._directory.rpartition("/")[0])
        number = 1
        while self._disk.exists(path := f"{self._directory}/{stem}.{number}.log"):
            number += 1
        return path


def _copy(source: File, target: File, position: int) -> None:
    place = 0
    while chunk := source.pread(CHUNK, position + place):
        written = target.pwrite(chunk, place)
        if written != len(chunk):
            raise OSError(28, "no space left to keep damaged batches aside")
        place += written
