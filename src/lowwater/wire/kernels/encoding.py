"""Columns to records, as they stand in a batch: measured first, then written into exactly that room."""

# mypy: disable-error-code="no-untyped-call, call-arg, no-any-return"

from __future__ import annotations

from typing import Any

import numba
from numba import types

from lowwater.wire.kernels.compiling import I32, I64, U8, compiled, copy_bytes, put_byte


@numba.njit(nogil=True)
def varint_size(value: int) -> int:
    """Bytes of a zigzag varint. Most have one or two."""
    if -64 <= value < 64:
        return 1
    if -8192 <= value < 8192:
        return 2
    rest = numba.uint64((value << 1) ^ (value >> 63)) >> numba.uint64(7)
    size = 1
    while rest:
        size += 1
        rest >>= numba.uint64(7)
    return size


@numba.njit(nogil=True)
def write_varint(at: int, value: int) -> int:
    """Write a zigzag varint; the place after it."""
    rest = numba.uint64((value << 1) ^ (value >> 63))
    while rest > numba.uint64(0x7F):
        put_byte(at, numba.uint8(rest & numba.uint64(0x7F) | numba.uint64(0x80)))
        at += 1
        rest >>= numba.uint64(7)
    put_byte(at, numba.uint8(rest))
    return at + 1


@numba.njit(nogil=True)
def write_bytes(at: int, source: int, size: int) -> int:
    """Write a field with its length before it, -1 for null; the place after it."""
    at = write_varint(at, size)
    if size > 0:
        copy_bytes(at, source, size)
        at += size
    return at


@numba.njit(nogil=True)
def body_size(
    row: int,
    timestamp_delta: int,
    offset_delta: int,
    key_size: Any,
    value_size: Any,
    header_starts: Any,
    header_ends: Any,
    name_size: Any,
    header_value_size: Any,
) -> int:
    """Bytes of a record behind its own length."""
    size = 1 + varint_size(timestamp_delta) + varint_size(offset_delta)
    size += varint_size(key_size[row]) + max(key_size[row], 0)
    size += varint_size(value_size[row]) + max(value_size[row], 0)
    size += varint_size(header_ends[row] - header_starts[row])
    for header in range(header_starts[row], header_ends[row]):
        size += varint_size(name_size[header]) + name_size[header]
        size += varint_size(header_value_size[header]) + max(header_value_size[header], 0)
    return size


@compiled(types.UniTuple(types.int64, 3)(I64, types.int64, types.int64, I64, I32, I32, I32, I32, I32, I32, I32))
def fit(
    rows: Any,
    first: int,
    bytes_max: int,
    timestamps: Any,
    key_size: Any,
    value_size: Any,
    header_starts: Any,
    header_ends: Any,
    name_size: Any,
    header_value_size: Any,
    body_sizes: Any,
) -> tuple[int, int, int]:
    """How many of the rows from `first` on fit into one batch, their bytes, and their largest timestamp.

    `body_sizes` gets the size of each, for `encode`. One always fits: what is too large is for the broker to refuse.
    """
    total = 0
    base_timestamp = newest = timestamps[rows[first]]
    for place in range(first, rows.shape[0]):
        row = rows[place]
        size = body_size(
            row,
            timestamps[row] - base_timestamp,
            place - first,
            key_size,
            value_size,
            header_starts,
            header_ends,
            name_size,
            header_value_size,
        )
        body_sizes[place] = size
        size += varint_size(size)
        if place > first and size > bytes_max - total:
            return place - first, total, newest
        total += size
        newest = max(newest, timestamps[row])
    return rows.shape[0] - first, total, newest


@compiled(types.int64(I64, types.int64, types.int64, I64, I64, I32, I64, I32, I32, I32, I64, I32, I64, I32, I32, U8))
def encode(
    rows: Any,
    first: int,
    count: int,
    timestamps: Any,
    key_at: Any,
    key_size: Any,
    value_at: Any,
    value_size: Any,
    header_starts: Any,
    header_ends: Any,
    name_at: Any,
    name_size: Any,
    header_value_at: Any,
    header_value_size: Any,
    body_sizes: Any,
    data: Any,
) -> int:
    """Write these rows as records, as `fit` measured them; how many bytes that were."""
    start = at = data.ctypes.data
    base_timestamp = timestamps[rows[first]]
    for place in range(first, first + count):
        row = rows[place]
        timestamp_delta, offset_delta = timestamps[row] - base_timestamp, place - first
        at = write_varint(at, body_sizes[place])
        put_byte(at, numba.uint8(0))
        at = write_varint(at + 1, timestamp_delta)
        at = write_varint(at, offset_delta)
        at = write_bytes(at, key_at[row], key_size[row])
        at = write_bytes(at, value_at[row], value_size[row])
        at = write_varint(at, header_ends[row] - header_starts[row])
        for header in range(header_starts[row], header_ends[row]):
            at = write_bytes(at, name_at[header], name_size[header])
            at = write_bytes(at, header_value_at[header], header_value_size[header])
    return at - start
