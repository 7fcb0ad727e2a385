"""Record batches as a producer should not send them. Most have a right CRC, so that only deeper checks stop them."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from functools import cache

from lowwater.wire import compression
from lowwater.wire.records import BatchHeader, Record, build_batch, encode_batch, seal

EXTREMES = (0, 1, -1, 2, 7, 2**15 - 1, -(2**15), 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
# (name, position, struct code) of the header's fields
FIELDS = (
    ("base_offset", 0, ">q"),
    ("batch_length", 8, ">i"),
    ("leader_epoch", 12, ">i"),
    ("magic", 16, ">b"),
    ("attributes", 21, ">h"),
    ("last_offset_delta", 23, ">i"),
    ("base_timestamp", 27, ">q"),
    ("max_timestamp", 35, ">q"),
    ("producer_id", 43, ">q"),
    ("producer_epoch", 51, ">h"),
    ("base_sequence", 53, ">i"),
    ("record_count", 57, ">i"),
)
BOMB_BYTES = 64 << 20
NOW_MS = 1_700_000_000_000
Build = Callable[[random.Random], bytes]


def good(rng: random.Random) -> bytes:
    count = rng.choice((1, 1, 3, 50))
    records = [
        Record(n, NOW_MS + rng.randrange(1000), rng.randbytes(3) if rng.random() < 0.8 else None, rng.randbytes(20))
        for n in range(count)
    ]
    return bytes(build_batch(records, codec=rng.randrange(5)))


def extreme_field(rng: random.Random) -> bytes:
    batch = bytearray(good(rng))
    for _, position, code in rng.sample(FIELDS, rng.choice((1, 1, 2))):
        half = 1 << (8 * struct.calcsize(code) - 1)
        struct.pack_into(code, batch, position, rng.choice([one for one in EXTREMES if -half <= one < half]))
    seal(batch)
    return bytes(batch)


def broken_crc(rng: random.Random) -> bytes:
    batch = bytearray(good(rng))
    batch[rng.randrange(17, len(batch))] ^= 1 << rng.randrange(8)
    return bytes(batch)


def torn(rng: random.Random) -> bytes:
    batch = good(rng)
    return batch[: rng.randrange(len(batch))]


def two_batches(rng: random.Random) -> bytes:
    return good(rng) + good(rng)


def garbage_body(rng: random.Random) -> bytes:
    """The header and the CRC are right, the records are not."""
    return _around(rng.randbytes(rng.choice((7, 100, 3000))), rng.choice((1, 2, 1000, 2**31 - 1)), rng.randrange(5))


def hostile_record(rng: random.Random) -> bytes:
    """Lengths inside a record that contradict what is there."""
    endless = b"\xff" * 11
    huge = b"\xfe\xff\xff\xff\x0f"
    body = rng.choice(
        (
            b"\x0c\x00" + endless,
            huge + b"\x00" * 10,
            b"\x0e\x00\x00\x00" + huge + b"\x00\x00\x00",
            b"\x0e\x00\x00\x00\x01\x01" + huge[:2] + b"\x00",
            b"\x10\x00\x00\x00\x01\x01" + huge[:3],
            b"\x00" * 50,
            b"\x01" * 50,
        )
    )
    return _around(body, rng.choice((1, 2, 7)), rng.choice((0, 0, 2)))


def old_format(rng: random.Random) -> bytes:
    """Message sets of format 0 and 1, nested a few levels deep."""
    inner = rng.randbytes(10)
    for _ in range(rng.choice((1, 5, 200))):
        message = struct.pack(">IbbiI", 0, rng.randrange(2), rng.randrange(4), -1, len(inner)) + inner
        inner = struct.pack(">qi", 0, len(message)) + message
    return inner


@cache
def _bomb(codec: int) -> bytes:
    return compression.compress(codec, bytes(BOMB_BYTES))


def bomb(rng: random.Random) -> bytes:
    """A few kilobytes that would fill memory once decompressed."""
    codec = rng.choice((compression.GZIP, compression.LZ4, compression.ZSTD))
    return _raw(_bomb(codec), rng.choice((1, 1000)), codec)


@cache
def _crumbs(codec: int) -> tuple[bytes, int]:
    count = 1 << 20
    return compression.compress(codec, b"\x0c\x00\x00\x00\x01\x01\x00" * count), count


def crumbs(rng: random.Random) -> bytes:
    """A million of the smallest records in a few kilobytes."""
    codec = rng.choice((compression.GZIP, compression.ZSTD))
    return _raw(*_crumbs(codec), codec)


def noise(rng: random.Random) -> bytes:
    return rng.randbytes(rng.choice((0, 1, 16, 60, 61, 62, 500)))


BUILDERS: tuple[Build, ...] = (
    good,
    extreme_field,
    broken_crc,
    torn,
    two_batches,
    garbage_body,
    hostile_record,
    old_format,
    bomb,
    crumbs,
    noise,
)
# Bombs are slow to refuse by their nature; a few are enough.
WEIGHTS = (10, 10, 4, 4, 2, 10, 10, 3, 1, 1, 3)


def produced_bytes(rng: random.Random) -> bytes:
    return rng.choices(BUILDERS, WEIGHTS)[0](rng)


def _around(body: bytes, count: int, codec: int) -> bytes:
    return bytes(encode_batch(_header(count, codec), body))


def _raw(compressed: bytes, count: int, codec: int) -> bytes:
    """`compressed` is the body as it is sent."""
    batch = bytearray(encode_batch(_header(count, 0), compressed))
    struct.pack_into(">h", batch, 21, codec)
    seal(batch)
    return bytes(batch)


def _header(count: int, codec: int) -> BatchHeader:
    return BatchHeader(0, 0, -1, 2, 0, codec, count - 1, NOW_MS, NOW_MS + 1000, -1, -1, -1, count)
