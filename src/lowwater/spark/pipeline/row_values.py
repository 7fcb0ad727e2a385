"""Values of rows in tests: as people write them in TOML, as Spark takes them, and as they are compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from lowwater.spark.pipeline.sections import kind_of, shown
from lowwater.spark.pipeline.toml_places import Path

# What values have to be once they are made ready for Spark, by the names of its types. Others are for Spark to judge.
_TAKEN: Mapping[str, tuple[type, ...]] = {
    "string": (str, int, float, date),
    "binary": (bytes,),
    "boolean": (bool,),
    **dict.fromkeys(("byte", "short", "integer", "long"), (int,)),
    **dict.fromkeys(("float", "double"), (float,)),
    "decimal": (Decimal,),
    "date": (date,),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), (datetime,)),
    "array": (list,),
    **dict.fromkeys(("struct", "map"), (Mapping,)),
}
_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}


def misfits(value: Any, kind: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """What of a value, and of what is in it, cannot be of that type of Spark: where, and why."""
    name, problem = kind.typeName(), _misfit(value, kind)
    if problem is not None:
        yield path, problem
    elif value is None:
        return
    elif name == "array":
        for place, each in enumerate(value):
            yield from misfits(each, kind.elementType, (*path, place))
    elif name == "struct":
        for field in kind.fields:
            yield from misfits(value.get(field.name), field.dataType, (*path, field.name))
    elif name == "map":
        for key, each in value.items():
            yield from misfits(each, kind.valueType, (*path, key))


def _misfit(value: Any, kind: Any) -> str | None:
    name = kind.typeName()
    if value is None or name not in _TAKEN:
        return None
    if name in ("array", "struct", "map"):
        return None if isinstance(value, _TAKEN[name]) else _other(value, kind)
    try:
        made = to_spark(value, kind)
    except (ValueError, InvalidOperation):
        return _other(value, kind)
    is_flag = isinstance(made, bool) and name not in ("boolean", "string")
    if is_flag or not isinstance(made, _TAKEN[name]):
        return _other(value, kind)
    if isinstance(made, int) and name in _BITS and not -(1 << _BITS[name] - 1) <= made < 1 << _BITS[name] - 1:
        return f"{value} is too large for {kind.simpleString()}"
    return None


def _other(value: Any, kind: Any) -> str:
    told = f"{kind_of(value)}, {shown(value)}" if isinstance(value, str) else shown(value)
    return f"this has to be {kind.simpleString()}, not {told}"


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
