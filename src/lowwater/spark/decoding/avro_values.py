"""Avro values to columns: one schema for all rows, or each row's own by its id."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lowwater.spark.decoding import avro_kernel as kernel
from lowwater.spark.decoding.avro_program import Program
from lowwater.spark.decoding.avro_schema import ArrayOf, Avro, EnumOf, Fixed, MapOf, Record, Union, parse_avro
from lowwater.spark.decoding.avro_shape import avro_shape, branches_of
from lowwater.spark.decoding.decoder import Decoded
from lowwater.spark.decoding.errors import SchemaError
from lowwater.spark.decoding.framing import take_ids
from lowwater.spark.decoding.layout import Column, Finish, Layout, Longs, bitmap_of, texts_of
from lowwater.spark.decoding.registry import Registry
from lowwater.spark.decoding.rows import Rows, decode_rows
from lowwater.spark.decoding.spec import AVRO, DecodeSpec

_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_UUID_PLACES = [place for place in range(36) if place not in (8, 13, 18, 23)]


class AvroValues:
    """Values of one reader's schema."""

    def __init__(self, spec: DecodeSpec) -> None:
        self._reader = parse_avro(str(spec.schema), dict(spec.references))
        self._is_wrapped = not isinstance(self._reader, Record)
        self._layout = Layout(avro_shape(self._reader))
        _finish(self._reader, self._target)
        self._program = Program()
        self._entry = self._add(self._reader)
        self._is_framed = spec.is_framed
        self._registry = None if spec.registry is None else Registry.of(spec.registry)
        self._entries: dict[int, int] = {}

    def decode(self, values: pa.Array) -> Decoded:
        rows = Rows.of(values)
        entries = np.full(len(values), self._entry, np.int64)
        if self._is_framed:
            self._choose(rows, entries, take_ids(rows))
        return self._decode(rows, entries)

    def _choose(self, rows: Rows, entries: Longs, ids: Longs) -> None:
        """The entry of each row by the id of its writer's schema; rows are refused that cannot be read so."""
        if self._registry is None:
            return
        for schema_id in np.unique(ids[rows.open]).tolist():
            mine = rows.open & (ids == schema_id)
            try:
                entries[mine] = self._entry_of(schema_id)
            except SchemaError as error:
                rows.refuse(mine, f"schema {schema_id}: {error}")

    def _entry_of(self, schema_id: int) -> int:
        if schema_id not in self._entries:
            assert self._registry is not None
            found = self._registry.by_id(schema_id, AVRO)
            self._entries[schema_id] = self._add(parse_avro(found.text, dict(found.references)))
        return self._entries[schema_id]

    @property
    def _target(self) -> Column:
        root = self._layout.root
        return root.children[0] if self._is_wrapped else root

    def _add(self, writer: Avro) -> int:
        return self._program.add(writer, self._reader, self._target, self._layout.root if self._is_wrapped else None)

    def _decode(self, rows: Rows, entries: Longs) -> Decoded:
        stack = np.zeros(2 * kernel.DEPTH_MAX, np.int64)
        steps, numbers = self._program.arrays()

        def walk(table: npt.NDArray[np.int64], slots: Longs, valid: npt.NDArray[np.uint8], fill: bool) -> None:
            kernel.walk_avro(
                *(steps, numbers, table, slots, valid, self._layout.row_columns),
                *(stack, entries, rows.places, rows.sizes, rows.faults, fill),
            )

        return decode_rows(self._layout, rows, walk, self._explain)

    def _explain(self, fault: int, step: int, place: int) -> str:
        name = self._program.name(step)
        return f"{f'field {name}: ' if name else ''}{kernel.FAULTS[fault]} (byte {place})"


def _finish(schema: Avro, column: Column) -> None:
    """Tell the columns of enums and of UUIDs in bytes how they become texts."""
    match schema:
        case EnumOf(symbols=symbols):
            column.width = 1
            column.finish = _symbols(symbols)
        case Fixed(logical="uuid"):
            column.finish = _uuids
        case Record(fields=fields):
            for one, child in zip(fields, column.children, strict=True):
                _finish(one.type, child)
        case ArrayOf(item):
            _finish(item, column.children[0])
        case MapOf(item):
            _finish(item, column.children[1])
        case Union():
            some = branches_of(schema)
            for branch, child in zip(some, [column] if len(some) == 1 else column.children, strict=True):
                _finish(branch, child)


def _symbols(symbols: tuple[str, ...]) -> Finish:
    names = pa.array(symbols, pa.utf8())

    def finish(raw: Longs, valid: npt.NDArray[np.bool_]) -> pa.Array:
        return names.take(pa.array(raw.astype(np.int32), mask=~valid))

    return finish


def _uuids(raw: Longs, valid: npt.NDArray[np.bool_]) -> pa.Array:
    octets = np.frombuffer(texts_of(raw)[1], np.uint8)
    letters = np.full((len(octets) // 16, 36), ord("-"), np.uint8)
    letters[:, _UUID_PLACES] = np.stack([_HEX[octets >> 4], _HEX[octets & 15]], axis=1).reshape(-1, 32)
    ends = np.concatenate([[0], np.cumsum(valid)]).astype(np.int32) * 36
    return pa.Array.from_buffers(pa.utf8(), len(valid), [bitmap_of(valid), pa.py_buffer(ends), pa.py_buffer(letters)])
