"""Reading start positions as people write them: `stored|-1h|earliest`, `orders=@2026-11-01T00:00Z,orders[0]=17`.

Everything that takes a start position reads it here. What cannot be read is refused with the place of the fault and the
forms that there are; nothing becomes 0 by accident.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo

from lowwater.errors import ConfigError
from lowwater.positions.position import (
    UNITS_MS,
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

FORMS = (
    ("earliest, beginning", "the first record that is still there"),
    ("latest, end", "behind the last record"),
    ("stored, committed", "the committed offset of the group"),
    ("17", "that offset"),
    ("-5", "five before the end"),
    ("-1h, -30m, -7d, -1h30m", "that long ago (w, d, h, m, s)"),
    ("today", "since midnight"),
    ("@2026-11-01T00:00Z, @2026-11-01Z", "that moment; it names its zone, or an option does"),
    ("s@1793491200000", "that moment in milliseconds since 1970"),
    ("stored|-1h|earliest", "the first of these that has an answer"),
    ("orders=stored,metrics=-1h", "topic by topic"),
    ("orders[0]=17", "partition by partition"),
)
STOP_FORMS = (
    *(form for form in FORMS[:-3] if not form[0].startswith("stored")),
    ("e@1793491200000", "the same, as kcat writes where to stop"),
)
OFFSET_MAX = (1 << 63) - 1
PARTITION_MAX = (1 << 31) - 1
DURATION_MAX_MS = 1000 * 366 * 86_400_000  # a thousand years

_WORDS: dict[str, Choice] = {
    "earliest": Earliest(),
    "beginning": Earliest(),
    "latest": Latest(),
    "end": Latest(),
    "stored": Stored(),
    "committed": Stored(),
}
_NUMBER = re.compile(r"-?[0-9]+", re.ASCII)
_AGO = re.compile(r"-(?:[0-9]+[wdhms])+", re.ASCII)
_SPAN = re.compile(r"([0-9]+)([wdhms])", re.ASCII)
_MOMENT = re.compile(
    r"(\d{4}-\d{2}-\d{2})"
    r"(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?) ?(Z|[+-]\d{2}(?::?\d{2})?)?"
    r"|(Z|[+-]\d{2}:\d{2}))?",  # behind a date, -12 looks like an hour
    re.ASCII,
)
_TARGET = re.compile(r"(?P<topic>[^\[\]=]*)(?:\[(?P<partition>[^\]]*)\])?", re.ASCII)


class PositionError(ConfigError, ValueError):
    """A start position, or a stop, that cannot be read; says which part, why, and what could stand there."""

    def __init__(self, text: str, at: int, part: str, why: str, kind: _Kind | None = None) -> None:
        kind = kind or _START
        marks = " " * at + "^" * max(len(part), 1)
        forms = "\n".join(f"  {form:34}{meaning}" for form, meaning in kind.forms)
        shown = "".join(one if one.isprintable() else "?" for one in text)
        super().__init__(f"{why}\n  {shown}\n  {marks}\nA {kind.name} is one of:\n{forms}")
        self.text = text
        self.at = at
        self.part = part
        self.why = why


def parse_start(text: str, zone: tzinfo | None = None, zone_option: str = "") -> StartPosition:
    """One wish with its fallbacks. `zone` is that of dates and times that name none, and `zone_option` what sets it."""
    return _Reader(text, zone, zone_option, _START).wish(0, text)


def parse_starts(text: str, zone: tzinfo | None = None, zone_option: str = "") -> StartPositions:
    """Wishes topic by topic and partition by partition, and perhaps one for all others."""
    reader = _Reader(text, zone, zone_option, _START)
    return reader.wishes(reader.wish)


def parse_stop(text: str, zone: tzinfo | None = None, zone_option: str = "") -> Choice:
    """Where to stop, exclusive: the same forms without `stored`, and kcat's `e@` with milliseconds."""
    return _Reader(text, zone, zone_option, _STOP).only_stop().choices[0]


