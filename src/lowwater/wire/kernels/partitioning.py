"""Which partition a row goes to, by its key, as Kafka's other clients choose it; and rows sorted by partition."""

# mypy: disable-error-code="no-untyped-call, call-arg, return-value"

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import types

from lowwater.wire.kernels.compiling import I32, I64, byte_at, compiled, inner, int_at
from lowwater.wire.kernels.encoding import OUTGOING_ROWS

MURMUR2, CRC32 = 0, 1
"""The hashes of Java's client, and of librdkafka's `consistent`."""

UNPLACED = -1

_SEED, _FACTOR, _WORD = 0x9747B28C, 0x5BD1E995, 0xFFFFFFFF


def _crc_steps() -> Any:
    steps = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        steps = (steps >> np.uint32(1)) ^ (np.uint32(0xEDB88320) * (steps & np.uint32(1)))
    return steps


_CRC_STEPS = _crc_steps()


@inner
def murmur2(at: int, size: int) -> int:
    """The hash as Java's client has it, without its sign bit."""
    factor, word = numba.uint64(_FACTOR), numba.uint64(_WORD)
    hashed = numba.uint64(_SEED) ^ numba.uint64(size)
    for place in range(size // 4):
        part = (numba.uint64(int_at(at + 4 * place)) & word) * factor & word
        part = (part ^ (part >> numba.uint64(24))) * factor & word
        hashed = (hashed * factor & word) ^ part
    rest, end = size % 4, at + size - size % 4
    if rest >= 3:
        hashed ^= numba.uint64(byte_at(end + 2)) << numba.uint64(16)
    if rest >= 2:
        hashed ^= numba.uint64(byte_at(end + 1)) << numba.uint64(8)
    if rest >= 1:
        hashed = (hashed ^ numba.uint64(byte_at(end))) * factor & word
    hashed = (hashed ^ (hashed >> numba.uint64(13))) * factor & word
    hashed ^= hashed >> numba.uint64(15)
    return numba.int64(hashed & numba.uint64(0x7FFFFFFF))


@inner
def crc32(at: int, size: int) -> int:
    hashed = numba.uint32(_WORD)
    for place in range(at, at + size):
        step = _CRC_STEPS[numba.uint8(hashed) ^ byte_at(place)]
        hashed = numba.uint32(step ^ (hashed >> numba.uint32(8)))
    return numba.int64(numba.uint32(hashed ^ numba.uint32(_WORD)))


@compiled(types.void(OUTGOING_ROWS, types.int64, types.int64, types.int64, I32))
def place(rows: Any, hashing: int, size_min: int, partitions: int, placed: Any) -> None:
    """Give each row that is UNPLACED and has a key of at least `size_min` bytes (-1: null) its partition."""
    for row in range(placed.shape[0]):
        at, size = rows[row].key_at, rows[row].key_size
        if placed[row] != UNPLACED or size < size_min:
            continue
        hashed = murmur2(at, max(size, 0)) if hashing == MURMUR2 else crc32(at, max(size, 0))
        placed[row] = hashed % partitions


@compiled(types.void(OUTGOING_ROWS, types.int64, types.int64, types.int64, I32))
def stick(rows: Any, first: int, run_bytes: int, partitions: int, placed: Any) -> None:
    """Deal out the rows that are UNPLACED: runs of some `run_bytes`, to one partition after the other."""
    partition, size = first, 0
    for row in range(placed.shape[0]):
        if placed[row] != UNPLACED:
            continue
        placed[row] = partition
        size += max(rows[row].key_size, 0) + max(rows[row].value_size, 0)
        if size >= run_bytes:
            partition, size = (partition + 1) % partitions, 0


@compiled(types.void(I32, I64, I64))
def group(placed: Any, ends: Any, order: Any) -> None:
    """Rows by partition, within it as they came: those of partition p are order[ends[p - 1] : ends[p]].

    `ends` comes with zeros, one for each partition. Rows that are UNPLACED are left out.
    """
    for row in range(placed.shape[0]):
        if placed[row] != UNPLACED:
            ends[placed[row]] += 1
    start = 0
    for partition in range(ends.shape[0]):
        count = ends[partition]
        ends[partition] = start
        start += count
    for row in range(placed.shape[0]):
        partition = placed[row]
        if partition != UNPLACED:
            order[ends[partition]] = row
            ends[partition] += 1
