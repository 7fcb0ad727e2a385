"""What the cores need from the outside world, as protocols.

`system.py` has the real ones, `testing/` the simulated ones. The cores never import time, threading, random or os.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from lowwater.types import Buffer

A = TypeVar("A")
T = TypeVar("T")


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall-clock time in milliseconds since the epoch. It may jump."""

    def monotonic_ms(self) -> float:
        """Milliseconds that never go back, for timers and durations."""


class Ids(Protocol):
    def uuid(self) -> bytes:
        """16 random bytes, never all zero."""

    def boot_id(self) -> str:
        """Changes whenever the machine restarts: the page cache of another boot is gone."""


class File(Protocol):
    """An open file. Positions are absolute; there is no cursor."""

    def pread(self, size: int, position: int) -> bytes:
        """Up to `size` bytes; short only at the end of the file."""

    def pwrite(self, data: Buffer, position: int) -> int:
        """Write; return how many bytes were taken, which may be fewer (disk full)."""

    def map(self, size: int) -> memoryview:
        """A read-only view of [0, size), valid as long as it is referenced. `size` is within the file."""

    def is_cached(self, position: int, size: int) -> bool:
        """Whether reading that range is likely not to wait for the disk."""

    def size(self) -> int: ...

    def truncate(self, size: int) -> None: ...

    def allocate(self, position: int, size: int) -> None:
        """Reserve room without changing the file's size. May do nothing."""

    def sync(self) -> None:
        """Return when everything written is durable (fdatasync)."""

    def close(self) -> None: ...


class Lock(Protocol):
    def release(self) -> None: ...


class Disk(Protocol):
    """A file system. Paths are strings with `/`. Errors are OSError with errno.

    Names (create, rename, unlink) are durable only after `sync_dir` of their directory.
    """

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing; FileNotFoundError unless `create`."""

    def read(self, path: str) -> bytes:
        """The whole file."""

    def exists(self, path: str) -> bool: ...

    def listdir(self, path: str) -> list[str]: ...

    def mkdir(self, path: str) -> None:
        """Create one directory; no error when it exists."""

    def rename(self, old: str, new: str) -> None:
        """Replace `new` atomically."""

    def unlink(self, path: str) -> None: ...

    def rmdir(self, path: str) -> None: ...

    def modified_ms(self, path: str) -> int: ...

    def sync_dir(self, path: str) -> None: ...

    def sync_files(self, files: list[File]) -> None:
        """Make all of them durable."""

    def sync_all(self, path: str) -> bool:
        """Make everything on the file system of `path` durable, names too; false (and nothing done) if it cannot."""

    def free_bytes(self, path: str) -> int: ...

    def total_bytes(self, path: str) -> int: ...

    def lock(self, path: str) -> Lock:
        """Hold `path` (created if needed) alone until `release`; BlockingIOError when someone else holds it."""


class Offload(Protocol):
    """Runs slow work (fsync, cold reads, compaction) away from the event loop."""

    def submit(self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        """Run `work` elsewhere, then call `done(result, error)` on the event loop."""

    def submit_read(self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        """The same for cold reads, which do not wait behind fsyncs."""

    def submit_heavy(
        self, work: Callable[[A], T], argument: A, done: Callable[[T | None, BaseException | None], None]
    ) -> None:
        """The same for much Python work. It may run in another process: `work` and `argument` must survive pickling."""


class Timer(Protocol):
    def cancel(self) -> None: ...


class Scheduler(Protocol):
    """The event loop as the broker sees it: one thread, callbacks in order."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Run `callback` in this thread after the current turn."""

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer: ...
