"""JSON objects by a table of nodes, one for each column. Fields come in any order, those without one are read over."""

# mypy: disable-error-code="no-untyped-call, call-arg, no-any-return, return-value, assignment"

from __future__ import annotations

from typing import Any

import numba
from numba import types

from lowwater.spark.decoding.json_scanning import (
    BAD_ESCAPE,
    BAD_SYNTAX,
    COLON,
    MINUS,
    NOT_AN_OBJECT,
    NOT_WHOLE,
    QUOTE,
    TOO_DEEP,
    TWICE,
    WRONG_KIND,
    decimal_number,
    scan_number,
    scan_text,
    skip_space,
    unescape,
    whole_number,
)
from lowwater.spark.decoding.json_times import read_base64, read_date, read_time
from lowwater.spark.decoding.kernels import (
    BATCH_SLOTS_MAX,
    BYTES,
    CUT,
    GOOD,
    NO_COLUMN,
    NUMBERS,
    NUMBERS_TABLE,
    SLOTS_MAX,
    TOO_MANY,
    TRAILING,
    lent,
    lent_bytes,
    lent_table,
    put,
    put_null,
    put_null_row,
    remember,
    set_last,
    settle,
)
from lowwater.wire.kernels.compiling import byte_at, compiled, copy_bytes, long_at

# Fields of a node. Opens are the columns below a struct that get a null when it begins; a list's item, a map's key and
# value are columns; A and B are a whole number's bits, or a decimal's scale and where its limit stands.
KIND, FIRST_OPEN, OPEN_COUNT, FIRST_FIELD, FIELD_COUNT, ITEM, A, B = range(8)
NODE_FIELDS = 8
# A name that stands in JSON as it is has its size as plain size, others -1.
NAME_AT, NAME_SIZE, FIELD_COLUMN, PLAIN_SIZE = range(4)
FIELD_FIELDS = 4
NO_FIELD = -1

# Kinds of columns; from TEXT on they take any value, as it is written or not at all.
BOOL, WHOLE, FLOAT, DECIMAL, OCTETS, DATE, TIME, LOCAL_TIME, STRUCT, MAP, LIST, TEXT, OVER = range(13)

# Fields of what is open: an object or not; its column; where the next name is looked for; its serial number; a column
# of texts that takes it as it is written, from where, and whether as an item.
IS_OBJECT, COLUMN, GUESS, SERIAL, CAPTURE, START, IS_ITEM = range(7)
FRAME_FIELDS = 7
DEPTH_MAX = 256
# What stands beside the columns: bytes of texts that had to be rewritten so far, and of objects.
REWRITTEN, SERIALS = range(2)

WHOLE_NUMBERS = types.uint64[::1]
OPEN_OBJECT, CLOSE_OBJECT, OPEN_LIST, CLOSE_LIST, COMMA = (ord(sign) for sign in "{}[],")
UPPER_I = ord("I")
TRUE, FALSE, NULL = (int.from_bytes(word, "little") for word in (b"true", b"false", b"null"))
NAN, INFINITY, INF = (int.from_bytes(word, "little") for word in (b"NaN", b"Infinity", b"INF"))


@numba.njit(nogil=True)
def word_end(at: int, end: int) -> int:
    """The end of a word: true, false, null, NaN, Infinity."""
    while at < end and (0x41 <= byte_at(at) <= 0x5A or 0x61 <= byte_at(at) <= 0x7A or byte_at(at) == MINUS):
        at += 1
    return at


@numba.njit(nogil=True)
def same_bytes(at: int, other: int, size: int) -> bool:
    place = 0
    while size - place >= 8 and long_at(at + place) == long_at(other + place):
        place += 8
    while place < size and byte_at(at + place) == byte_at(other + place):
        place += 1
    return place == size


