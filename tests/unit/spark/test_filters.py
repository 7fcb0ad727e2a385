"""What filters say about where rows can be."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from lowwater.spark.filters import Bounds, bounds
from lowwater.spark.offsets import OFFSET_MAX, Range
from lowwater.types import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


# As Spark's filters look: their class says what they ask, the column is a path.
@dataclass
class EqualTo:
    attribute: tuple[str, ...]
    value: Any


class EqualNullSafe(EqualTo): ...


class GreaterThan(EqualTo): ...


class GreaterThanOrEqual(EqualTo): ...


class LessThan(EqualTo): ...


class LessThanOrEqual(EqualTo): ...


class In(EqualTo): ...


class StringStartsWith(EqualTo): ...


@dataclass
class IsNotNull:
    attribute: tuple[str, ...]


@dataclass
class Not:
    child: Any


def offset(kind, value):
    return kind(("offset",), value)


@pytest.mark.parametrize(
    ("filters", "span"),
    [
        ([offset(GreaterThan, 5)], Range(6, OFFSET_MAX)),
        ([offset(GreaterThanOrEqual, 5)], Range(5, OFFSET_MAX)),
        ([offset(LessThan, 5)], Range(0, 5)),
        ([offset(LessThanOrEqual, 5)], Range(0, 6)),
        ([offset(EqualTo, 5)], Range(5, 6)),
        ([offset(EqualNullSafe, 5)], Range(5, 6)),
        ([offset(In, (9, 4, 7))], Range(4, 10)),
        ([offset(GreaterThan, 5), offset(LessThan, 9)], Range(6, 9)),
        ([offset(GreaterThan, 5), offset(GreaterThan, 2)], Range(6, OFFSET_MAX)),
        ([offset(LessThan, 5), offset(LessThan, 9)], Range(0, 5)),
    ],
)
def test_offsets_are_bounded(filters, span):
    assert bounds(filters).offsets == span


@pytest.mark.parametrize(
    "one",
    [
        IsNotNull(("offset",)),
        Not(EqualTo(("offset",), 5)),
        offset(GreaterThan, None),
        offset(GreaterThan, "5"),
        offset(EqualTo, True),
        offset(In, (1, None)),
        EqualTo(("value", "offset"), 5),
        EqualTo(("value",), b"x"),
        StringStartsWith(("topic",), "or"),
        GreaterThan(("topic",), "or"),
        GreaterThan(("partition",), 1),
        LessThan(("timestamp",), datetime(2026, 11, 1, tzinfo=UTC)),
        GreaterThan(("timestamp",), datetime(2026, 11, 1)),
        EqualTo(("topic",), None),
    ],
)
def test_what_says_nothing_sure_bounds_nothing(one):
    assert bounds([one]) == Bounds()


def test_topics_and_partitions_are_chosen():
    found = bounds([In(("topic",), ("a", "c")), EqualTo(("partition",), 1)])
    assert found.narrowed({A0: Range(0, 9), A1: Range(0, 9), B0: Range(0, 9)}) == {A1: Range(0, 9)}


def test_contradictions_leave_nothing():
    found = bounds([EqualTo(("partition",), 1), EqualTo(("partition",), 0)])
    assert found.narrowed({A0: Range(0, 9), A1: Range(0, 9)}) == {}


NOVEMBER = datetime(2026, 11, 1, tzinfo=UTC)
NOVEMBER_MS = 1_793_491_200_000
MICROSECOND = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("one", "from_ms"),
    [
        (GreaterThanOrEqual(("timestamp",), NOVEMBER), NOVEMBER_MS),
        (GreaterThan(("timestamp",), NOVEMBER), NOVEMBER_MS + 1),
        (GreaterThanOrEqual(("timestamp",), NOVEMBER + MICROSECOND), NOVEMBER_MS + 1),
        (GreaterThan(("timestamp",), NOVEMBER + MICROSECOND), NOVEMBER_MS + 1),
        (GreaterThan(("timestamp",), NOVEMBER - MICROSECOND), NOVEMBER_MS),
        (EqualTo(("timestamp",), NOVEMBER), NOVEMBER_MS),
        (In(("timestamp",), (NOVEMBER + timedelta(days=1), NOVEMBER)), NOVEMBER_MS),
        (GreaterThanOrEqual(("timestamp",), NOVEMBER.astimezone(timezone(timedelta(hours=5)))), NOVEMBER_MS),
    ],
)
def test_times_are_bounded_from_below(one, from_ms):
    assert bounds([one]).from_ms == from_ms


def test_the_later_of_two_times_counts():
    later = NOVEMBER + timedelta(seconds=1)
    found = bounds([GreaterThanOrEqual(("timestamp",), later), GreaterThanOrEqual(("timestamp",), NOVEMBER)])
    assert found.from_ms == NOVEMBER_MS + 1000


def test_ranges_are_narrowed_by_offset_and_by_time():
    found = bounds([offset(GreaterThanOrEqual, 3), offset(LessThan, 8)])
    ranges = {A0: Range(0, 9), A1: Range(5, 7), B0: Range(8, 12)}
    assert found.narrowed(ranges) == {A0: Range(3, 8), A1: Range(5, 7)}
    assert found.narrowed(ranges, {A0: 6}) == {A0: Range(6, 8)}


def test_no_bounds_narrow_nothing_but_what_is_empty():
    assert Bounds().narrowed({A0: Range(0, 9), A1: Range(3, 3)}) == {A0: Range(0, 9)}
