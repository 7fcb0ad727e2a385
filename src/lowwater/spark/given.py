"""Options as they came, by their names in the table."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from lowwater.spark.kafka_options import PREFIX
from lowwater.spark.option_table import ALIASES, OPTION, SPARKS_OWN, OptionError, Where


class Given:
    """Names are taken in any case, since Spark hands them over in lower case."""

    def __init__(self, options: Mapping[str, str], where: Where) -> None:
        self._where = where
        self._texts: dict[str, str] = {}
        for name, text in options.items():
            key = ALIASES.get(name.lower(), name.lower())
            if key in self._texts:
                raise OptionError(f"{OPTION[key].name} is given twice, once as {name}")
            self._texts[key] = str(text)

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._texts

    def text(self, name: str) -> str:
        return self._texts[name.lower()]

    def value(self, name: str) -> Any:
        """As it was given, or its default; OptionError when it cannot be read."""
        option = OPTION[name.lower()]
        if name not in self:
            return None if option.default is None else option.read(option.default)
        return option.read(self.text(name))

    def texts(self) -> Mapping[str, str]:
        """By lower-case names."""
        return self._texts

    def kafka(self) -> dict[str, str]:
        """Settings of the clients, without `kafka.` in front."""
        found = {name.removeprefix(PREFIX): text for name, text in self._texts.items() if name.startswith(PREFIX)}
        found.pop("group.id", None)
        return found

    def notes(self) -> Iterator[str]:
        """What is not heeded, and why."""
        for key in sorted(self._texts):
            option = OPTION.get(key)
            if option is None:
                if not key.startswith((PREFIX, "decode.")) and key not in SPARKS_OWN:
                    yield f"{_near(key)} is ignored: there is no such option"
            elif self._where not in option.where:
                yield f"{option.name} option ignored in {_in(self._where)}"


def _in(where: Where) -> str:
    return {Where.BATCH: "batch queries", Where.STREAM: "streaming queries", Where.SINK: "writes"}[where]


def _near(key: str) -> str:
    close = difflib.get_close_matches(key, OPTION, n=1, cutoff=0.8)
    return f"{key} (did you mean {OPTION[close[0]].name}?)" if close else key
