"""Rows that were found by `scanning`, in the order in which they stand, into Arrow's buffers."""

# mypy: disable-error-code="no-untyped-call, call-arg"

from __future__ import annotations

from typing import Any

import numba
from numba import types

from lowwater.wire.kernels.compiling import I32, I64, U8, compiled, copy_bytes, read_varint


@compiled(types.UniTuple(types.int64, 2)(I32))
def binary_size(sizes: Any) -> tuple[int, int]:
    """Bytes of the rows' fields, and how many of them are null."""
    total = nulls = 0
    for row in range(sizes.shape[0]):
        size = sizes[row]
        if size < 0:
            nulls += 1
        else:
            total += size
    return total, nulls


@compiled(types.void(I64, I32, I32, U8, U8))
def gather_binary(at: Any, sizes: Any, ends: Any, data: Any, validity: Any) -> None:
    """An Arrow binary column: `ends` is one longer than the rows are, `validity` starts as zeros."""
    target = data.ctypes.data
    position = 0
    ends[0] = 0
    for row in range(sizes.shape[0]):
        size = sizes[row]
        if size >= 0:
            copy_bytes(target + position, at[row], size)
            position += size
            validity[row >> 3] |= numba.uint8(1 << (row & 7))
        ends[row + 1] = position


@compiled(types.UniTuple(types.int64, 4)(I64, I32))
def headers_size(headers_at: Any, header_count: Any) -> tuple[int, int, int, int]:
    """Headers of the rows: how many, bytes of their names, bytes of their values, null values."""
    count = names = values = nulls = 0
    for row in range(headers_at.shape[0]):
        at = headers_at[row]
        for _ in range(header_count[row]):
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


@compiled(types.void(I64, I32, I32, I32, U8, I32, U8, U8))
def gather_headers(
    headers_at: Any,
    header_count: Any,
    list_ends: Any,
    name_ends: Any,
    names: Any,
    value_ends: Any,
    values: Any,
    validity: Any,
) -> None:
    """An Arrow list<struct<name, value>> column, as `headers_size` measured it."""
    name_target, value_target = names.ctypes.data, values.ctypes.data
    count = name_position = value_position = 0
    list_ends[0] = name_ends[0] = value_ends[0] = 0
    for row in range(headers_at.shape[0]):
        at = headers_at[row]
        for _ in range(header_count[row]):
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
        list_ends[row + 1] = count
