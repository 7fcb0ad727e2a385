"""Rows in the order in which they are, as an Arrow record batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lowwater.client.slabs import ALIGNMENT, Slabs, aligned
from lowwater.merge.merging import Progress
from lowwater.types import TopicPartition
from lowwater.wire.kernels import gathering

HEADER = pa.struct([pa.field("key", pa.utf8(), nullable=False), pa.field("value", pa.binary())])
SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.dictionary(pa.int32(), pa.utf8()), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC")),
        pa.field("timestamp_type", pa.int8(), nullable=False),  # 0: the producer's time, 1: the broker's
        pa.field("headers", pa.list_(pa.field("item", HEADER, nullable=False)), nullable=False),
    ]
)
_TIME = SCHEMA.field("timestamp").type
ROWS_MAX = 64 * 1024
BYTES_MAX = (1 << 31) - 1  # what the offsets of a binary column can reach
# Of topic, partition, offset, timestamp and timestamp_type.
_NUMBERS = tuple(map(np.dtype, (np.int32, np.int32, np.int64, np.int64, np.int8)))
_NUMBERS_BYTES = sum(kind.itemsize for kind in _NUMBERS)
_TIMESTAMPS = 3
_BYTE, _END = np.dtype(np.uint8), np.dtype(np.int32)
_END_BYTES = _END.itemsize
_BINARY, _INT8, _INT32, _INT64 = pa.binary(), pa.int8(), pa.int32(), pa.int64()


def schema_of(columns: Sequence[str] | None) -> Any:
    """That of these columns, in their order; None: all."""
    return SCHEMA if columns is None else pa.schema([SCHEMA.field(name) for name in columns])


def empty(columns: Sequence[str] | None) -> Any:
    return pa.RecordBatch.from_pylist([], schema=schema_of(columns))


def table(batches: Iterable[Any], columns: Sequence[str] | None) -> Any:
    return pa.Table.from_batches(batches, schema=schema_of(columns))


def chosen_rows(batch: Any, chosen: Any) -> Any:
    """Those for which the array of bools says so."""
    return batch.filter(pa.array(chosen))


def batch_reader(batches: Iterable[Any], columns: Sequence[str] | None) -> Any:
    return pa.RecordBatchReader.from_batches(schema_of(columns), batches)


def with_plain_topics(batch: Any) -> Any:
    """Names of topics as text, not by dictionary."""
    place = batch.schema.get_field_index("topic")
    if place < 0:
        return batch
    field = pa.field("topic", pa.utf8(), nullable=False)
    return batch.set_column(place, field, batch.column(place).cast(pa.utf8()))


STATES = pa.schema(
    [
        pa.field("topic", pa.utf8(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("replay_start_offset", pa.int64(), nullable=False),
        pa.field("replay_end_offset", pa.int64(), nullable=False),
        pa.field("consumed_offset", pa.int64(), nullable=False),
        pa.field("released_offset", pa.int64(), nullable=False),
        pa.field("last_consumed_timestamp", pa.timestamp("ms", tz="UTC")),
        pa.field("is_live", pa.bool_(), nullable=False),
        pa.field("is_paused", pa.bool_(), nullable=False),
    ]
)


def partition_states(partitions: Mapping[TopicPartition, tuple[Progress, int]]) -> Any:
    """A row for each. The last offset that came, and that went, or the first where none did, as kafkars has it."""
    rows = [
        {
            "topic": one.topic,
            "partition": one.partition,
            "replay_start_offset": each.start,
            "replay_end_offset": each.end,
            "consumed_offset": max(each.position - 1, each.start),
            "released_offset": max(position - 1, each.start),
            "last_consumed_timestamp": None if each.clock_ms < 0 else each.clock_ms,
            "is_live": each.is_live,
            "is_paused": each.is_paused,
        }
        for one, (each, position) in sorted(partitions.items())
    ]
    return pa.RecordBatch.from_pylist(rows, schema=STATES)


def record_batch(
    rows: Any, topics: Any, topic_of: Any, partition_of: Any, schema: Any = SCHEMA, slabs: Slabs | None = None
) -> Any:
    """A copy of these rows. `topics` is the dictionary; `topic_of` and `partition_of` are by tag."""
    count, names, slabs = len(rows), schema.names, slabs or Slabs(kept_bytes_max=0)
    slab = slabs.slab(_NUMBERS_BYTES * count + len(_NUMBERS) * ALIGNMENT)
    cuts = [slab.cut(kind, count) for kind in _NUMBERS]
    topic_places, partitions, offsets, timestamps, types = [buffer for buffer, _ in cuts]
    numbers = [data for _, data in cuts]
    unstamped, header_count = gathering.gather_numbers(rows, topic_of, partition_of, *numbers)
    columns = {
        "topic": pa.DictionaryArray.from_arrays(_numbers(_INT32, count, topic_places), topics, safe=False),
        "partition": _numbers(_INT32, count, partitions),
        "offset": _numbers(_INT64, count, offsets),
        "timestamp": _times(numbers[_TIMESTAMPS], timestamps, unstamped),
        "timestamp_type": _numbers(_INT8, count, types),
    }
    if "key" in names or "value" in names:
        columns["key"], columns["value"] = _fields(rows, slabs)
    if "headers" in names:
        columns["headers"] = _headers(rows) if header_count else _no_headers(count)
    return pa.RecordBatch.from_arrays([columns[name] for name in names], schema=schema)


def _numbers(kind: Any, count: int, values: Any) -> Any:
    """Not by pa.array: that imports pandas, where it is installed, which takes longer than the first batch does."""
    return pa.Array.from_buffers(kind, count, [None, values], 0)


def texts(values: Sequence[str]) -> Any:
    """A column of these texts."""
    raw = [one.encode() for one in values]
    ends = np.cumsum([0, *map(len, raw)], dtype=np.int32)
    return pa.Array.from_buffers(pa.utf8(), len(raw), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(raw))], 0)


def _room(size: int) -> tuple[Any, Any]:
    """Memory of Arrow's own pool, and the same as an array."""
    buffer = pa.allocate_buffer(size)
    return buffer, np.frombuffer(buffer, np.uint8)


