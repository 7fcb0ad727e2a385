"""JSON objects to columns, by the columns that the user named."""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lowwater.spark.decoding import json_kernel as kernel
from lowwater.spark.decoding.arrow_types import arrow_type
from lowwater.spark.decoding.ddl import json_shape
from lowwater.spark.decoding.decoder import Decoded
from lowwater.spark.decoding.framing import take_ids
from lowwater.spark.decoding.json_scanning import FAULTS
from lowwater.spark.decoding.layout import Column, Finish, Layout, Longs, bitmap_of, texts_of
from lowwater.spark.decoding.rows import Rows, decode_rows
from lowwater.spark.decoding.shapes import Decimal, ListOf, MapOf, Scalar, StructOf
from lowwater.spark.decoding.spec import DecodeSpec

_KINDS = {
    "bool": kernel.BOOL,
    "float32": kernel.FLOAT,
    "float64": kernel.FLOAT,
    "utf8": kernel.TEXT,
    "binary": kernel.OCTETS,
    "date": kernel.DATE,
    "timestamp": kernel.TIME,
    "timestamp_ntz": kernel.LOCAL_TIME,
}
_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


class JsonValues:
    """Objects of one shape; fields that the shape does not name are left out, missing ones are null."""

    def __init__(self, spec: DecodeSpec) -> None:
        self._layout = Layout(json_shape(str(spec.schema)))
        self._tables = _Tables(self._layout)
        self._is_framed = spec.is_framed
        self._stack = np.zeros((kernel.DEPTH_MAX + 1, kernel.FRAME_FIELDS), np.int64)

    def decode(self, values: pa.Array) -> Decoded:
        rows = Rows.of(values)
        if self._is_framed:
            take_ids(rows)
        return self._decode(rows)

    def _decode(self, rows: Rows) -> Decoded:
        tables, counts = self._tables, np.zeros(2, np.int64)
        seen = np.zeros(len(self._layout.columns), np.int64)
        scratch = np.empty(max(int(rows.sizes.max(initial=0)), 1), np.uint8)

        def walk(table: npt.NDArray[np.int64], slots: Longs, valid: npt.NDArray[np.uint8], fill: bool) -> None:
            rows.arena = np.empty(int(counts[kernel.REWRITTEN]) + 1, np.uint8)
            counts[kernel.REWRITTEN] = 0
            kernel.walk_json(
                *(tables.nodes, tables.fields, tables.opens, tables.limits),
                *(table, slots, valid, self._layout.row_columns, self._stack, seen, counts, rows.arena, scratch),
                *(rows.places, rows.sizes, rows.faults, fill),
            )

        return decode_rows(self._layout, rows, walk, self._explain)

    def _explain(self, fault: int, column: int, place: int) -> str:
        where = f"field {self._tables.names[column]}: " if column > 0 else ""
        return f"{where}{FAULTS[fault]} (byte {place})"


class _Tables:
    """The columns as the kernel's nodes, with the names of fields, and where they are in words."""

    def __init__(self, layout: Layout) -> None:
        self.nodes = np.zeros((len(layout.columns), kernel.NODE_FIELDS), np.int64)
        self.names = [""] * len(layout.columns)
        self._fields: list[list[int]] = []
        self._opens: list[int] = []
        self._limits: list[int] = []
        self._texts: list[npt.NDArray[np.uint8]] = []
        self._add(layout.root, "")
        self.fields = np.array(self._fields or [[0] * kernel.FIELD_FIELDS], np.int64)
        self.opens = np.array([*self._opens, 0], np.int64)
        self.limits = np.array([*self._limits, 0], np.uint64)

    def _add(self, column: Column, name: str) -> None:
        self.names[column.index] = name
        node = self.nodes[column.index]
        match column.shape:
            case StructOf(fields):
                node[kernel.KIND] = kernel.STRUCT
                self._add_struct(column, [name for name, _ in fields], name)
            case ListOf():
                node[kernel.KIND], node[kernel.ITEM] = kernel.LIST, column.children[0].index
                self._add(column.children[0], f"{name}[]")
            case MapOf():
                node[kernel.KIND], node[kernel.ITEM] = kernel.MAP, column.children[0].index
                self._add(column.children[0], f"{name}{{}}")
                self._add(column.children[1], f"{name}{{}}")
            case Decimal(precision, scale):
                limit = 10**precision
                node[kernel.KIND], node[kernel.A], node[kernel.B] = kernel.DECIMAL, scale, len(self._limits)
                self._limits += [limit >> 64, limit & 0xFFFFFFFFFFFFFFFF]
            case Scalar(kind):
                node[kernel.KIND], node[kernel.A] = _KINDS.get(kind, kernel.WHOLE), _BITS.get(kind, 0)
                if node[kernel.KIND] == kernel.FLOAT:
                    column.width, column.finish = 2, _floats(arrow_type(column.shape))

    def _add_struct(self, column: Column, names: list[str], path: str) -> None:
        node = self.nodes[column.index]
        below = [one.index for child in column.children for one in child.with_row()]
        node[kernel.FIRST_OPEN], node[kernel.OPEN_COUNT] = len(self._opens), len(below)
        node[kernel.FIRST_FIELD], node[kernel.FIELD_COUNT] = len(self._fields), len(names)
        self._opens += below
        for name, child in zip(names, column.children, strict=True):
            text = np.frombuffer(name.encode() + b"\0", np.uint8)
            self._texts.append(text)
            plain_size = len(text) - 1 if json.dumps(name, ensure_ascii=False) == f'"{name}"' else -1
            self._fields.append([text.ctypes.data, len(text) - 1, child.index, plain_size])
        for name, child in zip(names, column.children, strict=True):
            self._add(child, f"{path}.{name}" if path else name)


def _floats(kind: pa.DataType) -> Finish:
    """Numbers as they were written, which Arrow reads exactly."""

    def finish(raw: Longs, valid: npt.NDArray[np.bool_]) -> pa.Array:
        buffers = [bitmap_of(valid), *texts_of(raw)]
        return pa.Array.from_buffers(pa.utf8(), len(valid), buffers).cast(kind)

    return finish
