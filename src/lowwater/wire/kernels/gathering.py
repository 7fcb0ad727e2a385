"""Rows that were found by `scanning`, in the order in which they stand, into Arrow's buffers."""

# mypy: disable-error-code="no-untyped-call, call-arg"

from __future__ import annotations

from typing import Any

import numba
from numba import types

from lowwater.wire.kernels.compiling import I8, I32, I64, U8, compiled, copy_bytes, prefetch, read_varint
from lowwater.wire.kernels.rows import ROWS

NO_TIMESTAMP = -1
_AHEAD, _SOON_BYTES, _LINE_BYTES = 4, 1024, 64  # rows lie apart: while one is copied, the fourth from it comes near


@compiled(types.UniTuple(types.int64, 2)(ROWS, I32, I32, I32, I32, I64, I64, I8))
def gather_numbers(
    rows: Any,
    topic_of: Any,
    partition_of: Any,
    topics: Any,
    partitions: Any,
    offsets: Any,
    timestamps: Any,
    timestamp_types: Any,
) -> tuple[int, int]:
    """The columns of numbers; topic and partition are by tag. How many rows have no timestamp, how many headers."""
    unstamped = headers = 0
    for place in range(rows.shape[0]):
        row = rows[place]
        topics[place] = topic_of[row.tag]
        partitions[place] = partition_of[row.tag]
        offsets[place] = row.offset
        timestamps[place] = row.timestamp
        timestamp_types[place] = row.timestamp_type
        unstamped += row.timestamp == NO_TIMESTAMP
        headers += row.header_count
    return unstamped, headers


@compiled(types.UniTuple(types.int64, 4)(ROWS))
def binary_sizes(rows: Any) -> tuple[int, int, int, int]:
    """Bytes of all keys, how many are null; the same of values."""
    keys = null_keys = values = null_values = 0
    for place in range(rows.shape[0]):
        row = rows[place]
        keys += max(row.key_size, 0)
        null_keys += row.key_size < 0
        values += max(row.value_size, 0)
        null_values += row.value_size < 0
    return keys, null_keys, values, null_values


@compiled(types.void(ROWS, I32, U8, U8, I32, U8, U8))
def gather_binary(
    rows: Any, key_ends: Any, keys: Any, key_validity: Any, value_ends: Any, values: Any, value_validity: Any
) -> None:
    """Two Arrow binary columns: ends are one longer than the rows are, validity starts as zeros."""
    key_target, value_target = keys.ctypes.data, values.ctypes.data
    key_position = value_position = 0
    key_ends[0] = value_ends[0] = 0
    last = rows.shape[0] - 1
    for place in range(rows.shape[0]):
        row = rows[place]
        soon = rows[min(place + _AHEAD, last)]
        for line in range(0, min(soon.size, _SOON_BYTES), _LINE_BYTES):
            prefetch(soon.key_at + line)
        if row.key_size >= 0:
            copy_bytes(key_target + key_position, row.key_at, row.key_size)
            key_position += row.key_size
            key_validity[place >> 3] |= numba.uint8(1 << (place & 7))
        key_ends[place + 1] = key_position
        if row.value_size >= 0:
            copy_bytes(value_target + value_position, row.key_at + row.value_from, row.value_size)
            value_position += row.value_size
            value_validity[place >> 3] |= numba.uint8(1 << (place & 7))
        value_ends[place + 1] = value_position


@compiled(types.UniTuple(types.int64, 4)(ROWS))
def headers_size(rows: Any) -> tuple[int, int, int, int]:
    """Headers of the rows: how many, bytes of their names, bytes of their values, null values."""
    count = names = values = nulls = 0
    for place in range(rows.shape[0]):
        at = rows[place].key_at + rows[place].headers_from
        for _ in range(rows[place].header_count):
            size, at = read_varint(at, at + 10)
            names += size
            size, at = read_varint(at + size, at + size + 10)
            if size < 0:
                nulls += 1
            else:
                values += size
                at += size
            count += 1
    return count, names, values, nulls


@compiled(types.void(ROWS, I32, I32, U8, I32, U8, U8))
def gather_headers(
    rows: Any, list_ends: Any, name_ends: Any, names: Any, value_ends: Any, values: Any, validity: Any
) -> None:
    """An Arrow list<struct<name, value>> column, as `headers_size` measured it."""
    name_target, value_target = names.ctypes.data, values.ctypes.data
    count = name_position = value_position = 0
    list_ends[0] = name_ends[0] = value_ends[0] = 0
    for place in range(rows.shape[0]):
        at = rows[place].key_at + rows[place].headers_from
        for _ in range(rows[place].header_count):
            size, at = read_varint(at, at + 10)
            copy_bytes(name_target + name_position, at, size)
            name_position += size
            size, at = read_varint(at + size, at + size + 10)
            if size >= 0:
                copy_bytes(value_target + value_position, at, size)
                value_position += size
                at += size
                validity[count >> 3] |= numba.uint8(1 << (count & 7))
            count += 1
            name_ends[count] = name_position
            value_ends[count] = value_position
        list_ends[place + 1] = count
