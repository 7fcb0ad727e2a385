"""A message in the JSON that Kafka's own converters read and write."""

from __future__ import annotations

import base64
from typing import Any

from lowwater.wire.fields import Array, Field, Fixed, Shape, Sized
from lowwater.wire.schema import fields_of


def as_json(message: Any, version: int, *, with_records: bool) -> dict[str, Any]:
    """`with_records` gives their bytes in base64; otherwise their size, as Kafka's converters tell it."""
    answer = {}
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        if not field.present(version) or (field.tag is not None and _is_default(field, value)):
            continue
        name = _camel_case(field.name)
        if _is_records(field.shape) and value is not None and not with_records:
            answer["recordsSizeInBytes"] = len(value)
        else:
            answer[name] = _value(field.shape, value, version, with_records)
    return answer


def _is_default(field: Field, value: Any) -> bool:
    default = field.default() if isinstance(field.default, type) else field.default
    return bool(value == default)


def _is_records(shape: Shape) -> bool:
    return isinstance(shape, Sized) and shape.name == "records"


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _value(shape: Shape, value: Any, version: int, with_records: bool) -> Any:
    if value is None:
        return None
    if isinstance(shape, Array):
        return [_value(shape.item, each, version, with_records) for each in value]
    if isinstance(shape, type):
        return as_json(value, version, with_records=with_records)
    if isinstance(shape, Sized) and shape.name != "string":
        return base64.b64encode(value).decode()
    if isinstance(shape, Fixed) and shape.code == "16s":
        return base64.urlsafe_b64encode(value).decode().rstrip("=")
    return value
