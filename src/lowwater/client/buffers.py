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
    """Fresh memory is not touched before bytes arrive in it, so an answer takes what came, not what it claims."""

    def __init__(self, kept_bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._kept_bytes_max = kept_bytes_max
        self._free: dict[int, list[mmap.mmap]] = {}
        self.kept_bytes = 0

    def lease(self, size: int) -> Lease:
        room = max(BYTES_MIN, 1 << (size - 1).bit_length())
        free = self._free.get(room)
        if free:
            memory = free.pop()
            self.kept_bytes -= room
        else:
            memory = fresh_memory(room)
        return Lease(memoryview(memory)[:size], memory, self)

    def give_back(self, memory: mmap.mmap) -> None:
        room = len(memory)
        if self.kept_bytes + room <= self._kept_bytes_max:
            self.kept_bytes += room
            self._free.setdefault(room, []).append(memory)

    def clear(self) -> None:
        self._free.clear()
        self.kept_bytes = 0
