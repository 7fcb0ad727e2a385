"""Walking over stored batches without looking inside."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from crc32c import crc32c

from lowwater.types import Buffer
from lowwater.wire.records import CRC_START, HEADER_SIZE, PREFIX_SIZE, BatchHeader, is_plausible

_SPAN = struct.Struct(">qi11xi")  # base offset, length, last offset delta
SPAN_SIZE = _SPAN.size
_LENGTH_MIN = HEADER_SIZE - PREFIX_SIZE


class DamagedBatchError(Exception):
    """No whole batch at `position`."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(f"at byte {position}: {why}")
        self.position = position
        self.why = why


def headers(buffer: Buffer, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of every batch in [position, end), which must hold whole batches."""
    while position < end:
        if end - position < HEADER_SIZE:
            raise DamagedBatchError(position, f"{end - position} bytes are too few for a batch")
        header = BatchHeader.parse(buffer, position)
        if not is_plausible(header):
            raise DamagedBatchError(position, "no batch header")
        if header.size > end - position:
            raise DamagedBatchError(position, f"a batch of {header.size} bytes, {end - position} are there")
        yield position, header
        position += header.size


def span_at(buffer: Buffer, position: int) -> tuple[int, int, int]:
    """(base offset, last offset, size) of the batch at `position`."""
    try:
        base_offset, length, delta = _SPAN.unpack_from(buffer, position)
    except struct.error:
        raise DamagedBatchError(position, "no room for a batch header") from None
    if length < _LENGTH_MIN or delta < 0:
        raise DamagedBatchError(position, "no batch header")
    return base_offset, base_offset + delta, PREFIX_SIZE + length


def prefixes_sum(buffer: Buffer, position: int, end: int) -> int:
    """The checksum of the header bytes that no batch CRC covers, over whole batches in [position, end)."""
    view = memoryview(buffer)
    chain = 0
    while position < end:
        if end - position < HEADER_SIZE:
            raise DamagedBatchError(position, f"{end - position} bytes are too few for a batch")
        size = span_at(view, position)[2]
        chain = crc32c(view[position : position + CRC_START], chain)
        position += size
    if position != end:
        raise DamagedBatchError(position, "a batch crosses the end of its interval")
    return chain


def find_offset(buffer: Buffer, position: int, end: int, offset: int) -> int:
    """The position of the first batch, from `position` on, that ends at or after `offset`; `end` if there is none."""
    while position < end:
        _, last_offset, size = span_at(buffer, position)
        if last_offset >= offset:
            return position
        position += size
    return end


def last_boundary(buffer: Buffer, position: int, limit: int, end: int) -> int:
    """Where the last whole batch ends that, counted from `position`, ends at or before `limit`."""
    limit = min(limit, end)
    while limit - position >= SPAN_SIZE:
        size = span_at(buffer, position)[2]
        if size > limit - position:
            break
        position += size
    return position