def parse_stops(text: str, zone: tzinfo | None = None, zone_option: str = "") -> StartPositions:
    """Where to stop, topic by topic and partition by partition; each of one choice."""
    reader = _Reader(text, zone, zone_option, _STOPS)
    return reader.wishes(reader.stop)


@dataclass(frozen=True, slots=True)
class _Kind:
    """What a text is to be, for those who are told that it is not."""

    name: str
    forms: tuple[tuple[str, str], ...]
    words: tuple[str, ...]


_START = _Kind("start position", FORMS, (*_WORDS, "today"))
_STOP = _Kind("stop", STOP_FORMS, tuple(word for word in _START.words if word not in ("stored", "committed")))
_STOPS = replace(_STOP, forms=(*STOP_FORMS, ("orders=100,metrics=-1h", "topic by topic"), FORMS[-1]))


class _Reader:
    def __init__(self, text: str, zone: tzinfo | None, zone_option: str, kind: _Kind) -> None:
        self._text = text
        self._zone = zone
        self._zone_option = zone_option
        self._kind = kind

    def _refuse(self, at: int, part: str, why: str) -> PositionError:
        return PositionError(self._text, at, part, why, self._kind)

    # -- lists

    def wishes(self, read: Callable[[int, str], StartPosition]) -> StartPositions:
        default: StartPosition | None = None
        topics: dict[str, StartPosition] = {}
        partitions: dict[TopicPartition, StartPosition] = {}
        for at, item in _split(self._text, ",", 0):
            target, equals, wish = item.partition("=")
            if not equals:
                if default is not None:
                    raise self._refuse(at, item, f"{item.strip()!r} is a second wish for all other topics")
                default = read(at, item)
                continue
            topic, partition = self._target(at, target)
            position = read(at + len(target) + 1, wish)
            if topic in topics if partition is None else TopicPartition(topic, partition) in partitions:
                raise self._refuse(at, target, f"{target.strip()!r} is named twice")
            if partition is None:
                topics[topic] = position
            else:
                partitions[TopicPartition(topic, partition)] = position
        return StartPositions(default, topics, partitions)

    def _target(self, at: int, target: str) -> tuple[str, int | None]:
        at += len(target) - len(target.lstrip())
        target = target.strip()
        found = _TARGET.fullmatch(target)
        if found is None:
            raise self._refuse(at, target, f"{target!r} is neither a topic nor a partition such as orders[0]")
        topic, partition = found["topic"], found["partition"]
        if (problem := topic_name_problem(topic)) is not None:
            raise self._refuse(at, target, problem)
        if partition is None:
            return topic, None
        number = _number(partition, PARTITION_MAX)
        if number is None:
            raise self._refuse(at + len(topic) + 1, partition, f"{partition!r} is not the number of a partition")
        return topic, number

    # -- one wish

    def wish(self, at: int, text: str) -> StartPosition:
        choices = []
        for part_at, part in _split(text, "|", at):
            inner_at = part_at + len(part) - len(part.lstrip())
            choices.append(self.choice(inner_at, part.strip()))
        return StartPosition(tuple(choices))

    def only_stop(self) -> StartPosition:
        if "," in self._text or "=" in self._text:
            raise self._refuse(0, self._text, f"{self._text!r} is not a stop: it takes no list of topics")
        return self.stop(0, self._text)

    def stop(self, at: int, text: str) -> StartPosition:
        at += len(text) - len(text.lstrip())
        part = text.strip()
        if "|" in part:
            raise self._refuse(at, part, f"{part!r} is not a stop: it takes no fallbacks")
        if part.startswith("e@"):
            return StartPosition((self.milliseconds(at, part),))
        choice = self.choice(at, part)
        if isinstance(choice, Stored):
            raise self._refuse(at, part, f"{part!r} is not a stop: it says where to start")
        return StartPosition((choice,))

    def choice(self, at: int, part: str) -> Choice:
        if not part:
            raise self._refuse(at, part, f"a {self._kind.name} is missing here")
        if (word := _WORDS.get(part.lower())) is not None:
            return word
        if part.lower() == "today":
            return Today(self._zone or UTC)
        if part.startswith("s@"):
            return self.milliseconds(at, part)
        if part.startswith("e@"):
            raise self._refuse(at, part, f"{part!r} says where to stop, not where to start")
        if part.startswith("@"):
            return AtTime(self._moment(at, part))
        if _NUMBER.fullmatch(part):
            return self._number(at, part)
        if _AGO.fullmatch(part):
            return self._ago(at, part)
        near = difflib.get_close_matches(part.lower(), _START.words, n=1)
        hint = f"; did you mean {near[0]}?" if near and near[0] in self._kind.words else ""
        raise self._refuse(at, part, f"{part!r} is not a {self._kind.name}{hint}")

    def _number(self, at: int, part: str) -> Choice:
        number = _number(part.removeprefix("-"), OFFSET_MAX)
        if number is None:
            raise self._refuse(at, part, f"{part} is larger than any offset")
        return BeforeEnd(number) if part.startswith("-") else AtOffset(number)

    def _ago(self, at: int, part: str) -> Choice:
        duration_ms = 0
        for count, unit in _SPAN.findall(part):
            number = _number(count, DURATION_MAX_MS)
            duration_ms += DURATION_MAX_MS + 1 if number is None else number * UNITS_MS[unit]
        if duration_ms > DURATION_MAX_MS:
            raise self._refuse(at, part, f"{part!r} is longer ago than anything was written")
        return Ago(duration_ms)

    def milliseconds(self, at: int, part: str) -> AtTime:
        """`s@` or `e@` and a number."""
        timestamp_ms = _number(part[2:], OFFSET_MAX)
        if timestamp_ms is None:
            raise self._refuse(at + 2, part[2:], f"{part[:2]} takes milliseconds since 1970, not {part[2:]!r}")
        return AtTime(timestamp_ms)

    def _moment(self, at: int, part: str) -> int:
        found = _MOMENT.fullmatch(part, 1)
        if found is None:
            hint = "; milliseconds since 1970 are written s@…" if _is_digits(part[1:]) else ""
            raise self._refuse(at + 1, part[1:], f"{part[1:]!r} is not a date or a date and time (ISO 8601){hint}")
        day, time, zone, zone_of_day = found.groups()
        zone = zone or zone_of_day
        try:
            moment = datetime.fromisoformat(f"{day}T{time or '00:00'}{zone or ''}")
        except ValueError as error:
            raise self._refuse(at + 1, part[1:], f"{part[1:]!r} is no moment: {error}") from None
        if zone is None:
            if self._zone is None:
                by_option = f", or state one by {self._zone_option}" if self._zone_option else ""
                why = f"{part[1:]!r} has no time zone: add Z or +01:00 and the like{by_option}"
                raise self._refuse(at + 1, part[1:], why)
            moment = moment.replace(tzinfo=self._zone)
        try:
            timestamp_ms = to_ms(moment)
        except (ValueError, OverflowError, OSError) as error:  # a zone that ends before the calendar does
            raise self._refuse(at + 1, part[1:], f"{part[1:]!r} is no moment: {error}") from None
        if timestamp_ms < 0:
            raise self._refuse(at + 1, part[1:], f"{part[1:]!r} is before 1970, where timestamps begin")
        return timestamp_ms


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _number(digits: str, most: int) -> int | None:
    """None when it is none, or a larger one. What is too long for Python to read is not even tried."""
    if not _is_digits(digits):
        return None
    digits = digits.lstrip("0") or "0"
    return int(digits) if len(digits) <= len(str(most)) and int(digits) <= most else None


def _split(text: str, mark: str, at: int) -> list[tuple[int, str]]:
    """(place in the whole text, part) of the parts between the marks."""
    parts = []
    for part in text.split(mark):
        parts.append((at, part))
        at += len(part) + len(mark)
    return parts
