"""`${NAME}` and `${NAME:-default}` in the texts of a pipeline; `$${` is a plain `${`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lowwater.spark.pipeline.problems import Report, did_you_mean
from lowwater.spark.pipeline.secrets import is_secret
from lowwater.spark.pipeline.toml_places import Path

_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<inside>[^}]*)(?P<end>\}?)")
_OF_OTHERS = ("kafka", "spark", "options", "decode", "arguments")
_INSIDE = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)


def expanded(value: Any, environment: Mapping[str, str], report: Report, path: Path = ()) -> Any:
    """The same document with variables put in. What cannot be put in is reported, and stays as it was."""
    if isinstance(value, str):
        return _expanded_text(value, environment, report, path)
    if isinstance(value, Mapping):
        return {name: expanded(inner, environment, report, (*path, name)) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [expanded(inner, environment, report, (*path, place)) for place, inner in enumerate(value)]
    return value


def _expanded_text(text: str, environment: Mapping[str, str], report: Report, path: Path) -> str:
    def put_in(found: re.Match[str]) -> str:
        if found["inside"] is None:
            return "${"
        inside = _INSIDE.fullmatch(found["inside"]) if found["end"] else None
        if inside is not None:
            return _value(inside, found[0], environment, report, path)
        line = text.count("\n", 0, found.start()) + 1
        column = found.start() - (text.rfind("\n", 0, found.start()) + 1)
        hint = "it is ${NAME} or ${NAME:-default}; $${ stands for ${ itself"
        report.inside(path, line, column, f"{found[0]!r} is not a variable", hint)
        return found[0]

    put = _REFERENCE.sub(put_in, text)
    if is_secret(_setting_name(path)):
        report.secrets.add(put)
    return put


def _value(inside: re.Match[str], whole: str, environment: Mapping[str, str], report: Report, path: Path) -> str:
    name, default = inside["name"], inside["default"]
    value = environment.get(name) or default
    if value is None:
        state = "empty" if name in environment else "not set"
        near = did_you_mean(name, environment) if name not in environment else ""
        report.value(path, f"the variable {name} is {state}", near or f"set it, or write ${{{name}:-default}}")
        return whole
    if is_secret(name):
        report.secrets.add(value)
    return value


def _setting_name(path: Path) -> str:
    """Of tables that hold settings of others, all that stands in them; else the key alone: names are the user's."""
    parts = [str(part) for part in path]
    for place, part in enumerate(parts):
        if part in _OF_OTHERS and place + 1 < len(parts):
            return ".".join(parts[place + 1 :])
    return next((part for part in reversed(path) if isinstance(part, str)), "")