@numba.njit(nogil=True)
def packed(at: int, end: int) -> int:
    """A word of at most eight bytes as one number; 0 when it is longer."""
    number = 0
    for place in range(end - at if end - at <= 8 else 0):
        number |= numba.int64(byte_at(at + place)) << (8 * place)
    return number


@numba.njit(nogil=True)
def is_no_number(at: int, end: int) -> bool:
    """Whether these are the words by which floats say that they are no number."""
    at += at < end and byte_at(at) == MINUS
    word = packed(at, end)
    return (word == NAN) | (word == INFINITY) | (word == INF)


@numba.njit(nogil=True, forceinline=True)
def put_value(columns: Any, values: Any, valid: Any, column: int, x: int, y: int, is_item: bool, fill: bool) -> None:
    """An item is one more slot; a field's slot was opened with its struct."""
    if is_item:
        put(columns, values, valid, column, x, y, fill)
    elif fill:
        set_last(columns, values, valid, column, x, y)


@numba.njit(nogil=True, forceinline=True)
def open_below(nodes: Any, opens: Any, columns: Any, values: Any, valid: Any, column: int, fill: bool) -> None:
    first = nodes[column, FIRST_OPEN]
    for place in range(first, first + nodes[column, OPEN_COUNT]):
        put_null(columns, values, valid, opens[place], fill)


@numba.njit(nogil=True, forceinline=True)
def rewritten(kind: int, at: int, end: int, counts: Any, arena: int, fill: bool) -> tuple[int, int, int]:
    """Place and size of a text without its escapes, or of what base64 says, in the arena; what is wrong."""
    target = arena + counts[REWRITTEN]
    if kind == OCTETS:
        size, fault = read_base64(at, end, target, fill)
    else:
        size = unescape(at, end, target, fill)
        fault = BAD_ESCAPE if size < 0 else GOOD
    if not fault:
        counts[REWRITTEN] += size
    return target, size, fault


@numba.njit(nogil=True, forceinline=True)
def read_text(
    nodes: Any, limits: Any, counts: Any, arena: int, column: int, at: int, end: int, fill: bool
) -> tuple[int, int, int, int]:
    """A text for a column of any kind, behind its opening quote: both halves, the place behind, what is wrong."""
    last, has_escape, fault = scan_text(at, end)
    kind = nodes[column, KIND] if column >= 0 else OVER
    x, y = at, last - at
    if fault:
        return x, y, last, fault
    if kind == OCTETS or (has_escape and kind >= TEXT):
        before = counts[REWRITTEN]
        x, y, fault = rewritten(kind, at, last, counts, arena, fill and kind != OVER)
        if kind == OVER:
            counts[REWRITTEN] = before
    elif TIME <= kind <= LOCAL_TIME:
        x, fault = read_time(at, last, kind == TIME)
    elif kind == DATE:
        x, fault = read_date(at, last)
        if last - at != 10:
            fault = WRONG_KIND
    elif kind == DECIMAL:
        number_end, _, fault = scan_number(at, last)
        if fault or number_end != last:
            return x, y, last, WRONG_KIND
        x, y, fault = decimal_number(at, last, nodes[column, A], limits[nodes[column, B]], limits[nodes[column, B] + 1])
    elif kind == FLOAT:
        if not is_no_number(at, last):
            fault = WRONG_KIND
    elif kind < TEXT:
        fault = WRONG_KIND
    return x, y, last + 1, fault


@numba.njit(nogil=True, forceinline=True)
def read_number(nodes: Any, limits: Any, column: int, at: int, end: int) -> tuple[int, int, int, int]:
    """A number for a column of any kind: both halves, the place behind, what is wrong. Floats stay as written."""
    last, is_whole, fault = scan_number(at, end)
    kind = nodes[column, KIND] if column >= 0 else OVER
    if fault or kind == FLOAT or kind >= TEXT:
        return at, last - at, last, fault
    if kind == WHOLE:
        if not is_whole:
            return 0, 0, last, NOT_WHOLE
        x, fault = whole_number(at, last, nodes[column, A])
        return x, 0, last, fault
    if kind != DECIMAL:
        return 0, 0, last, WRONG_KIND
    x, y, fault = decimal_number(at, last, nodes[column, A], limits[nodes[column, B]], limits[nodes[column, B] + 1])
    return x, y, last, fault


