"""Rows in the order in which they are, as an Arrow record batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from lowwater.client.chunks import Columns
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
ROWS_MAX = 64 * 1024
BYTES_MAX = (1 << 31) - 1  # what the offsets of a binary column can reach
NO_TIMESTAMP = -1


def record_batch(rows: Columns, topics: Any, topic_of: Any, partition_of: Any) -> Any:
    """A copy of these rows. `topics` is the dictionary; `topic_of` and `partition_of` are by tag."""
    count = len(rows.offsets)
    columns = [
        _binary(rows.key_at, rows.key_size),
        _binary(rows.value_at, rows.value_size),
        pa.DictionaryArray.from_arrays(pa.array(topic_of[rows.tags]), topics),
        pa.array(partition_of[rows.tags]),
        pa.array(rows.offsets.copy()),
        _times(rows.timestamps.copy(), count),
        pa.array(rows.timestamp_types.copy()),
        _headers(rows.headers_at, rows.header_count, count),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _room(size: int) -> tuple[Any, Any]:
    """Memory of Arrow's own pool, which is used again, and the same as an array."""
    buffer = pa.allocate_buffer(size)
    return buffer, np.frombuffer(buffer, np.uint8)


def _binary(at: Any, sizes: Any) -> Any:
    count = len(sizes)
    total, nulls = gathering.binary_size(sizes)
    ends = np.empty(count + 1, np.int32)
    validity = np.zeros((count + 7) // 8, np.uint8)
    buffer, data = _room(total)
    gathering.gather_binary(at, sizes, ends, data, validity)
    present = pa.py_buffer(validity) if nulls else None
    return pa.Array.from_buffers(pa.binary(), count, [present, pa.py_buffer(ends), buffer], nulls)


def _times(timestamps: Any, count: int) -> Any:
    is_known = timestamps != NO_TIMESTAMP
    nulls = count - int(np.count_nonzero(is_known))
    present = pa.py_buffer(np.packbits(is_known, bitorder="little")) if nulls else None
    kind = SCHEMA.field("timestamp").type
    return pa.Array.from_buffers(kind, count, [present, pa.py_buffer(timestamps)], nulls)


def _headers(at: Any, counts: Any, rows: int) -> Any:
    count, names_size, values_size, nulls = gathering.headers_size(at, counts)
    list_ends = np.zeros(rows + 1, np.int32)
    name_ends, value_ends = np.empty(count + 1, np.int32), np.empty(count + 1, np.int32)
    (names, names_data), (values, values_data) = _room(names_size), _room(values_size)
    validity = np.zeros((count + 7) // 8, np.uint8)
    gathering.gather_headers(at, counts, list_ends, name_ends, names_data, value_ends, values_data, validity)
    present = pa.py_buffer(validity) if nulls else None
    name_array = _texts(pa.Array.from_buffers(pa.utf8(), count, [None, pa.py_buffer(name_ends), names]))
    value_array = pa.Array.from_buffers(pa.binary(), count, [present, pa.py_buffer(value_ends), values], nulls)
    pairs = pa.StructArray.from_arrays([name_array, value_array], fields=list(HEADER))
    return pa.Array.from_buffers(
        SCHEMA.field("headers").type, rows, [None, pa.py_buffer(list_ends)], 0, children=[pairs]
    )


def _texts(names: Any) -> Any:
    """Names that are no UTF-8 get replacement characters, as Java's client gives them."""
    try:
        names.validate(full=True)
    except pa.ArrowInvalid:
        raw = names.view(pa.binary()).to_pylist()
        return pa.array([one.decode("utf-8", "replace") for one in raw], pa.utf8())
    return names
