"""Columns as Spark writes them: `id long, at timestamp, lines array<struct<sku: string, n: int>>`."""

from __future__ import annotations

import re

from lowwater.spark.decoding import shapes
from lowwater.spark.decoding.errors import SchemaError
from lowwater.spark.decoding.shapes import DEPTH_MAX, Decimal, ListOf, MapOf, Shape, StructOf

_TOKEN = re.compile(r"\s*(?:(?P<quoted>`(?:[^`]|``)+`)|(?P<word>[\w$]+)|(?P<sign>[<>(),:])|(?P<other>\S))")
_SCALARS = {
    **dict.fromkeys(("boolean", "bool"), shapes.BOOL),
    **dict.fromkeys(("tinyint", "byte"), shapes.INT8),
    **dict.fromkeys(("smallint", "short"), shapes.INT16),
    **dict.fromkeys(("int", "integer"), shapes.INT32),
    **dict.fromkeys(("bigint", "long"), shapes.INT64),
    **dict.fromkeys(("float", "real"), shapes.FLOAT32),
    "double": shapes.FLOAT64,
    "string": shapes.UTF8,
    "binary": shapes.BINARY,
    "date": shapes.DATE,
    **dict.fromkeys(("timestamp", "timestamp_ltz"), shapes.TIMESTAMP),
    "timestamp_ntz": shapes.TIMESTAMP_NTZ,
}


def parse_ddl(text: str) -> StructOf:
    """The columns; SchemaError says where the text is wrong."""
    parser = _Parser(text)
    struct = parser.fields(end="", depth=0)
    return shapes.check_struct(struct)


def json_shape(text: str) -> StructOf:
    """Columns that JSON objects are decoded to: those of maps have to have names as keys."""
    struct = parse_ddl(text)
    _check_keys(struct, "")
    return struct


def _check_keys(shape: Shape, name: str) -> None:
    if isinstance(shape, MapOf) and shape.key != shapes.UTF8:
        raise SchemaError(f"decode.schema: keys of the map {name!r} have to be strings in JSON")
    names = [field for field, _ in shape.fields] if isinstance(shape, StructOf) else [name] * 2
    for inner, child in zip(names, shapes.below(shape), strict=False):
        _check_keys(child, inner)


class _Parser:
    def __init__(self, text: str) -> None:
        if text.count("`") % 2:
            raise SchemaError("decode.schema: a ` is not closed")
        self._tokens = [
            (match.lastgroup or "", match[match.lastgroup or 0], match.start(match.lastgroup or 0))
            for match in _TOKEN.finditer(text)
        ]
        self._tokens.append(("end", "", len(text)))
        self._next = 0

    def fields(self, end: str, depth: int) -> StructOf:
        """name type, name: type … up to `end`, which is taken."""
        found: list[tuple[str, Shape]] = []
        if end and self._take(end):
            return StructOf(())
        while True:
            name = self._name()
            self._take(":")
            found.append((name, self._type(depth + 1)))
            if self._take(","):
                continue
            self._expect(end)
            return StructOf(tuple(found))

    def _type(self, depth: int) -> Shape:
        if depth > DEPTH_MAX:
            raise SchemaError(f"decode.schema: nested more than {DEPTH_MAX} deep")
        kind, text, at = self._tokens[self._next]
        word = text.lower()
        if kind != "word":
            raise self._wrong("a type")
        self._next += 1
        if word in _SCALARS:
            return _SCALARS[word]
        if word in ("decimal", "dec", "numeric"):
            return self._decimal()
        if word == "array":
            return ListOf(self._inner(depth))
        if word == "map":
            return self._map(depth)
        if word == "struct":
            self._expect("<")
            return self.fields(">", depth)
        raise SchemaError(f"decode.schema: {text!r} at character {at + 1} is not a type that can be decoded")

    def _inner(self, depth: int) -> Shape:
        self._expect("<")
        item = self._type(depth + 1)
        self._expect(">")
        return item

    def _map(self, depth: int) -> Shape:
        self._expect("<")
        key = self._type(depth + 1)
        self._expect(",")
        value = self._type(depth + 1)
        self._expect(">")
        return MapOf(key, value)

    def _decimal(self) -> Shape:
        if not self._take("("):
            return Decimal(10, 0)
        precision = self._number()
        scale = self._number() if self._take(",") else 0
        self._expect(")")
        return Decimal(precision, scale)

    def _number(self) -> int:
        kind, text, _ = self._tokens[self._next]
        if kind != "word" or not (text.isascii() and text.isdigit() and len(text) < 5):
            raise self._wrong("a number")
        self._next += 1
        return int(text)

    def _name(self) -> str:
        kind, text, _ = self._tokens[self._next]
        if kind not in ("word", "quoted"):
            raise self._wrong("a name")
        self._next += 1
        return text[1:-1].replace("``", "`") if kind == "quoted" else text

    def _take(self, sign: str) -> bool:
        kind, text, _ = self._tokens[self._next]
        if kind not in ("sign", "end") or text != sign:
            return False
        self._next += kind == "sign"
        return True

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise self._wrong(repr(sign) if sign else "a comma or the end")

    def _wrong(self, expected: str) -> SchemaError:
        _, text, at = self._tokens[self._next]
        found = f"{text!r} at character {at + 1}" if text else "the end"
        return SchemaError(f"decode.schema: expected {expected}, found {found}")
