"""RecordBatch v2: the header that the broker reads, and the records inside for the few who need them.

    base_offset i64 | batch_length i32 | leader_epoch i32 | magic i8 | crc u32 | attributes i16 |
    last_offset_delta i32 | base_timestamp i64 | max_timestamp i64 | producer_id i64 | producer_epoch i16 |
    base_sequence i32 | record_count i32 | records

The CRC-32C covers everything from `attributes` on, so base offset and leader epoch can be set without it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from crc32c import crc32c

from lowwater.errors import WireError
from lowwater.types import Buffer
from lowwater.wire import compression

HEADER_SIZE = 61
PREFIX_SIZE = 12  # base offset and length: what the length does not count
CRC_START = 21
MAGIC_POSITION = 16
RECORD_SIZE_MIN = 7
_LENGTH_MIN = (RECORD_SIZE_MIN - 1) << 1  # as it is written

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
HAS_DELETE_HORIZON = 0x40

NO_TIMESTAMP = -1
TIMESTAMP_MIN, TIMESTAMP_MAX = -(1 << 63), (1 << 63) - 1
NO_PRODUCER_ID = -1

# What the event loop may decode of one batch while everyone else waits. A few hundred bytes can hold a million records.
INLINE_RECORDS_MAX = 200_000
INLINE_BYTES_MAX = 16 * 1024 * 1024

_HEADER = struct.Struct(">qiibIhiqqqhii")
_ORDER = struct.Struct(">q")
_EPOCH = struct.Struct(">i")
_CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")

_BASE_OFFSET_AT, _EPOCH_AT, _CRC_AT, _ATTRIBUTES_AT, _BASE_TIME_AT, _MAX_TIME_AT = 0, 12, 17, 21, 27, 35

unpack_header = _HEADER.unpack_from


class CorruptBatch(WireError):  # noqa: N818  (what it says about the bytes)
    """Bytes that should be a record batch are not one."""


class BatchHeader(NamedTuple):
    """The 61 bytes before the records."""

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @classmethod
    def parse(cls, buffer: Buffer, position: int = 0) -> BatchHeader:
        """The header at `position`; CorruptBatch when the buffer ends before it does."""
        try:
            return cls._make(unpack_header(buffer, position))
        except struct.error:
            raise CorruptBatch(f"no room for a batch header at {position} of {len(buffer)} bytes") from None

    @property
    def size(self) -> int:
        return PREFIX_SIZE + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def has_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the tombstones of this batch may go; set by the first compaction that saw it."""
        return self.base_timestamp if self.attributes & HAS_DELETE_HORIZON else None


class Record(NamedTuple):
    """One record as a Python value; for tests, lookups in one batch, and compaction."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


def crc_ok(batch: Buffer, header: BatchHeader) -> bool:
    """`batch` begins with the header; only its own bytes are looked at."""
    return crc32c(memoryview(batch)[CRC_START : header.size]) == header.crc


def is_plausible(header: BatchHeader) -> bool:
    """Whether the fields fit each other; cheap, and enough to not run astray."""
    return (
        header.magic == 2
        and header.batch_length >= HEADER_SIZE - PREFIX_SIZE
        and header.base_offset >= 0
        and header.last_offset_delta >= 0
        and header.record_count >= 0
    )


# -- in place


def set_position(batch: memoryview | bytearray, base_offset: int, leader_epoch: int) -> None:
    """What the log decides about a batch; outside the CRC."""
    _ORDER.pack_into(batch, _BASE_OFFSET_AT, base_offset)
    _EPOCH.pack_into(batch, _EPOCH_AT, leader_epoch)


def set_log_append_time(batch: memoryview | bytearray, attributes: int, now_ms: int) -> None:
    """Stamp the whole batch with the broker's time, and seal it with a new CRC."""
    _ATTRIBUTES.pack_into(batch, _ATTRIBUTES_AT, attributes | LOG_APPEND_TIME)
    _ORDER.pack_into(batch, _MAX_TIME_AT, now_ms)
    seal(batch)


def set_max_timestamp(batch: memoryview | bytearray, timestamp: int) -> None:
    """Say in the header which timestamp is the largest, and seal the batch with a new CRC."""
    _ORDER.pack_into(batch, _MAX_TIME_AT, timestamp)
    seal(batch)


