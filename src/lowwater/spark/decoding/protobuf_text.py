"""`.proto` files, syntax proto2 and proto3. Services, extensions and options are read over."""

from __future__ import annotations

import re

from lowwater.spark.decoding.errors import SchemaError
from lowwater.spark.decoding.protobuf_model import (
    NAMED,
    SCALARS,
    ProtoEnum,
    ProtoField,
    ProtoFile,
    ProtoMessage,
    unescape,
)

_TOKEN = re.compile(
    r"(?P<space>\s+|//[^\n]*|/\*.*?\*/)"
    r"|(?P<text>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
    r"|(?P<number>[+-]?(?:0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?))(?![\w.])"
    r"|(?P<word>[A-Za-z_.][\w.]*)"
    r"|(?P<sign>[{}\[\]()<>=;,:/+-])",
    re.DOTALL,
)
DEPTH_MAX = 64
TOKENS_MAX = 1_000_000
_OPENING, _CLOSING = {"{": "}", "[": "]", "(": ")", "<": ">"}, "}])>"


def parse_proto(text: str) -> ProtoFile:
    """What the file defines; SchemaError has the line where it is wrong."""
    return _Parser(text).file()


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = _split(text)
        self._next = 0
        self._is_proto3 = False
        self._file = ProtoFile()

    def file(self) -> ProtoFile:
        while self._peek():
            word = self._take()
            if word == "syntax":
                self._syntax()
            elif word == "edition":
                raise self._wrong(
                    "editions are not understood: use syntax proto2 or proto3, or a descriptor set of these"
                )
            elif word == "package":
                self._file.package = self._take()
                self._expect(";")
            elif word == "import":
                self._import()
            elif word == "message":
                self._file.top.append(self._message(self._file.package, 0))
            elif word == "enum":
                self._enum(self._file.package)
            elif word in ("option", "service", "extend"):
                self._skip()
            elif word != ";":
                raise self._wrong(f"{word!r} is not expected here")
        return self._file

    def _syntax(self) -> None:
        self._expect("=")
        syntax = self._string()
        if syntax not in ("proto2", "proto3"):
            raise self._wrong(f"the syntax {syntax!r} is not understood")
        self._is_proto3 = syntax == "proto3"
        self._expect(";")

    def _import(self) -> None:
        if self._peek() in ("public", "weak"):
            self._take()
        self._file.imports.append(self._string())
        self._expect(";")

    def _message(self, scope: str, depth: int) -> str:
        if depth > DEPTH_MAX:
            raise self._wrong(f"messages are nested more than {DEPTH_MAX} deep")
        message = ProtoMessage(_within(scope, self._take()))
        self._file.messages[message.name] = message
        self._expect("{")
        while (word := self._take()) != "}":
            if word == "message":
                message.nested.append(self._message(message.name, depth + 1))
            elif word == "enum":
                self._enum(message.name)
            elif word == "oneof":
                self._oneof(message)
            elif word in ("option", "extensions", "reserved", "extend"):
                self._skip()
            elif word != ";":
                self._field(message, word, None)
        return message.name

    def _oneof(self, message: ProtoMessage) -> None:
        name = self._take()
        self._expect("{")
        while (word := self._take()) != "}":
            if word == "option":
                self._skip()
            elif word != ";":
                self._field(message, word, name)

    def _field(self, message: ProtoMessage, word: str, oneof: str | None) -> None:
        label = word if word in ("optional", "required", "repeated") and self._peek() not in ("=", "") else None
        kind = self._take() if label else word
        if kind == "map" and self._peek() == "<":
            return self._map(message)
        if kind == "group":
            raise self._wrong("groups are not understood")
        name = self._take()
        has_presence = not self._is_proto3 or label is not None or oneof is not None
        number, default = self._number_and_default()
        self._add(message, ProtoField(name, number, kind, "", label == "repeated", has_presence, oneof, default))
        return None

    def _map(self, message: ProtoMessage) -> None:
        """As protoc does it: a message of key and value, repeated."""
        self._expect("<")
        key = self._take()
        self._expect(",")
        value = self._take()
        self._expect(">")
        name = self._take()
        number, _ = self._number_and_default()
        entry = ProtoMessage(f"{message.name}.{_camel(name)}Entry", is_map_entry=True)
        self._file.messages[entry.name] = entry
        message.nested.append(entry.name)
        self._add(entry, ProtoField("key", 1, key, has_presence=False))
        self._add(entry, ProtoField("value", 2, value, has_presence=False))
        message.fields.append(ProtoField(name, number, NAMED, f".{entry.name}", is_repeated=True))

    def _add(self, message: ProtoMessage, field: ProtoField) -> None:
        if field.type not in SCALARS:
            field.type, field.type_name = NAMED, field.type
        message.fields.append(field)

    def _number_and_default(self) -> tuple[int, str | None]:
        self._expect("=")
        number = self._integer()
        default = self._options() if self._peek() == "[" else None
        self._expect(";")
        return number, default

    def _options(self) -> str | None:
        """`[name = value, …]`: of these only the default counts."""
        self._expect("[")
        default = None
        while True:
            if self._peek() == "default":
                self._take()
                self._expect("=")
                default = self._default()
            elif self._peek() in _OPENING:
                self._balanced()
            else:
                word = self._take()
                if word == "]":
                    return default
                if word == "":
                    raise self._wrong("the file ends within options")

    def _default(self) -> str:
        if self._kind() == "text":
            return self._string()
        sign = self._take() if self._peek() in ("-", "+") else ""
        return sign + self._take()

    def _enum(self, scope: str) -> None:
        enum = ProtoEnum(_within(scope, self._take()), {}, is_closed=not self._is_proto3)
        self._file.enums[enum.name] = enum
        self._expect("{")
        while (word := self._take()) != "}":
            if word in ("option", "reserved"):
                self._skip()
            elif word != ";":
                self._expect("=")
                enum.values.setdefault(self._integer(), word)
                if self._peek() == "[":
                    self._options()
                self._expect(";")

    def _skip(self) -> None:
        """Over a statement: up to its semicolon, or over its block."""
        while (word := self._peek()) != ";":
            if word == "":
                raise self._wrong("the file ends too early")
            if word in _OPENING:
                self._balanced()
                if word == "{" and self._peek() != ";":
                    return
            else:
                self._take()
        self._take()

    def _balanced(self) -> None:
        waiting = [_OPENING[self._take()]]
        while waiting:
            word = self._take()
            if word in _OPENING:
                waiting.append(_OPENING[word])
            elif word == "" or (word in _CLOSING and word != waiting.pop()):
                raise self._wrong("brackets do not match")

    def _integer(self) -> int:
        text = self._take()
        try:
            return int(text, 0) if len(text) < 20 else 0
        except ValueError:
            raise self._wrong(f"expected a number, found {text!r}") from None

    def _string(self) -> str:
        parts = []
        while self._kind() == "text":
            parts.append(unescape(self._take()[1:-1]))
        if not parts:
            raise self._wrong(f"expected a text in quotes, found {self._peek()!r}")
        return "".join(parts)

    def _kind(self) -> str:
        return self._tokens[self._next][0]

    def _peek(self) -> str:
        return self._tokens[self._next][1]

    def _take(self) -> str:
        word = self._peek()
        self._next += word != ""
        return word

    def _expect(self, sign: str) -> None:
        if self._peek() != sign:
            raise self._wrong(f"expected {sign!r}, found {self._peek() or 'the end'!r}")
        self._take()

    def _wrong(self, what: str) -> SchemaError:
        return SchemaError(f"the Protobuf schema, line {self._tokens[self._next][2]}: {what}")


def _split(text: str) -> list[tuple[str, str, int]]:
    """Kind, text and line of every token; one without a text at the end."""
    tokens: list[tuple[str, str, int]] = []
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or len(tokens) > TOKENS_MAX:
            raise SchemaError(f"the Protobuf schema, line {line}: {text[at : at + 10]!r} cannot be read")
        if match.lastgroup != "space":
            tokens.append((str(match.lastgroup), match[0], line))
        line += match[0].count("\n")
        at = match.end()
    return [*tokens, ("end", "", line)]


def _within(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
