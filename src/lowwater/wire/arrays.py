"""Lists of fixed-size values. Nearly all of them are short: replica lists, partition indexes.

A lead is what stands before the elements: their count, or count + 1 in flexible versions. `base` is the lead of an
empty list.
"""

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from lowwater.errors import WireError
from lowwater.types import Buffer
from lowwater.wire.varint import rest_of_uvarint, write_uvarint

SHORT = 16
REMEMBERED_MAX = 4096
REMEMBERED_BYTES_MAX = 64


class ListReader:
    """`short[lead](data, position)` gives the elements of a list of 1 to SHORT - 1."""

    def __init__(self, code: str, base: int) -> None:
        self._code = code
        self._base = base
        self._size = struct.calcsize(">" + code)
        self.short = [self._unpacker(max(lead - base, 0)) for lead in range(base + SHORT)]

    def long(self, data: Buffer, position: int, lead: int, room: int) -> tuple[int, int, list[Any]]:
        """For any other lead: the whole of it, where the elements start, and the elements, `room` at most."""
        if self._base and lead > 127:
            lead, position = rest_of_uvarint(data, position, lead)
        count, left = lead - self._base, len(data) - position
        if not 0 <= count * self._size <= left or count > room:
            raise WireError(f"a count of {count} with {left} bytes left")
        return lead, position, [*self._unpacker(count)(data, position)]

    def _unpacker(self, count: int) -> Callable[[Buffer, int], tuple[Any, ...]]:
        return struct.Struct(_format(self._code, count)).unpack_from


class ListsWritten(dict[tuple[Any, ...], bytes]):
    """From the elements to their lead and bytes, remembered: few lists are written again and again."""

    def __init__(self, code: str, base: int) -> None:
        self._code = code
        self._base = base

    def __missing__(self, values: tuple[Any, ...]) -> bytes:
        count = len(values)
        lead = write_uvarint(count + 1) if self._base else struct.pack(">i", count)
        data = lead + struct.pack(_format(self._code, count), *values)
        if len(data) <= REMEMBERED_BYTES_MAX and self._code != "d":  # 0.0 and -0.0 are one key
            if len(self) >= REMEMBERED_MAX:
                self.clear()
            self[values] = data
        return data


def _format(code: str, count: int) -> str:
    return ">" + (code * count if len(code) > 1 else f"{count}{code}")


@cache
def list_reader(code: str, base: int) -> ListReader:
    return ListReader(code, base)


@cache
def lists_written(code: str, base: int) -> ListsWritten:
    return ListsWritten(code, base)