def seal(batch: memoryview | bytearray) -> None:
    """Write the CRC that fits the bytes."""
    with memoryview(batch)[CRC_START:] as covered:
        _CRC.pack_into(batch, _CRC_AT, crc32c(covered))


# -- records


def payload(batch: Buffer, header: BatchHeader, *, limit: int = compression.OUTPUT_LIMIT) -> memoryview:
    """The records' bytes, decompressed."""
    if not is_plausible(header) or header.size > len(batch):
        raise CorruptBatch("the batch does not hold what its header says")
    body = memoryview(batch)[HEADER_SIZE : header.size]
    return memoryview(compression.decompress(header.codec, body, limit=limit))


def read_records(batch: Buffer, *, limit: int = compression.OUTPUT_LIMIT) -> Iterator[Record]:
    """The records of the batch that `batch` begins with."""
    header = BatchHeader.parse(batch)
    data = payload(batch, header, limit=limit)
    position = 0
    for _ in range(header.record_count):
        record, position = _read_record(data, position, header)
        yield record
    if position != len(data):
        raise CorruptBatch(f"{len(data) - position} bytes follow the last record")


def read_times(
    batch: Buffer, *, since_ms: int | None = None, limit: int = compression.OUTPUT_LIMIT
) -> Iterator[tuple[int, int]]:
    """(offset, timestamp) of each record, or of each that is stamped `since_ms` or later, without keys and values."""
    header = BatchHeader.parse(batch)
    data = payload(batch, header, limit=limit)
    is_passing = since_ms is not None and not header.has_log_append_time
    passed = bytes(data) if is_passing else b""  # of which single bytes are read faster
    position, left = 0, header.record_count
    while left:
        if since_ms is not None and is_passing:
            position, left = _pass_earlier(passed, position, left, since_ms - header.base_timestamp)
            if not left:
                return
        end, place = _record_end(data, position)
        offset, timestamp, _ = _read_place(data, place + 1, header)
        if since_ms is None or timestamp >= since_ms:
            yield offset, timestamp
        position, left = end, left - 1


def _pass_earlier(data: bytes, position: int, left: int, delta: int) -> tuple[int, int]:
    """Behind the records that are stamped earlier than `delta`, and how many are left there.

    A batch may have thousands, of which the one that is looked for is any: so their numbers are read in place. A record
    of which one is longer than usual, or makes no sense, is left to those who look at everything.
    """
    size = len(data)
    try:
        while left:
            length = data[position]
            at = position + 1
            if length > 0x7F:
                length = length & 0x7F | data[at] << 7
                at += 1
            time = data[at + 1]
            if time > 0x7F:
                time = time & 0x7F | data[at + 2] << 7
                if time > 0x3FFF:
                    time = time & 0x3FFF | data[at + 3] << 14
            end = at + (length >> 1)
            if (time >> 1) ^ -(time & 1) >= delta or time > 0x1FFFFF or end > size:
                break
            if length & 1 or not _LENGTH_MIN <= length <= 0x3FFF:
                break
            position = end
            left -= 1
    except IndexError:
        pass
    return position, left


def _record_end(data: memoryview, position: int) -> tuple[int, int]:
    """(where the record ends, where it begins after its length)."""
    length, start = read_varint(data, position)
    if not RECORD_SIZE_MIN - 1 <= length <= len(data) - start:
        raise CorruptBatch(f"a record of {length} bytes at {position} of {len(data)}")
    return start + length, start


def _read_place(data: memoryview, position: int, header: BatchHeader) -> tuple[int, int, int]:
    """(offset, timestamp, position after them)."""
    timestamp_delta, position = read_varint(data, position)
    offset_delta, position = read_varint(data, position)
    if not 0 <= offset_delta <= header.last_offset_delta:
        raise CorruptBatch(f"offset delta {offset_delta} is outside the batch")
    timestamp = header.max_timestamp if header.has_log_append_time else header.base_timestamp + timestamp_delta
    if not TIMESTAMP_MIN <= timestamp <= TIMESTAMP_MAX:
        raise CorruptBatch(f"timestamp {timestamp} does not fit its field")
    return header.base_offset + offset_delta, timestamp, position


