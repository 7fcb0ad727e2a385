"""A message and all below it as the kernel's tables: which field goes to which column, what is there without it."""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

from lowwater.spark.decoding import protobuf_kernel as kernel
from lowwater.spark.decoding.errors import SchemaError
from lowwater.spark.decoding.layout import Column, Layout
from lowwater.spark.decoding.protobuf_model import ENUM, MESSAGE, ProtoField, ProtoMessage, ProtoTypes
from lowwater.spark.decoding.protobuf_shape import columns_of
from lowwater.spark.decoding.protobuf_well_known import DURATION, TIMESTAMP

Table = npt.NDArray[np.int64]
_KINDS = {
    "int64": kernel.INT64,
    "uint64": kernel.INT64,
    "int32": kernel.INT32,
    "uint32": kernel.UINT32,
    "sint32": kernel.SINT32,
    "sint64": kernel.SINT64,
    "bool": kernel.BOOL,
    ENUM: kernel.INT32,
    "fixed32": kernel.UNSIGNED32,
    "sfixed32": kernel.BITS32,
    "float": kernel.BITS32,
    "fixed64": kernel.BITS64,
    "sfixed64": kernel.BITS64,
    "double": kernel.BITS64,
    "string": kernel.STRING,
    "bytes": kernel.OCTETS,
}


class Tables:
    """Message 0 is the row itself. A message that is used in two places stands here twice: its columns differ."""

    def __init__(self, types: ProtoTypes, message: ProtoMessage, layout: Layout, emit_defaults: bool) -> None:
        self._types = types
        self._emits = emit_defaults
        self._messages: list[list[int]] = []
        self._fields: list[list[int]] = []
        self._opens: list[int] = []
        self._defaults: list[tuple[int, int, int]] = []
        self._rivals: list[int] = []
        self._texts: list[npt.NDArray[np.uint8]] = []
        self.names: list[str] = []
        self._add(message, columns_of(types, message), layout.root.children, "")
        self.messages = _table(self._messages, kernel.MESSAGE_FIELDS)
        self.fields = _table(self._fields, kernel.FIELD_FIELDS)
        self.opens = np.array([*self._opens, 0], np.int64)
        self.defaults = _table([list(one) for one in self._defaults], 3)
        self.rivals = np.array([*self._rivals, 0], np.int64)

    def _add(self, message: ProtoMessage, fields: list[ProtoField], columns: list[Column], path: str) -> int:
        """The message's own rows are made first, those of the messages below behind them."""
        place = len(self._messages)
        opens = [one.index for column in columns for one in column.with_row()]
        defaults = [self._default(field, column) for field, column in zip(fields, columns, strict=True)]
        known = [one for one in defaults if one is not None]
        here = [len(self._fields), len(fields), len(self._opens), len(opens), len(self._defaults), len(known)]
        self._messages.append(here)
        self._opens += opens
        self._defaults += known
        ordered = sorted(zip(fields, columns, strict=True), key=lambda pair: pair[0].number)
        for field, column in ordered:
            self._fields.append(self._row(field, column, _rivals(field, ordered)))
            self.names.append(f"{path}{field.name}")
        for offset, (field, column) in enumerate(ordered):
            child = self._child(field, column, f"{path}{field.name}.")
            self._fields[here[0] + offset][kernel.MESSAGE_AT] = child
        return place

    def _row(self, field: ProtoField, column: Column, rivals: list[int]) -> list[int]:
        target = column.children[0].index if field.is_repeated else column.index
        if self._is_map(field):
            target = -1  # an entry has no column of its own: key and value have
        first = len(self._rivals)
        self._rivals += rivals
        listed = int(field.is_repeated)
        return [field.number, self._kind(field), target, listed, kernel.NO_MESSAGE, first, len(rivals)]

    def _kind(self, field: ProtoField) -> int:
        if field.type != MESSAGE:
            return _KINDS[field.type]
        return kernel.MOMENT if field.type_name in (TIMESTAMP, DURATION) else kernel.MESSAGE

    def _is_map(self, field: ProtoField) -> bool:
        return field.type == MESSAGE and self._types.messages[field.type_name].is_map_entry

    def _child(self, field: ProtoField, column: Column, path: str) -> int:
        if self._kind(field) != kernel.MESSAGE:
            return kernel.NO_MESSAGE
        message = self._types.messages[field.type_name]
        if message.is_map_entry:
            return self._entry(message, column, path)
        target = column.children[0] if field.is_repeated else column
        return self._add(message, columns_of(self._types, message), target.children, path)

    def _entry(self, message: ProtoMessage, column: Column, path: str) -> int:
        """Key and value are always there: as zero when the bytes do not have them."""
        place = self._add(message, message.fields, column.children, path)
        key, value = message.fields
        self._messages[place][kernel.FIRST_DEFAULT] = len(self._defaults)
        self._defaults.append((column.children[0].index, *self._zero(key)))
        self._defaults.append((column.children[1].index, *self._zero(value)))
        count = 2
        if self._kind(value) == kernel.MESSAGE:
            inner = self._messages[self._fields[self._messages[place][0] + 1][kernel.MESSAGE_AT]]
            first, more = inner[kernel.FIRST_DEFAULT], inner[kernel.DEFAULT_COUNT]
            self._defaults += self._defaults[first : first + more]
            count += more
        self._messages[place][kernel.DEFAULT_COUNT] = count
        return place

    def _default(self, field: ProtoField, column: Column) -> tuple[int, int, int] | None:
        """What a message that is there has in a field that is not; None: null."""
        if field.is_repeated:
            return column.index, 0, 0
        if field.default is not None and field.oneof is None:
            return column.index, *self._said(field)
        if self._emits and not field.has_presence:
            return column.index, *self._zero(field)
        return None

    def _zero(self, field: ProtoField) -> tuple[int, int]:
        if field.type == ENUM:
            values = self._types.enums[field.type_name].values
            return (0 if 0 in values else next(iter(values), 0)), 0
        return 0, 0

    def _said(self, field: ProtoField) -> tuple[int, int]:
        text = str(field.default)
        try:
            if field.type in ("string", "bytes"):
                return self._text(text.encode("utf-8" if field.type == "string" else "latin-1"))
            if field.type == ENUM:
                names = {name: number for number, name in self._types.enums[field.type_name].values.items()}
                return names[text], 0
            if field.type == "bool":
                return {"true": 1, "false": 0}[text], 0
            if field.type in ("double", "float"):
                return int.from_bytes(struct.pack("<d" if field.type == "double" else "<f", float(text)), "little"), 0
            return int(text, 0), 0
        except (ValueError, KeyError, OverflowError):
            raise SchemaError(
                f"the default {text!r} of the Protobuf field {field.name} does not fit its type"
            ) from None

    def _text(self, data: bytes) -> tuple[int, int]:
        held = np.frombuffer(data + b"\0", np.uint8)
        self._texts.append(held)
        return held.ctypes.data, len(data)


def _rivals(field: ProtoField, fields: list[tuple[ProtoField, Column]]) -> list[int]:
    if field.oneof is None:
        return []
    return [column.index for other, column in fields if other.oneof == field.oneof and other is not field]


def _table(rows: list[list[int]], width: int) -> Table:
    bits = [[number & 0xFFFFFFFFFFFFFFFF for number in row] for row in rows] or [[0] * width]
    return np.array(bits, np.uint64).view(np.int64).reshape(-1, width)
