"""Batches as stored, looked at just enough to know where they end, in the log and in time."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from lowwater.types import Buffer
from lowwater.wire.records import HEADER_SIZE, PREFIX_SIZE

# base offset, length, leader epoch, magic, CRC, attributes, last offset delta, base and largest timestamp
_HEAD = Struct(">qiibIhiqq")
_MAGIC = 2
NO_EPOCH = -1
NO_CLOCK = -(1 << 63)
_LENGTH_MIN = HEADER_SIZE - PREFIX_SIZE


class Piece(NamedTuple):
    """The whole batches at the beginning of some bytes; what headers say of times is not checked, and only a hint."""

    position: int
    """The offset behind the last of them."""
    epoch: int = NO_EPOCH
    """Of the leader that took the last of them."""
    is_damaged: bool = False
    """What follows them is no batch."""
    batch_bytes: int = 0
    """The size of the largest."""
    first_ms: int = 0
    newest_ms: int = NO_CLOCK


def look_at(records: Buffer, position: int) -> Piece:
    """What came of a partition that was asked for from `position` on, where nothing is when it holds no whole batch.

    A batch that is cut off at the end is nothing bad: the rest comes when it is asked for.
    """
    unpack, at, size, epoch = _HEAD.unpack_from, 0, len(records), NO_EPOCH
    batch_bytes, first_ms, newest_ms = 0, 0, NO_CLOCK
    is_damaged = False
    while size - at >= HEADER_SIZE:
        base, length, leader_epoch, magic, _, _, last_delta, base_ms, max_ms = unpack(records, at)
        if magic != _MAGIC or length < _LENGTH_MIN or last_delta < 0:
            is_damaged = True
            break
        if length > size - at - PREFIX_SIZE:
            break
        epoch, behind, whole = leader_epoch, base + last_delta + 1, PREFIX_SIZE + length
        # Not by max(): an answer has many batches, and this is done for each.
        if behind > position:
            position = behind
        if not at:
            first_ms = base_ms
        if max_ms > newest_ms:
            newest_ms = max_ms
        if whole > batch_bytes:
            batch_bytes = whole
        at += whole
    return Piece(position, epoch, is_damaged, batch_bytes, first_ms, newest_ms)
