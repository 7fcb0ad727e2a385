"""Batches as stored, looked at just enough to know where they end."""

from __future__ import annotations

from struct import Struct

from lowwater.types import Buffer
from lowwater.wire.records import HEADER_SIZE, PREFIX_SIZE

_HEAD = Struct(">qiibIhi")  # base offset, length, leader epoch, magic, CRC, attributes, last offset delta
_MAGIC = 2
NO_EPOCH = -1
_LENGTH_MIN = HEADER_SIZE - PREFIX_SIZE


def position_behind(records: Buffer, position: int) -> tuple[int, int, bool]:
    """The offset behind the last whole batch and the epoch of the leader that took it, (`position`, -1) when there is
    none; and whether what follows is no batch.

    A batch that is cut off at the end is nothing bad: the rest comes when it is asked for.
    """
    unpack, at, size, epoch = _HEAD.unpack_from, 0, len(records), NO_EPOCH
    while size - at >= HEADER_SIZE:
        base, length, leader_epoch, magic, _, _, last_delta = unpack(records, at)
        if magic != _MAGIC or length < _LENGTH_MIN or last_delta < 0:
            return position, epoch, True
        if length > size - at - PREFIX_SIZE:
            break
        position, epoch = max(position, base + last_delta + 1), leader_epoch
        at += PREFIX_SIZE + length
    return position, epoch, False
