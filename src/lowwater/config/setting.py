"""One setting: its name, type, default, what it accepts, and what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TypeAlias

from lowwater.errors import ConfigError

Value: TypeAlias = bool | int | float | str | tuple[str, ...]


class Kind(IntEnum):
    """Types of values, with the numbers DescribeConfigs sends."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Update(Enum):
    """Whether a broker setting can change while the broker runs, and for whom."""

    AT_START = "at start"
    PER_BROKER = "while running, per broker"
    CLUSTER_WIDE = "while running"


@dataclass(frozen=True, slots=True)
class Check:
    """A test for a parsed value, and the same in words."""

    allowed: str
    accepts: Callable[[Value], bool]


INT_BITS = {Kind.SHORT: 16, Kind.INT: 32, Kind.LONG: 64}
INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


def at_least(low: float) -> Check:
    return Check(f"{low} or more", lambda value: _number(value) >= low)


def between(low: float, high: float) -> Check:
    return Check(f"{low} to {high}", lambda value: low <= _number(value) <= high)


def unlimited_or_at_least(low: int) -> Check:
    return Check(f"-1 (unlimited), or {low} or more", lambda value: value == -1 or _number(value) >= low)


def one_of(*choices: str) -> Check:
    return Check(", ".join(choices), lambda value: value in choices)


def each_of(*choices: str) -> Check:
    """For lists: every element is a choice, in any number and order."""
    return Check(f"a list of {', '.join(choices)}", lambda value: isinstance(value, tuple) and set(value) <= {*choices})


def _number(value: Value) -> float:
    assert isinstance(value, int | float)
    return value


@dataclass(frozen=True, slots=True)
class Synonym:
    """A broker setting that supplies a value, and the factor that brings it to the unit of the setting it supplies."""

    name: str
    factor: int = 1


@dataclass(frozen=True, slots=True)
class Setting:
    """`synonyms` are the broker settings that stand in when this one is not set, in order, each with its unit in ms."""

    name: str
    kind: Kind
    default: Value | None
    help: str
    check: Check | None = None
    update: Update = Update.AT_START
    synonyms: tuple[Synonym, ...] = ()
    ours: bool = False
    acts: bool = True

    @property
    def sensitive(self) -> bool:
        return self.kind is Kind.PASSWORD

    @property
    def dynamic(self) -> bool:
        return self.update is not Update.AT_START

    def parse(self, text: str) -> Value:
        """The value `text` stands for. ConfigError names the setting, the text and what is allowed."""
        value = self._parse_kind(text.strip())
        if self.check is not None and not self.check.accepts(value):
            raise ConfigError(f"{self.name}={self._shown(text)} is not allowed; allowed: {self.check.allowed}")
        return value

    def _shown(self, text: str) -> str:
        return "[hidden]" if self.sensitive else repr(text)

    def _parse_kind(self, text: str) -> Value:
        if self.kind is Kind.BOOLEAN:
            if text.lower() not in ("true", "false"):
                raise self._wrong_kind(text, "true, false")
            return text.lower() == "true"
        if self.kind in INT_BITS:
            return self._parse_integer(text)
        if self.kind is Kind.DOUBLE:
            return self._parse_double(text)
        if self.kind is Kind.LIST:
            return split_list(text)
        return text

    def _parse_integer(self, text: str) -> int:
        limit = 2 ** (INT_BITS[self.kind] - 1)
        digits = text[1:] if text[:1] in ("-", "+") else text
        # int() alone would also take underscores and other scripts' digits, which no Kafka tool accepts.
        if not (digits.isascii() and digits.isdigit()) or not -limit <= int(text) < limit:
            raise self._wrong_kind(text, f"whole numbers from {-limit} to {limit - 1}")
        return int(text)

    def _parse_double(self, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise self._wrong_kind(text, "numbers such as 0.5") from None

    def _wrong_kind(self, text: str, allowed: str) -> ConfigError:
        return ConfigError(f"{self.name}={self._shown(text)} is not of type {self.kind.name}; allowed: {allowed}")


def split_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def value_text(value: Value | None) -> str | None:
    """A value as files and DescribeConfigs write it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)
