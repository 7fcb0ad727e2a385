"""Columns of a shape as one table for the kernels, the slots they fill, and Arrow arrays made of these."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lowwater.spark.decoding import kernels
from lowwater.spark.decoding.arrow_types import arrow_type
from lowwater.spark.decoding.errors import DecodeError
from lowwater.spark.decoding.shapes import Decimal, ListOf, MapOf, Scalar, Shape, StructOf, below

Longs = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
# How a format finishes a column that the slots hold in another form: slots, validity -> array.
Finish = Callable[[Longs, npt.NDArray[np.bool_]], pa.Array]

_TEXTS = ("utf8", "binary")
_NARROW = {"int8": np.int8, "int16": np.int16, "int32": np.int32, "date": np.int32, "float32": np.int32}
BYTES_MAX = (1 << 31) - 1


@dataclass(slots=True)
class Column:
    """A node of the shape: its number among the columns, in preorder, and those below it."""

    index: int
    shape: Shape
    children: list[Column] = field(default_factory=list)
    finish: Finish | None = None
    width: int = 1

    @property
    def is_list(self) -> bool:
        return isinstance(self.shape, ListOf | MapOf)

    def with_row(self) -> Iterator[Column]:
        """Itself and what has exactly as many slots: everything below that is not in a list."""
        yield self
        if not self.is_list:
            for child in self.children:
                yield from child.with_row()


class Layout:
    """Numbered columns of a struct; column 0 is the struct itself, one slot per row."""

    def __init__(self, shape: StructOf) -> None:
        self.columns: list[Column] = []
        self.root = self._add(shape)
        self.row_columns = np.array([column.index for column in self.root.with_row()], np.int64)

    def _add(self, shape: Shape) -> Column:
        column = Column(len(self.columns), shape, width=_width(shape))
        self.columns.append(column)
        column.children = [self._add(child) for child in below(shape)]
        return column

    def table(self) -> npt.NDArray[np.int64]:
        """The columns as kernels see them, without a slot yet."""
        table = np.zeros((len(self.columns), kernels.COLUMN_FIELDS), np.int64)
        for column in self.columns:
            table[column.index, kernels.WIDTH] = column.width
            table[column.index, kernels.CHILD] = column.children[0].index if column.is_list else kernels.NO_COLUMN
        return table


class Slots:
    """Room for exactly the slots that were counted in `table`, whose lengths are set back to 0."""

    def __init__(self, layout: Layout, table: npt.NDArray[np.int64]) -> None:
        self._layout = layout
        self.table = table
        lengths = table[:, kernels.LENGTH].copy()
        sizes = lengths * table[:, kernels.WIDTH]
        table[:, kernels.PLACE] = np.cumsum(sizes) - sizes
        table[:, kernels.VALID] = np.cumsum(lengths) - lengths
        table[:, kernels.LENGTH] = 0
        self._lengths = lengths
        self.values = np.zeros(max(int(sizes.sum()), 1), np.int64)
        self.valid = np.zeros(max(int(lengths.sum()), 1), np.uint8)

    def array(self) -> pa.StructArray:
        """What was filled. The bytes that texts point to are still needed here, not afterwards."""
        assert (self.table[:, kernels.LENGTH] == self._lengths).all()
        return self._array(self._layout.root)

    def _array(self, column: Column) -> pa.Array:
        length = int(self._lengths[column.index])
        first = int(self.table[column.index, kernels.PLACE])
        raw = self.values[first : first + length * column.width]
        place = int(self.table[column.index, kernels.VALID])
        valid = self.valid[place : place + length].view(np.bool_)
        if column.finish is not None:
            return column.finish(raw, valid)
        children = [self._array(child) for child in column.children]
        return _build(column, raw, valid, children)


def _build(column: Column, raw: Longs, valid: npt.NDArray[np.bool_], children: list[pa.Array]) -> pa.Array:
    kind = arrow_type(column.shape)
    bitmap = bitmap_of(valid)
    if isinstance(column.shape, StructOf):
        return pa.Array.from_buffers(kind, len(valid), [bitmap], children=children)
    if isinstance(column.shape, ListOf):
        return pa.Array.from_buffers(kind, len(valid), [bitmap, _ends(raw, children[0])], children=children)
    if isinstance(column.shape, MapOf):
        return _map(kind, raw, bitmap, len(valid), children)
    return pa.Array.from_buffers(kind, len(valid), [bitmap, *_data(column.shape, raw)])


def _map(kind: pa.MapType, raw: Longs, bitmap: pa.Buffer | None, length: int, children: list[pa.Array]) -> pa.Array:
    """Of entries with the same key the last one counts."""
    keys, items = children
    ends = np.append(raw, len(keys)).astype(np.int32)
    keep = _last_of_each_key(np.repeat(np.arange(length), np.diff(ends)), keys)
    if keep is not None:
        ends = np.searchsorted(keep, ends).astype(np.int32)
        keys, items = keys.take(pa.array(keep)), items.take(pa.array(keep))
    fields = [kind.key_field, kind.item_field]
    entries = pa.StructArray.from_arrays([keys, items], fields=fields)
    return pa.Array.from_buffers(kind, length, [bitmap, pa.py_buffer(ends)], children=[entries])


def _last_of_each_key(owners: Longs, keys: pa.Array) -> Longs | None:
    """Places of the entries to keep, ascending; None when no owner has a key twice."""
    if not len(keys):
        return None
    codes = keys.dictionary_encode()
    marks = owners * max(len(codes.dictionary), 1) + codes.indices.to_numpy(zero_copy_only=False)
    _, last = np.unique(marks[::-1], return_index=True)
    return None if len(last) == len(marks) else np.sort(len(marks) - 1 - last)


def _ends(raw: Longs, items: pa.Array) -> pa.Buffer:
    return pa.py_buffer(np.append(raw, len(items)).astype(np.int32))


def _data(shape: Shape, raw: Longs) -> list[pa.Buffer]:
    if isinstance(shape, Decimal):
        return [pa.py_buffer(raw)]
    assert isinstance(shape, Scalar)
    if shape.name in _TEXTS:
        return texts_of(raw)
    if shape.name == "bool":
        return [pa.py_buffer(np.packbits(raw.astype(np.bool_), bitorder="little"))]
    return [pa.py_buffer(raw.astype(_NARROW[shape.name]) if shape.name in _NARROW else raw)]


def texts_of(raw: Longs) -> list[pa.Buffer]:
    """Offsets and bytes of slots that hold an address and a size each."""
    pairs = raw.reshape(-1, 2)
    size = kernels.bytes_of(pairs)
    if size > BYTES_MAX:
        raise DecodeError("a column of one batch holds more than 2 GiB: lower the number of rows per batch")
    ends, data = np.empty(len(pairs) + 1, np.int32), np.empty(max(size, 1), np.uint8)
    kernels.gather(pairs, ends, data)
    return [pa.py_buffer(ends), pa.py_buffer(data[:size])]


def bitmap_of(valid: npt.NDArray[np.bool_]) -> pa.Buffer | None:
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


def _width(shape: Shape) -> int:
    if isinstance(shape, StructOf):
        return 0
    return 2 if isinstance(shape, Decimal) or shape in (Scalar("utf8"), Scalar("binary")) else 1
