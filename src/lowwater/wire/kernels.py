"""Records to columns and back, without a Python object per record: compiled by numba, at first use or from its cache.

`scan` finds and checks every field of every record; the gathering kernels trust what it found and copy. Places are
addresses: rows of many buffers are gathered in one go, and whoever holds the places holds the buffers.
"""

# mypy: disable-error-code="no-untyped-call, call-arg"

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])

I32, I64, U8 = types.int32[::1], types.int64[::1], types.uint8[::1]

# Columns of a section, by which `scan` is told where records are.
ADDRESS, SIZE, BASE_OFFSET, BASE_TIMESTAMP, APPEND_TIMESTAMP, RECORDS, LAST_DELTA, FIRST_WANTED, TAG = range(9)
SECTION_COLUMNS = 9
KEEP_CREATE_TIME = -(1 << 63)  # in place of an append timestamp

# What `scan` found wrong; 0 is nothing.
BAD_NUMBER, BAD_LENGTH, BAD_OFFSET, BAD_HEADERS, BAD_END = range(1, 6)
FAULTS = {
    BAD_NUMBER: "a number ends early or has too many bytes",
    BAD_LENGTH: "a field is longer than its record",
    BAD_OFFSET: "an offset is outside its batch",
    BAD_HEADERS: "its headers are not as long as they say",
    BAD_END: "bytes follow the last record",
}
NO_BYTES = -1  # a length: the field is null


def compiled(signature: Any) -> Callable[[F], F]:
    """Compile for exactly this signature, so that no other array kind compiles anew in the middle of a read."""

    def decorate(function: F) -> F:
        kernel: F = numba.njit(signature, nogil=True, boundscheck=False, cache=is_cache_writable())(function)
        return kernel

    return decorate


def is_cache_writable() -> bool:
    """Without a place for its cache numba refuses to compile at all; then each process compiles for itself."""
    try:
        numba.njit(cache=True)(is_cache_writable)
    except RuntimeError:
        return False
    return True


@intrinsic
def byte_at(typing_context: Any, address: Any) -> Any:
    """The byte at an address."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        return builder.load(pointer)

    return types.uint8(types.int64), build


@intrinsic
def copy_bytes(typing_context: Any, target: Any, source: Any, size: Any) -> Any:
    """memcpy: the compiler's own copying loops are several times slower."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bytes_type = ir.IntType(8).as_pointer()
        to, come, count = arguments
        cgutils.raw_memcpy(builder, builder.inttoptr(to, bytes_type), builder.inttoptr(come, bytes_type), count, 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), build


@numba.njit(nogil=True, inline="always")
def read_varint(at: int, end: int) -> tuple[int, int]:
    """A zigzag varint before `end`, and the place after it; place -1 when there is none."""
    result = numba.uint64(0)
    shift = numba.uint64(0)
    while at < end and shift < 70:
        byte = numba.uint64(byte_at(at))
        at += 1
        result |= (byte & numba.uint64(0x7F)) << shift
        if byte < 0x80:
            return numba.int64(result >> numba.uint64(1)) ^ -numba.int64(result & numba.uint64(1)), at
        shift += numba.uint64(7)
    return 0, -1


@compiled(types.int64(types.int64, types.int64, types.int64))
def headers_end(at: int, end: int, count: int) -> int:
    """Where `count` headers end, or -1 when they do not fit before `end`."""
    for _ in range(count):
        for place in range(2):
            length, at = read_varint(at, end)
            if at < 0 or length > end - at or length < -place:  # a name is never null, a value may be
                return -1
            at += max(length, 0)
    return at


