"""Where ours answers otherwise than Apache Kafka, on purpose: docs/differences.md says why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Told = dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """Of some cells, by their titles: what ours says, made of what Kafka says. Parts left out are not compared."""

    what: str
    titles: frozenset[str]
    ours: Callable[[Told, int], Told]


def _refused_as(code: str) -> Callable[[Told, int], Told]:
    """Nothing is written: what Kafka tells of the log afterwards is left out."""

    def ours(told: Told, version: int) -> Told:
        [topic] = told["answer"]["responses"]
        [part] = topic["partition_responses"]
        refused = {**part, "error_code": code, "base_offset": -1, "log_start_offset": -1}
        return {"answer": {"responses": [{**topic, "partition_responses": [refused]}]}}

    return ours


def _no_such_producer(told: Told, version: int) -> Told:
    [marker] = told["answer"]["markers"]
    [topic] = marker["topics"]
    [part] = topic["partitions"]
    refused = {**topic, "partitions": [{**part, "error_code": "INVALID_PRODUCER_EPOCH"}]}
    return {**told, "answer": {"markers": [{**marker, "topics": [refused]}]}}


def _only_the_answer(told: Told, version: int) -> Told:
    return {"answer": told["answer"]}


FENCED_IN_THE_LAST_EPOCH = frozenset(
    f"Stored, ongoing in the last epoch{path}: Init of {who}"
    for path in ("", ", new path")
    for who in ("a new instance", "who goes on")
)


def _first_taken(told: Told, version: int) -> Told:
    [topic] = told["answer"]["responses"]
    first, second = topic["partition_responses"]
    taken = {**first, "error_code": "NONE", "base_offset": 0, "log_start_offset": 0}
    return {"answer": {"responses": [{**topic, "partition_responses": [taken, second]}]}}


DIFFERENCES = (
    Difference(
        "A batch of another producer does not refuse those before it",
        frozenset({"Empty: Write as two producers"}),
        _first_taken,
    ),
    Difference(
        "A producer that is fenced in its last epoch gets its new id from the next InitProducerId",
        FENCED_IN_THE_LAST_EPOCH,
        _only_the_answer,
    ),
    Difference(
        "A batch of a producer without an epoch is refused",
        frozenset({"Empty: Write outside of the transaction in the epoch before"}),
        _refused_as("INVALID_RECORD"),
    ),
    Difference(
        "A marker of a producer without an epoch is no error of the server",
        frozenset({"Empty: Mark in the epoch before"}),
        _no_such_producer,
    ),
)


def difference_of(title: str) -> Difference | None:
    return next((each for each in DIFFERENCES if title in each.titles), None)
