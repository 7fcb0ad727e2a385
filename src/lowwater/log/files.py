"""A bounded set of open files: many thousands of logs share some thousand handles and maps."""

from __future__ import annotations

import errno
from operator import attrgetter

from lowwater.ports import Disk, File

FILES_MAX = 4096
LIMIT_MIN = 8
# Pages that were read through a map count as memory of this process, until the map goes. They stay in the page cache.
SHOWN_BYTES_MAX = 64 * 1024 * 1024


class OpenFile:
    """A file that may be closed behind its user's back, unless pinned, and is opened again on use."""

    __slots__ = ("_cache", "_file", "_is_doomed", "path", "pins", "used_at", "view")

    def __init__(self, cache: FileCache, path: str, file: File) -> None:
        self._cache = cache
        self._file: File | None = file
        self.path = path
        self.pins = 0
        self._is_doomed = False
        self.used_at = cache.opened
        self.view: memoryview | None = None

    def file(self) -> File:
        """The open file, for use within this turn; pin it to keep it longer."""
        self.used_at = self._cache.opened
        if self._file is None:
            self._file = self._cache.reopen(self)
        return self._file

    def mapped(self, size: int, reads: int | None = None) -> memoryview:
        """A read-only view of at least [0, size), of which about `reads` bytes (default: all) will be looked at.

        The caller says that the file never shrinks below `size`.
        """
        self.used_at = self._cache.opened
        self._cache.note_shown(size if reads is None else reads)
        if self.view is None or len(self.view) < size:
            self.view = self.file().map(size)
            self._cache.note_map(self)
        return self.view

    @property
    def is_open(self) -> bool:
        return self._file is not None

    def pin(self) -> File:
        """Keep the file open until `unpin`; for work in other threads."""
        self.pins += 1
        return self.file()

    def unpin(self) -> None:
        self.pins -= 1
        if self._is_doomed:
            self.doom()

    def doom(self) -> None:
        """Close for good, as soon as nobody needs it."""
        self._is_doomed = True
        if not self.pins:
            self.close()

    def close(self) -> None:
        """Readers of a map keep it alive by themselves."""
        self.view = None
        if self._file is not None:
            self._file.close()
            self._file = None


class FileCache:
    """Closes what was used least lately when more than `limit` files are open."""

    __slots__ = ("_limit", "_maps", "_open", "_shown", "disk", "opened")

    def __init__(self, disk: Disk, limit: int = FILES_MAX) -> None:
        self.disk = disk
        self._limit = max(limit, LIMIT_MIN)
        self._open: set[OpenFile] = set()
        # Counts the files opened so far: the clock by which "lately" is told.
        self.opened = 0
        self._maps: set[OpenFile] = set()
        self._shown = 0

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        entry = OpenFile(self, path, self._open_file(path, create=create))
        self._open.add(entry)
        return entry

    def reopen(self, entry: OpenFile) -> File:
        file = self._open_file(entry.path)
        self._open.add(entry)
        return file

    def _open_file(self, path: str, *, create: bool = False) -> File:
        self._make_room(self._limit)
        try:
            return self.disk.open(path, create=create)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
        # Others took the handles that we counted on: make do with half as many.
        self._limit = max(len(self._open) // 2, LIMIT_MIN)
        self._make_room(self._limit)
        return self.disk.open(path, create=create)

    def note_map(self, entry: OpenFile) -> None:
        self._maps.add(entry)

    def note_shown(self, size: int) -> None:
        """So many bytes will be read through a map: drop the maps once enough was; new ones cost little."""
        self._shown += size
        if self._shown > SHOWN_BYTES_MAX:
            self._shown = size
            self.drop_maps()

    def drop_maps(self) -> None:
        """Readers keep what they hold."""
        for entry in self._maps:
            entry.view = None
        self._maps.clear()

    def forget(self, entry: OpenFile) -> None:
        """Close the file for good, now or when the last pin goes."""
        self._open.discard(entry)
        self._maps.discard(entry)
        entry.doom()

    def close_all(self) -> None:
        for entry in list(self._open):
            self.forget(entry)

    @property
    def open_files(self) -> int:
        return len(self._open)

    def _make_room(self, limit: int) -> None:
        """Close several at once, so that not every open has to look for one."""
        self.opened += 1
        if len(self._open) < limit:
            return
        count = len(self._open) - limit + max(limit // 8, 1)
        unpinned = (entry for entry in self._open if not entry.pins)
        for entry in sorted(unpinned, key=attrgetter("used_at"))[:count]:
            self._open.discard(entry)
            self._maps.discard(entry)
            entry.close()
