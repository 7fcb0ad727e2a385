"""Avro's bytes by a program: a table of steps, made of the writer's and the reader's schema, for every row."""

# mypy: disable-error-code="no-untyped-call, call-arg, no-any-return, return-value, assignment"

from __future__ import annotations

from typing import Any

import numba
from numba import types

from lowwater.spark.decoding import kernels
from lowwater.spark.decoding.kernels import (
    BAD_LENGTH,
    BAD_TEXT,
    BATCH_SLOTS_MAX,
    BYTES,
    CUT,
    GOOD,
    NUMBERS,
    NUMBERS_TABLE,
    SLOTS_MAX,
    TOO_BIG,
    TOO_MANY,
    TRAILING,
    UNREADABLE,
    bits_of_double,
    bits_of_float,
    float_of_bits,
    is_utf8,
    lent,
    lent_bytes,
    lent_table,
    put,
    put_null,
    put_null_row,
    read_unsigned,
    remember,
    settle,
    zigzag,
)
from lowwater.wire.kernels.compiling import byte_at, compiled, int_at, long_at

# Fields of a step.
OP, COLUMN, A, B = range(4)
STEP_FIELDS = 4

# Steps that read one value into a column, or over it where there is no column.
# First those that are ints, then longs, then those of a fixed number of bits, then those of bytes.
INT, INT_AS_FLOAT, INT_AS_DOUBLE, LONG, MILLIS, AS_FLOAT, AS_DOUBLE, ENUM = range(8)
BOOLEAN, FLOAT, DOUBLE, FLOAT_AS_DOUBLE = range(8, 12)
TEXT, OCTETS, FIXED, DECIMAL = range(12, 16)
LAST_READ = DECIMAL
# Steps that read nothing: a slot of a struct, a null, a jump, the end; a default's bytes instead of the row's; a fault.
STRUCT, NULL, JUMP, END, ENTER, LEAVE, FAIL = range(20, 27)
# A list and its next item; a branch of a union.
LIST, NEXT, UNION = range(30, 33)

BAD_BRANCH, BAD_SYMBOL, BAD_BLOCK, BAD_BOOLEAN = range(20, 24)
FAULTS = {
    **kernels.FAULTS,
    BAD_BRANCH: "there is no such branch in its union",
    BAD_SYMBOL: "there is no such symbol in its enum",
    BAD_BLOCK: "a block has an impossible length",
    BAD_BOOLEAN: "a boolean is neither 0 nor 1",
}
DEPTH_MAX = 64  # of lists in lists
INT_MIN, INT_MAX = -(1 << 31), (1 << 31) - 1
MILLIS_MAX = ((1 << 63) - 1) // 1000


@numba.njit(nogil=True)
def read_number(op: int, at: int, end: int) -> tuple[int, int, int]:
    """An int or long, as itself or as what the reader made of it; the place behind it; what is wrong."""
    bits, at, fault = read_unsigned(at, end)
    if fault:
        return 0, at, fault
    number = zigzag(bits)
    if op <= INT_AS_DOUBLE and (number < INT_MIN or number > INT_MAX):
        return 0, at, TOO_BIG
    if op == MILLIS:
        if number > MILLIS_MAX or number < -MILLIS_MAX:
            return 0, at, TOO_BIG
        return number * 1000, at, GOOD
    if (op == AS_FLOAT) | (op == INT_AS_FLOAT):
        return numba.int64(bits_of_float(numba.float32(number))), at, GOOD
    if (op == AS_DOUBLE) | (op == INT_AS_DOUBLE):
        return bits_of_double(numba.float64(number)), at, GOOD
    return number, at, GOOD


@numba.njit(nogil=True)
def read_bits(op: int, at: int, end: int) -> tuple[int, int, int]:
    """A boolean, float or double; the place behind it; what is wrong."""
    size = 1 if op == BOOLEAN else (8 if op == DOUBLE else 4)
    if end - at < size:
        return 0, at, CUT
    if op == BOOLEAN:
        byte = numba.int64(byte_at(at))
        return byte, at + 1, BAD_BOOLEAN if byte > 1 else GOOD
    if op == DOUBLE:
        return long_at(at), at + 8, GOOD
    if op == FLOAT_AS_DOUBLE:
        return bits_of_double(numba.float64(float_of_bits(int_at(at)))), at + 4, GOOD
    return numba.int64(int_at(at)), at + 4, GOOD


@numba.njit(nogil=True)
def read_octets(op: int, at: int, end: int, fixed: int) -> tuple[int, int, int]:
    """The size of a text, of bytes or of a fixed, where it begins, and what is wrong."""
    size = fixed
    if fixed < 0:
        bits, at, fault = read_unsigned(at, end)
        if fault:
            return 0, at, fault
        size = zigzag(bits)
    if size < 0 or size > end - at:
        return 0, at, CUT if fixed >= 0 else BAD_LENGTH
    if op == TEXT and not is_utf8(at, size):
        return 0, at, BAD_TEXT
    return size, at, GOOD


@numba.njit(nogil=True, forceinline=True)
def read_decimal(at: int, size: int, limits: Any, limit: int) -> tuple[int, int, int]:
    """Big-endian two's complement as its low and high half; TOO_BIG when it has more digits than it may."""
    low = high = numba.uint64(0)
    if size and byte_at(at) >= 0x80:
        low = high = numba.uint64(0xFFFFFFFFFFFFFFFF)
    sign = high
    for place in range(size):
        if place + 16 < size:
            if numba.uint64(byte_at(at + place)) != sign & numba.uint64(0xFF):
                return 0, 0, TOO_BIG
            continue
        high = (high << numba.uint64(8)) | (low >> numba.uint64(56))
        low = (low << numba.uint64(8)) | numba.uint64(byte_at(at + place))
    x, y = low, high
    if high >> numba.uint64(63):
        x = ~low + numba.uint64(1)
        y = ~high + numba.uint64(x == 0)
    top, bottom = numba.uint64(limits[limit]), numba.uint64(limits[limit + 1])
    if (high ^ sign) >> numba.uint64(63) or y > top or (y == top and x >= bottom):
        return 0, 0, TOO_BIG
    return numba.int64(low), numba.int64(high), GOOD


