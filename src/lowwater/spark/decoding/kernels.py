"""What the kernels of all formats share: slots that are counted first and filled then, text, bits of numbers.

A kernel walks every row twice. The first walk judges the row and counts slots; the second, over the same bytes, fills
arrays of exactly that size. So what a length claims allocates nothing, and the second walk needs no checks of room.
"""

# mypy: disable-error-code="no-untyped-call, attr-defined, call-arg, call-overload, no-any-return, return-value"

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from lowwater.wire.kernels.compiling import I32, I64, TABLE, U8, byte_at, compiled, copy_bytes, long_at

# Fields of a column in the table that kernels are given.
LENGTH, WIDTH, PLACE, VALID, CHILD = range(5)
COLUMN_FIELDS = 5
NO_COLUMN = -1

# What may be wrong with a row in any format; a format's own faults come after.
GOOD, CUT, LONG_VARINT, BAD_LENGTH, BAD_TEXT, TOO_BIG, TOO_MANY, UNREADABLE, TRAILING = range(9)
FAULTS = {
    CUT: "the bytes end too early",
    LONG_VARINT: "a number has too many bytes",
    BAD_LENGTH: "a length is negative or beyond the end",
    BAD_TEXT: "a text is not UTF-8",
    TOO_BIG: "a number does not fit its type",
    TOO_MANY: "the row unfolds to too many values",
    UNREADABLE: "its schema cannot be read as the one asked for",
    TRAILING: "bytes follow the end of the value",
}
SLOTS_MAX = 1 << 22  # of one row
BATCH_SLOTS_MAX = 1 << 26  # of all rows that are decoded at once


def _bitcast(result: Any, argument: Any) -> Any:
    """An intrinsic that takes the bits of one kind of number as another's."""

    @intrinsic  # type: ignore[misc, unused-ignore]
    def cast(typing_context: Any, value: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(result))

        return result(argument), build

    return cast


bits_of_double = _bitcast(types.int64, types.float64)
bits_of_float = _bitcast(types.int32, types.float32)
float_of_bits = _bitcast(types.float32, types.int32)


@intrinsic
def _pointer(typing_context: Any, address: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), build


@numba.njit(nogil=True)
def lent_table(table: Any) -> Any:
    """The same array without a count of its owners, which would be kept with every call: the caller owns it."""
    return numba.carray(_pointer(table.ctypes.data), table.shape, numba.int64)


@numba.njit(nogil=True)
def lent(numbers: Any) -> Any:
    return numba.carray(_pointer(numbers.ctypes.data), numbers.shape, numba.int64)


@numba.njit(nogil=True)
def lent_bytes(octets: Any) -> Any:
    return numba.carray(_pointer(octets.ctypes.data), octets.shape, numba.uint8)


@intrinsic
def has_high_bit(typing_context: Any, word: Any) -> Any:
    """Whether any of the eight bytes is not ASCII."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        mask = ir.Constant(ir.IntType(64), 0x8080808080808080)
        return builder.icmp_unsigned("!=", builder.and_(arguments[0], mask), ir.Constant(ir.IntType(64), 0))

    return types.boolean(types.int64), build


@numba.njit(nogil=True, forceinline=True)
def put(columns: Any, values: Any, valid: Any, column: int, x: int, y: int, fill: bool) -> None:
    """One more slot of a column; a list's holds where its items begin."""
    slot = columns[column, LENGTH]
    columns[column, LENGTH] = slot + 1
    if not fill:
        return
    valid[columns[column, VALID] + slot] = 1
    width = columns[column, WIDTH]
    at = columns[column, PLACE] + slot * width
    if columns[column, CHILD] >= 0:
        x = columns[columns[column, CHILD], LENGTH]
    if width:
        values[at] = x
    if width == 2:
        values[at + 1] = y


@numba.njit(nogil=True, forceinline=True)
def put_null(columns: Any, values: Any, valid: Any, column: int, fill: bool) -> None:
    """One more slot that is null, as all slots are from the start; a list without items still says where they were."""
    slot = columns[column, LENGTH]
    columns[column, LENGTH] = slot + 1
    if fill and columns[column, CHILD] >= 0:
        values[columns[column, PLACE] + slot] = columns[columns[column, CHILD], LENGTH]


