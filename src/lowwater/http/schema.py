"""What may stand in a request: JSON Schema as far as it is used here, both documented and checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

OFFSET_MAX = 2**63 - 1
PARTITION_MAX = 2**31 - 1

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def string(about: str = "", **more: Any) -> dict[str, Any]:
    return {"type": "string", **({"description": about} if about else {}), **more}


def integer(about: str = "", **more: Any) -> dict[str, Any]:
    return {"type": "integer", **({"description": about} if about else {}), **more}


def boolean(about: str = "", **more: Any) -> dict[str, Any]:
    return {"type": "boolean", **({"description": about} if about else {}), **more}


def array(items: Schema, about: str = "", **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **({"description": about} if about else {}), **more}


def nullable(schema: Schema) -> dict[str, Any]:
    """The same, or null."""
    kind = schema["type"]
    return {**schema, "type": [*(kind if isinstance(kind, list) else [kind]), "null"]}


def record(about: str = "", /, *, optional: Mapping[str, Schema] | None = None, **fields: Schema) -> dict[str, Any]:
    """An object that has exactly these fields; those of `optional` may be missing."""
    more = optional or {}
    return {
        "type": "object",
        "properties": {**fields, **more},
        "required": list(fields),
        "additionalProperties": False,
        **({"description": about} if about else {}),
    }


def problems(schema: Schema, value: Any, where: str = "the body") -> Iterator[str]:
    """Everything that is wrong with a value, in words."""
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        yield f"{where} must be {' or '.join(kinds)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where} must be one of {', '.join(map(str, schema['enum']))}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield from _bounds(schema, value, where, "minimum", "maximum")
    elif isinstance(value, str):
        yield from _bounds(schema, len(value), f"the length of {where}", "minLength", "maxLength")
    elif isinstance(value, list):
        yield from _bounds(schema, len(value), f"the length of {where}", "minItems", "maxItems")
        for place, item in enumerate(value):
            yield from problems(schema.get("items", {}), item, f"{where}[{place}]")
    elif isinstance(value, dict):
        yield from _fields(schema, value, where)


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind])


def _bounds(schema: Schema, value: float, what: str, least: str, most: str) -> Iterator[str]:
    if value < schema.get(least, value):
        yield f"{what} must be at least {schema[least]}"
    if value > schema.get(most, value):
        yield f"{what} must be at most {schema[most]}"


def _fields(schema: Schema, value: dict[str, Any], where: str) -> Iterator[str]:
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{where} lacks {name!r}"
    for name, item in value.items():
        if name in known:
            yield from problems(known[name], item, name)
        elif schema.get("additionalProperties", True) is False:
            yield f"{where} has {name!r}, which is not known here; known: {', '.join(known)}"
