"""Types of decoded columns, as Spark knows them, without pyarrow: what every format's schema is turned into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from lowwater.spark.decoding.errors import SchemaError

PRECISION_MAX = 38
DEPTH_MAX = 64
COLUMNS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Scalar:
    """A type by Arrow's short name: bool, int8 … int64, float32, float64, utf8, binary, date, timestamp (UTC),
    timestamp_ntz, duration."""

    name: str


@dataclass(frozen=True, slots=True)
class Decimal:
    precision: int
    scale: int

    def __post_init__(self) -> None:
        if not (1 <= self.precision <= PRECISION_MAX and 0 <= self.scale <= self.precision):
            raise SchemaError(
                f"decimal({self.precision},{self.scale}) is not possible in Spark: at most {PRECISION_MAX} digits"
            )


@dataclass(frozen=True, slots=True)
class ListOf:
    item: Shape


@dataclass(frozen=True, slots=True)
class MapOf:
    key: Shape
    value: Shape


@dataclass(frozen=True, slots=True)
class StructOf:
    fields: tuple[tuple[str, Shape], ...]


Shape: TypeAlias = Scalar | Decimal | ListOf | MapOf | StructOf

BOOL, INT8, INT16, INT32, INT64 = (Scalar(name) for name in ("bool", "int8", "int16", "int32", "int64"))
FLOAT32, FLOAT64, UTF8, BINARY = (Scalar(name) for name in ("float32", "float64", "utf8", "binary"))
DATE, TIMESTAMP, TIMESTAMP_NTZ, DURATION = (Scalar(name) for name in ("date", "timestamp", "timestamp_ntz", "duration"))


class Room:
    """How many columns a schema may still unfold to: types that are used again and again multiply."""

    def __init__(self) -> None:
        self._left = COLUMNS_MAX

    def take(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise SchemaError(f"the schema unfolds to more than {COLUMNS_MAX} columns, nested ones counted")


def check_struct(shape: StructOf) -> StructOf:
    """The same, if Spark can hold it: names that differ also for Spark, which takes no notice of case; bounds."""
    _check(shape, Room(), 0)
    return shape


def _check(shape: Shape, room: Room, depth: int) -> None:
    room.take()
    if depth > DEPTH_MAX:
        raise SchemaError(f"the schema is nested more than {DEPTH_MAX} deep")
    if isinstance(shape, StructOf):
        _check_names([name for name, _ in shape.fields])
    for child in below(shape):
        _check(child, room, depth + 1)


def below(shape: Shape) -> tuple[Shape, ...]:
    """Shapes of which a shape consists: fields, items, keys and values."""
    match shape:
        case StructOf(fields):
            return tuple(child for _, child in fields)
        case ListOf(item):
            return (item,)
        case MapOf(key, value):
            return (key, value)
    return ()


def _check_names(names: list[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        if (other := seen.setdefault(name.lower(), name)) is not name:
            raise SchemaError(f"the fields {other!r} and {name!r} are the same to Spark")
