"""Rows of one answer while they are held: columns of places, sorted once, and the memory they point into."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from lowwater.wire.kernels import ordering

COLUMN_TYPES = {
    "offsets": np.int64,
    "timestamps": np.int64,
    "timestamp_types": np.int8,
    "tags": np.int32,
    "key_at": np.int64,
    "key_size": np.int32,
    "value_at": np.int64,
    "value_size": np.int32,
    "headers_at": np.int64,
    "header_count": np.int32,
    "sizes": np.int32,
}
_ALL_TYPES = {"keys": np.int64, **COLUMN_TYPES}
_BY_WIDTH = sorted(_ALL_TYPES, key=lambda name: -np.dtype(_ALL_TYPES[name]).itemsize)  # so that all are aligned
_ORDER_BYTES = 8
ROW_BYTES = sum(np.dtype(kind).itemsize for kind in _ALL_TYPES.values()) + _ORDER_BYTES
REPACK_BYTES_MIN = 64 * 1024


class Columns:
    """Places of rows, as the kernels fill and read them."""

    offsets: Any
    timestamps: Any
    timestamp_types: Any
    tags: Any
    key_at: Any
    key_size: Any
    value_at: Any
    value_size: Any
    headers_at: Any
    header_count: Any
    sizes: Any

    keys: Any

    def __init__(self, room: int) -> None:
        """Memory of Arrow's pool, which is used again: fresh pages would cost more than what is written to them."""
        self.room = room
        memory = pa.allocate_buffer(max(room, 1) * (ROW_BYTES - _ORDER_BYTES))
        at = 0
        for name in _BY_WIDTH:
            kind = _ALL_TYPES[name]
            setattr(self, name, np.frombuffer(memory, kind, max(room, 1), at)[:room])
            at += max(room, 1) * np.dtype(kind).itemsize

    def all(self) -> list[Any]:
        """In the order in which the kernels take them, without the keys."""
        return [getattr(self, name) for name in COLUMN_TYPES]

    def first(self, rows: int) -> Columns:
        """Only the first rows, in the same memory."""
        part = object.__new__(Columns)
        part.room = rows
        for name in _ALL_TYPES:
            setattr(part, name, getattr(self, name)[:rows])
        return part

    def copy(self) -> Columns:
        """In memory of just this size."""
        copied = Columns(self.room)
        for name in _ALL_TYPES:
            getattr(copied, name)[:] = getattr(self, name)
        return copied


class Chunk:
    """A run of rows. `memory` is what they point into; `let_go` is called when nothing does any more."""

    def __init__(
        self,
        columns: Columns,
        order: Any,
        memory: list[Any],
        charged: dict[int, int],
        let_go: Callable[[], None] | None,
    ) -> None:
        self.columns = columns
        self.order = order
        self._memory = memory
        self.charged = charged
        """By tag, the bytes held for it here."""
        self._let_go = let_go
        self._memory_bytes = sum(map(len, memory))
        self.run = np.empty(ordering.RUN_COLUMNS, np.int64)
        self.run[ordering.KEYS] = address_of(columns.keys)
        self.run[ordering.ORDER] = address_of(order)
        self.run[ordering.OFFSETS : ordering.SIZES + 1] = [address_of(one) for one in columns.all()]
        self.run[ordering.HEAD :] = 0, len(order), int(columns.sizes[order].sum())

    @property
    def rows(self) -> int:
        return int(self.run[ordering.END] - self.run[ordering.HEAD])

    def is_worth_a_copy(self, share: int) -> bool:
        """Whether less than this share of the memory is still needed: 2 is a half of it."""
        needed = share * int(self.run[ordering.LEFT_BYTES])
        return self._memory_bytes > REPACK_BYTES_MIN and needed < self._memory_bytes

    def without(self, tag: int) -> Chunk:
        """The same without the rows of a partition."""
        rest = self.order[int(self.run[ordering.HEAD]) :]
        rest = np.ascontiguousarray(rest[self.columns.tags[rest] != tag])
        charged = {one: size for one, size in self.charged.items() if one != tag}
        kept = Chunk(self.columns, rest, self._memory, charged, self._let_go)
        self._let_go = None
        return kept

    def repacked(self, tag_count: int) -> Chunk:
        """What is left, in memory of its own."""
        columns = Columns(self.rows)
        everything = ordering.END_KEY, ordering.END_KEY, ordering.END_KEY
        ranks, left_rows = np.zeros((2, tag_count), np.int64)
        ordering.merge(self.run.reshape(1, -1), ranks, *everything, 0, left_rows, columns.keys, *columns.all())
        data = np.empty(max(int(columns.sizes.sum()), 1), np.uint8)
        ordering.repack(columns.key_at, columns.value_at, columns.headers_at, columns.sizes, data)
        charged = charges(columns, tag_count)
        self.free()
        return Chunk(columns, np.arange(len(columns.keys)), [data], charged, None)

    def free(self) -> None:
        """Nothing of it is read any more."""
        let_go, self._let_go = self._let_go, None
        self._memory = []
        if let_go is not None:
            let_go()


def charges(columns: Columns, tag_count: int) -> dict[int, int]:
    """By tag, the bytes of rows that lie close together."""
    sizes = np.bincount(columns.tags, columns.sizes + np.float64(ROW_BYTES), tag_count)
    return {tag: int(sizes[tag]) for tag in np.flatnonzero(sizes).tolist()}


def address_of(array: Any) -> int:
    return int(array.__array_interface__["data"][0])
