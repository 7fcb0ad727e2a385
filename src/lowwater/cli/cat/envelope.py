"""-J: records, metadata and offsets as JSON on one line, byte for byte as kcat's.

Keys, values and names go out as the bytes they are, whether or not they are UTF-8; only what JSON needs is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from lowwater.cli.cat.layout import name_bytes
from lowwater.client.rows import LOG_APPEND_TIME, Row

Json: TypeAlias = "bytes | int | str | Mapping[str, Json] | Sequence[Json] | None"

TIME_KINDS = (b"create", b"logappend")
NEEDS_ESCAPE = re.compile(rb'[\x00-\x1f"\\]')
_SHORT = {b'"': rb"\"", b"\\": rb"\\", b"\n": rb"\n", b"\r": rb"\r", b"\t": rb"\t", b"\b": rb"\b", b"\f": rb"\f"}
_ESCAPES = {bytes([code]): b"\\u%04X" % code for code in range(0x20)} | _SHORT


class EnvelopePrinter:
    """Prints rows one by one; `broker_of` says which broker a partition was read from."""

    def __init__(self, delimiter: bytes, broker_of: Callable[[str, int], int]) -> None:
        self._delimiter = delimiter
        self._broker_of = broker_of

    def text(self, row: Row) -> bytes:
        head = b'{"topic":%b,"partition":%d,"offset":%d,"tstype":"%b","ts":%d,"broker":%d,%b"key":%b,"payload":%b}%b'
        return head % (
            quoted(row.topic.encode()),
            row.partition,
            row.offset,
            TIME_KINDS[row.timestamp_type == LOG_APPEND_TIME],
            row.timestamp_ms,
            self._broker_of(row.topic, row.partition),
            headers_field(row.headers),
            quoted(row.key),
            quoted(row.value),
            self._delimiter,
        )


def headers_field(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    """Names and values in turn, so that a name may come twice; nothing at all when there are none."""
    if not headers:
        return b""
    flat = b",".join(b"%b,%b" % (quoted(name_bytes(name)), quoted(value)) for name, value in headers)
    return b'"headers":[%b],' % flat


def quoted(data: bytes | None) -> bytes:
    return b"null" if data is None else b'"%b"' % escaped(data)


def escaped(data: bytes) -> bytes:
    return NEEDS_ESCAPE.sub(lambda found: _ESCAPES[found[0]], data)


def compact(value: Json) -> bytes:
    """Mappings, lists, text and numbers, without a space."""
    if isinstance(value, Mapping):
        return b"{%b}" % b",".join(b"%b:%b" % (compact(name), compact(inner)) for name, inner in value.items())
    if isinstance(value, str):
        return quoted(value.encode("utf-8", "surrogateescape"))
    if isinstance(value, bytes) or value is None:
        return quoted(value)
    if isinstance(value, int):
        return b"%d" % value
    return b"[%b]" % b",".join(map(compact, value))
