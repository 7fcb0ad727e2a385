"""Rows of one answer while they are held: places, sorted once, and the memory they point into."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from lowwater.wire.kernels import ordering
from lowwater.wire.kernels.rows import ROW, ROW_BYTES

_ORDER_BYTES = 8
HELD_ROW_BYTES = ROW_BYTES + _ORDER_BYTES
REPACK_BYTES_MIN = 64 * 1024


def room_for(rows: int) -> Any:
    """Memory of Arrow's pool, which is used again: fresh pages would cost more than what is written to them."""
    return np.frombuffer(pa.allocate_buffer(max(rows, 1) * ROW_BYTES), ROW)[:rows]


class Chunk:
    """A run of rows and the order in which they go. `size` are their bytes, which lie in `memory`.

    `let_go` is called when nothing points into that any more.
    """

    def __init__(
        self,
        rows: Any,
        order: Any,
        size: int,
        memory: list[Any],
        charged: dict[int, int],
        let_go: Callable[[], None] | None,
    ) -> None:
        self._rows = rows
        self._order = order
        self._memory = memory
        self.charged = charged
        """By tag, the bytes held for it here."""
        self._let_go = let_go
        self.memory_bytes = sum(map(len, memory))
        self.run = np.empty(ordering.RUN_COLUMNS, np.int64)
        # Not by __array_interface__: that spells out the type of the rows each time.
        self.run[:] = rows.ctypes.data, order.ctypes.data, 0, len(order), size

    @property
    def rows(self) -> int:
        return int(self.run[ordering.END] - self.run[ordering.HEAD])

    def is_worth_a_copy(self, share: int) -> bool:
        """Whether less than this share of the memory is still needed: 2 is a half of it."""
        needed = share * int(self.run[ordering.LEFT_BYTES])
        return self.memory_bytes > REPACK_BYTES_MIN and needed < self.memory_bytes

    def without(self, tag: int) -> Chunk:
        """The same without the rows of a partition."""
        rest = self._order[int(self.run[ordering.HEAD]) :]
        rest = np.ascontiguousarray(rest[self._rows["tag"][rest] != tag])
        charged = {one: size for one, size in self.charged.items() if one != tag}
        kept = Chunk(self._rows, rest, int(self._rows["size"][rest].sum()), self._memory, charged, self._let_go)
        self._let_go = None
        return kept

    def repacked(self, tag_count: int) -> Chunk:
        """What is left, in memory of its own."""
        rows, size = room_for(self.rows), int(self.run[ordering.LEFT_BYTES])
        everything = ordering.END_KEY, ordering.END_KEY, ordering.END_KEY
        ranks, left_rows = np.zeros((2, tag_count), np.int64)
        ordering.merge(self.run.reshape(1, -1), ranks, *everything, 0, left_rows, rows)
        data = np.empty(max(size, 1), np.uint8)
        ordering.repack(rows, data)
        self.free()
        return Chunk(rows, np.arange(len(rows)), size, [data], charges(rows, tag_count), None)

    def free(self) -> None:
        """Nothing of it is read any more."""
        let_go, self._let_go = self._let_go, None
        self._memory = []
        if let_go is not None:
            let_go()


def charges(rows: Any, tag_count: int) -> dict[int, int]:
    """By tag, the bytes of rows that lie close together."""
    sizes = np.bincount(rows["tag"], rows["size"] + np.float64(HELD_ROW_BYTES), tag_count)
    return {tag: int(sizes[tag]) for tag in np.flatnonzero(sizes).tolist()}
