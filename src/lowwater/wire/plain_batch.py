"""Batches of keys and values alone, as the broker writes and reads them in its own topics: one time, no headers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lowwater.types import Buffer
from lowwater.wire import compression
from lowwater.wire.record_scan import varint
from lowwater.wire.records import (
    NO_PRODUCER_ID,
    RECORD_SIZE_MIN,
    TRANSACTIONAL,
    BatchHeader,
    CorruptBatch,
    encode_batch,
    payload,
    write_varint,
)

_KEPT_MAX = 1 << 14


class _Varints(dict[int, bytes]):
    """Small numbers, encoded once."""

    def __missing__(self, number: int) -> bytes:
        output = bytearray()
        write_varint(output, number)
        encoded = bytes(output)
        if number < _KEPT_MAX:
            self[number] = encoded
        return encoded


_VARINT = _Varints()


def build_plain_batch(
    pairs: Iterable[tuple[bytes, bytes | None]],
    timestamp: int,
    *,
    codec: int = compression.NONE,
    producer: tuple[int, int] | None = None,
) -> bytearray:
    """One batch of (key, value) pairs, none of which is None as a whole; a value of None is a tombstone.

    With a producer (id, epoch) it is part of that producer's transaction, without a sequence.
    """
    body = bytearray()
    number = -1
    for number, (key, value) in enumerate(pairs):
        tail = b"\1\0" if value is None else b"%b%b\0" % (_VARINT[len(value)], value)
        record = b"".join((b"\0\0", _VARINT[number], _VARINT[len(key)], key, tail))
        body += _VARINT[len(record)]
        body += record
    producer_id, producer_epoch = producer or (NO_PRODUCER_ID, -1)
    header = BatchHeader(
        base_offset=0,
        batch_length=0,
        leader_epoch=-1,
        magic=2,
        crc=0,
        attributes=codec if producer is None else codec | TRANSACTIONAL,
        last_offset_delta=number,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=-1,
        record_count=number + 1,
    )
    return encode_batch(header, body)


def read_pairs(batch: Buffer, header: BatchHeader) -> Iterator[tuple[bytes, bytes | None]]:
    """(key, value) of each record that has a key; whatever headers it has are passed over."""
    data = bytes(payload(batch, header))
    size, position = len(data), 0
    for _ in range(header.record_count):
        length, position = varint(data, position)
        end = position + length
        if length < RECORD_SIZE_MIN - 1 or end > size:
            raise CorruptBatch(f"a record of {length} bytes before {position} of {size}")
        _, position = varint(data, position + 1)
        _, position = varint(data, position)
        key_length, position = varint(data, position)
        key_end = position + key_length if key_length > 0 else position
        value_length, value_at = varint(data, key_end)
        if value_at + max(value_length, 0) >= end:
            raise CorruptBatch(f"the record before {end} is not as long as it says")
        if key_length >= 0:
            yield data[position:key_end], data[value_at : value_at + value_length] if value_length >= 0 else None
        position = end
