"""Which columns a reader is asked for, of those that there are.

Nothing of Spark is imported: a schema is anything whose fields have a name, a type and say whether they may be null.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from lowwater.errors import ConfigError

NEVER_NULL = frozenset({"topic", "partition", "offset", "timestamp", "timestampType"})


class Chosen(NamedTuple):
    """A column as Spark expects it."""

    name: str
    is_nullable: bool = True


def choose(wanted: Iterable[Any], offered: Iterable[Any]) -> tuple[Chosen, ...]:
    """The columns of a schema that the user gave. ConfigError for one that is not offered, or not so."""
    types = {field.name: field.dataType for field in offered}
    chosen: list[Chosen] = []
    for field in wanted:
        if field.name not in types:
            raise ConfigError(_unknown(field.name, types))
        if field.dataType != types[field.name]:
            raise ConfigError(
                f"the column {field.name} is {types[field.name].simpleString()}, not {field.dataType.simpleString()}: "
                "cast it in the query, not in the schema"
            )
        if not field.nullable and field.name not in NEVER_NULL:
            raise ConfigError(f"the column {field.name} may be null; leave NOT NULL out of its schema")
        if any(field.name == one.name for one in chosen):
            raise ConfigError(f"the schema names the column {field.name} twice")
        chosen.append(Chosen(field.name, field.nullable))
    if not chosen:
        raise ConfigError(f"the schema names no column; there are {', '.join(types)}")
    return tuple(chosen)


def _unknown(name: str, offered: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(name.lower(), {one.lower() for one in offered}, n=1)
    meant = [one for one in offered if one.lower() in close]
    hint = f"did you mean {meant[0]}?" if meant else f"there are {', '.join(offered)}"
    if name == "headers":
        hint = "set the option includeHeaders to true"
    return f"there is no column {name}; {hint}"
