"""A disk in memory that can lose power, or its process, after any operation.

Every change is journaled. `crash_states(at)` lists what a power cut after that many operations may leave:
each write, truncation, create, rename and unlink that no sync covered is lost or kept on its own, and the last
write may be torn at a sector. `SimDisk.after(state)` is the disk the next start finds. A killed process loses
nothing that was written, and keeps the boot id.
"""

from __future__ import annotations

import errno
import os
import random
import weakref
from collections.abc import Iterator
from dataclasses import dataclass

from lowwater.ports import File
from lowwater.testing.disk_image import (
    ROOT,
    Entry,
    FailedSync,
    Image,
    Names,
    Operation,
    Sync,
    SyncDirectory,
    Truncate,
    Write,
    pending_operations,
)
from lowwater.types import Buffer

SUBSETS = 64
CLOCK_START_MS = 1_700_000_000_000


class MappedRangeTruncatedError(AssertionError):
    """On a real system the reader of that map would die of SIGBUS."""


@dataclass(frozen=True, slots=True)
class CrashState:
    """What survives: the first `at` operations without `lost`, one write reduced to some of its sectors."""

    at: int
    lost: frozenset[int] = frozenset()
    torn: tuple[int, tuple[int, int]] | None = None
    power_cut: bool = True


class SimClock:
    """A clock that moves only when told to."""

    def __init__(self, now_ms: int = CLOCK_START_MS) -> None:
        self.wall_ms = now_ms
        self.elapsed_ms = 0.0

    def now_ms(self) -> int:
        return self.wall_ms

    def monotonic_ms(self) -> float:
        return self.elapsed_ms

    def advance(self, by_ms: int) -> None:
        self.wall_ms += by_ms
        self.elapsed_ms += by_ms


class SimIds:
    """Ids from a seed, and the boot id of the simulated machine."""

    def __init__(self, disk: SimDisk, seed: int = 0) -> None:
        self._random = random.Random(seed)
        self._disk = disk

    def uuid(self) -> bytes:
        return self._random.randbytes(15) + b"\x01"

    def boot_id(self) -> str:
        return self._disk.boot_id


class _Mapping(bytearray):
    """Bytes behind one map; alive as long as any view of it is."""

    __slots__ = ("__weakref__",)


class SimLock:
    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        self._held.discard(self._path)


class SimFile:
    def __init__(self, disk: SimDisk, inode: int) -> None:
        self._disk = disk
        self.inode = inode
        self.is_open = True

    def pread(self, size: int, position: int) -> bytes:
        return bytes(self._content()[position : position + size])

    def pwrite(self, data: Buffer, position: int) -> int:
        self._content()
        return self._disk.write(self.inode, bytes(data), position)

    def map(self, size: int) -> memoryview:
        assert 0 < size <= len(self._content()), "a map lies within its file"
        return self._disk.map(self.inode, size)

    def is_cached(self, position: int, size: int) -> bool:
        return self._disk.cached

    def size(self) -> int:
        return len(self._content())

    def truncate(self, size: int) -> None:
        self._content()
        self._disk.truncate(self.inode, size)

    def allocate(self, position: int, size: int) -> None:
        self._content()

    def sync(self) -> None:
        self._content()
        self._disk.perform(Sync(self.inode))

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._disk.open_files -= 1

    def _content(self) -> bytearray:
        if not self.is_open:
            raise _error(errno.EBADF, f"inode {self.inode}")
        return self._disk.image.files[self.inode]


