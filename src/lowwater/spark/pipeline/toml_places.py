"""Where everything stands in a TOML text: `tomllib` tells what it says, this tells the line and column of each part.

Only texts that `tomllib` has read are looked at, so nothing is checked here.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""("source", "orders", "start"), ("step", 0, "sql")."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_GAP = re.compile(r"[ \t]*")
_SCALAR = re.compile(r"[^,\]}#\n]*")
_PARTS_MAX = 8  # of a setting's name: there are twice as many ways to write it with each more
_LONG = ('"""', "'''")


class Place(NamedTuple):
    """Both begin at 1, as editors count."""

    line: int
    column: int


class Places:
    """Line and column of keys and of values, by path."""

    def __init__(self, text: str) -> None:
        self._text = text.replace("\r\n", "\n")
        self._line_starts = [0, *(found.end() for found in re.finditer("\n", self._text))]
        scanner = _Scanner(self._text)
        scanner.document()
        self._keys, self._values, self._insides = scanner.keys, scanner.values, scanner.insides

    def key(self, path: Path) -> Place | None:
        """Of the key itself, or of the nearest one around it that is written down; None for the whole document."""
        return self._nearest(self._keys, path)

    def value(self, path: Path) -> Place | None:
        """Of what stands behind the `=`, or of the key where there is no such value."""
        at = self._values.get(path)
        return self._place(at) if at is not None else self.key(path)

    def inside(self, path: Path, line: int, column: int) -> Place | None:
        """Of a line (from 1) and column (from 0) in a text. Escapes before it in the same line move the column."""
        inside = self._insides.get(path)
        if inside is None:
            return self.value(path)
        if line <= 1:
            return self._place(inside + column)
        first = self._place(inside)
        return Place(first.line + line - 1, column + 1)

    def path_of(self, table: Path, name: str) -> Path:
        """Of a setting with points in its name: those make tables, or stand in quotes, or both."""
        parts = name.split(".")
        ways = _ways_to_write(table, parts) if len(parts) <= _PARTS_MAX else ()
        return next((path for path in ways if path in self._keys), (*table, *parts))

    def _nearest(self, known: dict[Path, int], path: Path) -> Place | None:
        for length in range(len(path), 0, -1):
            if (at := known.get(path[:length])) is not None:
                return self._place(at)
        return None

    def _place(self, at: int) -> Place:
        line = bisect_right(self._line_starts, at)
        return Place(line, at - self._line_starts[line - 1] + 1)


def _ways_to_write(table: Path, parts: list[str]) -> Iterator[Path]:
    if not parts:
        yield table
    for count in range(1, len(parts) + 1):
        yield from _ways_to_write((*table, ".".join(parts[:count])), parts[count:])


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._elements: dict[Path, int] = {}  # of arrays of tables: how many have begun
        self.keys: dict[Path, int] = {}
        self.values: dict[Path, int] = {}
        self.insides: dict[Path, int] = {}

    def document(self) -> None:
        table: Path = ()
        self._pass(_BLANK)
        while self._at < len(self._text):
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._pass(_BLANK)

    def _header(self) -> Path:
        is_element = self._text.startswith("[[", self._at)
        opened_at = self._at
        self._at += 2 if is_element else 1
        path: Path = ()
        parts = self._dotted_key()
        for part, at in parts[:-1]:
            path = self._last_element((*path, part))
            self.keys.setdefault(path, at)
        path = (*path, parts[-1][0])
        if is_element:
            self._elements[path] = self._elements.get(path, 0) + 1
            self.keys.setdefault(path, opened_at)
            path = (*path, self._elements[path] - 1)
        self.keys[path] = opened_at  # a table that was implied so far has a line of its own now
        self._at += 2 if is_element else 1
        return path

    def _last_element(self, path: Path) -> Path:
        count = self._elements.get(path)
        return path if count is None else (*path, count - 1)

    def _pair(self, table: Path) -> None:
        path = table
        for part, at in self._dotted_key():
            path = (*path, part)
            self.keys.setdefault(path, at)
        self._at += 1  # the equals sign
        self._pass(_GAP)
        self._value(path)

    def _dotted_key(self) -> list[tuple[str, int]]:
        parts = []
        while True:
            self._pass(_GAP)
            at = self._at
            parts.append((self._simple_key(), at))
            self._pass(_GAP)
            if not self._text.startswith(".", self._at):
                return parts
            self._at += 1

    def _simple_key(self) -> str:
        bare = _BARE_KEY.match(self._text, self._at)
        if bare is not None:
            self._at = bare.end()
            return bare[0]
        start = self._at
        self._quoted()
        return next(iter(tomllib.loads(f"{self._text[start : self._at]} = 0")))

    def _value(self, path: Path) -> None:
        self.values[path] = self._at
        first = self._text[self._at]
        if first in "\"'":
            self.insides[path] = self._quoted()
        elif first == "[":
            self._array(path)
        elif first == "{":
            self._inline_table(path)
        else:
            self._pass(_SCALAR)

    def _array(self, path: Path) -> None:
        self._at += 1
        index = 0
        self._pass(_BLANK)
        while self._text[self._at] != "]":
            self._value((*path, index))
            index += 1
            self._over_comma()
        self._at += 1

    def _inline_table(self, path: Path) -> None:
        self._at += 1
        self._pass(_BLANK)
        while self._text[self._at] != "}":
            self._pair(path)
            self._over_comma()
        self._at += 1

    def _over_comma(self) -> None:
        self._pass(_BLANK)
        if self._text[self._at] == ",":
            self._at += 1
            self._pass(_BLANK)

    def _quoted(self) -> int:
        """Over a text of any of the four kinds; says where its inside begins."""
        mark = self._text[self._at : self._at + 3]
        mark = mark if mark in _LONG else mark[0]
        self._at += len(mark)
        begins_at = self._at + (1 if len(mark) == 3 and self._text.startswith("\n", self._at) else 0)
        escapes = mark[0] == '"'
        while not self._text.startswith(mark, self._at):
            self._at += 2 if escapes and self._text[self._at] == "\\" else 1
        self._at += len(mark)
        while len(mark) == 3 and self._text.startswith(mark[0], self._at):
            self._at += 1  # quotes at the very end belong to the text
        return begins_at

    def _pass(self, what: re.Pattern[str]) -> None:
        found = what.match(self._text, self._at)
        assert found is not None, "these match the empty text too"
        self._at = found.end()