@numba.njit(nogil=True, forceinline=True)
def read_word(nodes: Any, column: int, at: int, end: int) -> tuple[int, int, int, int, bool]:
    """true, false, null, or a float that is no number: both halves, the place behind, what is wrong, whether null."""
    last = word_end(at, end)
    kind = nodes[column, KIND] if column >= 0 else OVER
    word = packed(at, last)
    if word == NULL:
        return 0, 0, last, GOOD, True
    is_truth = (word == TRUE) | (word == FALSE)
    if not is_truth and not is_no_number(at, last):
        return 0, 0, at, BAD_SYNTAX if at < end else CUT, False
    if kind >= TEXT or (kind == FLOAT and not is_truth):
        return at, last - at, last, GOOD, False
    return numba.int64(word == TRUE), 0, last, GOOD if is_truth and kind == BOOL else WRONG_KIND, False


@numba.njit(nogil=True, forceinline=True)
def find_name(fields: Any, first: int, count: int, guess: int, at: int, size: int) -> int:
    """The field of this name, -1 when there is none; names mostly come in the order of the columns."""
    field = guess
    for _ in range(count):
        if fields[field, NAME_SIZE] == size and same_bytes(fields[field, NAME_AT], at, size):
            return field
        field = field + 1 if field + 1 < first + count else first
    return -1


@numba.njit(nogil=True)
def read_name(scratch: int, at: int, end: int, likely: int, likely_size: int) -> tuple[int, int, int, int]:
    """A field's name without escapes, at the quote: its place, its size, the place of its value, what is wrong."""
    if at >= end or byte_at(at) != QUOTE:
        return 0, 0, at, CUT if at >= end else BAD_SYNTAX
    name = at + 1
    last, has_escape, fault = name + likely_size, False, GOOD
    if not (0 <= likely_size < end - name and byte_at(last) == QUOTE and same_bytes(likely, name, likely_size)):
        last, has_escape, fault = scan_text(name, end)
    size = last - name
    if not fault and has_escape:
        size = unescape(name, last, scratch, True)
        name = scratch
        if size < 0:
            fault = BAD_ESCAPE
    if fault:
        return name, size, last, fault
    at = skip_space(last + 1, end)
    if at >= end or byte_at(at) != COLON:
        return name, size, at, CUT if at >= end else BAD_SYNTAX
    return name, size, skip_space(at + 1, end), GOOD


@numba.njit(nogil=True, forceinline=True)
def put_key(
    columns: Any,
    values: Any,
    valid: Any,
    counts: Any,
    arena: int,
    column: int,
    name: int,
    size: int,
    is_lent: bool,
    fill: bool,
) -> None:
    """A map's key; one that was rewritten is lent by the scratch and needed for longer."""
    if is_lent:
        target = arena + counts[REWRITTEN]
        if fill:
            copy_bytes(target, name, size)
        counts[REWRITTEN] += size
        name = target
    put(columns, values, valid, column, name, size, fill)


@numba.njit(nogil=True, forceinline=True)
def field_column(nodes: Any, fields: Any, seen: Any, stack: Any, depth: int, name: int, size: int) -> tuple[int, int]:
    """The column of a struct's field, -1 for none, and what is wrong."""
    column = stack[depth, COLUMN]
    first, count = nodes[column, FIRST_FIELD], nodes[column, FIELD_COUNT]
    field = find_name(fields, first, count, stack[depth, GUESS], name, size) if count else -1
    if field < 0:
        return NO_COLUMN, GOOD
    stack[depth, GUESS] = field + 1 if field + 1 < first + count else first
    target = fields[field, FIELD_COLUMN]
    fault = TWICE if seen[target] == stack[depth, SERIAL] else GOOD
    seen[target] = stack[depth, SERIAL]
    return target, fault


