"""Cuts from one batch to the next: what is remembered between plannings."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from lowwater.spark.aligning.choosing import Choice, choose, choose_late
from lowwater.spark.aligning.live_edge import LiveEdge
from lowwater.spark.aligning.logs import Edge, Logs
from lowwater.spark.aligning.survey import Survey
from lowwater.spark.aligning.windows import Standing, Windows
from lowwater.spark.offsets import NEVER_LATE_MS, Offset, Place, Plan
from lowwater.spark.snapshot import Head
from lowwater.types import TopicPartition

LOG = logging.getLogger("lowwater.spark")
_Mark: TypeAlias = tuple[int | None, Place | None]
_MARKS_MAX = 3


class CountedLogs(Logs, Protocol):
    asked: int


@dataclass(frozen=True, slots=True)
class Planned:
    """`also_empty`: other sources of the query go on by this cut, so it counts although there is nothing to read."""

    ends: Mapping[TopicPartition, int]
    plan: Plan
    also_empty: bool


class Alignment:
    """One for the life of a query's planner. `others` are partitions that are aligned with and not read.

    Where the sources that read them stand is not known here: they are followed as if they were read by the same cuts.
    """

    def __init__(self, logs: CountedLogs, span_ms: int, idle_ms: int, *, windows: Windows | None = None) -> None:
        self._logs = logs
        self._span_ms = span_ms
        self._windows = windows or Windows()
        self._live_edge = LiveEdge(span_ms, idle_ms)
        self._places: dict[_Mark, dict[TopicPartition, int]] = {}
        self._held: tuple[Offset, Mapping[TopicPartition, Edge], Choice] | None = None

    def begin_others(self, starts: Mapping[TopicPartition, int]) -> None:
        """Where the sources that read them begin, as far as that can be told from here."""
        self._places[(None, None)] = dict(starts)

    def plan(
        self,
        start: Offset,
        edges: Mapping[TopicPartition, Edge],
        others: Mapping[TopicPartition, Head],
        *,
        limit: int,
        now_ms: int,
        is_live: bool,
    ) -> Planned | None:
        """The batch from `start` on; None: there is none, or not yet. `is_live`: more may come before its cut."""
        self._logs.asked = 0
        every = {**edges, **self._other_edges(start, edges, others, now_ms, is_live=is_live)}
        self._live_edge.note({one: edge.head for one, edge in every.items()}, now_ms)
        choice = self._choice(start, every, limit, now_ms, is_live=is_live)
        if choice is None:
            return None
        return self._planned(start, choice, edges, self._follow_others(choice, every, others))

    # -- which cut

    def _choice(
        self, start: Offset, edges: Mapping[TopicPartition, Edge], limit: int, now_ms: int, *, is_live: bool
    ) -> Choice | None:
        last_ms, rest = _mark(start)
        if self._held is not None and self._held[:2] == (start, edges):
            choice = self._held[2]  # nothing is new but the time
            return None if self._is_held(last_ms, choice, edges, now_ms) else choice
        survey = self._survey(edges, now_ms, is_live=is_live)
        found = choose(survey, self._span_ms, last_ms=last_ms, is_rest=rest is not None, limit=limit)
        if found is None or not is_live or not self._is_held(last_ms, found, edges, now_ms):
            return found
        late = None if last_ms is None else choose_late(survey, last_ms, limit)
        if late is None:
            self._held = (start, edges, found)
        elif late.reached.count == found.reached.count:
            self._live_edge.begin_anew()
        return late

    def _survey(self, edges: Mapping[TopicPartition, Edge], now_ms: int, *, is_live: bool) -> Survey:
        return Survey(self._logs, edges, self._windows, span_ms=self._span_ms, now_ms=now_ms, is_live=is_live)

    def _is_held(self, last_ms: int | None, choice: Choice, edges: Mapping[TopicPartition, Edge], now_ms: int) -> bool:
        reaches = choice.reached.reaches
        waited_for = [
            one
            for one in edges
            if one not in reaches or (reaches[one].standing is Standing.OPEN and not reaches[one].is_short)
        ]
        is_passed = any(each.standing is not Standing.OPEN for each in reaches.values())
        return self._live_edge.holds(last_ms, waited_for, is_passed=is_passed, now_ms=now_ms)

    def _planned(
        self,
        start: Offset,
        choice: Choice,
        edges: Mapping[TopicPartition, Edge],
        others: Mapping[TopicPartition, int],
    ) -> Planned:
        last_ms, rest = _mark(start)
        ends = {one: choice.ends.get(one, edge.start) for one, edge in edges.items()}
        reaches = choice.reached.reaches
        ahead = sum(reaches[one].ahead for one, end in ends.items() if one in reaches and end == reaches[one].end)
        plan = Plan(
            last_ms,
            choice.cut_ms,
            choice.rest,
            due_ms=_due_ms(start, choice),
            others=others,
            asked=self._logs.asked,
            ahead=ahead,
        )
        if ahead:
            LOG.warning(
                "%d rows of the batch up to %d ms are stamped at or after that; they are read", ahead, plan.cut_ms
            )
        return Planned(ends, plan, bool(others) and (plan.cut_ms, plan.rest) != (last_ms, rest))

    # -- partitions that are not read here

    def _other_edges(
        self,
        start: Offset,
        edges: Mapping[TopicPartition, Edge],
        others: Mapping[TopicPartition, Head],
        now_ms: int,
        *,
        is_live: bool,
    ) -> dict[TopicPartition, Edge]:
        if not others:
            return {}
        places = self._places.setdefault(_mark(start), dict(start.plan.others) if start.plan is not None else {})
        missing = [one for one in others if one not in places]
        if missing:
            time_ms = self._time_of(start, edges, now_ms, is_live=is_live)
            places.update(self._found_at(missing, time_ms, others))
        return {one: Edge(min(max(places[one], head.log_start), head.end), head.end) for one, head in others.items()}

    def _found_at(
        self, missing: list[TopicPartition], time_ms: int, others: Mapping[TopicPartition, Head]
    ) -> dict[TopicPartition, int]:
        found = self._logs.first_at(missing, time_ms)
        return {one: others[one].end if (stamp := found[one]) is None else stamp.offset for one in missing}

    def _time_of(self, start: Offset, edges: Mapping[TopicPartition, Edge], now_ms: int, *, is_live: bool) -> int:
        """How far the query is: by its last cut, or else by what it is to read next."""
        last_ms, _ = _mark(start)
        if last_ms is not None:
            return last_ms
        return self._survey(edges, now_ms, is_live=is_live).earliest_ms()

    def _follow_others(
        self, choice: Choice, edges: Mapping[TopicPartition, Edge], others: Mapping[TopicPartition, Head]
    ) -> Mapping[TopicPartition, int]:
        """Where they are then. Kept here as well: late rows of theirs alone make no batch of ours."""
        if not others:
            return {}
        mark = (choice.cut_ms, choice.rest)
        self._places.pop(mark, None)
        self._places[mark] = {one: choice.ends.get(one, edges[one].start) for one in others}
        while len(self._places) > _MARKS_MAX:
            del self._places[next(iter(self._places))]
        return self._places[mark]


def late_before(start: Offset, end: Offset) -> int | None:
    """Rows of the batch stamped before this come after their cut; None: there was no cut before."""
    if end.plan is None or start.plan is None:
        return None
    return end.plan.late_before_ms


def _due_ms(start: Offset, choice: Choice) -> int | None:
    """Of a batch that goes on with the rest of a cut; its rows are late only when those of the first were."""
    plan = start.plan
    if plan is None or plan.rest is None or plan.cut_ms != choice.cut_ms:
        return None
    if plan.due_ms is not None:
        return plan.due_ms
    return NEVER_LATE_MS if plan.after_ms is None else plan.after_ms


def _mark(start: Offset) -> _Mark:
    return (None, None) if start.plan is None else (start.plan.cut_ms, start.plan.rest)
