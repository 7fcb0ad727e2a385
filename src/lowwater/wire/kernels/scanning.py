"""Records of batches: every field is found and checked, nothing is copied. Other kernels trust what is found here."""

# mypy: disable-error-code="no-untyped-call, call-arg"

from __future__ import annotations

from typing import Any

from numba import types

from lowwater.wire.kernels.compiling import I32, TABLE, compiled, read_varint
from lowwater.wire.kernels.rows import ROWS

# Columns of a section, by which `scan` is told where records are.
ADDRESS, SIZE, BASE_OFFSET, BASE_TIMESTAMP, APPEND_TIMESTAMP, RECORDS, LAST_DELTA, FIRST_WANTED, TAG = range(9)
SECTION_COLUMNS = 9
KEEP_CREATE_TIME = -(1 << 63)  # in place of an append timestamp

# What `scan` found wrong in a section; 0 is nothing.
BAD_NUMBER, BAD_LENGTH, BAD_OFFSET, BAD_HEADERS, BAD_END, BAD_TIME, BEHIND_A_FAULT = range(1, 8)
FAULTS = {
    BAD_NUMBER: "a number ends early or has too many bytes",
    BAD_LENGTH: "a field is longer than its record",
    BAD_OFFSET: "an offset is outside its batch",
    BAD_HEADERS: "its headers are not as long as they say",
    BAD_END: "bytes follow the last record",
    BAD_TIME: "a timestamp does not fit its field",
    BEHIND_A_FAULT: "a batch before it cannot be read",
}
NO_BYTES = -1  # a length: the field is null


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


@compiled(types.int64(TABLE, I32, ROWS))
def scan(sections: Any, faults: Any, rows: Any) -> int:
    """Fill the rows with every record at or behind its section's first wanted offset; how many there are.

    A section that is not right gets its fault and gives no rows, nor do those behind it that have the same tag. There
    is room for all records that the sections claim.
    """
    row = 0
    for section in range(sections.shape[0]):
        if section and faults[section - 1] and sections[section - 1, TAG] == sections[section, TAG]:
            faults[section] = BEHIND_A_FAULT
            continue
        first_row = row
        fault = 0
        at = sections[section, ADDRESS]
        end = at + sections[section, SIZE]
        base_offset, base_timestamp = sections[section, BASE_OFFSET], sections[section, BASE_TIMESTAMP]
        append_timestamp = sections[section, APPEND_TIMESTAMP]
        last_delta, first_wanted = sections[section, LAST_DELTA], sections[section, FIRST_WANTED]
        tag = sections[section, TAG]
        for _ in range(sections[section, RECORDS]):
            length, at = read_varint(at, end)
            if at < 0:
                fault = BAD_NUMBER
                break
            if length > end - at or length < 6:
                fault = BAD_LENGTH
                break
            record_end = at + length
            timestamp_delta, at = read_varint(at + 1, record_end)
            if at < 0:
                fault = BAD_NUMBER
                break
            offset_delta, at = read_varint(at, record_end)
            if at < 0:
                fault = BAD_NUMBER
                break
            if offset_delta < 0 or offset_delta > last_delta:
                fault = BAD_OFFSET
                break
            timestamp = base_timestamp + timestamp_delta
            if (base_timestamp ^ timestamp) & (timestamp_delta ^ timestamp) < 0:  # it does not fit
                fault = BAD_TIME
                break
            key_length, at = read_varint(at, record_end)
            if at < 0:
                fault = BAD_NUMBER
                break
            if key_length > record_end - at or key_length < -1:
                fault = BAD_LENGTH
                break
            key_place = at
            at += max(key_length, 0)
            value_length, at = read_varint(at, record_end)
            if at < 0:
                fault = BAD_NUMBER
                break
            if value_length > record_end - at or value_length < -1:
                fault = BAD_LENGTH
                break
            value_place = at
            at += max(value_length, 0)
            count, at = read_varint(at, record_end)
            if at < 0:
                fault = BAD_NUMBER
                break
            if count < 0 or count > record_end - at:
                fault = BAD_HEADERS
                break
            headers_place = at
            if count:
                at = headers_end(at, record_end, count)
            if at != record_end:
                fault = BAD_HEADERS
                break
            if base_offset + offset_delta < first_wanted:
                continue
            found = rows[row]
            found.offset = base_offset + offset_delta
            found.timestamp = timestamp
            found.timestamp_type = 0
            if append_timestamp != KEEP_CREATE_TIME:
                found.timestamp = append_timestamp
                found.timestamp_type = 1
            found.tag = tag
            found.key_at = key_place
            found.key_size = key_length
            found.value_from = value_place - key_place
            found.value_size = value_length
            found.headers_from = headers_place - key_place
            found.header_count = count
            found.size = record_end - key_place
            row += 1
        if not fault and at != end:
            fault = BAD_END
        if fault:
            faults[section] = fault
            row = first_row
    return row