@compiled(types.UniTuple(types.int64, 3)(types.int64[:, ::1], I64, I64, I64, I32, I64, I32, I64, I32, I32))
def scan(
    sections: Any,
    offsets: Any,
    timestamps: Any,
    key_at: Any,
    key_size: Any,
    value_at: Any,
    value_size: Any,
    headers_at: Any,
    header_count: Any,
    tags: Any,
) -> tuple[int, int, int]:
    """Fill the columns with every record at or behind its section's first wanted offset.

    Returns how many there are, and, when something is wrong, what and in which section: then nothing counts. The
    columns have room for all records that the sections claim.
    """
    row = 0
    for section in range(sections.shape[0]):
        at = sections[section, 0]
        end = at + sections[section, 1]
        base_offset, base_timestamp = sections[section, 2], sections[section, 3]
        append_timestamp = sections[section, 4]
        last_delta, first_wanted, tag = sections[section, 6], sections[section, 7], sections[section, 8]
        for _ in range(sections[section, 5]):
            length, at = read_varint(at, end)
            if at < 0:
                return row, 1, section
            if length > end - at or length < 6:
                return row, 2, section
            record_end = at + length
            timestamp_delta, at = read_varint(at + 1, record_end)
            if at < 0:
                return row, 1, section
            offset_delta, at = read_varint(at, record_end)
            if at < 0:
                return row, 1, section
            if offset_delta < 0 or offset_delta > last_delta:
                return row, 3, section
            key_length, at = read_varint(at, record_end)
            if at < 0:
                return row, 1, section
            if key_length > record_end - at or key_length < -1:
                return row, 2, section
            key_place = at
            at += max(key_length, 0)
            value_length, at = read_varint(at, record_end)
            if at < 0:
                return row, 1, section
            if value_length > record_end - at or value_length < -1:
                return row, 2, section
            value_place = at
            at += max(value_length, 0)
            count, at = read_varint(at, record_end)
            if at < 0:
                return row, 1, section
            if count < 0 or count > record_end - at:
                return row, 4, section
            headers_place = at
            if count:
                at = headers_end(at, record_end, count)
            if at != record_end:
                return row, 4, section
            if base_offset + offset_delta < first_wanted:
                continue
            offsets[row] = base_offset + offset_delta
            timestamps[row] = base_timestamp + timestamp_delta
            if append_timestamp != -9223372036854775808:
                timestamps[row] = append_timestamp
            key_at[row] = key_place
            key_size[row] = key_length
            value_at[row] = value_place
            value_size[row] = value_length
            headers_at[row] = headers_place
            header_count[row] = count
            tags[row] = tag
            row += 1
        if at != end:
            return row, 5, section
    return row, 0, -1


@compiled(types.UniTuple(types.int64, 2)(I32, I64))
def binary_size(sizes: Any, rows: Any) -> tuple[int, int]:
    """Bytes of these rows' fields, and how many of them are null."""
    total = nulls = 0
    for place in range(rows.shape[0]):
        size = sizes[rows[place]]
        if size < 0:
            nulls += 1
        else:
            total += size
    return total, nulls


@compiled(types.void(I64, I32, I64, I32, U8, U8))
def gather_binary(at: Any, sizes: Any, rows: Any, ends: Any, data: Any, validity: Any) -> None:
    """An Arrow binary column of these rows: `ends` is one longer than they are, `validity` starts as zeros."""
    target = data.ctypes.data
    position = 0
    ends[0] = 0
    for place in range(rows.shape[0]):
        row = rows[place]
        size = sizes[row]
        if size >= 0:
            copy_bytes(target + position, at[row], size)
            position += size
            validity[place >> 3] |= numba.uint8(1 << (place & 7))
        ends[place + 1] = position


@compiled(types.UniTuple(types.int64, 4)(I64, I32, I64))
def headers_size(headers_at: Any, header_count: Any, rows: Any) -> tuple[int, int, int, int]:
    """Headers of these rows: how many, bytes of their names, bytes of their values, null values."""
    count = names = values = nulls = 0
    for place in range(rows.shape[0]):
        row = rows[place]
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


@compiled(types.void(I64, I32, I64, I32, I32, U8, I32, U8, U8))
def gather_headers(
    headers_at: Any,
    header_count: Any,
    rows: Any,
    list_ends: Any,
    name_ends: Any,
    names: Any,
    value_ends: Any,
    values: Any,
    validity: Any,
) -> None:
    """An Arrow list<struct<name, value>> column of these rows, as `headers_size` measured it."""
    name_target, value_target = names.ctypes.data, values.ctypes.data
    count = name_position = value_position = 0
    list_ends[0] = name_ends[0] = value_ends[0] = 0
    for place in range(rows.shape[0]):
        row = rows[place]
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
        list_ends[place + 1] = count
