"""Which partitions a query reads, from where and up to where, however that was written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Any

from lowwater.positions.grammar import PositionError, parse_starts, parse_stops
from lowwater.positions.position import (
    AtOffset,
    AtTime,
    Choice,
    Earliest,
    Latest,
    StartPosition,
    StartPositions,
    Stored,
)
from lowwater.spark.option_table import LONG_MAX, OptionError, topic_names
from lowwater.types import TopicPartition, topic_name_problem

LATEST, EARLIEST = -1, -2
SHOWN_MAX = 8
_PARTITION_MAX = (1 << 31) - 1
_NUMBER = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_OFFSETS_FORM = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
_TIMES_FORM = '{"topicA": {"0": 123456789, "1": 123456789}, "topicB": {"0": 123456789, "1": 123456789}}'
_ASSIGN_FORM = '{"topicA":[0,1],"topicB":[0,1]}'


# -- which


@dataclass(frozen=True, slots=True)
class Topics:
    """One of the three is set. A pattern matches whole names; internal topics never match."""

    names: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()

    @property
    def only(self) -> str | None:
        """The topic, when it is one and known by name."""
        names = set(self.names) or {one.topic for one in self.partitions}
        return names.pop() if len(names) == 1 else None


def subscribed(text: str) -> Topics:
    try:
        names = topic_names(text)
    except ValueError as error:
        raise OptionError(f"subscribe {error}") from None
    if not names:
        raise OptionError(f"No topics to subscribe to as specified value for option 'subscribe' is '{text}'")
    return Topics(names=names)


def matching(text: str) -> Topics:
    pattern = text.strip()
    if not pattern:
        raise OptionError(f"Pattern to subscribe is empty as specified value for option 'subscribePattern' is '{text}'")
    try:
        re.compile(pattern)
    except re.error as error:
        raise OptionError(f"option subscribePattern: {pattern!r} is no regular expression of Python: {error}") from None
    return Topics(pattern=pattern)


def assigned(text: str) -> Topics:
    if not text.strip().startswith("{"):
        raise OptionError(f"No topicpartitions to assign as specified value for option 'assign' is '{text}'")
    found: set[TopicPartition] = set()
    for topic, numbers in _json_topics(text, _ASSIGN_FORM).items():
        if not isinstance(numbers, list) or not all(_is_partition(one) for one in numbers):
            raise _unexpected(_ASSIGN_FORM, text)
        found.update(TopicPartition(topic, one) for one in numbers)
    if not found:
        raise OptionError(f"No topicpartitions to assign as specified value for option 'assign' is '{text}'")
    return Topics(partitions=tuple(sorted(found)))


# -- from where, up to where


@dataclass(frozen=True, slots=True)
class Wish:
    """`is_exact`: the partitions named have to be those that are read, no more and no less."""

    option: str
    positions: StartPositions
    is_exact: bool = False

    def wishes(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, StartPosition]:
        """Of each of them; OptionError when one is named that is not read, or missing."""
        named = self.positions.partitions.keys()
        if self.is_exact and named != set(partitions):
            raise OptionError(
                f"Partitions specified for {self.option} don't match what are assigned: name every partition of the "
                f"topics, and no other. Specified: {_shown(named)} Assigned: {_shown(partitions)}"
            )
        topics = {one.topic for one in partitions}
        strangers = [str(one) for one in sorted(named - set(partitions))]
        strangers += sorted(self.positions.topics.keys() - topics)
        if strangers:
            raise OptionError(f"{self.option} names {', '.join(strangers[:SHOWN_MAX])}, which is not read")
        return {one: self._of(one) for one in partitions}

    def _of(self, one: TopicPartition) -> StartPosition:
        found = self.positions.of(one)
        assert found is not None, "a wish has a default unless it names every partition"
        return found


@dataclass(frozen=True, slots=True)
class StartWish(Wish):
    """`has_to_match`: it is an error when a partition has no record as late as the time it is to start at."""

    has_to_match: bool = False

    def check_found(self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> None:
        """To be asked with what the wishes came to, and where the partitions ended then."""
        if not self.has_to_match:
            return
        for one, start in sorted(starts.items()):
            choice = self._of(one).choices[0]
            if isinstance(choice, AtTime) and start >= ends[one]:
                raise OptionError(
                    f"No offset matched from request of topic-partition {one} and timestamp {choice.timestamp_ms}. "
                    "Set startingOffsetsByTimestampStrategy to latest to start at its end"
                )


@dataclass(frozen=True, slots=True)
class StopWish(Wish):
    """Each is of one choice, exclusive."""


def everywhere(choice: Choice) -> StartPositions:
    return StartPositions(StartPosition((choice,)))


def start_by_grammar(text: str, zone: tzinfo | None, otherwise: Choice) -> StartWish:
    """`otherwise` counts for what is not named."""
    positions = _parsed("start", parse_starts, text, zone)
    return StartWish("start", _with_default(positions, otherwise))


def stop_by_grammar(text: str, zone: tzinfo | None) -> StopWish:
    return StopWish("stop", _with_default(_parsed("stop", parse_stops, text, zone), Latest()))


def start_of_group(otherwise: Choice) -> StartWish:
    return StartWish("group", StartPositions(StartPosition((Stored(), otherwise))))


def by_offsets(text: str) -> tuple[StartPositions, bool]:
    """The connector's words and JSON; and whether it names partitions."""
    word = text.strip().lower()
    if word in ("earliest", "latest"):
        return everywhere(Earliest() if word == "earliest" else Latest()), False
    return _by_partition(text, _OFFSETS_FORM, _offset), True


