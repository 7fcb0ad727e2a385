"""What backslashes mean in -D, -K and -f."""

from __future__ import annotations

import re

_NAMED = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_DELIMITER = re.compile(rb"\\(?:([nrt])|x([0-9A-Fa-f]{1,2}))")
_BAD_HEX = re.compile(rb"\\x(?![0-9A-Fa-f]).*", re.DOTALL)
_FORMAT = re.compile(rb"\\(?:([nrt])|x([0-9A-Fa-f]{0,2})|(0[xX][0-9A-Fa-f]+|[0-9]+)|(.))", re.DOTALL)


class EscapeError(ValueError):
    """A backslash with something behind it that means nothing."""


def delimiter(text: bytes) -> bytes:
    r"""`\n`, `\r`, `\t` and `\xXX` are what they say, anything else is itself."""
    if (bad := _BAD_HEX.search(text)) is not None:
        raise EscapeError(f"Delimiter {bad[0].decode(errors='replace')} expects hex number")
    return _DELIMITER.sub(lambda found: _NAMED[found[1]] if found[1] else bytes([int(found[2], 16)]), text)


def format_text(text: bytes) -> bytes:
    r"""The same, and `\65`, `\0101` for a number, and any other character behind a backslash for itself."""
    return _FORMAT.sub(_formatted, text)


def _formatted(found: re.Match[bytes]) -> bytes:
    name, hexadecimal, number, other = found.groups()
    if name is not None:
        return _NAMED[name]
    if hexadecimal is not None:
        return bytes([int(hexadecimal, 16)]) if hexadecimal else b""
    if number is not None:
        return bytes([_number(number) & 0xFF])
    return bytes(other)


def _number(text: bytes) -> int:
    """As C reads it: 0x… is hexadecimal, 0… octal."""
    if text[:2].lower() == b"0x":
        return int(text, 16)
    octal = text.startswith(b"0") and not set(text) - set(b"01234567")
    return int(text, 8 if octal else 10)
