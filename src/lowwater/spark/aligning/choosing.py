"""Which moment a batch ends at."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from lowwater.spark.aligning.grid import next_mark
from lowwater.spark.aligning.survey import Reached, Survey
from lowwater.spark.offsets import Place
from lowwater.types import TopicPartition

TRIES = 7
"""So many times a limit makes us guess an earlier moment. At most 12 times are asked for in a planning."""


@dataclass(frozen=True, slots=True)
class Choice:
    """`rest`: not everything before the cut is in the batch; the next one goes on from there."""

    cut_ms: int
    ends: Mapping[TopicPartition, int]
    rest: Place | None
    reached: Reached


def choose(survey: Survey, span_ms: int, *, last_ms: int | None, is_rest: bool, limit: int) -> Choice | None:
    """The next cut after `last_ms`, or that one again while something is left before it; None: there is no row.

    On the grid of the span, or earlier where that would be more than `limit` offsets. Time without rows is passed over.
    """
    if not survey.unread:
        return None
    if last_ms is not None and is_rest and survey.at(last_ms).count:
        return _split(survey, survey.at(last_ms), limit)
    reached = survey.at(next_mark(survey.earliest_ms() if last_ms is None else last_ms, span_ms))
    if not reached.count:
        reached = survey.at(next_mark(reached.next_ms, span_ms))
    if reached.count <= limit:
        return _split(survey, reached, limit)
    return _narrowed(survey, reached, last_ms, limit)


def choose_late(survey: Survey, last_ms: int, limit: int) -> Choice | None:
    """Only what should have been in batches before; None: there is no such row."""
    reached = survey.at(last_ms)
    return _split(survey, reached, limit) if reached.count else None


def _whole(reached: Reached) -> Choice:
    ends = {one: each.end for one, each in reached.reaches.items()}
    short = reached.short
    rest = Place(*short[0], ends[short[0]]) if short else None
    return Choice(reached.time_ms, ends, rest, reached)


def _narrowed(survey: Survey, reached: Reached, last_ms: int | None, limit: int) -> Choice:
    """The latest moment before `reached` that was found to have no more than the limit, but something.

    Late rows are in every batch, and none is of them alone: that would leave the others where they are.
    """
    low_ms = survey.earliest_ms() if last_ms is None else last_ms
    low = survey.at(low_ms)
    if low.count > limit:
        return _split(survey, low, limit)
    best, high, late = None, reached, low.count
    for turn in range(TRIES):
        if high.time_ms - low.time_ms <= 1 or (best is not None and 2 * (best.count - late) >= limit - late):
            break
        if not turn % 2:
            guess = survey.at(_by_counts(low, high, late + 0.75 * (limit - late)))
        else:
            guess = survey.at(_soon_after(low, high) if high is guess else _half_way(low, high))
        if guess.count > limit:
            high = guess
        else:
            low = guess
            best = guess if guess.count > late else best
    if best is not None:
        return _split(survey, best, limit)
    if high.time_ms - low.time_ms > 1:
        first = survey.at(min(low.next_ms + 1, high.time_ms))
        if first.count:
            high = first
    return _split(survey, high, limit)


def _by_counts(low: Reached, high: Reached, count: float) -> int:
    """Where so many would be if rows came evenly."""
    return _within(low, high, (high.time_ms - low.time_ms) * (count - low.count) / (high.count - low.count))


def _half_way(low: Reached, high: Reached) -> int:
    return _within(low, high, (high.time_ms - low.time_ms) / 2)


def _soon_after(low: Reached, high: Reached) -> int:
    """Rows come earlier than they would evenly, so it may be that they all stand within a second of a day."""
    return _within(low, high, math.sqrt(high.time_ms - low.time_ms))


def _within(low: Reached, high: Reached, later_ms: float) -> int:
    return low.time_ms + min(max(int(later_ms), 1), high.time_ms - low.time_ms - 1)


def _split(survey: Survey, reached: Reached, limit: int) -> Choice:
    """All of it; by topic, partition and offset, where even one moment has more than the limit."""
    reached = survey.confirmed(reached)
    if reached.count <= limit:
        return _whole(reached)
    ends = {}
    rest = None
    left = limit
    for one, each in reached.reaches.items():
        start = survey.unread[one].start
        ends[one] = min(each.end, start + left)
        if rest is None and ends[one] < each.end:
            rest = Place(*one, ends[one])
        left -= ends[one] - start
    return Choice(reached.time_ms, ends, rest, reached)
