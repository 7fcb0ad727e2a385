"""Protobuf values to columns, by a message of a .proto text or of a descriptor set."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lowwater.spark.decoding import protobuf_kernel as kernel
from lowwater.spark.decoding.decoder import Decoded
from lowwater.spark.decoding.errors import SchemaError
from lowwater.spark.decoding.framing import take_ids, take_paths
from lowwater.spark.decoding.layout import Column, Finish, Layout, Longs
from lowwater.spark.decoding.protobuf_files import chosen_message
from lowwater.spark.decoding.protobuf_model import (
    ENUM,
    MESSAGE,
    ProtoEnum,
    ProtoField,
    ProtoFile,
    ProtoMessage,
    ProtoTypes,
    message_at,
)
from lowwater.spark.decoding.protobuf_shape import columns_of, protobuf_shape
from lowwater.spark.decoding.protobuf_tables import Tables
from lowwater.spark.decoding.protobuf_text import parse_proto
from lowwater.spark.decoding.registry import Registry
from lowwater.spark.decoding.rows import Rows, decode_rows
from lowwater.spark.decoding.spec import PROTOBUF, DecodeSpec

_NO_FIELD = -1


class ProtobufValues:
    """Values of one message."""

    def __init__(self, spec: DecodeSpec) -> None:
        types, message = chosen_message(spec)
        self.message = message.name
        shape = protobuf_shape(types, message)
        self._layout = Layout(shape)
        self._tables = Tables(types, message, self._layout, spec.emit_defaults)
        _finish(types, message, self._layout.root.children)
        self._is_framed = spec.is_framed
        self._registry = None if spec.registry is None else Registry.of(spec.registry)
        self._files: dict[int, ProtoFile] = {}
        self._stack = np.zeros((kernel.DEPTH_MAX, 3), np.int64)
        self._groups = np.zeros(kernel.DEPTH_MAX, np.int64)

    def decode(self, values: pa.Array) -> Decoded:
        rows = Rows.of(values)
        if self._is_framed:
            self._check(rows, take_ids(rows))
        return self._decode(rows)

    def _check(self, rows: Rows, ids: Longs) -> None:
        """Refuse rows that hold another message than the one asked for."""
        for path, mine in take_paths(rows):
            for schema_id in np.unique(ids[mine]).tolist() if self._registry is not None else ():
                reason = self._difference(schema_id, path)
                if reason:
                    rows.refuse(mine & (ids == schema_id), f"schema {schema_id}: {reason}")

    def _difference(self, schema_id: int, path: tuple[int, ...]) -> str:
        """Why rows of this schema are not of the message asked for; empty when they are."""
        try:
            found = self._message_of(schema_id, path)
        except SchemaError as error:
            return str(error)
        return "" if found == self.message else f"the message is {found or 'unknown'}, not {self.message}"

    def _message_of(self, schema_id: int, path: tuple[int, ...]) -> str | None:
        if schema_id not in self._files:
            assert self._registry is not None
            self._files[schema_id] = parse_proto(self._registry.by_id(schema_id, PROTOBUF).text)
        return message_at(self._files[schema_id], path)

    def _decode(self, rows: Rows) -> Decoded:
        tables = self._tables

        def walk(table: npt.NDArray[np.int64], slots: Longs, valid: npt.NDArray[np.uint8], fill: bool) -> None:
            kernel.walk_protobuf(
                *(tables.messages, tables.fields, tables.opens, tables.defaults, tables.rivals),
                *(table, slots, valid, self._layout.row_columns, self._stack, self._groups),
                *(rows.places, rows.sizes, rows.faults, fill),
            )

        return decode_rows(self._layout, rows, walk, self._explain)

    def _explain(self, fault: int, field: int, place: int) -> str:
        where = f"field {self._tables.names[field]}: " if field != _NO_FIELD else ""
        return f"{where}{kernel.FAULTS[fault]} (byte {place})"


def _finish(types: ProtoTypes, message: ProtoMessage, columns: list[Column]) -> None:
    """Tell the columns of enums how numbers become names."""
    fields = message.fields if message.is_map_entry else columns_of(types, message)
    for field, column in zip(fields, columns, strict=True):
        inner = types.messages[field.type_name] if field.type == MESSAGE else None
        if inner is not None and inner.is_map_entry:
            _finish(types, inner, column.children)
            continue
        _finish_one(types, field, inner, column.children[0] if field.is_repeated else column)


def _finish_one(types: ProtoTypes, field: ProtoField, inner: ProtoMessage | None, column: Column) -> None:
    if field.type == ENUM:
        column.width = 1
        column.finish = _names(types.enums[field.type_name])
    elif inner is not None and column.children:
        _finish(types, inner, column.children)


def _names(enum: ProtoEnum) -> Finish:
    """Names by number. One that the enum does not know is null if it is closed, else told as Spark tells it."""
    numbers = np.array(sorted(enum.values), np.int64)
    names = pa.array([enum.values[int(number)] for number in numbers], pa.utf8())
    simple = enum.name.rpartition(".")[2]

    def finish(raw: Longs, valid: npt.NDArray[np.bool_]) -> pa.Array:
        places = np.minimum(np.searchsorted(numbers, raw), max(len(numbers) - 1, 0))
        is_known = (numbers[places] == raw) if len(numbers) else np.zeros(len(raw), np.bool_)
        found = names.take(pa.array(places, mask=~(valid & is_known)))
        unknown = np.flatnonzero(valid & ~is_known)
        if enum.is_closed or not len(unknown):
            return found
        texts = found.to_pylist()
        for place in unknown:
            texts[place] = f"UNKNOWN_ENUM_VALUE_{simple}_{raw[place]}"
        return pa.array(texts, pa.utf8())

    return finish
