"""Which columns of a DataFrame are written, by the names and types of Spark's Kafka connector.

Nothing of Spark is imported: a schema is anything whose fields have a name and a type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from lowwater.spark.option_table import OptionError

TYPES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "topic": ("string",),
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "headers": ("array<struct<key:string,value:binary>>",),
    "partition": ("int",),
})  # fmt: skip
"""By column, the types that it may have, as Spark's SQL writes them. Other columns are not written."""


class WrittenColumns(NamedTuple):
    """`topic` is where all rows go; None: each row says so. `places` are those of the columns in a batch."""

    names: tuple[str, ...]
    places: tuple[int, ...]
    topic: str | None


def written_columns(schema: Iterable[Any], topic: str | None) -> WrittenColumns:
    """OptionError says what is missing or of another type, in the connector's words where it has some."""
    places: dict[str, int] = {}
    for place, field in enumerate(schema):
        if field.name not in TYPES:
            continue
        if field.name in places:
            raise OptionError(f"there are two columns {field.name}; leave one out")
        _check_type(field.name, field.dataType.simpleString())
        places[field.name] = place
    if topic is not None:
        places.pop("topic", None)
    elif "topic" not in places:
        raise OptionError(
            "topic option required when no 'topic' attribute is present: give the option, or a column of that name"
        )
    if "value" not in places:
        raise OptionError("Required attribute 'value' not found: what is written stands in a column of that name")
    return WrittenColumns(tuple(places), tuple(places.values()), topic)


def _check_type(name: str, given: str) -> None:
    takes = TYPES[name]
    # Texts that are compared in other ways are the same texts.
    if given in takes or ("string" in takes and given.startswith("string collate ")):
        return
    raise OptionError(f"{name} attribute unsupported type {given}. {name} must be a(n) {' or '.join(takes)}: cast it")
