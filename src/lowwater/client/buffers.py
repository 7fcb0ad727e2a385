"""Memory that large answers are received into, and decoded from without copying.

Column kernels keep addresses into an answer, so the life of its memory is explicit: a `Lease` holds it until it is
released, then the memory is used for another answer. One that is never released is simply not used again.
"""

from __future__ import annotations

import contextlib
import mmap

BYTES_MIN = 128 * 1024
KEPT_BYTES_MAX = 128 * 1024 * 1024
LARGE_PAGE_BYTES = 2 * 1024 * 1024
_STEPS = 8


def fresh_memory(size: int) -> mmap.mmap:
    """Zeroed memory, in large pages where there are some: touching small ones first costs more than filling them."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if size >= LARGE_PAGE_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without them
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


class Lease:
    """`view` is valid until `release`, or, without one, as long as anything refers to it."""

    __slots__ = ("_memory", "_pool", "view")

    def __init__(self, view: memoryview, memory: mmap.mmap | None = None, pool: Buffers | None = None) -> None:
        self.view = view
        self._memory = memory
        self._pool = pool

    def release(self) -> None:
        """Nothing may read from the view, or from what was cut out of it, from now on. A second call does nothing."""
        memory, self._memory = self._memory, None
        self.view = memoryview(b"")
        if memory is not None and self._pool is not None:
            self._pool.give_back(memory)


class Buffers:
    """Fresh memory is not touched before bytes arrive in it, so an answer takes what came, not what it claims.

    Of memory that nobody uses `kept_bytes_max` are kept; more, as long as that and what is in use are not more than
    `all_bytes_max`: whoever needs much at times, and gives it back at once, soon needs it again.
    """

    def __init__(self, kept_bytes_max: int = KEPT_BYTES_MAX, all_bytes_max: int = 0) -> None:
        self._kept_bytes_max = kept_bytes_max
        self._all_bytes_max = all_bytes_max
        self._free: list[mmap.mmap] = []
        self._used_bytes = 0
        self.kept_bytes = 0

    def lease(self, size: int) -> Lease:
        memory = self._used(size) or fresh_memory(rounded_up(size))
        self._used_bytes += len(memory)
        self._shrink()
        return Lease(memoryview(memory)[:size], memory, self)

    def _used(self, size: int) -> mmap.mmap | None:
        """The latest that came back and is not much too large."""
        for place in reversed(range(len(self._free))):
            if size <= len(self._free[place]) <= 2 * max(size, BYTES_MIN):
                memory = self._free.pop(place)
                self.kept_bytes -= len(memory)
                return memory
        return None

    def give_back(self, memory: mmap.mmap) -> None:
        self._used_bytes -= len(memory)
        self._free.append(memory)
        self.kept_bytes += len(memory)
        self._shrink()

    def _shrink(self) -> None:
        """When there is too much, what was not needed for the longest time goes."""
        while self.kept_bytes > max(self._kept_bytes_max, self._all_bytes_max - self._used_bytes):
            self.kept_bytes -= len(self._free.pop(0))

    def clear(self) -> None:
        self._free.clear()
        self.kept_bytes = 0


def rounded_up(size: int) -> int:
    """In steps of an eighth of the next power of two: answers are of about one size, and fit where others were."""
    size = max(size, BYTES_MIN)
    step = (1 << (size - 1).bit_length()) // _STEPS
    return -(-size // step) * step
