"""How a record is printed: -f, or what -K, -D and -O make of it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple, TypeAlias

from lowwater.cli.cat.escapes import format_text
from lowwater.client.rows import Row

NULL = b"NULL"
OFFSET_DELIMITER = b"\t"
Unpack: TypeAlias = Callable[[bytes], bytes]


class LayoutError(ValueError):
    """A format string that cannot be read."""


class Field(Enum):
    """What a letter behind % stands for."""

    VALUE = "s"
    VALUE_SIZE = "S"
    VALUE_SIZE_BINARY = "R"
    KEY = "k"
    KEY_SIZE = "K"
    TIMESTAMP = "T"
    HEADERS = "h"
    TOPIC = "t"
    PARTITION = "p"
    OFFSET = "o"


Piece: TypeAlias = bytes | Field
_FIELDS = {field.value.encode(): field for field in Field}
_SIZE = struct.Struct(">i")


class Layout(NamedTuple):
    """Pieces in order. `null` is printed for a key or value that is not there."""

    pieces: tuple[Piece, ...]
    null: bytes = b""

    @property
    def first_text(self) -> bytes:
        """What stands behind each record with -J."""
        first = self.pieces[0] if self.pieces else b""
        return first if isinstance(first, bytes) else b""


def parse_layout(text: bytes, null: bytes = b"") -> Layout:
    return Layout(tuple(_pieces(text)), null)


def plain_layout(key_delimiter: bytes | None, delimiter: bytes, *, offsets: bool, null: bytes = b"") -> Layout:
    """What is printed without -f. The delimiters are part of a format string, as kcat has it."""
    text = b"%s" + delimiter
    if key_delimiter is not None:
        text = b"%k" + key_delimiter + text
    if offsets:
        text = b"%o" + (OFFSET_DELIMITER if key_delimiter is None else key_delimiter) + text
    return parse_layout(text, null)


def _pieces(text: bytes) -> Iterator[Piece]:
    before, percent, rest = text.partition(b"%")
    while True:
        if before:
            yield format_text(before)
        if not percent:
            return
        letter, rest = rest[:1], rest[1:]
        if not letter:
            raise LayoutError("Empty formatter")
        if letter == b"%":
            yield b"%"
        elif letter in _FIELDS:
            yield _FIELDS[letter]
        else:
            raise LayoutError(f"Unsupported formatter: %{letter.decode(errors='replace')}")
        before, percent, rest = rest.partition(b"%")


class Printer:
    """Prints rows one by one. `unpack` is by KEY and VALUE, where -s says how to read them."""

    def __init__(self, layout: Layout, unpack: Mapping[Field, Unpack] | None = None) -> None:
        getters = _getters(layout.null, unpack or {})
        template = bytearray()
        self._getters: list[Callable[[Row], object]] = []
        for piece in layout.pieces:
            if isinstance(piece, bytes):
                template += piece.replace(b"%", b"%%")
            else:
                template += b"%d" if piece in _NUMBERS else b"%b"
                self._getters.append(getters[piece])
        self._template = bytes(template)

    def text(self, row: Row) -> bytes:
        """UnpackError when -s asks for more than there is."""
        return self._template % tuple([get(row) for get in self._getters])


_NUMBERS = frozenset({Field.VALUE_SIZE, Field.KEY_SIZE, Field.TIMESTAMP, Field.PARTITION, Field.OFFSET})


def _getters(null: bytes, unpack: Mapping[Field, Unpack]) -> dict[Field, Callable[[Row], object]]:
    unpack_key, unpack_value = unpack.get(Field.KEY, bytes), unpack.get(Field.VALUE, bytes)
    return {
        Field.VALUE: lambda row: _shown(row.value, null, unpack_value),
        Field.VALUE_SIZE: lambda row: _size(row.value),
        Field.VALUE_SIZE_BINARY: lambda row: _SIZE.pack(_size(row.value)),
        Field.KEY: lambda row: _shown(row.key, null, unpack_key),
        Field.KEY_SIZE: lambda row: _size(row.key),
        Field.TIMESTAMP: lambda row: row.timestamp_ms,
        Field.HEADERS: lambda row: headers_text(row.headers),
        Field.TOPIC: lambda row: row.topic.encode(),
        Field.PARTITION: lambda row: row.partition,
        Field.OFFSET: lambda row: row.offset,
    }


def _shown(data: bytes | None, null: bytes, unpack: Unpack) -> bytes:
    if data is None:
        return null
    return unpack(data) if data else b""


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def headers_text(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    """name=value,… with NULL for a value that is not there."""
    return b",".join(b"%b=%b" % (name_bytes(name), NULL if value is None else value) for name, value in headers)


def name_bytes(name: str) -> bytes:
    """A header's name as it was sent."""
    return name.encode("utf-8", "surrogateescape")
