"""A disk whose Nth operation fails.

`FaultyDisk` stands in front of any `Disk`, simulated or real, counts the operations a fault can hit and breaks the
chosen one. With `lasting` everything from there on fails, until `heal()`: a full disk, a dead drive.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from lowwater.ports import Disk, File, Lock
from lowwater.testing.simdisk import SimDisk
from lowwater.types import Buffer


class FaultKind(Enum):
    """What breaks, and which operations it can hit."""

    EIO = "any write, truncation, name change or sync fails with EIO"
    ENOSPC = "a write, reservation or new name finds the disk full"
    SHORT_WRITE = "a write takes only its first half"
    SYNC = "a sync of a file or directory fails with EIO"
    READ = "a read fails with EIO"


_HITS = {
    FaultKind.EIO: frozenset(
        {"pwrite", "truncate", "create", "mkdir", "rename", "unlink", "rmdir", "sync", "sync_dir"}
    ),
    FaultKind.ENOSPC: frozenset({"pwrite", "allocate", "create", "mkdir", "rename"}),
    FaultKind.SHORT_WRITE: frozenset({"pwrite"}),
    FaultKind.SYNC: frozenset({"sync", "sync_dir"}),
    FaultKind.READ: frozenset({"pread", "read", "map"}),
}
_CODES = {FaultKind.ENOSPC: errno.ENOSPC}


@dataclass(slots=True)
class Fault:
    """The `nth` operation (from 1) of those `kind` can hit fails; `lasting`: and every later one."""

    kind: FaultKind
    nth: int
    lasting: bool = False
    path_contains: str = ""


class FaultyFile:
    def __init__(self, disk: FaultyDisk, inner: File, path: str) -> None:
        self._disk = disk
        self.inner = inner
        self.path = path

    def pread(self, size: int, position: int) -> bytes:
        self._disk.meet("pread", self.path)
        return self.inner.pread(size, position)

    def pwrite(self, data: Buffer, position: int) -> int:
        if self._disk.strikes("pwrite", self.path):
            if self._disk.fault.kind is not FaultKind.SHORT_WRITE:
                raise self._disk.error(self.path)
            half = memoryview(data)[: len(data) // 2]
            return self.inner.pwrite(half, position) if half else 0
        return self.inner.pwrite(data, position)

    def map(self, size: int) -> memoryview:
        self._disk.meet("map", self.path)
        return self.inner.map(size)

    def is_cached(self, position: int, size: int) -> bool:
        return self.inner.is_cached(position, size)

    def size(self) -> int:
        return self.inner.size()

    def truncate(self, size: int) -> None:
        self._disk.meet("truncate", self.path)
        self.inner.truncate(size)

    def allocate(self, position: int, size: int) -> None:
        self._disk.meet("allocate", self.path)
        self.inner.allocate(position, size)

    def sync(self) -> None:
        if self._disk.strikes("sync", self.path):
            if isinstance(self._disk.inner, SimDisk):
                self._disk.inner.fail_sync(self.inner)
            raise self._disk.error(self.path)
        self.inner.sync()

    def close(self) -> None:
        self.inner.close()


class FaultyDisk:
    def __init__(self, inner: Disk, fault: Fault) -> None:
        self.inner = inner
        self.fault = fault
        self.met = 0
        self.struck: list[str] = []
        self._healed = False

    def heal(self) -> None:
        """Space is back, the drive answers again: no further faults."""
        self._healed = True

    def strikes(self, operation: str, path: str) -> bool:
        """Count the operation; whether the fault hits it."""
        if self._healed or operation not in _HITS[self.fault.kind] or self.fault.path_contains not in path:
            return False
        self.met += 1
        hit = self.met >= self.fault.nth if self.fault.lasting else self.met == self.fault.nth
        if hit:
            self.struck.append(f"{operation} {path}")
        return hit

    def meet(self, operation: str, path: str) -> None:
        if self.strikes(operation, path):
            raise self.error(path)

    def error(self, path: str) -> OSError:
        code = _CODES.get(self.fault.kind, errno.EIO)
        return OSError(code, os.strerror(code), path)

    def open(self, path: str, *, create: bool = False) -> FaultyFile:
        if create and not self.inner.exists(path):
            self.meet("create", path)
        return FaultyFile(self, self.inner.open(path, create=create), path)

    def read(self, path: str) -> bytes:
        self.meet("read", path)
        return self.inner.read(path)

    def exists(self, path: str) -> bool:
        return self.inner.exists(path)

    def listdir(self, path: str) -> list[str]:
        return self.inner.listdir(path)

    def mkdir(self, path: str) -> None:
        if not self.inner.exists(path):
            self.meet("mkdir", path)
        self.inner.mkdir(path)

    def rename(self, old: str, new: str) -> None:
        self.meet("rename", old)
        self.inner.rename(old, new)

    def unlink(self, path: str) -> None:
        self.meet("unlink", path)
        self.inner.unlink(path)

    def rmdir(self, path: str) -> None:
        self.meet("rmdir", path)
        self.inner.rmdir(path)

    def modified_ms(self, path: str) -> int:
        return self.inner.modified_ms(path)

    def sync_dir(self, path: str) -> None:
        self.meet("sync_dir", path)
        self.inner.sync_dir(path)

    def sync_files(self, files: list[File]) -> None:
        for file in files:
            file.sync()

    def sync_all(self, path: str) -> bool:
        if self.strikes("sync", path):
            if isinstance(self.inner, SimDisk):
                self.inner.fail_sync_all()
            raise self.error(path)
        return self.inner.sync_all(path)

    def free_bytes(self, path: str) -> int:
        return self.inner.free_bytes(path)

    def total_bytes(self, path: str) -> int:
        return self.inner.total_bytes(path)

    def lock(self, path: str) -> Lock:
        return self.inner.lock(path)


def every_fault(kind: FaultKind, run: Callable[[Fault], bool], *, lasting: bool = False) -> int:
    """Call `run` with the fault at operation 1, 2, … until a run says that nothing was struck; how many were."""
    nth = 1
    while run(Fault(kind, nth, lasting=lasting)):
        nth += 1
    return nth - 1
