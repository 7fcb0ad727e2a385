"""-P: bytes from stdin or files, cut into records."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from lowwater.cli.cat.asked import Sending
from lowwater.cli.cat.talk import CatError

READ_BYTES = 1024 * 1024


class Line(NamedTuple):
    """`text` is what stood in the input."""

    key: bytes | None
    value: bytes | None
    text: bytes


def lines_of(handle: int, sending: Sending, bytes_max: int) -> Iterator[list[Line]]:
    """Records as they come, those together that came together; a last one needs no delimiter behind it.

    CatError when one is larger than `bytes_max`: nothing could be sent of it.
    """
    rest = b""
    while data := os.read(handle, READ_BYTES):
        *whole, rest = (rest + data).split(sending.delimiter)
        if max(map(len, whole), default=0) > bytes_max or len(rest) > bytes_max:
            raise CatError(f"Input is too large, maximum size is {bytes_max}")
        if lines := [_line(text, sending) for text in whole if text]:
            yield lines
    if rest:
        yield [_line(rest, sending)]


def _line(text: bytes, sending: Sending) -> Line:
    if sending.key_delimiter is None:
        return Line(sending.fixed_key, text, text)
    key, delimiter, value = text.partition(sending.key_delimiter)
    if not delimiter:
        return Line(sending.fixed_key, text, text)
    if not sending.empty_is_null:
        return Line(key, value, text)
    return Line(key or sending.fixed_key, value or None, text)
