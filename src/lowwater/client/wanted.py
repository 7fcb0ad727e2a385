"""What a reader is asked for: which topics, from where, up to where. Read once, from however it was given."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from typing import TypeAlias, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lowwater.client.arguments import is_whole, whole_number
from lowwater.client.topic_ids import topic_id
from lowwater.errors import ConfigError
from lowwater.positions.grammar import DURATION_MAX_MS, OFFSET_MAX, parse_starts, parse_stop
from lowwater.positions.names import refuse_strangers
from lowwater.positions.position import (
    Ago,
    AtOffset,
    AtTime,
    BeforeEnd,
    Choice,
    Earliest,
    Latest,
    StartPosition,
    StartPositions,
    Stored,
    Today,
    to_ms,
)
from lowwater.types import TopicPartition, topic_name_problem

T = TypeVar("T")
Moment: TypeAlias = datetime | timedelta
Start: TypeAlias = str | int | Moment | StartPosition
Stop: TypeAlias = str | int | Moment
Topic: TypeAlias = str | TopicPartition | tuple[str, int]
TopicId: TypeAlias = str | bytes | UUID
Topics: TypeAlias = Topic | Iterable[Topic] | Mapping[Topic, Start]

FROM_THE_BEGINNING = StartPosition((Earliest(),))
WHERE_THE_GROUP_IS = StartPosition((Stored(), Earliest()))
ZONE_OPTION = "the argument zone"
_TOO_EARLY = "is before 1970, where timestamps begin; 'earliest' is the beginning of a partition"
_PARTITION = re.compile(r"(?P<topic>[^\[\]]+)\[(?P<partition>[0-9]{1,10})\]", re.ASCII)


@dataclass(frozen=True, slots=True)
class Wanted:
    """`partitions` is empty when all of the topics are wanted."""

    names: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: frozenset[TopicPartition] = frozenset()
    starts: StartPositions = field(default_factory=StartPositions)
    stop: Choice | None = None
    stops: Mapping[str | TopicPartition, Choice] = field(default_factory=dict)
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)
    """Of topics that must not be others of the same name."""

    def has(self, one: TopicPartition) -> bool:
        """Of those whose topic is wanted."""
        return not self.partitions or one in self.partitions or self._is_whole(one.topic)

    def reads(self, one: str | TopicPartition) -> bool:
        """A topic that is named, or a partition of one."""
        return one in self.names if isinstance(one, str) else one.topic in self.names and self.has(one)

    def _is_whole(self, topic: str) -> bool:
        return all(one.topic != topic for one in self.partitions)

    def start(self, one: TopicPartition, *, has_group: bool) -> StartPosition:
        return self.starts.of(one) or (WHERE_THE_GROUP_IS if has_group else FROM_THE_BEGINNING)

    def stop_of(self, one: TopicPartition) -> Choice | None:
        return self.stops.get(one) or self.stops.get(one.topic) or self.stop

    @property
    def has_stop(self) -> bool:
        return self.stop is not None or bool(self.stops)

    @property
    def named_partitions(self) -> set[TopicPartition]:
        """To be read, or with a start or a stop of their own."""
        stops = (one for one in self.stops if isinstance(one, TopicPartition))
        return {*self.partitions, *self.starts.partitions, *stops}


def wanted(
    topics: Topics | None,
    *,
    pattern: str | None = None,
    start: Start | Mapping[Topic, Start] | None = None,
    stop: Stop | Mapping[Topic, Stop] | None = None,
    zone: str | tzinfo | None = None,
    topic_ids: Mapping[str, TopicId] | None = None,
) -> Wanted:
    """ConfigError says what cannot be read; of what is written in the grammar, PositionError."""
    where = zone_of(zone)
    if isinstance(topics, Mapping):
        if start is not None:
            raise ConfigError("starts are given twice: with the topics and as start")
        start = dict(topics)
    names, patterns, partitions = _topics(topics, pattern)
    stop_of_all, stops = _stops(stop, where, patterns)
    found = Wanted(
        names=names,
        pattern=patterns,
        partitions=partitions,
        starts=_starts(start, where, patterns),
        stop=stop_of_all,
        stops=stops,
        topic_ids={name: topic_id(each) for name, each in (topic_ids or {}).items()},
    )
    _check_names(found)
    return found


def _check_names(found: Wanted) -> None:
    """By a pattern, topics are read that may not be there yet."""
    if found.pattern is not None:
        return
    starts: list[str | TopicPartition] = [*found.starts.topics, *found.starts.partitions]
    for what, named in (("start", starts), ("stop", list(found.stops))):
        refuse_strangers([one for one in named if not found.reads(one)], found.names, what)


def moment_ms(moment: datetime | int | str, now_ms: int, zone: str | tzinfo | None = None) -> int:
    """A moment in ms since 1970, given so, or as a date with its zone, or as text: `@2026-11-01T00:00Z`, `-5m`."""
    if is_whole(moment):
        return whole_number("a moment", moment)
    choice = _stop(moment, zone_of(zone))
    if not isinstance(choice, AtTime | Ago | Today):
        raise ConfigError(f"{moment!r} is no moment; give a datetime, milliseconds, @2026-11-01T00:00Z or -5m")
    return choice.timestamp(now_ms)


def zone_of(zone: str | tzinfo | None) -> tzinfo | None:
    """ConfigError for a name that no time zone has."""
    try:
        return ZoneInfo(zone) if isinstance(zone, str) else zone
    except (ZoneInfoNotFoundError, ValueError):
        raise ConfigError(f"there is no time zone {zone!r}; they are called UTC, Europe/Berlin and the like") from None


# -- topics


_Named: TypeAlias = tuple[tuple[str, ...], str | None, frozenset[TopicPartition]]


def _topics(topics: Topics | None, pattern: str | None) -> _Named:
    names: dict[str, None] = {}
    partitions: set[TopicPartition] = set()
    whole: set[str] = set()
    for each in _listed(topics):
        if isinstance(each, str) and each.startswith("^"):
            if pattern is not None:
                raise ConfigError(f"only one pattern can be read: {pattern!r} or {each!r}")
            pattern = each
            continue
        one = _topic(each)
        name = one if isinstance(one, str) else one.topic
        names[name] = None
        if isinstance(one, str):
            whole.add(name)
        else:
            partitions.add(one)
    if not names and pattern is None:
        raise ConfigError("no topic is given; say which to read, as a name, a list of names or a pattern")
    if pattern is not None:
        _check_pattern(pattern, names)
    return tuple(names), pattern, frozenset(one for one in partitions if one.topic not in whole)


def _listed(topics: Topics | None) -> list[Topic]:
    if topics is None:
        return []
    if isinstance(topics, str | TopicPartition):
        return [topics]
    if isinstance(topics, tuple) and len(topics) == 2 and isinstance(topics[1], int):
        return [TopicPartition(str(topics[0]), topics[1])]
    return list(topics)


def _topic(each: Topic) -> str | TopicPartition:
    if not isinstance(each, str):
        return TopicPartition(*each)
    found = _PARTITION.fullmatch(each)
    name = found["topic"] if found else each
    if (problem := topic_name_problem(name)) is not None:
        hint = "; several topics are given as a list" if "," in name else ""
        raise ConfigError(problem + hint)
    return TopicPartition(name, int(found["partition"])) if found else name


def _check_pattern(pattern: str, names: Mapping[str, None]) -> None:
    if names:
        raise ConfigError(f"either topics or a pattern can be read, not both: {', '.join(names)} and {pattern!r}")
    try:
        re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"{pattern!r} is no regular expression: {error}") from None


# -- positions


def _starts(
    start: Start | Mapping[Topic, Start] | None, zone: tzinfo | None, pattern: str | None = None
) -> StartPositions:
    if start is None:
        return StartPositions()
    if isinstance(start, str):
        return parse_starts(start, zone, ZONE_OPTION)
    if not isinstance(start, Mapping):
        return StartPositions(_start(start, zone))
    default, named = _named({target: _start(each, zone) for target, each in start.items()}, pattern)
    return StartPositions(
        default,
        {one: each for one, each in named.items() if isinstance(one, str)},
        {one: each for one, each in named.items() if isinstance(one, TopicPartition)},
    )


def _named(given: Mapping[Topic, T], pattern: str | None) -> tuple[T | None, dict[str | TopicPartition, T]]:
    """What stands with the pattern, which is for all topics; and what stands with topics and partitions."""
    default = None if pattern is None else given.get(pattern)
    return default, {_topic(target): each for target, each in given.items() if target != pattern}


def _start(start: Start, zone: tzinfo | None) -> StartPosition:
    """One wish. A number is an offset, or before the end when it is negative."""
    if isinstance(start, StartPosition):
        return start
    if isinstance(start, str):
        parsed = parse_starts(start, zone, ZONE_OPTION)
        if parsed.default is None or parsed.topics or parsed.partitions:
            raise ConfigError(f"{start!r} is not one start position")
        return parsed.default
    return StartPosition((_choice(start),))


def start_position(start: Start, zone: str | tzinfo | None = None) -> StartPosition:
    """One start position, however it is written."""
    return _start(start, zone_of(zone))


def _stops(
    stop: Stop | Mapping[Topic, Stop] | None, zone: tzinfo | None, pattern: str | None
) -> tuple[Choice | None, dict[str | TopicPartition, Choice]]:
    """That of all, and those of some."""
    if not isinstance(stop, Mapping):
        return None if stop is None else _stop(stop, zone), {}
    return _named({target: _stop(each, zone) for target, each in stop.items()}, pattern)


def _stop(stop: Stop, zone: tzinfo | None) -> Choice:
    return parse_stop(stop, zone, ZONE_OPTION) if isinstance(stop, str) else _choice(stop)


def _choice(given: int | Moment) -> Choice:
    if isinstance(given, timedelta):
        return ago(given // timedelta(milliseconds=1))
    if isinstance(given, datetime):
        return _at(given)
    offset = whole_number("a position", given, "text, a number, a datetime or a timedelta")
    if abs(offset) > OFFSET_MAX:
        raise ConfigError(f"{offset} is larger than any offset")
    return AtOffset(offset) if offset >= 0 else BeforeEnd(-offset)


def _at(moment: datetime) -> AtTime:
    if moment.tzinfo is None:
        raise ConfigError(f"{moment.isoformat()} has no time zone; datetime.now(UTC), for example, has one")
    timestamp_ms = to_ms(moment)
    if timestamp_ms < 0:
        raise ConfigError(f"{moment.isoformat()} {_TOO_EARLY}")
    return AtTime(timestamp_ms)


def at_time(timestamp_ms: int) -> AtTime:
    """ConfigError for what would mean an end of the log to brokers, and no time."""
    if not 0 <= timestamp_ms <= OFFSET_MAX:
        raise ConfigError(f"{timestamp_ms} ms {_TOO_EARLY if timestamp_ms < 0 else 'is beyond all times'}")
    return AtTime(timestamp_ms)


def ago(duration_ms: int) -> Ago:
    """ConfigError for what is not in the past."""
    if duration_ms < 0:
        raise ConfigError(f"{duration_ms} ms ago is in the future; timedelta(hours=1), or 3600000 ms, is an hour ago")
    if duration_ms > DURATION_MAX_MS:
        raise ConfigError(f"{duration_ms} ms is longer ago than anything was written; 'earliest' is the beginning")
    return Ago(duration_ms)


# -- stops


@dataclass(frozen=True, slots=True)
class StopAt:
    """Where a partition is not read any more: at an offset, and without what is stamped at a time or behind it.

    `offset` None: it is not known yet, because that time is still to come.
    """

    offset: int | None
    timestamp_ms: int | None = None


def stop_at(choice: Choice, end: int, now_ms: int) -> StopAt:
    """Records of a partition need not be in the order of their times: with a time to stop at, one is read up to its
    end, and not only up to the first record that is too late."""
    match choice:
        case Earliest():
            return StopAt(0)
        case Latest():
            return StopAt(end)
        case AtOffset(offset):
            return StopAt(offset)
        case BeforeEnd(count):
            return StopAt(max(end - count, 0))
        case Stored():
            raise ConfigError("a group's offset says where to start, not where to stop")
    timestamp_ms = choice.timestamp(now_ms)
    return StopAt(end if timestamp_ms <= now_ms else None, timestamp_ms)
