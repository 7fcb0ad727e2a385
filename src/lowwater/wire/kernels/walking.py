"""Batches of an answer: where they are and what their headers say, for all partitions in one call."""

# mypy: disable-error-code="no-untyped-call, call-arg"

from __future__ import annotations

from typing import Any

import numba
from numba import types

from lowwater.wire.kernels.compiling import I32, I64, TABLE, byte_at, compiled, inner

# Columns of a slice, by which `walk` is told where batches are.
SLICE_ADDRESS, SLICE_SIZE = range(2)

# Columns of a batch that was found.
(
    SLICE,
    ADDRESS,
    SIZE,
    BASE_OFFSET,
    LAST_DELTA,
    ATTRIBUTES,
    BASE_TIMESTAMP,
    MAX_TIMESTAMP,
    PRODUCER_ID,
    RECORDS,
    CRC,
) = range(11)
BATCH_COLUMNS = 11

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


@compiled(types.int64(TABLE, TABLE, I64, I32))
def walk(slices: Any, batches: Any, positions: Any, faults: Any) -> int:
    """Fill the table with every whole batch, as far as there is room; how many there are, room or not.

    `positions` are the fetch offsets, and are moved behind what was found. A slice ends where its first fault is, or
    where its last batch is cut off.
    """
    found = 0
    for place in range(slices.shape[0]):
        at = slices[place, 0]
        end = at + slices[place, 1]
        expected = 0
        while end - at >= 17:
            magic = byte_at(at + 16)
            if magic != 2:
                faults[place] = 1 if magic < 2 else 2
                break
            length = big_endian(at + 8, 4)
            if length < 49:
                faults[place] = 3
                break
            if length + 12 > end - at:
                break
            base_offset = big_endian(at, 8)
            last_delta = big_endian(at + 23, 4)
            records = big_endian(at + 57, 4)
            if base_offset < 0 or base_offset > 9223372034707292160 or last_delta < 0 or records < 0:
                faults[place] = 4
                break
            if base_offset < expected:
                faults[place] = 5
                break
            expected = base_offset + last_delta + 1
            if found < batches.shape[0]:
                batches[found, 0] = place
                batches[found, 1] = at
                batches[found, 2] = length + 12
                batches[found, 3] = base_offset
                batches[found, 4] = last_delta
                batches[found, 5] = big_endian(at + 21, 2)
                batches[found, 6] = big_endian(at + 27, 8)
                batches[found, 7] = big_endian(at + 35, 8)
                batches[found, 8] = big_endian(at + 43, 8)
                batches[found, 9] = records
                batches[found, 10] = big_endian(at + 17, 4) & 0xFFFFFFFF
            found += 1
            positions[place] = max(positions[place], expected)
            at += length + 12
    return found
