"""Combinations of options over prepared topics: how each is written, and which rows it is to give.

What is expected comes from what confluent-kafka read and from the offsets that it was told; nothing of ours is asked.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.spark.prepared import BEGAN_MS, COMMITTED, STEP_MS, UNCOMMITTED, Place, Prepared
from tests.spark.writing import Written

FROM_MS, UNTIL_MS, LATE_MS = BEGAN_MS + 7 * STEP_MS, BEGAN_MS + 9 * STEP_MS, BEGAN_MS + 1_000 * STEP_MS
STARTS_BEHIND_ITS_END = "start (offset|timestamp) [0-9]+ is greater than"
FEWER = ("topic", "partition", "offset", "value")
LIMIT = 30

FACTORS: Mapping[str, tuple[str, ...]] = {
    "mode": ("batch", "stream", "limited stream"),
    "topics": ("subscribe", "subscribePattern", "assign"),
    "start": ("", "earliest", "json", "marks", "time", "times", "time or latest", "grammar"),
    "end": ("", "json", "marks", "time", "times", "grammar"),
    "isolation": ("", COMMITTED, UNCOMMITTED),
    "headers": ("", "true"),
    "split": ("", "minPartitions", "maxRecordsPerPartition", "both", "maxPartitions"),
    "columns": ("all", "fewer"),
}
SPLITS = {
    "": {},
    "minPartitions": {"minPartitions": "9"},
    "maxRecordsPerPartition": {"maxRecordsPerPartition": "4"},
    "both": {"minPartitions": "9", "maxRecordsPerPartition": "3"},
    "maxPartitions": {"maxPartitions": "2"},
}


class Case(NamedTuple):
    mode: str
    topics: str
    start: str
    end: str
    isolation: str
    headers: str
    split: str
    columns: str

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self._asdict().items() if value)

    @property
    def is_batch(self) -> bool:
        return self.mode == "batch"

    @property
    def is_possible(self) -> bool:
        """Streams have no end."""
        return self.is_batch or not self.end


def every_case() -> Iterator[Case]:
    return filter(lambda case: case.is_possible, itertools.starmap(Case, itertools.product(*FACTORS.values())))


def pairs(case: Case) -> Iterator[tuple[Any, ...]]:
    """Any two choices."""
    return itertools.combinations(enumerate(case), 2)


def choices(case: Case) -> Iterator[tuple[Any, ...]]:
    """Every choice, in batch queries and in streams."""
    return ((case.is_batch, *choice) for choice in enumerate(case))


def cover(wanted: Callable[[Case], Iterator[tuple[Any, ...]]]) -> list[Case]:
    """Few cases, the same ones every time, in which everything stands that is `wanted` of any case."""
    cases = list(every_case())
    # Spread, so that those that are chosen differ in everything else too.
    cases = [cases[index * 7_919 % len(cases)] for index in range(len(cases))]
    to_come = {group for case in cases for group in wanted(case)}
    chosen: list[Case] = []
    while to_come:
        first = len(chosen) * 101
        some = [cases[(first + index) % len(cases)] for index in range(1_000)]
        best = max(some, key=lambda case: len(to_come.intersection(wanted(case))))
        if to_come.isdisjoint(wanted(best)):
            best = next(case for case in cases if not to_come.isdisjoint(wanted(case)))
        to_come.difference_update(wanted(best))
        chosen.append(best)
    return chosen


@dataclass(frozen=True)
class Query:
    """A case over the topics: `options` to give, and `rows` to get; None when it starts behind its end."""

    options: dict[str, str]
    rows: list[Written] | None


class Expectations:
    """Turns cases into options and rows."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._from = prepared.at(FROM_MS)
        self._until = prepared.at(UNTIL_MS)
        self._late = prepared.at(LATE_MS)

    def of(self, case: Case) -> Query:
        isolation = case.isolation or UNCOMMITTED
        places = self._places(case)
        start_options, starts = self._start(case, places, isolation)
        end_options, ends = self._end(case, places, isolation)
        options = {**self._topics(case, places), **start_options, **end_options, **SPLITS[case.split]}
        if case.isolation:
            options["kafka.isolation.level"] = case.isolation
        if case.headers:
            options["includeHeaders"] = case.headers
        if case.mode == "limited stream":
            options["maxOffsetsPerTrigger"] = str(LIMIT)
        if any(starts[place] > ends[place] for place in places):
            return Query(options, None)
        return Query(options, self._rows(case, isolation, starts, ends))

    def _rows(self, case: Case, isolation: str, starts: dict[Place, int], ends: dict[Place, int]) -> list[Written]:
        found = []
        for row in self._prepared.rows[isolation]:
            place = (row.topic, row.partition)
            if place in starts and starts[place] <= row.offset < ends[place]:
                found.append(row if case.headers else row._replace(headers=None))
        return found

    def _places(self, case: Case) -> list[Place]:
        every = self._prepared.places
        left_out = {(self._prepared.mixed, 1), (self._prepared.stamped, 0)}
        return [place for place in every if case.topics != "assign" or place not in left_out]

    def _topics(self, case: Case, places: list[Place]) -> dict[str, str]:
        match case.topics:
            case "subscribe":
                return {"subscribe": ",".join(self._prepared.names)}
            case "subscribePattern":
                return {"subscribePattern": f"{self._prepared.prefix}-.*"}
        return {"assign": _json(dict.fromkeys(places, 0), list)}

    # -- where it starts

    def _start(self, case: Case, places: list[Place], isolation: str) -> tuple[dict[str, str], dict[Place, int]]:
        prepared = self._prepared
        latest = {place: prepared.latest(isolation)[place] for place in places}
        earliest = {place: prepared.earliest[place] for place in places}
        match case.start:
            case "":
                return {}, earliest if case.is_batch else latest
            case "earliest":
                return {"startingOffsets": "earliest"}, earliest
            case "json":
                starts = {place: earliest[place] + 2 - place[1] % 2 for place in places}
                return {"startingOffsets": _json(starts)}, starts
            case "marks":
                # Batch queries cannot start at the end.
                last = {} if case.is_batch else {places[0]: -1}
                marks = dict.fromkeys(places, -2) | {places[-1]: 1} | last
                return {"startingOffsets": _json(marks)}, {
                    place: _meant(mark, earliest[place], latest[place]) for place, mark in marks.items()
                }
            case "time":
                return {"startingTimestamp": str(FROM_MS)}, _found(self._from, latest)
            case "times":
                asked = {place: FROM_MS if place[1] == 0 else UNTIL_MS for place in places}
                return {"startingOffsetsByTimestamp": _json(asked)}, {
                    place: _found(self._from if place[1] == 0 else self._until, latest)[place] for place in places
                }
            case "time or latest":
                strategy = {"startingOffsetsByTimestampStrategy": "latest"}
                return {"startingTimestamp": str(LATE_MS), **strategy}, _found(self._late, latest)
        text = f"{prepared.mixed}=s@{FROM_MS},{prepared.open}=4|earliest,{prepared.stamped}=-2"
        by_topic: dict[str, Callable[[Place], int]] = {
            prepared.mixed: _found(self._from, latest).__getitem__,
            prepared.open: lambda place: 4,
            prepared.stamped: lambda place: latest[place] - 2,
        }
        return {"start": text}, {place: by_topic[place[0]](place) for place in places}

    # -- where it ends

    def _end(self, case: Case, places: list[Place], isolation: str) -> tuple[dict[str, str], dict[Place, int]]:
        prepared = self._prepared
        latest = {place: prepared.latest(isolation)[place] for place in places}
        match case.end:
            case "":
                return {}, latest
            case "json":
                ends = {place: latest[place] - 1 - place[1] for place in places}
                return {"endingOffsets": _json(ends)}, ends
            case "marks":
                ends = latest | {places[0]: 8}
                return {"endingOffsets": _json(dict.fromkeys(places, -1) | {places[0]: 8})}, ends
            case "time":
                return {"endingTimestamp": str(UNTIL_MS)}, _found(self._until, latest)
            case "times":
                asked = {place: UNTIL_MS if place[1] == 0 else LATE_MS for place in places}
                return {"endingOffsetsByTimestamp": _json(asked)}, {
                    place: _found(self._until if place[1] == 0 else self._late, latest)[place] for place in places
                }
        text = f"{prepared.mixed}=s@{LATE_MS},{prepared.stamped}=4"
        by_topic: dict[str, Callable[[Place], int]] = {
            prepared.mixed: _found(self._late, latest).__getitem__,
            prepared.open: latest.__getitem__,
            prepared.stamped: lambda place: 4,
        }
        return {"stop": text}, {place: by_topic[place[0]](place) for place in places}


def _meant(mark: int, earliest: int, latest: int) -> int:
    return earliest if mark == -2 else latest if mark == -1 else mark


def _found(answers: Mapping[Place, int | None], latest: Mapping[Place, int]) -> dict[Place, int]:
    """Where no record is as late: the end."""
    return {place: end if (found := answers[place]) is None else found for place, end in latest.items()}


def _json(by_place: Mapping[Place, int], kind: type = dict) -> str:
    topics: dict[str, Any] = {}
    for (topic, partition), value in by_place.items():
        if kind is list:
            topics.setdefault(topic, []).append(partition)
        else:
            topics.setdefault(topic, {})[str(partition)] = value
    return json.dumps(topics)