@numba.njit(nogil=True, forceinline=True)
def read_value(op: int, at: int, end: int, a: int, b: int, numbers: Any) -> tuple[int, int, int, int]:
    """Both halves of a slot, the place behind the value, and what is wrong."""
    if BOOLEAN <= op <= FLOAT_AS_DOUBLE:
        x, at, fault = read_bits(op, at, end)
        return x, 0, at, fault
    if op >= TEXT:
        size, at, fault = read_octets(op, at, end, a)
        if fault or op != DECIMAL:
            return at, size, at + size, fault
        x, y, fault = read_decimal(at, size, numbers, b)
        return x, y, at + size, fault
    x, at, fault = read_number(op, at, end)
    if fault or op != ENUM:
        return x, 0, at, fault
    if x < 0 or x >= b or numbers[a + x] < 0:
        return 0, 0, at, BAD_SYMBOL
    return numbers[a + x], 0, at, GOOD


@numba.njit(nogil=True)
def next_block(at: int, end: int) -> tuple[int, int, int]:
    """Items of the next block, 0 when there is none; the place where they begin; what is wrong."""
    bits, at, fault = read_unsigned(at, end)
    if fault:
        return 0, at, fault
    count = zigzag(bits)
    if count >= 0:
        return count, at, GOOD
    bits, at, fault = read_unsigned(at, end)
    if fault:
        return 0, at, fault
    size = zigzag(bits)
    if size < 0 or size > end - at or count == -(1 << 63):
        return 0, at, BAD_BLOCK
    return -count, at, GOOD


@numba.njit(nogil=True, forceinline=True)
def walk(
    steps: Any,
    numbers: Any,
    columns: Any,
    values: Any,
    valid: Any,
    stack: Any,
    step: int,
    at: int,
    end: int,
    fill: bool,
) -> tuple[int, int, int]:
    """One row from its first step to its end: what is wrong, at which step, and the place."""
    depth = 0
    row_at = row_end = 0
    left = SLOTS_MAX
    while True:
        op, column, a, b = steps[step, OP], steps[step, COLUMN], steps[step, A], steps[step, B]
        if op <= LAST_READ:
            x, y, at, fault = read_value(op, at, end, a, b, numbers)
            if fault:
                return fault, step, at
            if column >= 0:
                put(columns, values, valid, column, x, y, fill)
            left -= 1
            step += 1
        elif op == NULL:
            put_null(columns, values, valid, column, fill)
            left -= 1
            step += 1
        elif op == STRUCT:
            put(columns, values, valid, column, 0, 0, fill)
            left -= 1
            step += 1
        elif op == UNION:
            bits, at, fault = read_unsigned(at, end)
            branch = zigzag(bits)
            if fault or branch < 0 or branch >= b:
                return (fault if fault else BAD_BRANCH), step, at
            step = numbers[a + branch]
        elif op == LIST:
            if column >= 0:
                put(columns, values, valid, column, 0, 0, fill)
            stack[depth] = 0
            depth += 1
            step += 1
        elif op == NEXT:
            if stack[depth - 1] == 0:
                stack[depth - 1], at, fault = next_block(at, end)
                if fault:
                    return fault, step, at
            left -= 1
            if left < 0:
                return TOO_MANY, step, at
            if stack[depth - 1] == 0:
                depth -= 1
                step = a
            else:
                stack[depth - 1] -= 1
                step += 1
        elif op == JUMP:
            step = a
        elif op == ENTER:
            row_at, row_end = at, end
            at, end = a, a + b
            left -= b
            step += 1
        elif op == LEAVE:
            at, end = row_at, row_end
            step += 1
        elif op == END:
            return (GOOD if at == end else TRAILING), step, at
        else:
            return UNREADABLE, step, at


@compiled(
    types.void(
        *(NUMBERS_TABLE, NUMBERS, NUMBERS_TABLE, NUMBERS, BYTES, NUMBERS, NUMBERS),
        *(NUMBERS, NUMBERS, NUMBERS, NUMBERS_TABLE, types.boolean),
    )
)
def walk_avro(
    steps: Any,
    numbers: Any,
    columns: Any,
    values: Any,
    valid: Any,
    row_columns: Any,
    stack: Any,
    entries: Any,
    places: Any,
    sizes: Any,
    faults: Any,
    fill: bool,
) -> None:
    """All rows: without `fill` they are judged (fault, step, place) and slots are counted, with it slots are filled."""
    columns, values, valid = lent_table(columns), lent(values), lent_bytes(valid)
    row_columns, faults = lent(row_columns), lent_table(faults)
    steps, numbers, stack = lent_table(steps), lent(numbers), lent(stack)
    lengths = columns[:, 0].copy()
    total = 0
    for row in range(places.shape[0]):
        if sizes[row] < 0 or faults[row, 0]:
            put_null_row(columns, values, valid, row_columns, fill)
            continue
        if not fill:
            remember(columns, lengths)
        at, end = places[row], places[row] + sizes[row]
        fault, step, at = walk(steps, numbers, columns, values, valid, stack, entries[row], at, end, fill)
        if not fill:
            faults[row, 0], faults[row, 1], faults[row, 2] = fault, step, at - places[row]
            total += settle(columns, lengths, row_columns, faults, row, BATCH_SLOTS_MAX - total)
