"""-s: keys and values that are packed numbers, by letters like those of Python's struct."""

from __future__ import annotations

import struct
from collections.abc import Callable

TOKENS = " <>bBhHiIqQcs$"
_NUMBERS = "bBhHiIqQ"


class UnpackError(ValueError):
    """The bytes do not hold what the letters say."""


def packing_problem(what: str, letters: str) -> str | None:
    """What is wrong with the letters given for `what`, key or value."""
    if not letters:
        return f"{what} pack-format must not be empty"
    for letter in letters:
        if letter not in TOKENS:
            return f"Invalid token '{letter}' in {what} pack-format, see -s usage."
    return None


def unpacker(what: str, letters: str) -> Callable[[bytes], bytes]:
    """Turns bytes into text; UnpackError when they are too few, or too many in front of `$`."""

    def unpack(data: bytes) -> bytes:
        return _unpack(what, letters, data)

    return unpack


def _unpack(what: str, letters: str, data: bytes) -> bytes:
    order, position, output = ">", 0, bytearray()
    for letter in letters:
        if letter in "<>":
            order = letter
        elif letter == " ":
            output += b" "
        elif letter == "s":
            output += data[position:]
            position = len(data)
        elif letter == "$":
            if position < len(data):
                raise UnpackError(f"expected {what} end-of-input, but {len(data) - position} bytes remaining")
        else:
            text, position = _take(what, order, letter, data, position)
            output += text
    return bytes(output)


def _take(what: str, order: str, letter: str, data: bytes, position: int) -> tuple[bytes, int]:
    size = struct.calcsize(f"{order}{letter}")
    left = len(data) - position
    if left < size:
        raise UnpackError(f"{what} truncated, expected {size} bytes to unpack {letter} but only {left} bytes remaining")
    [value] = struct.unpack_from(f"{order}{letter}", data, position)
    return (b"%d" % value if letter in _NUMBERS else value), position + size
