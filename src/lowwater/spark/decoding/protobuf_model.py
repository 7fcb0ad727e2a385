"""Protobuf's messages and enums by their full names, whichever way they were written down."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from lowwater.spark.decoding.errors import SchemaError

SCALARS = (
    *("double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string"),
    *("bytes", "uint32", "sfixed32", "sfixed64", "sint32", "sint64"),
)
MESSAGE, ENUM, NAMED = "message", "enum", "named"
_ESCAPE = re.compile(r"\\([0-7]{1,3}|[xX][0-9a-fA-F]{1,2}|.)", re.DOTALL)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
NUMBER_MAX = (1 << 29) - 1


@dataclass(slots=True)
class ProtoField:
    """`type` is a scalar's name, or message, enum, or named (one of the two) with `type_name` as it was written."""

    name: str
    number: int
    type: str
    type_name: str = ""
    is_repeated: bool = False
    has_presence: bool = True
    oneof: str | None = None
    default: str | None = None


@dataclass(slots=True)
class ProtoEnum:
    name: str
    values: dict[int, str]
    is_closed: bool = False


@dataclass(slots=True)
class ProtoMessage:
    name: str
    fields: list[ProtoField] = field(default_factory=list)
    nested: list[str] = field(default_factory=list)
    is_map_entry: bool = False


@dataclass(slots=True)
class ProtoFile:
    """One file: its own messages at the top, in their order, and everything it defines, by full name."""

    package: str = ""
    imports: list[str] = field(default_factory=list)
    top: list[str] = field(default_factory=list)
    messages: dict[str, ProtoMessage] = field(default_factory=dict)
    enums: dict[str, ProtoEnum] = field(default_factory=dict)


class ProtoTypes:
    """All types of several files, with every reference found."""

    def __init__(self, files: Iterable[ProtoFile]) -> None:
        self.messages: dict[str, ProtoMessage] = {}
        self.enums: dict[str, ProtoEnum] = {}
        for one in files:
            self.messages |= one.messages
            self.enums |= one.enums
        for message in self.messages.values():
            self._check(message)
            for entry in message.fields:
                self._resolve(message, entry)

    def message(self, name: str) -> ProtoMessage:
        """By its full name, or by the end of it if only one message is called so."""
        if name in self.messages:
            return self.messages[name]
        alike = [full for full in self.messages if full.endswith(f".{name}")]
        if len(alike) == 1:
            return self.messages[alike[0]]
        said = f"could be {' or '.join(sorted(alike))}" if alike else f"is not among {_some(self.messages)}"
        raise SchemaError(f"decode.message {name!r} {said}")

    def _resolve(self, message: ProtoMessage, entry: ProtoField) -> None:
        if entry.type in SCALARS:
            return
        for name in _candidates(entry.type_name, message.name):
            if name in self.messages or name in self.enums:
                entry.type = MESSAGE if name in self.messages else ENUM
                entry.type_name = name
                entry.has_presence |= entry.type == MESSAGE
                return
        raise SchemaError(f"the Protobuf field {message.name}.{entry.name} has the unknown type {entry.type_name!r}")

    def _check(self, message: ProtoMessage) -> None:
        numbers = [entry.number for entry in message.fields]
        if len(set(numbers)) < len(numbers) or any(not 0 < number <= NUMBER_MAX for number in numbers):
            raise SchemaError(f"the Protobuf message {message.name} has a field number twice, or an impossible one")


def message_at(file: ProtoFile, path: tuple[int, ...]) -> str | None:
    """The full name of the message that Confluent's indexes point to; None when there is none."""
    names, found = file.top, None
    for place in path:
        if not 0 <= place < len(names):
            return None
        found = names[place]
        names = file.messages[found].nested
    return found


def unescape(text: str) -> str:
    """A literal's characters; those that are written as numbers stand for bytes."""
    return _ESCAPE.sub(lambda match: _LETTERS.get(match[1]) or chr(_code(match[1])), text)


def _code(escape: str) -> int:
    if escape[0] in "xX":
        return int(escape[1:], 16)
    return int(escape, 8) & 0xFF if escape.isdigit() else ord(escape)


def _candidates(name: str, scope: str) -> Iterable[str]:
    """A name as seen from within a message: innermost first."""
    if name.startswith("."):
        yield name[1:]
        return
    while scope:
        yield f"{scope}.{name}"
        scope = scope.rpartition(".")[0]
    yield name


def _some(names: Iterable[str]) -> str:
    ordered = sorted(name for name in names if not name.startswith("google.protobuf."))
    return ", ".join(ordered[:10]) + (" …" if len(ordered) > 10 else "")
