"""Strings: what the generated codecs call for them, and for lengths that are not the common short ones."""

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from lowwater.errors import WireError
from lowwater.types import Buffer
from lowwater.wire.varint import rest_of_uvarint, write_uvarint

STRING_BYTES_MAX = 0x7FFF


class TextUnpackers(dict[int, Callable[[Buffer, int], tuple[Any, ...]]]):
    """By the lead of a string: what unpacks the string and the codes `after` it. `base` is the lead of an empty one."""

    def __init__(self, after: str, base: int) -> None:
        self._after = after
        self._base = base

    def __missing__(self, lead: int) -> Callable[[Buffer, int], tuple[Any, ...]]:
        if lead < self._base:
            raise WireError(f"a length of {lead - self._base}")
        unpack = struct.Struct(f">{lead - self._base}s{self._after}").unpack_from
        if lead < 128:
            self[lead] = unpack
        return unpack


@cache
def text_unpackers(after: str, base: int) -> TextUnpackers:
    return TextUnpackers(after, base)


def string_length(length_plus_one: int) -> bytes:
    """The varint in front of a compact string; ValueError when the string is too long for the protocol."""
    if length_plus_one > STRING_BYTES_MAX + 1:
        raise ValueError(f"a string of {length_plus_one - 1} bytes is too long, {STRING_BYTES_MAX} is the most")
    return write_uvarint(length_plus_one)


def long_string(data: Buffer, position: int, lead: int) -> tuple[int, int]:
    """The length + 1 of a compact string whose first byte is not an ordinary short length."""
    if lead == 0:
        raise WireError("null where a string is required")
    value, position = rest_of_uvarint(data, position, lead)
    if not 0 < value <= STRING_BYTES_MAX + 1:
        raise WireError(f"a compact string claims {value - 1} bytes")
    return value, position