def by_timestamp(text: str) -> StartPositions:
    number = text.strip()
    if not _NUMBER.fullmatch(number) or not 0 <= int(number) <= LONG_MAX:
        raise OptionError(f"Expected a single long value, got {number}")
    return everywhere(AtTime(int(number)))


def by_timestamps(text: str) -> StartPositions:
    return _by_partition(text, _TIMES_FORM, _moment)


def check_order(start: StartWish, stop: StopWish) -> None:
    """OptionError where it can be said before any broker is asked that a start lies behind its stop."""
    named = {*start.positions.partitions, *stop.positions.partitions}
    for one in sorted(named):
        first, behind = start.positions.of(one), stop.positions.of(one)
        if first is not None and behind is not None:
            _check_order(first.choices[0], behind.choices[0], f"for topic {one.topic} partition {one.partition}")
    if start.positions.default is not None and stop.positions.default is not None:
        _check_order(start.positions.default.choices[0], stop.positions.default.choices[0], "for all partitions")


def _check_order(first: Choice, behind: Choice, where: str) -> None:
    match first, behind:
        case AtOffset(start), AtOffset(stop) if start > stop:
            raise OptionError(f"The specified start offset {start} is greater than the end offset {stop} {where}")
        case AtTime(start), AtTime(stop) if start > stop:
            raise OptionError(f"The specified start timestamp {start} is greater than the end timestamp {stop} {where}")


# -- reading


def _parsed(
    option: str, parse: Callable[[str, tzinfo | None, str], StartPositions], text: str, zone: tzinfo | None
) -> StartPositions:
    try:
        return parse(text, zone, "the option timeZone")
    except PositionError as error:
        raise OptionError(f"option {option}={text!r}: {error.why}") from error


def _with_default(positions: StartPositions, choice: Choice) -> StartPositions:
    return positions if positions.default is not None else replace(positions, default=StartPosition((choice,)))


def _by_partition(text: str, form: str, choice: Callable[[Any], Choice | None]) -> StartPositions:
    found: dict[TopicPartition, StartPosition] = {}
    for topic, partitions in _json_topics(text, form).items():
        if not isinstance(partitions, dict):
            raise _unexpected(form, text)
        for number, given in partitions.items():
            wished = choice(given)
            if wished is None or not number.isascii() or not number.isdigit() or not _is_partition(int(number)):
                raise _unexpected(form, text)
            found[TopicPartition(topic, int(number))] = StartPosition((wished,))
    return StartPositions(partitions=found)


def _offset(given: Any) -> Choice | None:
    if given == LATEST:
        return Latest()
    if given == EARLIEST:
        return Earliest()
    return AtOffset(given) if _is_number(given) else None


def _moment(given: Any) -> Choice | None:
    return AtTime(given) if _is_number(given) else None


def _is_number(given: Any) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and 0 <= given <= LONG_MAX


def _is_partition(given: Any) -> bool:
    return _is_number(given) and given <= _PARTITION_MAX


def _json_topics(text: str, form: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        raise _unexpected(form, text) from None
    if not isinstance(found, dict):
        raise _unexpected(form, text)
    for topic in found:
        if (problem := topic_name_problem(topic)) is not None:
            raise OptionError(f"{problem}; expected e.g. {form}, got {text}")
    return found


def _unexpected(form: str, text: str) -> OptionError:
    return OptionError(f"Expected e.g. {form}, got {text}")


def _shown(partitions: Iterable[TopicPartition]) -> str:
    names = [str(one) for one in sorted(partitions)]
    more = f" and {len(names) - SHOWN_MAX} more" if len(names) > SHOWN_MAX else ""
    return f"[{', '.join(names[:SHOWN_MAX])}{more}]"
