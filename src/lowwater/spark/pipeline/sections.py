"""One table of a pipeline's document: hands out its values by kind, and reports what is not of that kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from lowwater.spark.pipeline.durations import parse_duration_ms
from lowwater.spark.pipeline.keys import Table
from lowwater.spark.pipeline.problems import Report, did_you_mean, nearest
from lowwater.spark.pipeline.toml_places import Path

T = TypeVar("T")
S = TypeVar("S", bound=str)
_KINDS = {str: "text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "a table"}


class Section:
    """Keys that nobody knows and keys that are missing are reported at once; None stands for what is not there."""

    def __init__(self, values: Any, path: Path, table: Table, report: Report) -> None:
        self.path = path
        self.report = report
        self._values: Mapping[str, Any] = values if isinstance(values, Mapping) else {}
        self.is_table = isinstance(values, Mapping)
        if not self.is_table:
            report.value(path, f"this has to be a table, not {kind_of(values)}", f"write {table.title}")
            return
        meant = self._refuse_unknown(table)
        for name in table.required:
            if name not in self._values and name not in meant:
                report.key(path, f"{name} is missing", _what_it_is(table, name))

    def _refuse_unknown(self, table: Table) -> set[str]:
        """The keys that were probably meant: one mistake is told once."""
        meant = set()
        for name in self._values:
            if name in table.names:
                continue
            near = nearest(name, table.names)
            hint = f"did you mean {near}?" if near else f"there are {', '.join(table.names)}"
            self.report.key((*self.path, name), "there is no such key", hint)
            meant.add(near or "")
        return meant

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def raw(self, name: str) -> Any:
        return self._values.get(name)

    def refuse(self, name: str, what: str, hint: str = "") -> None:
        """Reports something about the value of a key."""
        self.report.value((*self.path, name), what, hint)

    def text(self, name: str) -> str | None:
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            self.refuse(name, f"this has to be text, not {kind_of(value)}")
            return None
        if not value.strip():
            self.refuse(name, "this is empty")
            return None
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """A list, or one text with commas in it."""
        value = self._values.get(name)
        if value is None:
            return ()
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",")]
        if not _is_list(value) or not all(isinstance(part, str) and part.strip() for part in value):
            self.refuse(name, "this has to be a name, or a list of names")
            return ()
        if not value:
            self.refuse(name, "this list is empty")
        return tuple(value)

    def scalar(self, name: str) -> str | None:
        """Text, or a number as text."""
        value = self._values.get(name)
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else self.text(name)

    def flag(self, name: str) -> str | None:
        """`true` or `false`, as text too."""
        value = self._values.get(name)
        text = str(value).lower() if isinstance(value, bool | str) else ""
        if text in ("true", "false"):
            return text
        self.refuse(name, f"this has to be true or false, not {shown(value)}")
        return None

    def number(self, name: str) -> int | None:
        """Whole and above 0; as text too, since variables give texts."""
        value = self._values.get(name)
        if value is None:
            return None
        if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
            self.refuse(name, f"this has to be a whole number above 0, not {shown(value)}")
            return None
        return value

    def duration_ms(self, name: str) -> int | None:
        return self.parsed(name, parse_duration_ms)

    def parsed(self, name: str, parse: Callable[[str], T]) -> T | None:
        """What `parse` makes of a text; its ValueError is reported."""
        text = self.text(name)
        if text is None:
            return None
        try:
            return parse(text)
        except ValueError as error:
            self.refuse(name, str(error))
            return None

    def choice(self, name: str, choices: Sequence[S]) -> S | None:
        value = self.text(name)
        if value is None:
            return None
        if value not in choices:
            hint = did_you_mean(value, choices) or f"there are {', '.join(choices)}"
            self.refuse(name, f"{value!r} is not possible here", hint)
            return None
        return next(choice for choice in choices if choice == value)

    def settings(self, name: str) -> dict[str, str]:
        """A table of other people's settings: points in keys make tables in TOML, and are points again here."""
        value = self._values.get(name)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.refuse(name, f"this has to be a table, not {kind_of(value)}")
            return {}
        return dict(self._flat((*self.path, name), value))

    def table(self, name: str) -> Mapping[str, Any] | None:
        value = self._values.get(name)
        if value is None or isinstance(value, Mapping):
            return value
        self.refuse(name, f"this has to be a table, not {kind_of(value)}")
        return None

    def _flat(self, path: Path, values: Mapping[str, Any]) -> list[tuple[str, str]]:
        flat: list[tuple[str, str]] = []
        for name, value in values.items():
            if isinstance(value, Mapping):
                flat += [(f"{name}.{rest}", text) for rest, text in self._flat((*path, name), value)]
            elif isinstance(value, bool):
                flat.append((name, str(value).lower()))
            elif isinstance(value, str | int | float):
                flat.append((name, str(value)))
            elif _is_list(value) and all(isinstance(part, str | int) for part in value):
                flat.append((name, ",".join(map(str, value))))
            else:
                self.report.value((*path, name), "this has to be text, a number, true or false, or a list of texts")
        return flat


def kind_of(value: Any) -> str:
    return next((word for kind, word in _KINDS.items() if isinstance(value, kind)), f"a {type(value).__name__}")


def shown(value: Any) -> str:
    return repr(value) if isinstance(value, str | int | float) else kind_of(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _what_it_is(table: Table, name: str) -> str:
    text = next(key.help for key in table.keys if key.name == name).rstrip(".")
    return text[0].lower() + text[1:]