def _fields(rows: Any, slabs: Slabs) -> tuple[Any, Any]:
    """Keys and values: whoever keeps one of the columns does not keep the memory of the other."""
    count = len(rows)
    key_bytes, null_keys, value_bytes, null_values = gathering.binary_sizes(rows)
    key_validity, value_validity = np.zeros((2, (count + 7) // 8), np.uint8)
    ends_size = aligned(_END_BYTES * (count + 1))
    key_slab, value_slab = slabs.slab(ends_size + key_bytes), slabs.slab(ends_size + value_bytes)
    key_ends, key_ends_data = key_slab.cut(_END, count + 1)
    keys, keys_data = key_slab.cut(_BYTE, key_bytes)
    value_ends, value_ends_data = value_slab.cut(_END, count + 1)
    values, values_data = value_slab.cut(_BYTE, value_bytes)
    gathering.gather_binary(rows, key_ends_data, keys_data, key_validity, value_ends_data, values_data, value_validity)
    return (
        _binary(count, null_keys, key_validity, key_ends, keys),
        _binary(count, null_values, value_validity, value_ends, values),
    )


def _binary(count: int, nulls: int, validity: Any, ends: Any, data: Any) -> Any:
    present = pa.py_buffer(validity) if nulls else None
    return pa.Array.from_buffers(_BINARY, count, [present, ends, data], nulls)


def _times(timestamps: Any, buffer: Any, nulls: int) -> Any:
    present = pa.py_buffer(np.packbits(timestamps != gathering.NO_TIMESTAMP, bitorder="little")) if nulls else None
    return pa.Array.from_buffers(_TIME, len(timestamps), [present, buffer], nulls)


def _no_headers(count: int) -> Any:
    """Lists without anything in them: their ends are all 0, and the same for every batch."""
    return pa.Array.from_buffers(_HEADERS, count, [None, _NO_ENDS], 0, children=[_NO_PAIRS])


def _headers(rows: Any) -> Any:
    count, names_size, values_size, nulls = gathering.headers_size(rows)
    list_ends = np.empty(len(rows) + 1, np.int32)
    name_ends, value_ends = np.empty(count + 1, np.int32), np.empty(count + 1, np.int32)
    (names, names_data), (values, values_data) = _room(names_size), _room(values_size)
    validity = np.zeros((count + 7) // 8, np.uint8)
    gathering.gather_headers(rows, list_ends, name_ends, names_data, value_ends, values_data, validity)
    name_array = _texts(pa.Array.from_buffers(pa.utf8(), count, [None, pa.py_buffer(name_ends), names]))
    value_array = _binary(count, nulls, validity, pa.py_buffer(value_ends), values)
    pairs = pa.StructArray.from_arrays([name_array, value_array], fields=list(HEADER))
    return pa.Array.from_buffers(_HEADERS, len(rows), [None, pa.py_buffer(list_ends)], 0, children=[pairs])


def _texts(names: Any) -> Any:
    """Names that are no UTF-8 get replacement characters, as Java's client gives them."""
    try:
        names.validate(full=True)
    except pa.ArrowInvalid:
        raw = names.view(pa.binary()).to_pylist()
        return pa.array([one.decode("utf-8", "replace") for one in raw], pa.utf8())
    return names


_HEADERS = SCHEMA.field("headers").type
_NO_ENDS = pa.py_buffer(bytes((ROWS_MAX + 1) * np.dtype(np.int32).itemsize))
_NO_PAIRS = pa.StructArray.from_arrays(
    [texts([]), _binary(0, 0, None, _NO_ENDS, pa.py_buffer(b""))], fields=list(HEADER)
)
