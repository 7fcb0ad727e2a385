"""Protobuf's bytes by tables of messages and fields. Fields come in any order: the last of a single one counts."""

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
    LENGTH,
    NUMBERS,
    NUMBERS_TABLE,
    SLOTS_MAX,
    TOO_BIG,
    TOO_MANY,
    VALID,
    is_utf8,
    lent,
    lent_bytes,
    lent_table,
    put,
    put_null,
    put_null_row,
    read_unsigned,
    remember,
    set_last,
    settle,
    zigzag,
)
from lowwater.wire.kernels.compiling import compiled, int_at, long_at

# Fields of a message, and of a field, in the tables. Opens are columns that get a null with each message of a kind,
# defaults what is set in them when the message is there: column, and both halves of a slot.
FIRST_FIELD, FIELD_COUNT, FIRST_OPEN, OPEN_COUNT, FIRST_DEFAULT, DEFAULT_COUNT = range(6)
MESSAGE_FIELDS = 6
NUMBER, KIND, COLUMN, IS_LISTED, MESSAGE_AT, FIRST_RIVAL, RIVAL_COUNT = range(7)
FIELD_FIELDS = 7

# Kinds of values; up to LAST_VARINT they are varints.
INT64, INT32, UINT32, SINT32, SINT64, BOOL = range(6)
LAST_VARINT = BOOL
BITS32, UNSIGNED32, BITS64 = range(6, 9)
STRING, OCTETS, MESSAGE, MOMENT = range(9, 13)
NO_MESSAGE = -1

VARINT, EIGHT, SIZED, GROUP, GROUP_END, FOUR = range(6)
TAG_NUMBER_MAX = (1 << 29) - 1
SECONDS_MAX = ((1 << 63) - 1) // 1_000_000 - 1
DEPTH_MAX = 100

BAD_TAG, BAD_GROUP, TOO_DEEP = range(20, 23)
FAULTS = {
    **kernels.FAULTS,
    BAD_TAG: "a field has an impossible number or wire type",
    BAD_GROUP: "a group is not closed",
    TOO_DEEP: "groups are nested too deep",
}


@numba.njit(nogil=True)
def wire_of(kind: int) -> int:
    if kind <= LAST_VARINT:
        return VARINT
    if kind == BITS64:
        return EIGHT
    return FOUR if BITS32 <= kind <= UNSIGNED32 else SIZED


@numba.njit(nogil=True)
def read_tag(at: int, end: int) -> tuple[int, int, int, int]:
    """Number and wire type of the next field, the place behind, and what is wrong."""
    tag, at, fault = read_unsigned(at, end)
    if fault:
        return 0, 0, at, fault
    number = tag >> 3
    if number < 1 or number > TAG_NUMBER_MAX or tag & 7 > FOUR:
        return 0, 0, at, BAD_TAG
    return number, tag & 7, at, GOOD


@numba.njit(nogil=True)
def read_size(at: int, end: int) -> tuple[int, int, int]:
    size, at, fault = read_unsigned(at, end)
    if not fault and (size < 0 or size > end - at):
        fault = BAD_LENGTH
    return size, at, fault


@numba.njit(nogil=True)
def skip_one(wire: int, at: int, end: int) -> tuple[int, int]:
    """Over a value that is no group."""
    if wire == VARINT:
        _, at, fault = read_unsigned(at, end)
        return at, fault
    if wire == SIZED:
        size, at, fault = read_size(at, end)
        return at + size, fault
    if wire == GROUP_END:
        return at, BAD_GROUP
    size = 8 if wire == EIGHT else 4
    return at + size, CUT if end - at < size else GOOD


@numba.njit(nogil=True)
def skip(number: int, wire: int, at: int, end: int, groups: Any) -> tuple[int, int]:
    """Over the value of a field that is not wanted; groups are closed in the order they were opened."""
    if wire != GROUP:
        return skip_one(wire, at, end)
    groups[0] = number
    depth = 1
    while depth:
        number, wire, at, fault = read_tag(at, end)
        if fault:
            return at, fault
        if wire == GROUP_END:
            depth -= 1
            if groups[depth] != number:
                return at, BAD_GROUP
        elif wire == GROUP:
            if depth == DEPTH_MAX:
                return at, TOO_DEEP
            groups[depth] = number
            depth += 1
        else:
            at, fault = skip_one(wire, at, end)
            if fault:
                return at, fault
    return at, GOOD