def _read_record(data: memoryview, position: int, header: BatchHeader) -> tuple[Record, int]:
    end, start = _record_end(data, position)
    offset, timestamp, position = _read_place(data, start + 1, header)
    key, position = _read_bytes(data, position, end)
    value, position = _read_bytes(data, position, end)
    headers, position = _read_headers(data, position, end)
    if position != end:
        raise CorruptBatch(f"record {offset} is not as long as it says")
    return Record(offset, timestamp, key, value, headers), end


def _read_bytes(data: memoryview, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position)
    if length < 0:
        return None, position
    if length > end - position:
        raise CorruptBatch(f"{length} bytes are announced at {position}, {end - position} are there")
    return bytes(data[position : position + length]), position + length


def _read_headers(data: memoryview, position: int, end: int) -> tuple[Sequence[tuple[str, bytes | None]], int]:
    count, position = read_varint(data, position)
    if not 0 <= count <= end - position:
        raise CorruptBatch(f"{count} headers in {end - position} bytes")
    headers = []
    for _ in range(count):
        name, position = _read_bytes(data, position, end)
        value, position = _read_bytes(data, position, end)
        if name is None:
            raise CorruptBatch("a header without a name")
        headers.append((name.decode("utf-8", "surrogateescape"), value))
    return tuple(headers), position


def read_varint(data: memoryview, position: int) -> tuple[int, int]:
    """A zigzag varint of at most ten bytes, and the position after it."""
    result = shift = 0
    try:
        while True:
            byte = data[position]
            position += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (result >> 1) ^ -(result & 1), position
            shift += 7
            if shift > 63:
                raise CorruptBatch("a number of more than ten bytes")
    except IndexError:
        raise CorruptBatch("a number ends early") from None


def write_varint(output: bytearray, value: int) -> None:
    number = (value << 1) ^ (value >> 63)
    while number > 0x7F:
        output.append(number & 0x7F | 0x80)
        number >>= 7
    output.append(number)


# -- building


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int | None = None,
    last_offset: int | None = None,
    codec: int = compression.NONE,
    attributes: int = 0,
    leader_epoch: int = -1,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    base_timestamp: int | None = None,
    max_timestamp: int | None = None,
) -> bytearray:
    """One batch of these records. Offsets are the records' own; the rest is as a producer or a compaction wants it."""
    first = base_offset if base_offset is not None else records[0].offset
    last = last_offset if last_offset is not None else records[-1].offset
    times = [record.timestamp for record in records] or [NO_TIMESTAMP]
    base_time = times[0] if base_timestamp is None else base_timestamp
    body = bytearray()
    for record in records:
        _write_record(body, record, first, base_time)
    header = BatchHeader(
        base_offset=first,
        batch_length=0,
        leader_epoch=leader_epoch,
        magic=2,
        crc=0,
        attributes=attributes | codec,
        last_offset_delta=last - first,
        base_timestamp=base_time,
        max_timestamp=max(times) if max_timestamp is None else max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
    )
    return encode_batch(header, body)


def encode_batch(header: BatchHeader, body: Buffer) -> bytearray:
    """A batch of these encoded records; length and CRC of the header are found, the rest is taken."""
    batch = bytearray(HEADER_SIZE)
    batch += compression.compress(header.codec, body)
    fill_header(batch, header)
    return batch


def fill_header(batch: bytearray | memoryview, header: BatchHeader) -> None:
    """Write the header in front of records that are there already; its length and CRC are found."""
    _HEADER.pack_into(batch, 0, *header._replace(batch_length=len(batch) - PREFIX_SIZE))
    seal(batch)


def _write_record(output: bytearray, record: Record, base_offset: int, base_timestamp: int) -> None:
    body = bytearray(1)
    write_varint(body, record.timestamp - base_timestamp)
    write_varint(body, record.offset - base_offset)
    _write_bytes(body, record.key)
    _write_bytes(body, record.value)
    write_varint(body, len(record.headers))
    for name, value in record.headers:
        _write_bytes(body, name.encode("utf-8", "surrogateescape"))
        _write_bytes(body, value)
    write_varint(output, len(body))
    output += body


def _write_bytes(output: bytearray, value: bytes | None) -> None:
    if value is None:
        write_varint(output, -1)
        return
    write_varint(output, len(value))
    output += value
