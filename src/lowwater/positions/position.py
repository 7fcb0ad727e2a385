"""Where to start, as wished: one or more choices, each with a fallback behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TypeAlias

from lowwater.types import TopicPartition

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNITS_MS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000}


@dataclass(frozen=True, slots=True)
class Earliest:
    """The first record that is still there."""

    def __str__(self) -> str:
        return "earliest"


@dataclass(frozen=True, slots=True)
class Latest:
    """Behind the last record."""

    def __str__(self) -> str:
        return "latest"


@dataclass(frozen=True, slots=True)
class Stored:
    """The group's committed offset."""

    def __str__(self) -> str:
        return "stored"


@dataclass(frozen=True, slots=True)
class AtOffset:
    offset: int

    def __str__(self) -> str:
        return str(self.offset)


@dataclass(frozen=True, slots=True)
class BeforeEnd:
    """`count` offsets before the end, or the first record when there are fewer."""

    count: int

    def __str__(self) -> str:
        return f"-{self.count}"


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first record stamped at or after that moment."""

    timestamp_ms: int

    def __str__(self) -> str:
        return f"s@{self.timestamp_ms}"

    def timestamp(self, now_ms: int) -> int:
        return self.timestamp_ms


@dataclass(frozen=True, slots=True)
class Ago:
    duration_ms: int

    def __str__(self) -> str:
        return "-" + _duration(self.duration_ms)

    def timestamp(self, now_ms: int) -> int:
        return max(now_ms - self.duration_ms, 0)


@dataclass(frozen=True, slots=True)
class Today:
    """The last midnight in a time zone."""

    zone: tzinfo = UTC

    def __str__(self) -> str:
        return "today"

    def timestamp(self, now_ms: int) -> int:
        now = (EPOCH + timedelta(milliseconds=now_ms)).astimezone(self.zone)
        return to_ms(now.replace(hour=0, minute=0, second=0, microsecond=0, fold=0))


InTime: TypeAlias = AtTime | Ago | Today
Choice: TypeAlias = Earliest | Latest | Stored | AtOffset | BeforeEnd | InTime


@dataclass(frozen=True, slots=True)
class StartPosition:
    """The first choice that has an answer counts."""

    choices: tuple[Choice, ...]

    def __str__(self) -> str:
        return "|".join(map(str, self.choices))

    @property
    def needs_group(self) -> bool:
        return any(isinstance(one, Stored) for one in self.choices)

    def otherwise(self, choice: Choice) -> StartPosition:
        """The same with one more fallback."""
        return StartPosition((*self.choices, choice))


@dataclass(frozen=True, slots=True)
class StartPositions:
    """Wishes for many partitions: the nearest one counts, that of the partition before that of its topic."""

    default: StartPosition | None = None
    topics: Mapping[str, StartPosition] = field(default_factory=dict)
    partitions: Mapping[TopicPartition, StartPosition] = field(default_factory=dict)

    def of(self, one: TopicPartition) -> StartPosition | None:
        return self.partitions.get(one) or self.topics.get(one.topic) or self.default

    def only(self, is_meant: Callable[[str | TopicPartition], bool]) -> StartPositions:
        """Without the wishes for topics and partitions that are not meant."""
        topics = {topic: wish for topic, wish in self.topics.items() if is_meant(topic)}
        partitions = {one: wish for one, wish in self.partitions.items() if is_meant(one)}
        return StartPositions(self.default, topics, partitions)

    @property
    def named(self) -> list[str | TopicPartition]:
        """What there is a wish of its own for."""
        return [*self.topics, *self.partitions]

    @property
    def needs_group(self) -> bool:
        wishes = [*self.partitions.values(), *self.topics.values(), *([self.default] if self.default else [])]
        return any(one.needs_group for one in wishes)

    def __str__(self) -> str:
        parts = [str(self.default)] if self.default is not None else []
        parts += [f"{topic}={wish}" for topic, wish in self.topics.items()]
        parts += [f"{one.topic}[{one.partition}]={wish}" for one, wish in self.partitions.items()]
        return ",".join(parts)


def to_ms(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(milliseconds=1)


def _duration(duration_ms: int) -> str:
    parts = []
    for unit, unit_ms in UNITS_MS.items():
        count, duration_ms = divmod(duration_ms, unit_ms)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