@numba.njit(nogil=True)
def read_moment(at: int, end: int, groups: Any) -> tuple[int, int]:
    """Microseconds of a Timestamp or Duration, and what is wrong."""
    seconds = nanos = 0
    while at < end:
        number, wire, at, fault = read_tag(at, end)
        if fault:
            return 0, fault
        if wire == VARINT and number <= 2:
            bits, at, fault = read_unsigned(at, end)
            if number == 1:
                seconds = bits
            else:
                nanos = numba.int64(numba.int32(bits))
        else:
            at, fault = skip(number, wire, at, end, groups)
        if fault:
            return 0, fault
    if seconds > SECONDS_MAX or seconds < -SECONDS_MAX:
        return 0, TOO_BIG
    return seconds * 1_000_000 + nanos // 1000, GOOD


@numba.njit(nogil=True)
def varint_as(kind: int, bits: int) -> int:
    if kind == INT32:
        return numba.int64(numba.int32(bits))
    if kind == UINT32:
        return bits & 0xFFFFFFFF
    if kind == SINT32:
        return zigzag(bits & 0xFFFFFFFF)
    if kind == SINT64:
        return zigzag(bits)
    if kind == BOOL:
        return numba.int64(bits != 0)
    return bits


@numba.njit(nogil=True, forceinline=True)
def read_value(kind: int, at: int, end: int, groups: Any) -> tuple[int, int, int, int]:
    """Both halves of a slot, the place behind the value, and what is wrong. A message is only found."""
    if kind <= LAST_VARINT:
        bits, at, fault = read_unsigned(at, end)
        return varint_as(kind, bits), 0, at, fault
    if kind <= BITS64:
        size = 8 if kind == BITS64 else 4
        if end - at < size:
            return 0, 0, at, CUT
        if kind == BITS64:
            return long_at(at), 0, at + 8, GOOD
        bits = numba.int64(int_at(at))
        return (bits & 0xFFFFFFFF if kind == UNSIGNED32 else bits), 0, at + 4, GOOD
    size, at, fault = read_size(at, end)
    if fault:
        return 0, 0, at, fault
    if kind == STRING and not is_utf8(at, size):
        return 0, 0, at, BAD_TEXT
    if kind == MOMENT:
        x, fault = read_moment(at, at + size, groups)
        return x, 0, at + size, fault
    return at, size, at + size, GOOD


@numba.njit(nogil=True, forceinline=True)
def set_defaults(messages: Any, defaults: Any, columns: Any, values: Any, valid: Any, message: int) -> None:
    first = messages[message, FIRST_DEFAULT]
    for place in range(first, first + messages[message, DEFAULT_COUNT]):
        set_last(columns, values, valid, defaults[place, 0], defaults[place, 1], defaults[place, 2])


@numba.njit(nogil=True, forceinline=True)
def open_message(
    messages: Any, opens: Any, defaults: Any, columns: Any, values: Any, valid: Any, message: int, fill: bool
) -> None:
    """A slot in every column of a message that begins."""
    first = messages[message, FIRST_OPEN]
    for place in range(first, first + messages[message, OPEN_COUNT]):
        put_null(columns, values, valid, opens[place], fill)
    if fill:
        set_defaults(messages, defaults, columns, values, valid, message)


@numba.njit(nogil=True, forceinline=True)
def find_field(fields: Any, first: int, count: int, number: int, guess: int) -> int:
    """The field of this number, -1 when there is none. They are sorted, and mostly come one after the other."""
    if first <= guess < first + count and fields[guess, NUMBER] == number:
        return guess
    low, high = first, first + count
    while low < high:
        middle = (low + high) >> 1
        if fields[middle, NUMBER] < number:
            low = middle + 1
        else:
            high = middle
    return low if low < first + count and fields[low, NUMBER] == number else -1


@numba.njit(nogil=True, forceinline=True)
def clear_rivals(fields: Any, rivals: Any, columns: Any, valid: Any, field: int) -> None:
    """Of a oneof only the last one that came is there."""
    first = fields[field, FIRST_RIVAL]
    for place in range(first, first + fields[field, RIVAL_COUNT]):
        column = rivals[place]
        valid[columns[column, VALID] + columns[column, LENGTH] - 1] = 0


@numba.njit(nogil=True, forceinline=True)
def is_last_valid(columns: Any, valid: Any, column: int) -> bool:
    return valid[columns[column, VALID] + columns[column, LENGTH] - 1] != 0


@numba.njit(nogil=True, forceinline=True)
def read_packed(
    fields: Any, columns: Any, values: Any, valid: Any, groups: Any, field: int, at: int, end: int, fill: bool
) -> tuple[int, int, int]:
    """Numbers one after the other, as items of a list: how many, the place behind, what is wrong."""
    size, at, fault = read_size(at, end)
    if fault:
        return 0, at, fault
    end = at + size
    count = 0
    while at < end:
        x, y, at, fault = read_value(fields[field, KIND], at, end, groups)
        if fault:
            return count, at, fault
        put(columns, values, valid, fields[field, COLUMN], x, y, fill)
        count += 1
    return count, at, GOOD


