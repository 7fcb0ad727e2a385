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
        behind: dict[int, int],
    ) -> None:
        self._rows = rows
        self._order = order
        self._memory = memory
        self.charged = charged
        """By tag, the bytes held for it here."""
        self.behind = behind
        """By tag, the offset behind the last of its rows that came with this."""
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

    @property
    def left(self) -> Any:
        """The rows that did not go yet, in order."""
        return self._rows[self._order[int(self.run[ordering.HEAD]) :]]

    def gone_behind(self, tag_count: int) -> dict[int, int]:
        """By tag, the offset behind the highest of its rows that went."""
        behind = np.zeros(tag_count, np.int64)
        ordering.gone_behind(self.run, behind)
        # An offset is never negative, so whoever has none behind had no row here.
        return {tag: int(behind[tag]) for tag in np.flatnonzero(behind).tolist()}

    def without(self, tag: int) -> Chunk:
        """The same without the rows of a partition."""
        rest = self._order[int(self.run[ordering.HEAD]) :]
        charged = {one: size for one, size in self.charged.items() if one != tag}
        return self._with(rest[self._rows["tag"][rest] != tag], charged, self.behind)

    def _with(self, order: Any, charged: dict[int, int], behind: dict[int, int]) -> Chunk:
        order = np.ascontiguousarray(order)
        size = int(self._rows["size"][order].sum())
        kept = Chunk(self._rows, order, size, self._memory, charged, self._let_go, behind)
        self._let_go = None
        return kept

    def cut(self, offsets: Any, tag_count: int) -> Chunk:
        """Without the rows from these offsets on, by tag; in memory of its own, if there are any."""
        rest = self._order[int(self.run[ordering.HEAD]) :]
        rows = self._rows[rest]
        stays = rows["offset"] < offsets[rows["tag"]]
        if stays.all():
            return self
        behind = {tag: min(offset, int(offsets[tag])) for tag, offset in self.behind.items()}
        kept = self._with(rest[stays], {}, behind)
        if kept.rows:
            return kept.repacked(tag_count)
        kept.free()
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
        return Chunk(rows, np.arange(len(rows)), size, [data], charges(rows, tag_count), None, self.behind)

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
