"""Finding the records of a batch without making values of them: for compaction, which looks at keys alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lowwater.types import Buffer
from lowwater.wire import compression
from lowwater.wire.records import RECORD_SIZE_MIN, BatchHeader, CorruptBatch, payload

_SMALL = tuple((byte >> 1) ^ -(byte & 1) for byte in range(0x80))


class ScannedRecord(NamedTuple):
    """A record's place in the payload, [start, end) with its length in front, and what decides about it."""

    start: int
    end: int
    offset_delta: int
    timestamp_delta: int
    key: bytes | None
    has_value: bool


def scan(
    batch: Buffer, header: BatchHeader, *, limit: int = compression.OUTPUT_LIMIT
) -> tuple[bytes, list[ScannedRecord]]:
    """The payload, decompressed, and its records; CorruptBatch when they do not fill it exactly."""
    data = bytes(payload(batch, header, limit=limit))
    records = list(_records(data, header))
    if (records[-1].end if records else 0) != len(data):
        raise CorruptBatch("bytes follow the last record")
    return data, records


def _records(data: bytes, header: BatchHeader) -> Iterator[ScannedRecord]:
    size, last_delta, position = len(data), header.last_offset_delta, 0
    for _ in range(header.record_count):
        start = position
        length, position = varint(data, position)
        end = position + length
        if length < RECORD_SIZE_MIN - 1 or end > size:
            raise CorruptBatch(f"a record of {length} bytes at {start} of {size}")
        timestamp_delta, position = varint(data, position + 1)
        offset_delta, position = varint(data, position)
        key_length, position = varint(data, position)
        key_end = position + key_length if key_length > 0 else position
        if key_end >= end or not 0 <= offset_delta <= last_delta:
            raise CorruptBatch(f"the record at {start} is not as long as it says, or outside its batch")
        key = data[position:key_end] if key_length >= 0 else None
        value_length, position = varint(data, key_end)
        if position + value_length >= end or position >= end:
            raise CorruptBatch(f"the record at {start} is not as long as it says")
        yield ScannedRecord(start, end, offset_delta, timestamp_delta, key, value_length >= 0)
        position = end


def varint(data: bytes, position: int) -> tuple[int, int]:
    """A zigzag varint of at most ten bytes, and the position after it."""
    try:
        byte = data[position]
        if byte < 0x80:  # nearly always, or the next
            return _SMALL[byte], position + 1
        following = data[position + 1]
        if following < 0x80:
            result = byte & 0x7F | following << 7
            return (result >> 1) ^ -(result & 1), position + 2
        return _long_varint(data, position)
    except IndexError:
        raise CorruptBatch("a number ends early") from None


def _long_varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while shift <= 63:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (result >> 1) ^ -(result & 1), position
        shift += 7
    raise CorruptBatch("a number of more than ten bytes")
