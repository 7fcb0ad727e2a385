"""Arguments that cannot be understood. What is refused is named, with what it takes and what it got."""

from __future__ import annotations

import contextlib
import operator
import reprlib
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any, TypeVar

from lowwater.errors import ConfigError
from lowwater.types import topic_name_problem

T = TypeVar("T")


def refused(name: str, takes: str, given: object) -> ConfigError:
    return ConfigError(f"{name} is {takes}, not {reprlib.repr(given)}")


def is_whole(given: object) -> bool:
    """Of Python, of numpy, of whatever can stand for an index; but not true or false."""
    return not isinstance(given, bool) and hasattr(given, "__index__")


def whole_number(name: str, given: Any, takes: str = "a whole number") -> int:
    if is_whole(given):
        with contextlib.suppress(TypeError):  # an array has an index only when it is one number
            return operator.index(given)
    raise refused(name, takes, given)


def listed(name: str, kind: type[T], example: str, given: Iterable[T]) -> list[T]:
    """All of them, if all are of this kind."""
    what = kind.__name__
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise refused(name, f"a list of {what}, [{example}]", given)
    found = list(given)
    for each in found:
        if not isinstance(each, kind):
            raise refused(f"each of {name}", f"a {what}, {example}", each)
    return found


def check_topic(topic: object) -> None:
    """ConfigError for what cannot be the name of a topic."""
    if not isinstance(topic, str):
        raise refused("topic", "a name, as text", topic)
    if (problem := topic_name_problem(topic)) is not None:
        raise ConfigError(problem)


def check_timeout(timeout_ms: object) -> None:
    if timeout_ms is not None and not isinstance(timeout_ms, int | float | Real):
        raise refused("timeout_ms", "a number of milliseconds or None", timeout_ms)


def settings_of(config: Mapping[str, object] | None) -> dict[str, object]:
    """A copy. What is no mapping is not shown: it may have a password in it."""
    if config is None:
        return {}
    if not isinstance(config, Mapping):
        raise ConfigError(f"config is a mapping, {{'fetch.min.bytes': 1}}, not {type(config).__name__}")
    for name in config:
        if not isinstance(name, str):
            raise refused("the name of a setting in config", "text", name)
    return dict(config)
