"""Values of rows in tests: as people write them in TOML, as Spark takes them, and as they are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any


def to_spark(value: Any, kind: Any) -> Any:
    """For a column of that type of Spark; what does not fit is left for Spark to refuse."""
    name = kind.typeName()
    if value is None:
        return None
    if name == "binary" and isinstance(value, str):
        return value.encode()
    if name == "timestamp" and isinstance(value, str | date):
        return _moment(value)
    if name == "date" and isinstance(value, str):
        return date.fromisoformat(value)
    if name == "decimal" and isinstance(value, str | int | float):
        return Decimal(str(value))
    if name in ("float", "double") and isinstance(value, int):
        return float(value)
    if name == "array" and isinstance(value, list):
        return [to_spark(each, kind.elementType) for each in value]
    if name == "struct" and isinstance(value, Mapping):
        return {field.name: to_spark(value.get(field.name), field.dataType) for field in kind.fields}
    if name == "map" and isinstance(value, Mapping):
        return {key: to_spark(each, kind.valueType) for key, each in value.items()}
    return value


def to_key(row: Mapping[str, Any], columns: Sequence[str]) -> tuple[Any, ...]:
    """Something that can be counted, equal for equal rows however their values were written."""
    return tuple(_comparable(row.get(name)) for name in columns)


def shown_row(values: Sequence[Any], columns: Sequence[str]) -> str:
    return ", ".join(f"{name}={_shown(value)}" for name, value in zip(columns, values, strict=True))


def _comparable(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, datetime):
        return _moment(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode(errors="backslashreplace")
    if isinstance(value, float):
        return float(f"{value:.12g}")  # sums of floats differ in their last digits by the order of rows
    if isinstance(value, Mapping):
        return frozenset((key, _comparable(each)) for key, each in value.items())
    if isinstance(value, list | tuple):
        if value and all(isinstance(each, tuple) and len(each) == 2 for each in value):  # a map, as Arrow has it
            return frozenset((key, _comparable(each)) for key, each in value)
        return tuple(_comparable(each) for each in value)
    return value


def _moment(value: str | date) -> datetime:
    """In UTC, which is also taken for what names no zone."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    elif not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    return value.astimezone(UTC) if value.tzinfo is not None else value.replace(tzinfo=UTC)


def _shown(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return repr(value) if isinstance(value, str) else "null" if value is None else str(value)
