"""Java-style properties files: `name=value` lines, comments, continuation lines and escapes."""

from __future__ import annotations

import re

from lowwater.errors import ConfigError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|u|.)?", re.DOTALL)
_KEY = re.compile(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*(.*)", re.DOTALL)


def parse_properties(text: str) -> dict[str, str]:
    """Names and values in the order of the file; the last one of a name counts."""
    values: dict[str, str] = {}
    for number, line in _logical_lines(text):
        match = _KEY.fullmatch(line)
        if match is None or not match[1]:
            raise ConfigError(f"line {number}: expected name=value, found {line!r}")
        values[_unescape(match[1], number)] = _unescape(match[2], number).rstrip()
    return values


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Lines with their number; a line that ends in an odd number of backslashes goes on in the next one."""
    lines: list[tuple[int, str]] = []
    begun: tuple[int, str] | None = None
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        line = raw.lstrip()
        if begun is None and (not line or line[0] in "#!"):
            continue
        first, head = begun or (number, "")
        if (len(line) - len(line.rstrip("\\"))) % 2:
            begun = first, head + line[:-1]
            continue
        lines.append((first, head + line))
        begun = None
    if begun is not None:
        lines.append(begun)
    return lines


def _unescape(text: str, line: int) -> str:
    def replace(match: re.Match[str]) -> str:
        escaped = match[1]
        if escaped == "u":
            raise ConfigError(f"line {line}: \\u needs four hexadecimal digits")
        if escaped and escaped[0] == "u" and len(escaped) == 5:
            return chr(int(escaped[1:], 16))
        return _ESCAPES.get(escaped, escaped or "")

    return _ESCAPE.sub(replace, text)
