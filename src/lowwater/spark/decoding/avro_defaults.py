"""Defaults of a reader's fields as Avro bytes: a missing field is then read like one that is there."""

from __future__ import annotations

import struct
from typing import Any

from lowwater.spark.decoding.avro_schema import (
    NO_DEFAULT,
    ArrayOf,
    Avro,
    EnumOf,
    Fixed,
    MapOf,
    Primitive,
    Record,
    Union,
)
from lowwater.spark.decoding.errors import SchemaError


def encode_default(schema: Avro, default: Any, name: str) -> bytes:
    """Avro's JSON form of a default as bytes; SchemaError when it does not fit its type."""
    try:
        return _encode(schema, default)
    except (TypeError, ValueError, KeyError, AttributeError, struct.error):
        raise SchemaError(f"the default of the Avro field {name!r} does not fit its type") from None


def _encode(schema: Avro, value: Any) -> bytes:
    match schema:
        case Primitive():
            return _primitive(schema.name, value)
        case Fixed():
            return _sized(value.encode("latin-1"), schema.size)
        case EnumOf():
            return _long(schema.symbols.index(value))
        case ArrayOf(item):
            return _block([_encode(item, one) for one in value])
        case MapOf(item):
            return _block([_text(key) + _encode(item, one) for key, one in value.items()])
        case Union():
            return _union(schema, value)
        case Record():
            return b"".join(_encode(one.type, _field_value(value, one.name, one.default)) for one in schema.fields)


def _union(union: Union, value: Any) -> bytes:
    """The first branch that the value fits; older versions of Avro allow the first branch only."""
    for place, branch in enumerate(union.branches):
        try:
            return _long(place) + _encode(branch, value)
        except (TypeError, ValueError, KeyError, AttributeError, struct.error):
            continue
    raise ValueError("no branch fits")


def _primitive(name: str, value: Any) -> bytes:
    match name, value:
        case "null", None:
            return b""
        case "boolean", bool():
            return bytes([value])
        case (("int" | "long"), int()) if not isinstance(value, bool):
            return _long(_within(value, 31 if name == "int" else 63))
        case "float", (int() | float()) if not isinstance(value, bool):
            return struct.pack("<f", value)
        case "double", (int() | float()) if not isinstance(value, bool):
            return struct.pack("<d", value)
        case "bytes", str():
            data = value.encode("latin-1")
            return _long(len(data)) + data
        case "string", str():
            return _text(value)
    raise ValueError("the value does not fit")


def _field_value(values: Any, name: str, default: Any) -> Any:
    value = values.get(name, default)
    if value is NO_DEFAULT:
        raise KeyError(name)
    return value


def _block(items: list[bytes]) -> bytes:
    return (_long(len(items)) + b"".join(items) if items else b"") + b"\0"


def _sized(data: bytes, size: int) -> bytes:
    if len(data) != size:
        raise ValueError("the size differs")
    return data


def _text(text: str) -> bytes:
    data = text.encode()
    return _long(len(data)) + data


def _within(number: int, bits: int) -> int:
    if not -(1 << bits) <= number < 1 << bits:
        raise ValueError("the number is too big")
    return number


def _long(number: int) -> bytes:
    rest = (number << 1) ^ (number >> 63)
    found = bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)
