"""The real Clock, Ids and Disk."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import threading
import time
import uuid
import weakref
from functools import cache
from pathlib import Path

from lowwater.ports import File
from lowwater.types import Buffer

BOOT_ID_PATH = "/proc/sys/kernel/random/boot_id"
CACHE_SAMPLE_STEP = 128 * 1024
SYNCFS_TELLS_ERRORS_SINCE = (5, 8)
KEEP_SIZE = 1

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_MAP_FAILED = ctypes.c_void_p(-1).value


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic() * 1000


class SystemIds:
    def uuid(self) -> bytes:
        return uuid.uuid4().bytes

    def boot_id(self) -> str:
        """Empty when this system does not tell: then every unclean stop counts as a power cut."""
        try:
            return Path(BOOT_ID_PATH).read_text().strip()
        except OSError:
            return ""


class SystemFile:
    """A file descriptor. Reads past the written end are short, as everywhere."""

    __slots__ = ("_path", "_sync_failure", "_syncing", "fd")

    def __init__(self, path: str, fd: int) -> None:
        self._path = path
        self.fd = fd
        self._syncing = threading.Lock()
        self._sync_failure: OSError | None = None

    def pread(self, size: int, position: int) -> bytes:
        return os.pread(self.fd, size, position)

    def pwrite(self, data: Buffer, position: int) -> int:
        return os.pwrite(self.fd, data, position)

    def map(self, size: int) -> memoryview:
        """Python's own mmap would hold a second handle of the file; this one holds none."""
        address = _libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, self.fd, 0)
        if address is None or address == _MAP_FAILED:
            raise _last_error("mmap", self._path)
        pages = _pages(size.bit_length()).from_address(address)
        weakref.finalize(pages, _libc.munmap, address, size).atexit = False
        return memoryview(pages).cast("B")[:size].toreadonly()

    def is_cached(self, position: int, size: int) -> bool:
        """Samples: readahead brings neighbouring pages in together, so a few tell of the whole."""
        last = position + size - 1
        byte = bytearray(1)
        try:
            for place in (*range(position, last, CACHE_SAMPLE_STEP), last):
                os.preadv(self.fd, [byte], place, os.RWF_NOWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True  # this file system cannot tell (EOPNOTSUPP): read, and see
        return True

    def size(self) -> int:
        return os.fstat(self.fd).st_size

    def truncate(self, size: int) -> None:
        os.ftruncate(self.fd, size)

    def allocate(self, position: int, size: int) -> None:
        # Best effort: the write that follows reports a full disk.
        _libc.fallocate(self.fd, KEEP_SIZE, ctypes.c_int64(position), ctypes.c_int64(size))

    def sync(self) -> None:
        """The kernel tells a failure once: of two threads that sync the same handle, both must learn of it."""
        with self._syncing:
            if self._sync_failure is not None:
                raise self._sync_failure
            try:
                os.fdatasync(self.fd)
            except OSError as error:
                self._sync_failure = error
                raise

    def close(self) -> None:
        os.close(self.fd)


@cache
def _pages(bits: int) -> type[ctypes.Array[ctypes.c_ubyte]]:
    """As many bytes as no map with a size of so many bits has; a type for each size would be slow to make."""
    return ctypes.c_ubyte * (1 << bits)


class SystemLock:
    """A held lock file. Its handle, open from start to end, is also what the whole file system is synced through."""

    def __init__(self, path: str, fd: int) -> None:
        self._directory = os.path.dirname(path)
        self.fd = fd
        self.sync_failure: OSError | None = None
        _HELD[self._directory] = self

    def release(self) -> None:
        _HELD.pop(self._directory, None)
        os.close(self.fd)


_HELD: dict[str, SystemLock] = {}


class SystemDisk:
    """The file system of this machine."""

    def open(self, path: str, *, create: bool = False) -> SystemFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return SystemFile(path, os.open(path, flags, 0o644))

    def read(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def listdir(self, path: str) -> list[str]:
        return os.listdir(path)

    def mkdir(self, path: str) -> None:
        try:
            os.mkdir(path)
        except FileExistsError:
            if not os.path.isdir(path):
                raise

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def rmdir(self, path: str) -> None:
        os.rmdir(path)

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def sync_dir(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def sync_files(self, files: list[File]) -> None:
        for file in files:
            file.sync()

    def sync_all(self, path: str) -> bool:
        if not _syncfs_tells_errors():
            return False
        held = _HELD.get(path) or _HELD.get(os.path.dirname(path))
        if held is None:
            return False
        # The kernel tells a failed write-back once to each handle: a handle opened now could miss it, and whose data
        # was lost is not told. So the failure stays.
        if held.sync_failure is None and _libc.syncfs(held.fd):
            held.sync_failure = _last_error("syncfs", path)
        if held.sync_failure is not None:
            raise held.sync_failure
        return True

    def free_bytes(self, path: str) -> int:
        stat = os.statvfs(path)
        return stat.f_bavail * stat.f_frsize

    def total_bytes(self, path: str) -> int:
        stat = os.statvfs(path)
        return stat.f_blocks * stat.f_frsize

    def lock(self, path: str) -> SystemLock:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            if error.errno in (errno.EAGAIN, errno.EACCES):
                raise BlockingIOError(errno.EAGAIN, "another process holds the lock", path) from error
            raise
        return SystemLock(path, fd)


def _syncfs_tells_errors() -> bool:
    """Before Linux 5.8 syncfs hides failed writes, which would turn a lost record into an acked one."""
    release = os.uname().release.split(".")
    try:
        return (int(release[0]), int(release[1])) >= SYNCFS_TELLS_ERRORS_SINCE and hasattr(_libc, "syncfs")
    except (ValueError, IndexError):
        return False


def _last_error(what: str, path: str) -> OSError:
    code = ctypes.get_errno()
    return OSError(code, f"{what}: {os.strerror(code)}", path)
