"""Batches of the client in exactly the shape that Spark expects of a Python source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lowwater.client.errors import CorruptRecordsError
from lowwater.spark.columns import Chosen
from lowwater.spark.decoding.decoder import Decoder
from lowwater.spark.decoding.spec import DecodeSpec

MICROSECONDS = pa.timestamp("us", tz="UTC")
MILLISECONDS = pa.timestamp("ms", tz="UTC")
HEADER = pa.struct([pa.field("key", pa.utf8()), pa.field("value", pa.binary())])
HEADERS = pa.list_(pa.field("element", HEADER))
TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.utf8(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": MICROSECONDS,
    "timestampType": pa.int32(),
    "headers": HEADERS,
}
_READ_AS = {"timestampType": "timestamp_type"}
FAIL = "fail"
_PLACE = ("topic", "partition", "offset")


class Shape:
    """Which columns to read, and how they are handed over. `decoder`: one of them is not handed over as it is."""

    def __init__(self, chosen: Sequence[Chosen], decoder: Decoder | None = None) -> None:
        self._names = [each.name for each in chosen]
        self._decoder = decoder if decoder is not None and _decoded(decoder).intersection(self._names) else None
        types = types_of(self._decoder)
        self.schema = pa.schema([pa.field(each.name, types[each.name], nullable=each.is_nullable) for each in chosen])
        self.reads = tuple(dict.fromkeys(self._reads()))
        """The client's columns; what is not among them is not looked at."""

    def _reads(self) -> Iterator[str]:
        decoder = self._decoder
        if decoder is not None:
            yield decoder.spec.column
            if decoder.spec.on_bad == FAIL:
                yield from _PLACE
        decoded = frozenset() if decoder is None else _decoded(decoder)
        yield from (_READ_AS.get(name, name) for name in self._names if name not in decoded)

    def fit(self, batch: Any) -> Any:
        """The same rows as Spark expects them."""
        made = {} if self._decoder is None else _decode(self._decoder, batch)
        columns = [made[name] if name in made else _column(name, batch) for name in self._names]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


@lru_cache(maxsize=16)
def shape_of(chosen: tuple[Chosen, ...], decode: DecodeSpec | None) -> Shape:
    """One for all tasks of a process that read the same columns."""
    return Shape(chosen, None if decode is None else Decoder.of(decode))


def types_of(decoder: Decoder | None) -> dict[str, Any]:
    """By column, its type; those that a decoder adds stand last."""
    if decoder is None:
        return TYPES
    spec = decoder.spec
    added = {} if spec.on_bad == FAIL else {spec.raw_column: pa.binary(), spec.error_column: pa.utf8()}
    return {**TYPES, spec.column: decoder.type, **added}


def _decoded(decoder: Decoder) -> frozenset[str]:
    spec = decoder.spec
    return frozenset({spec.column} if spec.on_bad == FAIL else {spec.column, spec.raw_column, spec.error_column})


def _decode(decoder: Decoder, batch: Any) -> dict[str, Any]:
    spec = decoder.spec
    values = batch.column(spec.column)
    decoded = decoder.decode(values)
    if spec.on_bad == FAIL:
        decoded.fail(spec.column, *map(batch.column, _PLACE))
        return {spec.column: decoded.struct}
    return {spec.column: decoded.struct, spec.raw_column: decoded.raw(values), spec.error_column: decoded.errors()}


def _column(name: str, batch: Any) -> Any:
    column = batch.column(_READ_AS.get(name, name))
    match name:
        case "timestamp":
            return _microseconds(column)
        case "headers":
            return _headers(column)
    return column if column.type == TYPES[name] else column.cast(TYPES[name])


def _microseconds(column: Any) -> Any:
    """Records without a time have -1 under their null: the connector shows that, the last millisecond before 1970."""
    # Not by fill_null: its scalar would import pandas, where that is installed, which takes longer than a batch does.
    stamped = pa.Array.from_buffers(MILLISECONDS, len(column), [None, column.buffers()[1]], 0)
    try:
        return stamped.cast(MICROSECONDS)
    except pa.ArrowInvalid:
        latest_ms = pc.max(stamped.cast(pa.int64())).as_py()
        raise CorruptRecordsError(
            f"a record is stamped {latest_ms} ms, which is beyond what Spark's timestamps can say",
            advice="leave the column timestamp out by a schema of your own, or start behind that record",
        ) from None


def _headers(column: Any) -> Any:
    """Null where there are none, as the connector has it."""
    count = len(column)
    if not len(column.values):
        return pa.nulls(count, HEADERS)
    ends = np.frombuffer(column.buffers()[1], np.int32, count + 1)
    has_some = ends[1:] > ends[:-1]
    present = None if has_some.all() else pa.py_buffer(np.packbits(has_some, bitorder="little"))
    pairs = pa.StructArray.from_arrays(column.values.flatten(), fields=list(HEADER))
    nulls = count - int(has_some.sum())
    return pa.Array.from_buffers(HEADERS, count, [present, column.buffers()[1]], nulls, children=[pairs])