@numba.njit(nogil=True, forceinline=True)
def push(nodes: Any, stack: Any, counts: Any, depth: int, column: int, at: int, is_item: bool) -> int:
    """Open an object or a list that begins at `at`, for a column or for none; what is wrong."""
    is_object = byte_at(at) == OPEN_OBJECT
    kind = nodes[column, KIND] if column >= 0 else OVER
    if kind < TEXT and not (STRUCT <= kind <= MAP if is_object else kind == LIST):
        return WRONG_KIND
    if depth == DEPTH_MAX:
        return TOO_DEEP
    counts[SERIALS] += 1
    stack[depth, IS_OBJECT] = is_object
    stack[depth, COLUMN] = column if kind < TEXT else NO_COLUMN
    stack[depth, GUESS] = nodes[column, FIRST_FIELD] if column >= 0 else 0
    stack[depth, SERIAL] = counts[SERIALS]
    stack[depth, CAPTURE] = column if kind == TEXT else NO_COLUMN
    stack[depth, START] = at
    stack[depth, IS_ITEM] = is_item
    return GOOD


@numba.njit(nogil=True, forceinline=True)
def read_scalar(
    nodes: Any, limits: Any, counts: Any, arena: int, column: int, at: int, end: int, fill: bool
) -> tuple[int, int, int, int, bool]:
    """Both halves of a slot, the place behind the value, what is wrong, and whether it is null."""
    byte = byte_at(at)
    if byte == QUOTE:
        x, y, at, fault = read_text(nodes, limits, counts, arena, column, at + 1, end, fill)
        return x, y, at, fault, False
    is_infinity = byte == MINUS and end - at > 1 and byte_at(at + 1) == UPPER_I
    if (byte == MINUS or 0x30 <= byte <= 0x39) and not is_infinity:
        x, y, at, fault = read_number(nodes, limits, column, at, end)
        return x, y, at, fault, False
    return read_word(nodes, column, at, end)


