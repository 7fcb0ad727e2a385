"""Columns to records, as they stand in a batch: measured first, then written into exactly that room."""

# mypy: disable-error-code="no-untyped-call, call-arg, no-any-return"

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import types

from lowwater.wire.kernels.compiling import I32, I64, U8, bit_length, compiled, copy_bytes, inner, put_byte, put_short

OUTGOING_ROW = np.dtype(
    [
        ("key_at", np.int64),
        ("value_at", np.int64),
        ("timestamp", np.int64),
        ("key_size", np.int32),  # -1 for null, as in a record
        ("value_size", np.int32),
        ("first_header", np.int32),
        ("end_header", np.int32),
    ],
    align=True,
)
OUTGOING_HEADER = np.dtype(
    [("name_at", np.int64), ("value_at", np.int64), ("name_size", np.int32), ("value_size", np.int32)], align=True
)
OUTGOING_ROWS = numba.from_dtype(OUTGOING_ROW)[::1]
OUTGOING_HEADERS = numba.from_dtype(OUTGOING_HEADER)[::1]


@inner
def zigzag(value: int) -> Any:
    """Small numbers of either sign as small numbers without one."""
    return numba.uint64((value << 1) ^ (value >> 63))


@inner
def varint_size(value: int) -> int:
    """Bytes of a zigzag varint: seven bits in each. 9/64 is a seventh, near enough for 64 bits."""
    return (bit_length(zigzag(value)) * 9 + 64) >> 6


@inner
def field_size(size: int) -> int:
    """Bytes of a field with its length before it."""
    return varint_size(size) + max(size, 0)


@inner
def write_varint(at: int, value: int) -> int:
    """Write a zigzag varint; the place after it. Most have one or two bytes."""
    rest = zigzag(value)
    if rest < numba.uint64(0x80):
        put_byte(at, numba.uint8(rest))
        return at + 1
    if rest < numba.uint64(0x4000):
        put_short(
            at,
            numba.uint16(rest & numba.uint64(0x7F) | numba.uint64(0x80) | rest >> numba.uint64(7) << numba.uint64(8)),
        )
        return at + 2
    while rest > numba.uint64(0x7F):
        put_byte(at, numba.uint8(rest & numba.uint64(0x7F) | numba.uint64(0x80)))
        at += 1
        rest >>= numba.uint64(7)
    put_byte(at, numba.uint8(rest))
    return at + 1


@inner
def write_field(at: int, source: int, size: int) -> int:
    """Write a field with its length before it, -1 for null; the place after it."""
    at = write_varint(at, size)
    if size > 0:
        copy_bytes(at, source, size)
        at += size
    return at


@inner
def headers_size(headers: Any, first: int, end: int) -> int:
    """Bytes of a record's headers, without their number."""
    size = 0
    for place in range(first, end):
        size += field_size(headers[place].name_size) + field_size(headers[place].value_size)
    return size


@inner
def write_headers(at: int, headers: Any, first: int, end: int) -> int:
    """Write a record's headers, their number first; the place after them."""
    at = write_varint(at, end - first)
    for place in range(first, end):
        header = headers[place]
        at = write_field(at, header.name_at, header.name_size)
        at = write_field(at, header.value_at, header.value_size)
    return at


@compiled(types.UniTuple(types.int64, 3)(OUTGOING_ROWS, OUTGOING_HEADERS, I64, types.int64, types.int64, I32))
def fit(rows: Any, headers: Any, chosen: Any, first: int, bytes_max: int, body_sizes: Any) -> tuple[int, int, int]:
    """How many of the chosen rows from `first` on fit into one batch, their bytes, and their largest timestamp.

    `body_sizes` gets the size of each, for `encode`. One always fits: what is too large is for the broker to refuse.
    """
    total = 0
    base_timestamp = newest = rows[chosen[first]].timestamp
    for place in range(first, chosen.shape[0]):
        row = rows[chosen[place]]
        count = row.end_header - row.first_header
        size = 1 + varint_size(row.timestamp - base_timestamp) + varint_size(place - first) + varint_size(count)
        size += field_size(row.key_size) + field_size(row.value_size)
        if count:
            size += headers_size(headers, row.first_header, row.end_header)
        body_sizes[place] = size
        size += varint_size(size)
        if place > first and size > bytes_max - total:
            return place - first, total, newest
        total += size
        newest = max(newest, row.timestamp)
    return chosen.shape[0] - first, total, newest


@compiled(types.int64(OUTGOING_ROWS, OUTGOING_HEADERS, I64, types.int64, types.int64, I32, U8))
def encode(rows: Any, headers: Any, chosen: Any, first: int, count: int, body_sizes: Any, data: Any) -> int:
    """Write these rows as records, as `fit` measured them; how many bytes that were."""
    start = at = data.ctypes.data
    base_timestamp = rows[chosen[first]].timestamp
    for place in range(first, first + count):
        row = rows[chosen[place]]
        at = write_varint(at, body_sizes[place])
        put_byte(at, numba.uint8(0))
        at = write_varint(at + 1, row.timestamp - base_timestamp)
        at = write_varint(at, place - first)
        at = write_field(at, row.key_at, row.key_size)
        at = write_field(at, row.value_at, row.value_size)
        if row.first_header == row.end_header:
            put_byte(at, numba.uint8(0))
            at += 1
        else:
            at = write_headers(at, headers, row.first_header, row.end_header)
    return at - start
