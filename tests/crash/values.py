"""Values that name themselves: a short id, then filler derived from it, so that a changed byte shows."""

from __future__ import annotations

import hashlib

SEPARATOR = b"|"


def value_of(name: bytes, size: int) -> bytes:
    """`name`, a separator and filler up to `size` bytes."""
    room = max(0, size - len(name) - 1)
    block = hashlib.blake2b(name + SEPARATOR + str(room).encode()).digest()
    return name + SEPARATOR + (block * (room // len(block) + 1))[:room]


def name_of(value: bytes) -> bytes:
    """The name of an intact value; a damaged one stands for itself, so that nobody is found to have sent it."""
    name, separator, _ = value.partition(SEPARATOR)
    return name if separator and value == value_of(name, len(value)) else value
