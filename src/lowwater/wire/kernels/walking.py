"""Batches of an answer: where they are and what their headers say, for all partitions in one call."""

# mypy: disable-error-code="no-untyped-call, call-arg"

from __future__ import annotations

from typing import Any

import numba
from numba import types

from lowwater.wire.kernels import scanning
from lowwater.wire.kernels.compiling import I64, TABLE, byte_at, compiled, inner
from lowwater.wire.records import CODEC_MASK, CONTROL, CRC_START, HEADER_SIZE, LOG_APPEND_TIME, RECORD_SIZE_MIN

# Columns of a slice, by which `walk` is told where batches are.
SLICE_ADDRESS, SLICE_SIZE, FETCH_OFFSET, TAG = range(4)
# What is found of it: the offset behind its last batch, the first of its batches that does not count, what is wrong
# behind its last one, and how many of its batches are read where they lie.
POSITION, GOOD_BEFORE, FAULT, IN_PLACE = range(4, 8)
SLICE_COLUMNS = 8
ALL_GOOD = 1 << 62

# Columns of a batch that was found. Its checksum is over [CRC_FROM, BEHIND) of the slice.
(
    SLICE,
    CRC_FROM,
    BEHIND,
    CRC,
    ADDRESS,
    SIZE,
    BASE_OFFSET,
    LAST_DELTA,
    ATTRIBUTES,
    BASE_TIMESTAMP,
    MAX_TIMESTAMP,
    PRODUCER_ID,
    RECORDS,
    STATE,
) = range(14)
BATCH_COLUMNS = 14

# What a batch may be. Wanted ones may hold rows: no control batches, nothing that was read before.
WANTED, COMPRESSED, CLAIMS_TOO_MANY = 1, 2, 4

# What is wrong with the first batch that is not right; 0 is nothing.
OLD_FORMAT, UNKNOWN_FORMAT, BAD_SIZE, BAD_FIELDS, BAD_SEQUENCE = range(1, 6)
FAULTS = {
    OLD_FORMAT: "the records are in the format of Kafka before 0.11 (magic 0 or 1)",
    UNKNOWN_FORMAT: "the records are in a format that is not known here (magic above 2)",
    BAD_SIZE: "a batch is smaller than its header",
    BAD_FIELDS: "the fields of a batch header contradict each other",
    BAD_SEQUENCE: "a batch begins before the end of the one before it",
}


@inner
def big_endian(address: int, count: int) -> int:
    """A signed number of so many bytes."""
    number = -1 if byte_at(address) >= 128 else 0
    for place in range(count):
        number = (number << 8) | numba.int64(byte_at(address + place))
    return number


@inner
def state_of(attributes: int, last_offset: int, fetch_offset: int, records: int, body_bytes: int) -> int:
    """Room is made for as many records as a batch claims, so it must not claim more than can be in it."""
    state = 0
    if not attributes & CONTROL and last_offset >= fetch_offset and records > 0:
        state = WANTED
    if attributes & CODEC_MASK:
        return state | COMPRESSED
    if state and records > body_bytes // RECORD_SIZE_MIN:
        state |= CLAIMS_TOO_MANY
    return state