@numba.njit(nogil=True, forceinline=True)
def walk(
    nodes: Any,
    fields: Any,
    opens: Any,
    limits: Any,
    columns: Any,
    values: Any,
    valid: Any,
    stack: Any,
    seen: Any,
    counts: Any,
    arena: int,
    scratch: int,
    at: int,
    end: int,
    fill: bool,
) -> tuple[int, int, int]:
    """One row: what is wrong, for which column (-1: none), and the place."""
    at = skip_space(at, end)
    if at == end or byte_at(at) != OPEN_OBJECT:
        return (CUT if at == end else NOT_AN_OBJECT), NO_COLUMN, at
    put(columns, values, valid, 0, 0, 0, fill)
    open_below(nodes, opens, columns, values, valid, 0, fill)
    push(nodes, stack, counts, 0, 0, at, False)
    depth, is_first, left = 0, True, SLOTS_MAX
    at += 1
    while True:
        at = skip_space(at, end)
        if at == end:
            return CUT, NO_COLUMN, at
        is_item = stack[depth, IS_OBJECT] == 0
        if byte_at(at) == (CLOSE_LIST if is_item else CLOSE_OBJECT):
            at += 1
            if stack[depth, CAPTURE] >= 0:
                start = stack[depth, START]
                put_value(
                    columns, values, valid, stack[depth, CAPTURE], start, at - start, stack[depth, IS_ITEM] != 0, fill
                )
            if depth == 0:
                at = skip_space(at, end)
                return (GOOD if at == end else TRAILING), NO_COLUMN, at
            depth -= 1
            is_first = False
            continue
        if not is_first:
            if byte_at(at) != COMMA:
                return BAD_SYNTAX, NO_COLUMN, at
            at = skip_space(at + 1, end)
        is_first = False
        outer = stack[depth, COLUMN]
        column = nodes[outer, ITEM] if outer >= 0 else NO_COLUMN
        if not is_item:
            field = stack[depth, GUESS] if outer >= 0 and nodes[outer, FIELD_COUNT] else NO_FIELD
            likely, likely_size = (fields[field, NAME_AT], fields[field, PLAIN_SIZE]) if field >= 0 else (0, -1)
            name, size, at, fault = read_name(scratch, at, end, likely, likely_size)
            if fault:
                return fault, NO_COLUMN, at
            if outer >= 0 and nodes[outer, KIND] == MAP:
                put_key(columns, values, valid, counts, arena, column, name, size, name == scratch, fill)
                column += 1
                is_item = True
            elif outer >= 0:
                column, fault = field_column(nodes, fields, seen, stack, depth, name, size)
                if fault:
                    return fault, column, at
        left -= 1 + (nodes[column, OPEN_COUNT] if column >= 0 and is_item else 0)
        if left < 0:
            return TOO_MANY, column, at
        if at >= end:
            return CUT, column, at
        if byte_at(at) == OPEN_OBJECT or byte_at(at) == OPEN_LIST:
            fault = push(nodes, stack, counts, depth + 1, column, at, is_item)
            if fault:
                return fault, column, at
            depth += 1
            at += 1
            is_first = True
            if stack[depth, COLUMN] >= 0:
                put_value(columns, values, valid, column, 0, 0, is_item, fill)
                if is_item:
                    open_below(nodes, opens, columns, values, valid, column, fill)
            continue
        value_at = at
        x, y, at, fault, is_null = read_scalar(nodes, limits, counts, arena, column, at, end, fill)
        if fault:
            return fault, column, (at if fault == CUT else value_at)
        if column < 0:
            continue
        if not is_null:
            put_value(columns, values, valid, column, x, y, is_item, fill)
        elif is_item:
            put_null(columns, values, valid, column, fill)
            open_below(nodes, opens, columns, values, valid, column, fill)


@compiled(
    types.void(
        *(NUMBERS_TABLE, NUMBERS_TABLE, NUMBERS, WHOLE_NUMBERS, NUMBERS_TABLE, NUMBERS, BYTES, NUMBERS),
        *(NUMBERS_TABLE, NUMBERS, NUMBERS, BYTES, BYTES, NUMBERS, NUMBERS, NUMBERS_TABLE, types.boolean),
    )
)
def walk_json(
    nodes: Any,
    fields: Any,
    opens: Any,
    limits: Any,
    columns: Any,
    values: Any,
    valid: Any,
    row_columns: Any,
    stack: Any,
    seen: Any,
    counts: Any,
    arena: Any,
    scratch: Any,
    places: Any,
    sizes: Any,
    faults: Any,
    fill: bool,
) -> None:
    """All rows: without `fill` they are judged (fault, column, place) and slots counted, with it slots are filled."""
    columns, values, valid = lent_table(columns), lent(values), lent_bytes(valid)
    row_columns, faults = lent(row_columns), lent_table(faults)
    nodes, fields, opens, stack = lent_table(nodes), lent_table(fields), lent(opens), lent_table(stack)
    seen, counts = lent(seen), lent(counts)
    lengths = columns[:, 0].copy()
    total = 0
    for row in range(places.shape[0]):
        if sizes[row] < 0 or faults[row, 0]:
            put_null_row(columns, values, valid, row_columns, fill)
            continue
        if not fill:
            remember(columns, lengths)
        fault, column, at = walk(
            nodes, fields, opens, limits, columns, values, valid, stack, seen, counts, arena.ctypes.data,
            scratch.ctypes.data, places[row], places[row] + sizes[row], fill,
        )  # fmt: skip
        if not fill:
            faults[row, 0], faults[row, 1], faults[row, 2] = fault, column, at - places[row]
            total += settle(columns, lengths, row_columns, faults, row, BATCH_SLOTS_MAX - total)