@numba.njit(nogil=True, forceinline=True)
def walk(
    messages: Any,
    fields: Any,
    opens: Any,
    defaults: Any,
    rivals: Any,
    columns: Any,
    values: Any,
    valid: Any,
    stack: Any,
    groups: Any,
    at: int,
    end: int,
    fill: bool,
) -> tuple[int, int, int]:
    """One row: what is wrong, at which field (-1: none), and the place."""
    depth = message = 0
    left = SLOTS_MAX
    put(columns, values, valid, 0, 0, 0, fill)
    open_message(messages, opens, defaults, columns, values, valid, 0, fill)
    guess = messages[0, FIRST_FIELD]
    while True:
        while at == end:
            if depth == 0:
                return GOOD, -1, at
            depth -= 1
            end, message, guess = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        number, wire, at, fault = read_tag(at, end)
        if fault:
            return fault, -1, at
        field = find_field(fields, messages[message, FIRST_FIELD], messages[message, FIELD_COUNT], number, guess)
        wanted = wire_of(fields[field, KIND]) if field >= 0 else -1
        if wanted != wire and not (field >= 0 and wire == SIZED and fields[field, IS_LISTED]):
            at, fault = skip(number, wire, at, end, groups)
            if fault:
                return fault, field, at
            continue
        guess = field + (0 if fields[field, IS_LISTED] else 1)
        if wanted != wire:
            count, at, fault = read_packed(fields, columns, values, valid, groups, field, at, end, fill)
            left -= count
        else:
            x, y, at, fault = read_value(fields[field, KIND], at, end, groups)
            left -= 1
        if left < 0 and not fault:
            fault = TOO_MANY
        if fault:
            return fault, field, at
        if wanted != wire:
            continue
        column, child = fields[field, COLUMN], fields[field, MESSAGE_AT]
        if fields[field, IS_LISTED]:
            if column >= 0:
                put(columns, values, valid, column, x, y, fill)
            if child != NO_MESSAGE:
                open_message(messages, opens, defaults, columns, values, valid, child, fill)
                left -= messages[child, OPEN_COUNT]
        elif fill:
            clear_rivals(fields, rivals, columns, valid, field)
            if child == NO_MESSAGE or not is_last_valid(columns, valid, column):
                set_last(columns, values, valid, column, x, y)
                if child != NO_MESSAGE:
                    set_defaults(messages, defaults, columns, values, valid, child)
        if child != NO_MESSAGE:
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = end, message, guess
            depth += 1
            at, end, message, guess = x, x + y, child, messages[child, FIRST_FIELD]


@compiled(
    types.void(
        *(NUMBERS_TABLE, NUMBERS_TABLE, NUMBERS, NUMBERS_TABLE, NUMBERS, NUMBERS_TABLE, NUMBERS, BYTES),
        *(NUMBERS, NUMBERS_TABLE, NUMBERS, NUMBERS, NUMBERS, NUMBERS_TABLE, types.boolean),
    )
)
def walk_protobuf(
    messages: Any,
    fields: Any,
    opens: Any,
    defaults: Any,
    rivals: Any,
    columns: Any,
    values: Any,
    valid: Any,
    row_columns: Any,
    stack: Any,
    groups: Any,
    places: Any,
    sizes: Any,
    faults: Any,
    fill: bool,
) -> None:
    """All rows: without `fill` they are judged (fault, field, place) and slots counted, with it slots are filled."""
    columns, values, valid = lent_table(columns), lent(values), lent_bytes(valid)
    row_columns, faults = lent(row_columns), lent_table(faults)
    messages, fields, opens, defaults = lent_table(messages), lent_table(fields), lent(opens), lent_table(defaults)
    rivals, stack, groups = lent(rivals), lent_table(stack), lent(groups)
    lengths = columns[:, 0].copy()
    total = 0
    for row in range(places.shape[0]):
        if sizes[row] < 0 or faults[row, 0]:
            put_null_row(columns, values, valid, row_columns, fill)
            continue
        if not fill:
            remember(columns, lengths)
        at, end = places[row], places[row] + sizes[row]
        fault, field, at = walk(
            messages, fields, opens, defaults, rivals, columns, values, valid, stack, groups, at, end, fill
        )
        if not fill:
            faults[row, 0], faults[row, 1], faults[row, 2] = fault, field, at - places[row]
            total += settle(columns, lengths, row_columns, faults, row, BATCH_SLOTS_MAX - total)
