"""Batches as stored, looked at just enough to know where they end."""

from __future__ import annotations

from struct import Struct

from lowwater.types import Buffer
from lowwater.wire.records import HEADER_SIZE, PREFIX_SIZE

_HEAD = Struct(">qiibIhi")  # base offset, length, leader epoch, magic, CRC, attributes, last offset delta
_MAGIC = 2
_LENGTH_MIN = HEADER_SIZE - PREFIX_SIZE


def position_behind(records: Buffer, position: int) -> tuple[int, bool]:
    """The offset behind the last whole batch, `position` when there is none; and whether what follows is no batch.

    A batch that is cut off at the end is nothing bad: the rest comes when it is asked for.
    """
    unpack, at, size = _HEAD.unpack_from, 0, len(records)
    while size - at >= HEADER_SIZE:
        base, length, _, magic, _, _, last_delta = unpack(records, at)
        if magic != _MAGIC or length < _LENGTH_MIN or last_delta < 0:
            return position, True
        if length > size - at - PREFIX_SIZE:
            break
        position = max(position, base + last_delta + 1)
        at += PREFIX_SIZE + length
    return position, False
