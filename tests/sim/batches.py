"""RecordBatch v2 by hand: a second opinion on the bytes, sharing no code with `lowwater.wire`."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import crc32c

HEADER = struct.Struct(">qiibIhiqqqhii")
NO_PRODUCER = (-1, -1, -1)
TRANSACTIONAL, CONTROL = 0x10, 0x20


@dataclass(frozen=True, slots=True)
class Record:
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Batch:
    base_offset: int
    last_offset: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    sequence: int
    records: tuple[Record, ...]
    raw: bytes
    is_transactional: bool = False
    is_control: bool = False


def encode(
    records: list[tuple[int, bytes | None, bytes | None]],
    *,
    producer: tuple[int, int, int] = NO_PRODUCER,
    transactional: bool = False,
) -> bytearray:
    """A batch as a client sends it, from (timestamp, key, value) triples; `producer` = (id, epoch, first sequence)."""
    base_timestamp = records[0][0]
    body = b"".join(_record(delta, record, base_timestamp) for delta, record in enumerate(records))
    attributes = TRANSACTIONAL if transactional else 0
    tail = struct.pack(
        ">hiqqqhii",
        attributes,
        len(records) - 1,
        base_timestamp,
        max(at for at, _, _ in records),
        *producer,
        len(records),
    )
    head = struct.pack(">qiibI", 0, 9 + len(tail) + len(body), -1, 2, crc32c.crc32c(tail + body))
    return bytearray(head + tail + body)


def decode_all(data: bytes) -> Iterator[Batch]:
    """Every batch of stored bytes; a wrong length, magic, checksum or a cut batch is an AssertionError."""
    at = 0
    while at < len(data):
        length = struct.unpack_from(">i", data, at + 8)[0]
        raw = bytes(data[at : at + 12 + length])
        assert len(raw) == 12 + length, f"a batch is cut at byte {at}"
        yield _decode(raw)
        at += len(raw)


def _decode(raw: bytes) -> Batch:
    base, _, epoch, magic, crc, attributes, delta, base_timestamp, _, pid, pepoch, sequence, count = HEADER.unpack_from(
        raw
    )
    assert magic == 2, f"magic {magic}"
    assert crc == crc32c.crc32c(raw[21:]), f"checksum of the batch at offset {base}"
    assert attributes & 7 == 0, "these tests write uncompressed batches"
    horizon_set = bool(attributes & 0x40)
    assert horizon_set or base_timestamp >= 0 or not count
    records, at = [], HEADER.size
    for _ in range(count):
        record, at = _decode_record(raw, at, base, base_timestamp)
        records.append(record)
    assert at == len(raw), f"{len(raw) - at} bytes after the last record at offset {base}"
    flags = bool(attributes & TRANSACTIONAL), bool(attributes & CONTROL)
    return Batch(base, base + delta, epoch, pid, pepoch, sequence, tuple(records), raw, *flags)


def _decode_record(raw: bytes, at: int, base: int, base_timestamp: int) -> tuple[Record, int]:
    length, at = _varint(raw, at)
    end = at + length
    timestamp, at = _varint(raw, at + 1)
    offset, at = _varint(raw, at)
    key, at = _nullable(raw, at)
    value, at = _nullable(raw, at)
    headers, at = _varint(raw, at)
    assert headers == 0
    assert at == end
    return Record(base + offset, base_timestamp + timestamp, key, value), end


def _record(delta: int, record: tuple[int, bytes | None, bytes | None], base_timestamp: int) -> bytes:
    timestamp, key, value = record
    body = b"\0" + _zigzag(timestamp - base_timestamp) + _zigzag(delta) + _sized(key) + _sized(value) + _zigzag(0)
    return _zigzag(len(body)) + body


def _sized(data: bytes | None) -> bytes:
    return _zigzag(-1) if data is None else _zigzag(len(data)) + data


def _zigzag(value: int) -> bytes:
    left, out = (value << 1) ^ (value >> 63), bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*out, left])


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = raw[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at


def _nullable(raw: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = _varint(raw, at)
    return (None, at) if size < 0 else (raw[at : at + size], at + size)