@numba.njit(nogil=True, forceinline=True)
def set_last(columns: Any, values: Any, valid: Any, column: int, x: int, y: int) -> None:
    """Fill the slot that was opened last; a list's says already where its items begin."""
    slot = columns[column, LENGTH] - 1
    valid[columns[column, VALID] + slot] = 1
    width = columns[column, WIDTH]
    if columns[column, CHILD] >= 0 or not width:
        return
    at = columns[column, PLACE] + slot * width
    values[at] = x
    if width == 2:
        values[at + 1] = y


@numba.njit(nogil=True)
def put_null_row(columns: Any, values: Any, valid: Any, row_columns: Any, fill: bool) -> None:
    for column in row_columns:
        put_null(columns, values, valid, column, fill)


@numba.njit(nogil=True)
def remember(columns: Any, lengths: Any) -> None:
    for column in range(columns.shape[0]):
        lengths[column] = columns[column, LENGTH]


@numba.njit(nogil=True)
def settle(columns: Any, lengths: Any, row_columns: Any, faults: Any, row: int, left: int) -> int:
    """After a row was judged: its slots. Those of a bad one are taken back, and it counts as a null row."""
    slots = 0
    for column in range(columns.shape[0]):
        slots += columns[column, LENGTH] - lengths[column]
    if not faults[row, 0] and slots > left:
        faults[row, 0] = TOO_MANY
    if not faults[row, 0]:
        return slots
    for column in range(columns.shape[0]):
        columns[column, LENGTH] = lengths[column]
    for column in row_columns:
        columns[column, LENGTH] += 1
    return row_columns.shape[0]


@numba.njit(nogil=True, forceinline=True)
def read_unsigned(at: int, end: int) -> tuple[int, int, int]:
    """A varint as its bits, the place behind it, and what is wrong with it."""
    result = numba.uint64(0)
    shift = numba.uint64(0)
    while at < end:
        byte = numba.uint64(byte_at(at))
        at += 1
        if shift == 63 and byte > 1:
            return 0, at, LONG_VARINT
        result |= (byte & numba.uint64(0x7F)) << shift
        if byte < 0x80:
            return numba.int64(result), at, GOOD
        shift += numba.uint64(7)
    return 0, at, CUT


@numba.njit(nogil=True, forceinline=True)
def zigzag(bits: int) -> int:
    unsigned = numba.uint64(bits)
    return numba.int64(unsigned >> numba.uint64(1)) ^ -numba.int64(unsigned & numba.uint64(1))


@numba.njit(nogil=True)
def is_utf8(at: int, size: int) -> bool:
    """Whether these bytes are well-formed: no overlong forms, no surrogates, nothing above U+10FFFF."""
    end = at + size
    while at < end:
        while end - at >= 8 and not has_high_bit(long_at(at)):
            at += 8
        while at < end and byte_at(at) < 0x80:
            at += 1
        if at == end:
            return True
        lead = byte_at(at)
        if lead < 0xC2 or lead > 0xF4:
            return False
        more = 1 + (lead >= 0xE0) + (lead >= 0xF0)
        if end - at <= more:
            return False
        second = byte_at(at + 1)
        low = 0xA0 if lead == 0xE0 else (0x90 if lead == 0xF0 else 0x80)
        high = 0x9F if lead == 0xED else (0x8F if lead == 0xF4 else 0xBF)
        if second < low or second > high:
            return False
        for place in range(2, more + 1):
            if byte_at(at + place) & 0xC0 != 0x80:
                return False
        at += more + 1
    return True


@compiled(types.int64(TABLE))
def bytes_of(pairs: Any) -> int:
    """Bytes of all texts of a column, whose slots are an address and a size each."""
    total = 0
    for slot in range(pairs.shape[0]):
        total += pairs[slot, 1]
    return total


@compiled(types.void(TABLE, I32, U8))
def gather(pairs: Any, ends: Any, data: Any) -> None:
    """Arrow's offsets, one more than there are slots, and bytes, as `bytes_of` measured them."""
    target = data.ctypes.data
    position = 0
    ends[0] = 0
    for slot in range(pairs.shape[0]):
        copy_bytes(target + position, pairs[slot, 0], pairs[slot, 1])
        position += pairs[slot, 1]
        ends[slot + 1] = position


BYTES, NUMBERS, NUMBERS_TABLE = U8, I64, TABLE
