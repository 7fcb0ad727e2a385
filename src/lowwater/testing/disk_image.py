"""What a simulated disk holds, and the operations that change it.

An `Image` is a tree of numbered files and directories. It changes only by operations, so any subset of
a journal can be replayed onto an older image: that is what a power cut leaves behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

ROOT = 0
SECTOR_BYTES = 512


@dataclass(frozen=True, slots=True)
class Write:
    inode: int
    position: int
    data: bytes

    def torn(self, kept: tuple[int, int]) -> Write:
        """The part that reached the sectors [first, end) of those it touches."""
        base = self.position - self.position % SECTOR_BYTES
        start = max(self.position, base + kept[0] * SECTOR_BYTES)
        end = base + kept[1] * SECTOR_BYTES
        return Write(self.inode, start, self.data[start - self.position : end - self.position])

    def sectors(self) -> int:
        first = self.position // SECTOR_BYTES
        return (self.position + len(self.data) - 1) // SECTOR_BYTES - first + 1 if self.data else 0


@dataclass(frozen=True, slots=True)
class Truncate:
    inode: int
    size: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A name in a directory and what it stands for; None: nothing."""

    directory: int
    name: str
    inode: int | None


@dataclass(frozen=True, slots=True)
class Names:
    """A create, mkdir, rename, unlink or rmdir: its entries change together or not at all."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Sync:
    inode: int


@dataclass(frozen=True, slots=True)
class FailedSync:
    """The kernel marks the pages clean after a failed fsync, so no later sync makes them durable."""

    inode: int


@dataclass(frozen=True, slots=True)
class SyncDirectory:
    directory: int


Operation: TypeAlias = Write | Truncate | Names | Sync | FailedSync | SyncDirectory


@dataclass(slots=True)
class Image:
    """Files by number, directories as name → number, and which number comes next."""

    files: dict[int, bytearray] = field(default_factory=dict)
    directories: dict[int, dict[str, int]] = field(default_factory=lambda: {ROOT: {}})
    next_inode: int = ROOT + 1

    def copy(self) -> Image:
        files = {inode: bytearray(data) for inode, data in self.files.items()}
        return Image(files, {inode: dict(names) for inode, names in self.directories.items()}, self.next_inode)

    def new_file(self) -> int:
        self.files[self.next_inode] = bytearray()
        return self._take()

    def new_directory(self) -> int:
        self.directories[self.next_inode] = {}
        return self._take()

    def _take(self) -> int:
        self.next_inode += 1
        return self.next_inode - 1

    def apply(self, operation: Operation) -> None:
        match operation:
            case Write(inode, position, data):
                self._write(self.files[inode], position, data)
            case Truncate(inode, size):
                self._resize(self.files[inode], size)
            case Names(entries):
                for entry in entries:
                    self._set(entry)

    @staticmethod
    def _write(content: bytearray, position: int, data: bytes) -> None:
        if position > len(content):
            content.extend(bytes(position - len(content)))
        content[position : position + len(data)] = data

    @staticmethod
    def _resize(content: bytearray, size: int) -> None:
        del content[size:]
        content.extend(bytes(size - len(content)))

    def _set(self, entry: Entry) -> None:
        names = self.directories[entry.directory]
        if entry.inode is None:
            names.pop(entry.name, None)
        else:
            names[entry.name] = entry.inode

    def walk(self, inode: int = ROOT, path: str = "") -> Iterator[tuple[str, bytes | None]]:
        """Every reachable path in order, with its content; None for a directory."""
        for name, child in sorted(self.directories[inode].items()):
            if child in self.files:
                yield f"{path}/{name}", bytes(self.files[child])
            else:
                yield f"{path}/{name}", None
                yield from self.walk(child, f"{path}/{name}")


def pending_operations(journal: list[Operation]) -> list[int]:
    """Indexes of the operations that no sync has made durable: each may be lost or kept in a power cut."""
    data: dict[int, list[int]] = {}
    names: dict[int, set[int]] = {}
    doomed: list[int] = []
    for index, operation in enumerate(journal):
        match operation:
            case Write(inode=inode) | Truncate(inode=inode):
                data.setdefault(inode, []).append(index)
            case Names(entries):
                names[index] = {entry.directory for entry in entries}
            case Sync(inode):
                data.pop(inode, None)
            case FailedSync(inode):
                doomed += data.pop(inode, [])
            case SyncDirectory(directory):
                names = {at: left for at, dirs in names.items() if (left := dirs - {directory})}
    return sorted([*doomed, *names, *(index for indexes in data.values() for index in indexes)])
