"""From the schema a row was written with, and the one it is read as, to the kernel's steps.

Resolution is Avro's: fields by name or the reader's alias, in the writer's order; what only the writer has is read
over; what only the reader has takes its default; int, long, float and double widen; string and bytes change places; a
symbol that the reader lacks is its enum's default. Names of records are compared only to choose a branch of a union.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lowwater.spark.decoding import avro_kernel as kernel
from lowwater.spark.decoding.avro_defaults import encode_default
from lowwater.spark.decoding.avro_schema import (
    DEPTH_MAX,
    NO_DEFAULT,
    ArrayOf,
    Avro,
    EnumOf,
    Fixed,
    MapOf,
    Primitive,
    Record,
    Union,
)
from lowwater.spark.decoding.avro_shape import NULL, branches_of
from lowwater.spark.decoding.errors import SchemaError
from lowwater.spark.decoding.kernels import NO_COLUMN
from lowwater.spark.decoding.layout import Column

STEPS_MAX = 200_000
NO_SIZE = -1
_READS = {
    "boolean": kernel.BOOLEAN,
    "int": kernel.INT,
    "long": kernel.LONG,
    "float": kernel.FLOAT,
    "double": kernel.DOUBLE,
    "bytes": kernel.OCTETS,
    "string": kernel.TEXT,
}
_WIDER = {
    ("int", "long"): kernel.INT,
    ("int", "float"): kernel.INT_AS_FLOAT,
    ("int", "double"): kernel.INT_AS_DOUBLE,
    ("long", "float"): kernel.AS_FLOAT,
    ("long", "double"): kernel.AS_DOUBLE,
    ("float", "double"): kernel.FLOAT_AS_DOUBLE,
    ("string", "bytes"): kernel.OCTETS,
    ("bytes", "string"): kernel.TEXT,
}


class UnreadableError(SchemaError):
    """What the writer has cannot be read as what the reader wants."""


class Program:
    """Steps of all writers' schemas that were met; each begins at an entry of its own."""

    def __init__(self) -> None:
        self._steps: list[list[int]] = []
        self._numbers: list[int] = []
        self._names: list[str] = []
        self._defaults: list[npt.NDArray[np.uint8]] = []
        self._path: list[str] = []
        self._arrays: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None = None

    def add(self, writer: Avro, reader: Avro, column: Column, around: Column | None = None) -> int:
        """Steps that read rows of `writer` into the columns of `reader`, maybe in a struct around; the entry."""
        steps, numbers = len(self._steps), len(self._numbers)
        try:
            if around is not None:
                self._step(kernel.STRUCT, around)
            self._resolve(writer, reader, column, 0)
            self._step(kernel.END)
        except SchemaError:
            del self._steps[steps:], self._names[steps:], self._numbers[numbers:]
            raise
        finally:
            self._path.clear()
            self._arrays = None
        return steps

    def arrays(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Steps and numbers, as the kernel takes them."""
        if self._arrays is None:
            steps = np.array(self._steps, np.int64).reshape(-1, kernel.STEP_FIELDS)
            self._arrays = steps, np.array([*self._numbers, 0], np.uint64).view(np.int64)
        return self._arrays

    def name(self, step: int) -> str:
        """The field at which a step stands, with the fields around it; empty for the row itself."""
        return self._names[step]

    def _step(self, op: int, column: Column | None = None, a: int = 0, b: int = 0) -> int:
        if len(self._steps) >= STEPS_MAX:
            raise SchemaError(f"the Avro schema unfolds to more than {STEPS_MAX} steps")
        self._steps.append([op, NO_COLUMN if column is None else column.index, a, b])
        self._names.append(".".join(self._path))
        return len(self._steps) - 1

    def _number(self, *numbers: int) -> int:
        self._numbers.extend(number & 0xFFFFFFFFFFFFFFFF for number in numbers)
        return len(self._numbers) - len(numbers)

    def _resolve(self, writer: Avro, reader: Avro, column: Column | None, depth: int) -> None:
        if depth > DEPTH_MAX:
            raise SchemaError(f"the Avro schema is nested more than {DEPTH_MAX} deep, or contains itself")
        if isinstance(writer, Union):
            return self._writer_union(writer, reader, column, depth)
        if isinstance(reader, Union):
            return self._reader_union(writer, reader, column, depth)
        match writer, reader:
            case Record(), Record():
                return self._record(writer, reader, column, depth)
            case ArrayOf(item), ArrayOf(wanted):
                return self._list(item, wanted, column, 0, depth)
            case MapOf(item), MapOf(wanted):
                return self._list(item, wanted, column, 1, depth)
            case EnumOf(), EnumOf():
                return self._enum(writer, reader, column)
            case ((Primitive() | Fixed()), (Primitive() | Fixed())):
                return self._leaf(writer, reader, column)
        raise self._unreadable(writer, reader)

    def _writer_union(self, writer: Union, reader: Avro, column: Column | None, depth: int) -> None:
        table = self._number(*[0] * len(writer.branches))
        self._step(kernel.UNION, column, table, len(writer.branches))
        ends = []
        for place, branch in enumerate(writer.branches):
            self._numbers[table + place] = len(self._steps)
            steps, numbers = len(self._steps), len(self._numbers)
            try:
                self._resolve(branch, reader, column, depth + 1)
            except UnreadableError:  # only rows that take this branch cannot be read
                del self._steps[steps:], self._names[steps:], self._numbers[numbers:]
                self._step(kernel.FAIL)
            ends.append(self._step(kernel.JUMP))
        for end in ends:
            self._steps[end][kernel.A] = len(self._steps)

    def _reader_union(self, writer: Avro, reader: Union, column: Column | None, depth: int) -> None:
        if column is None:  # read over: reader and writer are the same
            return self._resolve(writer, writer, None, depth + 1)
        if writer == NULL and NULL in reader.branches:
            return self._nulls(column)
        some = branches_of(reader)
        place = _branch(writer, some)
        if place is None:
            raise self._unreadable(writer, reader)
        if len(some) == 1:
            return self._resolve(writer, some[0], column, depth + 1)
        self._step(kernel.STRUCT, column)
        for other, child in enumerate(column.children):
            if other != place:
                self._nulls(child)
        return self._resolve(writer, some[place], column.children[place], depth + 1)

    def _record(self, writer: Record, reader: Record, column: Column | None, depth: int) -> None:
        children: dict[str, Column | None] = {one.name: None for one in reader.fields}
        if column is not None:
            self._step(kernel.STRUCT, column)
            children = {one.name: child for one, child in zip(reader.fields, column.children, strict=True)}
        wanted = {name: one for one in reader.fields for name in (*one.aliases, one.name)}
        wanted |= {one.name: one for one in reader.fields}
        missing = {one.name: one for one in reader.fields}
        for one in writer.fields:
            self._path.append(one.name)
            target = wanted.get(one.name)
            if column is None or target is None or missing.pop(target.name, None) is None:
                self._resolve(one.type, one.type, None, depth + 1)
            else:
                self._resolve(one.type, target.type, children[target.name], depth + 1)
            self._path.pop()
        for one in missing.values() if column is not None else ():
            self._default(one.type, one.default, one.name, children[one.name], depth)

    def _default(self, schema: Avro, default: object, name: str, column: Column | None, depth: int) -> None:
        if default is NO_DEFAULT:
            raise UnreadableError(f"the Avro field {name!r} has no default, and rows were written without it")
        data = np.frombuffer(encode_default(schema, default, name) + b"\0", np.uint8)
        self._defaults.append(data)
        self._path.append(name)
        self._step(kernel.ENTER, None, data.ctypes.data, len(data) - 1)
        self._resolve(schema, schema, column, depth + 1)
        self._step(kernel.LEAVE)
        self._path.pop()

    def _list(self, item: Avro, wanted: Avro, column: Column | None, keys: int, depth: int) -> None:
        children = column.children if column is not None else [None, None]
        self._step(kernel.LIST, column)
        again = self._step(kernel.NEXT, column)
        if keys:
            self._step(kernel.TEXT, children[0], NO_SIZE)
        self._resolve(item, wanted, children[keys], depth + 1)
        self._step(kernel.JUMP, None, again)
        self._steps[again][kernel.A] = len(self._steps)

    def _enum(self, writer: EnumOf, reader: EnumOf, column: Column | None) -> None:
        known = {symbol: place for place, symbol in enumerate(reader.symbols)}
        default = known.get(reader.default, -1) if reader.default is not None else -1
        table = self._number(*[known.get(symbol, default) for symbol in writer.symbols])
        self._step(kernel.ENUM, column, table, len(writer.symbols))

    def _leaf(self, writer: Primitive | Fixed, reader: Primitive | Fixed, column: Column | None) -> None:
        if column is None:
            return self._skip(writer)
        if reader.logical == "decimal" or writer.logical == "decimal":
            return self._decimal(writer, reader, column)
        if isinstance(writer, Fixed) or isinstance(reader, Fixed):
            return self._fixed(writer, reader, column)
        op = _READS.get(writer.name) if writer.name == reader.name else _WIDER.get((writer.name, reader.name))
        if op is None or NULL in (writer, reader):
            raise self._unreadable(writer, reader)
        if reader.logical is not None and reader.logical.endswith("-millis"):
            op = kernel.MILLIS
        self._step(op, column, NO_SIZE)
        return None

    def _skip(self, schema: Primitive | Fixed) -> None:
        if isinstance(schema, Fixed):
            self._step(kernel.FIXED, None, schema.size)
        elif schema.name != "null":
            op = _READS[schema.name]
            self._step(kernel.OCTETS if op == kernel.TEXT else op, None, NO_SIZE)

    def _decimal(self, writer: Primitive | Fixed, reader: Primitive | Fixed, column: Column) -> None:
        alike = (writer.logical, writer.scale) == (reader.logical, reader.scale)
        if not alike or isinstance(writer, Fixed) != isinstance(reader, Fixed):
            raise self._unreadable(writer, reader)
        limit = 10**reader.precision
        size = writer.size if isinstance(writer, Fixed) else NO_SIZE
        self._step(kernel.DECIMAL, column, size, self._number(limit >> 64, limit))

    def _fixed(self, writer: Primitive | Fixed, reader: Primitive | Fixed, column: Column) -> None:
        if not (isinstance(writer, Fixed) and isinstance(reader, Fixed)) or writer.size != reader.size:
            raise self._unreadable(writer, reader)
        self._step(kernel.FIXED, column, writer.size)

    def _nulls(self, column: Column) -> None:
        for one in column.with_row():
            self._step(kernel.NULL, one)

    def _unreadable(self, writer: Avro, reader: Avro) -> UnreadableError:
        where = f" of the field {'.'.join(self._path)!r}" if self._path else ""
        return UnreadableError(f"Avro's {_called(writer)}{where} cannot be read as {_called(reader)}")


def _branch(writer: Avro, branches: list[Avro]) -> int | None:
    """Where a writer's type goes in a reader's union: the same type, else the first that can take it."""
    for fits in (_is_same, _can_widen):
        for place, branch in enumerate(branches):
            if fits(writer, branch):
                return place
    return None


def _is_same(writer: Avro, reader: Avro) -> bool:
    if type(writer) is not type(reader):
        return False
    if isinstance(writer, Primitive):
        return writer == reader
    if isinstance(writer, Record | EnumOf | Fixed) and isinstance(reader, Record | EnumOf | Fixed):
        names = {name.rpartition(".")[2] for name in (reader.name, *reader.aliases)}
        return writer.name.rpartition(".")[2] in names
    return True


def _can_widen(writer: Avro, reader: Avro) -> bool:
    if isinstance(writer, Primitive) and isinstance(reader, Primitive):
        return writer.name == reader.name or (writer.name, reader.name) in _WIDER
    return isinstance(writer, Record) and isinstance(reader, Record)


def _called(schema: Avro) -> str:
    match schema:
        case Primitive() | Fixed():
            return schema.name if schema.logical is None else f"{schema.name} ({schema.logical})"
        case EnumOf() | Record():
            return schema.name
        case Union():
            return f"union of {', '.join(_called(branch) for branch in schema.branches)}"
    return "array" if isinstance(schema, ArrayOf) else "map"
