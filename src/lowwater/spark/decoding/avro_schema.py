"""Avro schemas as a tree: JSON text with names, namespaces, aliases, logical types and defaults."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from lowwater.spark.decoding.errors import SchemaError

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
DEPTH_MAX = 64
NO_DEFAULT = object()


@dataclass(frozen=True, slots=True)
class Primitive:
    name: str
    logical: str | None = None
    precision: int = 0
    scale: int = 0


@dataclass(frozen=True, slots=True)
class Fixed:
    name: str
    size: int
    logical: str | None = None
    precision: int = 0
    scale: int = 0
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EnumOf:
    name: str
    symbols: tuple[str, ...]
    default: str | None = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ArrayOf:
    item: Avro


@dataclass(frozen=True, slots=True)
class MapOf:
    value: Avro


@dataclass(frozen=True, slots=True)
class Union:
    branches: tuple[Avro, ...]


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: Avro
    default: Any = NO_DEFAULT
    aliases: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Record:
    """Its fields are set after it was made: they may name the record itself."""

    name: str
    aliases: tuple[str, ...] = ()
    fields: list[Field] = field(default_factory=list, repr=False)


Avro: TypeAlias = Primitive | Fixed | EnumOf | ArrayOf | MapOf | Union | Record


def parse_avro(text: str, references: Mapping[str, str] | None = None) -> Avro:
    """The schema; types that it takes from others are found in `references`, texts in the order they were given."""
    parser = _Parser()
    for other in (references or {}).values():
        parser.parse(_load(other), "", 0)
    return parser.parse(_load(text), "", 0)


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        name = text.strip()
        if name in PRIMITIVES:
            return name
        raise SchemaError(f"the Avro schema is not JSON: {error}") from None


class _Parser:
    def __init__(self) -> None:
        self._named: dict[str, Avro] = {}

    def parse(self, node: Any, namespace: str, depth: int) -> Avro:
        if depth > DEPTH_MAX:
            raise SchemaError(f"the Avro schema is nested more than {DEPTH_MAX} deep")
        if isinstance(node, str):
            return self._reference(node, namespace)
        if isinstance(node, list):
            return self._union(node, namespace, depth)
        if not isinstance(node, dict) or "type" not in node:
            raise SchemaError(f"the Avro schema has {_short(node)} in place of a type")
        kind = node["type"]
        if isinstance(kind, dict | list):
            return self.parse(kind, namespace, depth + 1)
        if kind in PRIMITIVES:
            return _logical(Primitive(kind), node)
        return self._complex(node, kind, namespace, depth)

    def _complex(self, node: dict[str, Any], kind: Any, namespace: str, depth: int) -> Avro:
        if kind == "array":
            return ArrayOf(self.parse(_needed(node, "items"), namespace, depth + 1))
        if kind == "map":
            return MapOf(self.parse(_needed(node, "values"), namespace, depth + 1))
        if kind in ("record", "error"):
            return self._record(node, namespace, depth)
        if kind == "enum":
            return self._enum(node, namespace)
        if kind == "fixed":
            return self._fixed(node, namespace)
        return self._reference(str(kind), namespace)

    def _reference(self, name: str, namespace: str) -> Avro:
        if name in PRIMITIVES:
            return Primitive(name)
        for full in (_full(name, namespace), name):
            if full in self._named:
                return self._named[full]
        raise SchemaError(f"the Avro schema names the type {name!r}, which it does not define")

    def _union(self, branches: list[Any], namespace: str, depth: int) -> Avro:
        parsed = tuple(self.parse(branch, namespace, depth + 1) for branch in branches)
        if any(isinstance(branch, Union) for branch in parsed) or not parsed:
            raise SchemaError("an Avro union is empty or directly within another")
        return Union(parsed)

    def _record(self, node: dict[str, Any], namespace: str, depth: int) -> Avro:
        name, aliases = _names(node, namespace)
        record = Record(name, aliases)
        self._define(name, record)
        inner = name.rpartition(".")[0]
        for one in _listed(node, "fields"):
            if not isinstance(one, dict):
                raise SchemaError(f"the Avro record {name} has {_short(one)} in place of a field")
            kind = self.parse(_needed(one, "type"), inner, depth + 1)
            other = tuple(str(alias) for alias in one.get("aliases", ()))
            record.fields.append(Field(str(_needed(one, "name")), kind, one.get("default", NO_DEFAULT), other))
        if len({one.name for one in record.fields}) < len(record.fields):
            raise SchemaError(f"the Avro record {name} has two fields of one name")
        return record

    def _enum(self, node: dict[str, Any], namespace: str) -> Avro:
        name, aliases = _names(node, namespace)
        symbols = tuple(str(symbol) for symbol in _listed(node, "symbols"))
        if len(set(symbols)) < len(symbols):
            raise SchemaError(f"the Avro enum {name} has a symbol twice")
        return self._define(name, EnumOf(name, symbols, node.get("default"), aliases))

    def _fixed(self, node: dict[str, Any], namespace: str) -> Avro:
        name, aliases = _names(node, namespace)
        size = _needed(node, "size")
        if not isinstance(size, int) or not 0 <= size < 1 << 31:
            raise SchemaError(f"the Avro fixed {name} has an impossible size")
        return self._define(name, _logical(Fixed(name, size, aliases=aliases), node))

    def _define(self, name: str, kind: Avro) -> Avro:
        if name in self._named:
            raise SchemaError(f"the Avro schema defines {name} twice")
        self._named[name] = kind
        return kind


def _logical(kind: Primitive | Fixed, node: Mapping[str, Any]) -> Primitive | Fixed:
    """With its logical type; one that is not understood or does not fit counts as not there, as Avro says."""
    logical = node.get("logicalType")
    base = kind.name if isinstance(kind, Primitive) else "fixed"
    if logical not in _LOGICAL or base not in _LOGICAL[logical]:
        return kind
    precision, scale = node.get("precision", 0), node.get("scale", 0)
    if logical == "decimal" and not _is_decimal(kind, precision, scale):
        return kind
    if logical == "uuid" and isinstance(kind, Fixed) and kind.size != 16:
        return kind
    if isinstance(kind, Primitive):
        return Primitive(kind.name, logical, precision, scale)
    return Fixed(kind.name, kind.size, logical, precision, scale, kind.aliases)


def _is_decimal(kind: Primitive | Fixed, precision: Any, scale: Any) -> bool:
    if not (isinstance(precision, int) and isinstance(scale, int)) or precision < 1 or not 0 <= scale <= precision:
        return False
    return isinstance(kind, Primitive) or 10**precision - 1 < 1 << (8 * kind.size - 1)


_LOGICAL = {
    "decimal": ("bytes", "fixed"),
    "date": ("int",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "uuid": ("string", "fixed"),
}


def _names(node: Mapping[str, Any], namespace: str) -> tuple[str, tuple[str, ...]]:
    own = node.get("namespace", namespace)
    name = _full(str(_needed(node, "name")), str(own or ""))
    return name, tuple(_full(str(alias), name.rpartition(".")[0]) for alias in node.get("aliases", ()))


def _full(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _needed(node: Mapping[str, Any], key: str) -> Any:
    if key not in node:
        raise SchemaError(f"the Avro schema lacks {key!r} in {_short(node)}")
    return node[key]


def _listed(node: Mapping[str, Any], key: str) -> list[Any]:
    found = _needed(node, key)
    if not isinstance(found, list):
        raise SchemaError(f"the Avro schema has no list of {key} in {_short(node)}")
    return found


def _short(node: Any) -> str:
    text = json.dumps(node)
    return text if len(text) <= 60 else f"{text[:60]}…"
