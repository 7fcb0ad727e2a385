"""Records of batches: every field is found and checked, nothing is copied. Other kernels trust what is found here."""

# mypy: disable-error-code="no-untyped-call, call-arg, no-any-return"

from __future__ import annotations

from typing import Any

import numba
from numba import types

from lowwater.wire.kernels.compiling import I32, I64, TABLE, compiled, copy_bytes, inlined, prefetch, read_varint
from lowwater.wire.kernels.rows import ROW_BYTES, ROWS

# Columns of a section, by which `scan` is told where records are.
ADDRESS, SIZE, BASE_OFFSET, BASE_TIMESTAMP, APPEND_TIMESTAMP, RECORDS, LAST_DELTA, FIRST_WANTED, TAG = range(9)
SECTION_COLUMNS = 9
KEEP_CREATE_TIME = -(1 << 63)  # in place of an append timestamp

# What `scan` found wrong in a section; 0 is nothing.
BAD_NUMBER, BAD_LENGTH, BAD_OFFSET, BAD_HEADERS, BAD_END, BAD_TIME, BEHIND_A_FAULT = range(1, 8)
FAULTS = {
    BAD_NUMBER: "a number ends early or has too many bytes",
    BAD_LENGTH: "a field is longer than its record",
    BAD_OFFSET: "an offset is outside its batch, or not behind the one before",
    BAD_HEADERS: "its headers are not as long as they say",
    BAD_END: "bytes follow the last record",
    BAD_TIME: "a timestamp does not fit its field",
    BEHIND_A_FAULT: "a batch before it cannot be read",
}
NO_BYTES = -1  # a length: the field is null
_AHEAD = 8  # records; of a large one only the first and the last bytes are read here, and memory is waited for


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


@inlined
def read_field(at: int, end: int) -> tuple[int, int, int]:
    """The length of a field before `end`, -1 for null; where its bytes begin; what is wrong with it."""
    length, at = read_varint(at, end)
    if at < 0:
        return 0, 0, BAD_NUMBER
    if length > end - at or length < NO_BYTES:
        return 0, 0, BAD_LENGTH
    return length, at, 0


@inlined
def read_fields(at: int, end: int, found: Any) -> int:
    """Key, value and headers of a record, which fill it up to its end, into a row; what is wrong with them."""
    key_size, key_at, fault = read_field(at, end)
    if fault:
        return fault
    value_size, value_at, fault = read_field(key_at + max(key_size, 0), end)
    if fault:
        return fault
    count, at = read_varint(value_at + max(value_size, 0), end)
    if at < 0:
        return BAD_NUMBER
    if count < 0 or count > end - at:
        return BAD_HEADERS
    found.key_at = key_at
    found.key_size = key_size
    found.value_from = value_at - key_at
    found.value_size = value_size
    found.headers_from = at - key_at
    found.header_count = count
    found.size = end - key_at
    if count:
        at = headers_end(at, end, count)
    return 0 if at == end else BAD_HEADERS


@inlined
def read_record(
    at: int, end: int, base_offset: int, last_delta: int, base_timestamp: int, found: Any
) -> tuple[int, int]:
    """One record of a batch into a row: where it ends, and what is wrong with it."""
    length, at = read_varint(at, end)
    if at < 0:
        return 0, BAD_NUMBER
    if length > end - at or length < 6:
        return 0, BAD_LENGTH
    record_end = at + length
    prefetch(record_end + _AHEAD * length)
    timestamp_delta, at = read_varint(at + 1, record_end)
    if at < 0:
        return 0, BAD_NUMBER
    offset_delta, at = read_varint(at, record_end)
    if at < 0:
        return 0, BAD_NUMBER
    if offset_delta < 0 or offset_delta > last_delta:
        return 0, BAD_OFFSET
    timestamp = base_timestamp + timestamp_delta
    if (base_timestamp ^ timestamp) & (timestamp_delta ^ timestamp) < 0:  # it does not fit
        return 0, BAD_TIME
    found.offset = base_offset + offset_delta
    found.timestamp = timestamp
    return record_end, read_fields(at, record_end, found)


@inlined
def scan_section(section: Any, row: int, rows: Any) -> tuple[int, int]:
    """Rows of one section from place `row` on: the place after them, and what is wrong with the section."""
    at, end = section[ADDRESS], section[ADDRESS] + section[SIZE]
    base_offset, last_delta, base_timestamp = section[BASE_OFFSET], section[LAST_DELTA], section[BASE_TIMESTAMP]
    append_timestamp, first_wanted, tag = section[APPEND_TIMESTAMP], section[FIRST_WANTED], section[TAG]
    offset_before = base_offset - 1
    for _ in range(section[RECORDS]):
        found = rows[row]
        at, fault = read_record(at, end, base_offset, last_delta, base_timestamp, found)
        if fault:
            return row, fault
        if found.offset <= offset_before:
            return row, BAD_OFFSET
        offset_before = found.offset
        if found.offset < first_wanted:
            continue
        found.tag = tag
        found.timestamp_type = append_timestamp != KEEP_CREATE_TIME
        if append_timestamp != KEEP_CREATE_TIME:
            found.timestamp = append_timestamp
        row += 1
    return row, 0 if at == end else BAD_END


@compiled(types.int64(TABLE, I32, ROWS))
def scan(sections: Any, faults: Any, rows: Any) -> int:
    """Fill the rows with every record at or behind its section's first wanted offset; how many there are.

    A section that is not right gets its fault and gives no rows, nor do those behind it that have the same tag. There
    is room for all records that the sections claim.
    """
    count: Any = numba.int64(0)  # not a literal, for which callees would be compiled once more
    for place in range(sections.shape[0]):
        if place and faults[place - 1] and sections[place - 1, TAG] == sections[place, TAG]:
            faults[place] = BEHIND_A_FAULT
            continue
        row, fault = scan_section(sections[place], count, rows)
        faults[place] = fault
        if not fault:
            count = row
    return count


@compiled(types.int64(ROWS, I64, I64, I64))
def leave_out(rows: Any, stops: Any, stop_times: Any, left_out: Any) -> int:
    """Close the gaps of rows at or behind the stops of their partitions (by tag), by offset or time; how many stay.

    `left_out` is lowered to the first offset of each partition that does not.
    """
    kept = 0
    first = rows.ctypes.data
    for place in range(rows.shape[0]):
        row = rows[place]
        if row.offset >= stops[row.tag] or row.timestamp >= stop_times[row.tag]:
            left_out[row.tag] = min(left_out[row.tag], row.offset)
            continue
        if kept < place:
            copy_bytes(first + ROW_BYTES * kept, first + ROW_BYTES * place, ROW_BYTES)
        kept += 1
    return kept
