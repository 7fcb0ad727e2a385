"""Messages made up from their declarations, always the same for the same seed."""

from __future__ import annotations

import enum
import random
import struct
from collections.abc import Iterator
from typing import Any

from lowwater.groups import record_schemas as group_records
from lowwater.groups.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from lowwater.transactions import record_schemas as transaction_records
from lowwater.wire.fields import Array, Field, Fixed, Shape, Sized, zero_of
from lowwater.wire.messages import API
from lowwater.wire.schema import declaration_of, fields_of

# The oldest form of ListOffsets is served for old clients' sake; Kafka's own classes no longer have it.
KAFKA_LACKS = {("ListOffsetsRequest", 0), ("ListOffsetsResponse", 0)}
RECORDS: list[type[Any]] = [
    cls
    for schemas in (group_records, transaction_records)
    for name, cls in vars(schemas).items()
    if name.endswith(("Key", "Value")) and hasattr(cls, "__declared__")
]
# What is judged: messages of the protocol, those inside them, and the records of the internal topics.
REQUESTS_AND_RESPONSES: list[type[Any]] = [cls for api in API.values() for cls in (api.request, api.response)]
CLASSES: list[type[Any]] = [
    *REQUESTS_AND_RESPONSES,
    ConsumerProtocolSubscription,
    ConsumerProtocolAssignment,
    *RECORDS,
]
LETTERS = "abcXYZ019._-äß€漢字🌊"


class Style(enum.Enum):
    DEFAULTS = "as constructed without arguments"
    EMPTY = "null where null may be, no array elements, zero"
    NULLS = "null where null may be, one element in every array"
    FULL = "every field set, and not to its default"
    MIXED = "null, empty or set by chance"
    WIDE = "extreme numbers, long strings, more than 127 elements"


def messages() -> Iterator[tuple[type[Any], int]]:
    """Every message class with every version that is declared."""
    for cls in CLASSES:
        declared = declaration_of(cls)
        for version in range(declared.version_min, declared.version_max + 1):
            yield cls, version


def instance(cls: type[Any], version: int, style: Style, rng: random.Random) -> Any:
    """A message that this version can carry."""
    here = [field for field in fields_of(cls) if field.present(version)]
    return cls(**{field.name: _field(field, version, style, rng) for field in here})


def _field(field: Field, version: int, style: Style, rng: random.Random) -> Any:
    nullable = field.nullable(version) or (field.default is None and field.tag is not None)
    if style is Style.DEFAULTS:
        return _zero(field.shape) if field.default is None and not nullable else _fresh(field.default)
    if style is Style.EMPTY:
        return _fresh(field.default) if field.tag is not None else None if nullable else _zero(field.shape)
    if style is Style.NULLS and (nullable or field.tag is not None):
        return _fresh(field.default) if field.tag is not None else None
    if style is Style.MIXED:
        if field.tag is not None and rng.random() < 0.5:
            return None if field.nullable(version) and rng.random() < 0.5 else _fresh(field.default)
        if nullable and rng.random() < 0.4:
            return None
    value = _value(field.shape, version, style, rng)
    while style is Style.FULL and value == field.default:
        value = _value(field.shape, version, style, rng)
    return value


def one_field_set(cls: type[Any], version: int, rng: random.Random) -> Iterator[Any]:
    """Messages in which all is at its default but a single field, at any depth; arrays on the way have one element."""
    for field in fields_of(cls):
        if not field.present(version):
            continue
        yield _defaults_but(cls, version, field, _field(field, version, Style.FULL, rng))
        if field.struct is not None:
            for inner in one_field_set(field.struct, version, rng):
                yield _defaults_but(cls, version, field, [inner] if isinstance(field.shape, Array) else inner)


def _defaults_but(cls: type[Any], version: int, field: Field, value: Any) -> Any:
    message = instance(cls, version, Style.DEFAULTS, random.Random(0))
    setattr(message, field.name, value)
    return message


def _fresh(default: Any) -> Any:
    if isinstance(default, type):
        return default()
    return list(default) if isinstance(default, list) else default


def _zero(shape: Shape) -> Any:
    return _fresh(zero_of(shape))


def _value(shape: Shape, version: int, style: Style, rng: random.Random) -> Any:
    if isinstance(shape, Fixed):
        return _fixed(shape.code, style, rng)
    if isinstance(shape, Sized):
        return _text(style, rng) if shape.name == "string" else rng.randbytes(_length(style, rng, 300))
    if isinstance(shape, Array):
        # Long lists of structs would nest into huge messages.
        longest = 200 if isinstance(shape.item, Fixed) else 2
        inner = Style.FULL if style is Style.WIDE and rng.random() < 0.5 else style
        return [_value(shape.item, version, inner, rng) for _ in range(_length(style, rng, longest))]
    return instance(shape, version, style, rng)


def _length(style: Style, rng: random.Random, longest: int) -> int:
    if style is Style.WIDE:
        return longest
    return 1 if style is Style.NULLS else rng.randint(0 if style is Style.MIXED else 1, 3)


def _text(style: Style, rng: random.Random) -> str:
    length = rng.choice((127, 128, 126, 300)) if style is Style.WIDE else rng.randint(style is Style.FULL, 6)
    return "".join(rng.choices(LETTERS[:12] if style is Style.WIDE else LETTERS, k=length))


def _fixed(code: str, style: Style, rng: random.Random) -> Any:
    if code == "?":
        return rng.random() < 0.5
    if code == "16s":
        return rng.randbytes(16)
    if code == "d":
        return rng.choice((1.5, -0.0, 1e300, 5e-324)) if style is Style.WIDE else rng.uniform(-1e9, 1e9)
    bits = 8 * struct.calcsize(code)
    low, high = (0, (1 << bits) - 1) if code.isupper() else (-(1 << bits - 1), (1 << bits - 1) - 1)
    return rng.choice((low, high)) if style is Style.WIDE else rng.randint(low, high)