class SimDisk:
    """The `Disk` of the simulation. Paths start at its own root; relative and absolute ones are the same."""

    def __init__(self, image: Image | None = None, *, boot: int = 1, clock: SimClock | None = None) -> None:
        self.image = image or Image()
        self.clock = clock or SimClock()
        self.boot = boot
        self.journal: list[Operation] = []
        self.open_files = 0
        self.cached = True
        self.can_sync_all = False
        self.free = 1 << 40
        self._start = self.image.copy()
        self._base = (0, self.image.copy())
        self._modified: dict[int, int] = {}
        self._mappings: dict[int, list[weakref.ref[_Mapping]]] = {}
        self._locked: set[str] = set()

    @property
    def boot_id(self) -> str:
        return f"boot-{self.boot}"

    @property
    def operations(self) -> int:
        return len(self.journal)

    # -- crashes

    def crash_states(self, at: int | None = None, *, subsets: int = SUBSETS, torn: bool = True) -> Iterator[CrashState]:
        """The states a power cut may leave once `at` operations (default: all) were issued; no state twice."""
        at = self.operations if at is None else at
        pending = pending_operations(self.journal[:at])
        self._move_base(min(pending, default=at))
        tears = self._tears(at, pending) if torn else []
        for lost in _subsets(pending, subsets, seed=at):
            yield CrashState(at, lost)
            for tear in tears:
                if tear[0] not in lost:
                    yield CrashState(at, lost, tear)

    def telling_states(self, at: int | None = None) -> Iterator[CrashState]:
        """The few that tell most: all lost, all kept, only the newest operation kept, only it lost, one write torn."""
        at = self.operations if at is None else at
        pending = pending_operations(self.journal[:at])
        self._move_base(min(pending, default=at))
        everything, newest = frozenset(pending), frozenset(pending[-1:])
        for lost in dict.fromkeys((everything, frozenset[int](), everything - newest, newest)):
            yield CrashState(at, lost)
        for tear in self._tears(at, pending):
            yield CrashState(at, torn=tear)

    def kill_states(self, at: int | None = None) -> Iterator[CrashState]:
        """What the death of the process alone may leave: everything written, the newest write perhaps in part."""
        at = self.operations if at is None else at
        yield CrashState(at, power_cut=False)
        for tear in self._tears(at, [at - 1] if at else []):
            if tear[1][0] == 0:
                yield CrashState(at, torn=tear, power_cut=False)

    def _tears(self, at: int, pending: list[int]) -> list[tuple[int, tuple[int, int]]]:
        """How the last pending write may be cut: to its first sector, its first or last half, all but one sector."""
        last = max((index for index in pending if isinstance(self.journal[index], Write)), default=None)
        if last is None:
            return []
        write = self.journal[last]
        assert isinstance(write, Write)
        count = write.sectors()
        heads = sorted({1, count // 2, count - 1} - {0, count})
        tails = [(count - count // 2, count)] if count > 1 else []
        return [(last, kept) for kept in [*((0, end) for end in heads), *tails]]

    def after(self, state: CrashState) -> SimDisk:
        """The disk as the next process finds it: nothing is open, locked or pending."""
        torn_at = state.torn[0] if state.torn else state.at
        base_at, base = self._base if self._base[0] <= min(*state.lost, torn_at, state.at) else (0, self._start)
        image = base.copy()
        self._know_all_inodes(image)
        for index, operation in enumerate(self.journal[base_at : state.at], base_at):
            if index in state.lost:
                continue
            if state.torn and index == torn_at:
                assert isinstance(operation, Write)
                operation = operation.torn(state.torn[1])
            image.apply(operation)
        return SimDisk(image, boot=self.boot + state.power_cut, clock=SimClock(self.clock.wall_ms))

    def _know_all_inodes(self, image: Image) -> None:
        """Files and directories exist, empty, before the operations that fill them are replayed."""
        for inode in self.image.files.keys() - image.files.keys():
            image.files[inode] = bytearray()
        for inode in self.image.directories.keys() - image.directories.keys():
            image.directories[inode] = {}
        image.next_inode = self.image.next_inode

    def _move_base(self, at: int) -> None:
        """Remember the image after `at` operations, none of them in doubt: later crash states begin there."""
        base_at, image = self._base
        if at <= base_at:
            return
        self._know_all_inodes(image)
        for operation in self.journal[base_at:at]:
            image.apply(operation)
        self._base = (at, image)

    # -- changes, each journaled once

    def perform(self, operation: Operation) -> None:
        self.journal.append(operation)
        self.image.apply(operation)

    def write(self, inode: int, data: bytes, position: int) -> int:
        self.perform(Write(inode, position, data))
        self._modified[inode] = self.clock.wall_ms
        for mapping in self._live_mappings(inode):
            end = min(len(mapping), position + len(data))
            if position < end:
                mapping[position:end] = data[: end - position]
        return len(data)

    def truncate(self, inode: int, size: int) -> None:
        if any(len(mapping) > size for mapping in self._live_mappings(inode)):
            raise MappedRangeTruncatedError(f"inode {inode} is mapped beyond {size}")
        self.perform(Truncate(inode, size))
        self._modified[inode] = self.clock.wall_ms

    def fail_sync(self, file: File) -> None:
        """Note a failed sync: what it should have covered may be lost even if a later sync succeeds."""
        assert isinstance(file, SimFile)
        self.perform(FailedSync(file.inode))

    def fail_sync_all(self) -> None:
        for inode in list(self.image.files):
            self.perform(FailedSync(inode))

    def map(self, inode: int, size: int) -> memoryview:
        mapping = _Mapping(self.image.files[inode][:size])
        self._mappings.setdefault(inode, []).append(weakref.ref(mapping))
        return memoryview(mapping).toreadonly()

    def _live_mappings(self, inode: int) -> list[_Mapping]:
        alive = [mapping for reference in self._mappings.get(inode, ()) if (mapping := reference()) is not None]
        self._mappings[inode] = [weakref.ref(mapping) for mapping in alive]
        return alive

    # -- the Disk port

    def open(self, path: str, *, create: bool = False) -> SimFile:
        directory, name = self._parent(path)
        inode = self.image.directories[directory].get(name)
        if inode is None:
            if not create:
                raise _error(errno.ENOENT, path)
            inode = self.image.new_file()
            self.perform(Names((Entry(directory, name, inode),)))
            self._modified[inode] = self.clock.wall_ms
        if inode not in self.image.files:
            raise _error(errno.EISDIR, path)
        self.open_files += 1
        return SimFile(self, inode)

    def read(self, path: str) -> bytes:
        return bytes(self.image.files[self._file(path)])

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def listdir(self, path: str) -> list[str]:
        return sorted(self.image.directories[self._directory(path)])

    def mkdir(self, path: str) -> None:
        if self.exists(path):
            return
        directory, name = self._parent(path)
        self.perform(Names((Entry(directory, name, self.image.new_directory()),)))

    def rename(self, old: str, new: str) -> None:
        inode = self._find(old)
        if inode is None:
            raise _error(errno.ENOENT, old)
        target = self._find(new)
        if target is not None and self.image.directories.get(target):
            raise _error(errno.ENOTEMPTY, new)
        (from_directory, from_name), (to_directory, to_name) = self._parent(old), self._parent(new)
        self.perform(Names((Entry(from_directory, from_name, None), Entry(to_directory, to_name, inode))))

    def unlink(self, path: str) -> None:
        self._file(path)
        self.perform(Names((Entry(*self._parent(path), None),)))

    def rmdir(self, path: str) -> None:
        if self.image.directories[self._directory(path)]:
            raise _error(errno.ENOTEMPTY, path)
        self.perform(Names((Entry(*self._parent(path), None),)))

    def modified_ms(self, path: str) -> int:
        return self._modified.get(self._file(path), CLOCK_START_MS)

    def sync_dir(self, path: str) -> None:
        self.perform(SyncDirectory(self._directory(path)))

    def sync_files(self, files: list[File]) -> None:
        for file in files:
            file.sync()

    def sync_all(self, path: str) -> bool:
        if not self.can_sync_all:
            return False
        for inode in list(self.image.files):
            self.perform(Sync(inode))
        for inode in list(self.image.directories):
            self.perform(SyncDirectory(inode))
        return True

    def free_bytes(self, path: str) -> int:
        return self.free

    def total_bytes(self, path: str) -> int:
        return 1 << 40

    def lock(self, path: str) -> SimLock:
        if path in self._locked:
            raise _error(errno.EAGAIN, path)
        self.open(path, create=True).close()
        self._locked.add(path)
        return SimLock(self._locked, path)

    def drop_process(self) -> None:
        """The process that used this disk is dead: its locks and files are free, the page cache stays."""
        self._locked.clear()
        self.open_files = 0

    # -- paths

    def _find(self, path: str) -> int | None:
        inode: int | None = ROOT
        for name in filter(None, path.split("/")):
            inode = self.image.directories.get(inode, {}).get(name) if inode is not None else None
        return inode

    def _parent(self, path: str) -> tuple[int, str]:
        head, _, name = path.rstrip("/").rpartition("/")
        return self._directory(head), name

    def _directory(self, path: str) -> int:
        inode = self._find(path)
        if inode is None:
            raise _error(errno.ENOENT, path)
        if inode not in self.image.directories:
            raise _error(errno.ENOTDIR, path)
        return inode

    def _file(self, path: str) -> int:
        inode = self._find(path)
        if inode is None:
            raise _error(errno.ENOENT, path)
        if inode not in self.image.files:
            raise _error(errno.EISDIR, path)
        return inode


def _subsets(pending: list[int], count: int, *, seed: int) -> Iterator[frozenset[int]]:
    """Which pending operations are lost: all, none, all but one, only one, then `count` seeded subsets."""
    everything = frozenset(pending)
    singles = [frozenset({index}) for index in pending]
    draw = random.Random(seed)
    seeded = (frozenset(index for index in pending if draw.random() < 0.5) for _ in range(count))
    seen: set[frozenset[int]] = set()
    for lost in (everything, frozenset[int](), *(everything - one for one in singles), *singles, *seeded):
        if lost not in seen:
            seen.add(lost)
            yield lost


def _error(code: int, path: str) -> OSError:
    return OSError(code, os.strerror(code), path)