@compiled(types.UniTuple(types.int64, 2)(TABLE, TABLE))
def walk(slices: Any, batches: Any) -> tuple[int, int]:
    """Fill the table with every whole batch, as far as there is room; how many there are, room or not; and everything
    that at least one of them is.

    A slice ends where its first fault is, or where its last batch is cut off.
    """
    found = states = 0
    for place in range(slices.shape[0]):
        at = start = slices[place, SLICE_ADDRESS]
        end = at + slices[place, SLICE_SIZE]
        fetch_offset = slices[place, FETCH_OFFSET]
        slices[place, POSITION] = fetch_offset
        slices[place, GOOD_BEFORE] = ALL_GOOD
        slices[place, FAULT] = slices[place, IN_PLACE] = 0
        expected = 0
        while end - at >= 17:
            magic = byte_at(at + 16)
            if magic != 2:
                slices[place, FAULT] = OLD_FORMAT if magic < 2 else UNKNOWN_FORMAT
                break
            length = big_endian(at + 8, 4)
            if length < 49:
                slices[place, FAULT] = BAD_SIZE
                break
            if length + 12 > end - at:
                break
            base_offset = big_endian(at, 8)
            last_delta = big_endian(at + 23, 4)
            records = big_endian(at + 57, 4)
            if base_offset < 0 or base_offset > 9223372034707292160 or last_delta < 0 or records < 0:
                slices[place, FAULT] = BAD_FIELDS
                break
            if base_offset < expected:
                slices[place, FAULT] = BAD_SEQUENCE
                break
            expected = base_offset + last_delta + 1
            attributes = big_endian(at + 21, 2)
            state = state_of(attributes, expected - 1, fetch_offset, records, length + 12 - HEADER_SIZE)
            states |= state
            if found < batches.shape[0]:
                batches[found, SLICE] = place
                batches[found, CRC_FROM] = at - start + CRC_START
                batches[found, BEHIND] = at - start + length + 12
                batches[found, CRC] = big_endian(at + 17, 4) & 0xFFFFFFFF
                batches[found, ADDRESS] = at
                batches[found, SIZE] = length + 12
                batches[found, BASE_OFFSET] = base_offset
                batches[found, LAST_DELTA] = last_delta
                batches[found, ATTRIBUTES] = attributes
                batches[found, BASE_TIMESTAMP] = big_endian(at + 27, 8)
                batches[found, MAX_TIMESTAMP] = big_endian(at + 35, 8)
                batches[found, PRODUCER_ID] = big_endian(at + 43, 8)
                batches[found, RECORDS] = records
                batches[found, STATE] = state
            found += 1
            slices[place, POSITION] = max(slices[place, POSITION], expected)
            at += length + 12
    return found, states


@compiled(types.void(TABLE, TABLE))
def find_positions(slices: Any, batches: Any) -> None:
    """The offset behind the last batch of each slice that counts, whether or not it holds rows."""
    for place in range(slices.shape[0]):
        slices[place, POSITION] = slices[place, FETCH_OFFSET]
    for index in range(batches.shape[0]):
        place = batches[index, SLICE]
        if index < slices[place, GOOD_BEFORE]:
            behind = batches[index, BASE_OFFSET] + batches[index, LAST_DELTA] + 1
            slices[place, POSITION] = max(slices[place, POSITION], behind)


@compiled(types.UniTuple(types.int64, 2)(TABLE, TABLE, TABLE, TABLE, I64))
def find_sections(slices: Any, batches: Any, outputs: Any, sections: Any, chosen: Any) -> tuple[int, int]:
    """For `scan`, the batches that are wanted and count, and which of them each section is; how many sections there
    are, and how many records they claim.

    `outputs`, by batch, is where compressed ones lie now and how large they are; it has no rows where there are none.
    """
    count = records = 0
    for index in range(batches.shape[0]):
        place, state = batches[index, SLICE], batches[index, STATE]
        if not state & WANTED or index >= slices[place, GOOD_BEFORE]:
            continue
        if state & COMPRESSED:
            sections[count, scanning.ADDRESS] = outputs[index, 0]
            sections[count, scanning.SIZE] = outputs[index, 1]
        else:
            sections[count, scanning.ADDRESS] = batches[index, ADDRESS] + HEADER_SIZE
            sections[count, scanning.SIZE] = batches[index, SIZE] - HEADER_SIZE
            slices[place, IN_PLACE] += 1
        sections[count, scanning.BASE_OFFSET] = batches[index, BASE_OFFSET]
        sections[count, scanning.BASE_TIMESTAMP] = batches[index, BASE_TIMESTAMP]
        sections[count, scanning.APPEND_TIMESTAMP] = scanning.KEEP_CREATE_TIME
        if batches[index, ATTRIBUTES] & LOG_APPEND_TIME:
            sections[count, scanning.APPEND_TIMESTAMP] = batches[index, MAX_TIMESTAMP]
        sections[count, scanning.RECORDS] = batches[index, RECORDS]
        sections[count, scanning.LAST_DELTA] = batches[index, LAST_DELTA]
        sections[count, scanning.FIRST_WANTED] = slices[place, FETCH_OFFSET]
        sections[count, scanning.TAG] = slices[place, TAG]
        chosen[count] = index
        records += batches[index, RECORDS]
        count += 1
    return count, records
