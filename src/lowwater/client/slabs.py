"""Memory of rows and columns, used again when they are gone: to touch fresh pages costs more than to fill them."""

from __future__ import annotations

import mmap
import weakref
from collections import deque
from typing import Any

import numpy as np
import pyarrow as pa

from lowwater.client.buffers import fresh_memory, rounded_up

BYTES_MIN = 1024 * 1024
KEPT_BYTES_MAX = 64 * 1024 * 1024
ALIGNMENT = 64


class Slab:
    """One piece of memory, for columns that are cut from it one after the other."""

    __slots__ = ("_at", "_buffer", "_data")

    def __init__(self, data: Any) -> None:
        self._data = data
        self._buffer = pa.py_buffer(data)
        self._at = 0

    def cut(self, kind: np.dtype[Any], count: int) -> tuple[Any, Any]:
        """The next so many numbers of this kind: as a buffer, and as an array to write to. They have any value."""
        size = kind.itemsize * count
        at, self._at = self._at, self._at + aligned(size)
        return self._buffer.slice(at, size), self._data[at : at + size].view(kind)


class Slabs:
    """Whoever keeps what he got has it to himself. A little is not worth the trouble, and has memory of its own."""

    def __init__(self, kept_bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._kept_bytes_max = kept_bytes_max
        self._free: list[mmap.mmap] = []
        self._returned: deque[mmap.mmap] = deque()  # by whatever thread is the last to have something there

    def slab(self, size: int) -> Slab:
        """Room for columns of so many bytes, each `aligned`."""
        return Slab(self.array(size))

    def array(self, size: int) -> Any:
        """So many bytes, of any value. What is cut from them, or refers to them, keeps them too."""
        if size < BYTES_MIN:
            return np.frombuffer(pa.allocate_buffer(size), np.uint8)
        memory = self._used(size) or fresh_memory(rounded_up(size))
        data = np.frombuffer(memory, np.uint8, size)
        # Everything that is made of an array refers to it: memory comes back when nothing does any more.
        weakref.finalize(data, self._returned.append, memory).atexit = False
        return data

    @property
    def kept_bytes(self) -> int:
        """Of memory that nobody uses."""
        return sum(map(len, [*self._free, *self._returned]))

    def _used(self, size: int) -> mmap.mmap | None:
        """The latest that came back and is not much too large. Of the others those that came first go if they are too
        many, but not before: what is wanted now may be the oldest of all."""
        free = self._free
        while self._returned:
            free.append(self._returned.popleft())
        fits = (place for place in reversed(range(len(free))) if size <= len(free[place]) <= 2 * size)
        place = next(fits, None)
        found = None if place is None else free.pop(place)
        while self.kept_bytes > self._kept_bytes_max:
            del free[0]
        return found


def aligned(size: int) -> int:
    """As Arrow wants its buffers to begin."""
    return -(-size // ALIGNMENT) * ALIGNMENT
