"""Asks Apache Kafka and writes down what it says: `python -m tests.conformance.groups_cells.record`."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import sys
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from peers import places
from tests.conformance.asking import eventually
from tests.conformance.creating import create_topic
from tests.conformance.groups_cells import admin, classic, consumer, migration, offsets, transactional
from tests.conformance.groups_cells.asks import OTHER_TOPIC, TOPIC
from tests.conformance.groups_cells.play import Cell, Play
from tests.conformance.groups_cells.wire_stage import WireStage
from tests.conformance.raw import Wire
from tests.conformance.under_test import running

from lowwater.errors import ErrorCode
from lowwater.wire.messages import FindCoordinatorRequest, HeartbeatRequest, InitProducerIdRequest

ANSWERS = Path(__file__).with_name("answers.json")
CELLS: dict[str, Cell] = {
    cell.title: cell for part in (classic, offsets, admin, consumer, migration, transactional) for cell in part.CELLS
}
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "group.max.size": "4",
    "group.consumer.max.size": "4",
    "group.consumer.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "1",
}
COMMAND = "python -m tests.conformance.groups_cells.record"
STAGES = 12
TRANSACTION = 1
_numbers = itertools.count(1)

T = TypeVar("T")
Recorded = list[dict[str, Any]]
"""Of one cell: which versions were answered how."""


def play(stage: WireStage, cell: Cell, version: int, expected: dict[str, Any] | None = None) -> dict[str, Any]:
    """One cell in one version, on a group of its own."""
    run = Play(stage, f"group-{next(_numbers)}", expected)
    try:
        return run.run(cell, version)
    finally:
        stage.forget_waiting()


def prepare(address: tuple[str, int]) -> None:
    """The topics of the cells, and a coordinator that is at work."""
    for topic in (TOPIC, OTHER_TOPIC):
        create_topic(address, topic, partitions=2)
    wait_for_coordinator(address)


def wait_for_coordinator(address: tuple[str, int]) -> None:
    """Apache Kafka has one some time after it was first asked for one; also one of transactions."""
    with Wire(address) as wire:
        eventually(lambda: wire.ask(FindCoordinatorRequest(coordinator_keys=["x"])).coordinators[0].error_code == 0)
        request = HeartbeatRequest(group_id="nobody", generation_id=0, member_id="x")
        eventually(lambda: wire.ask(request).error_code == ErrorCode.UNKNOWN_MEMBER_ID)
        asked = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=["x"])
        eventually(lambda: wire.ask(asked).coordinators[0].error_code == 0)
        transactional = InitProducerIdRequest(transactional_id="nobody", transaction_timeout_ms=60_000)
        eventually(lambda: wire.ask(transactional).error_code == ErrorCode.NONE)


def record(stage: WireStage, cell: Cell) -> Recorded:
    answers: Recorded = []
    for version in cell.all_versions():
        told = play(stage, cell, version)
        if answers and answers[-1]["told"] == told:
            answers[-1]["versions"].append(version)
        else:
            answers.append({"versions": [version], "told": told})
    return answers


def recorded() -> dict[str, Recorded]:
    answers: dict[str, Recorded] = json.loads(ANSWERS.read_text())["cells"]
    return answers


def kafka_version() -> str:
    [jar] = places.KAFKA_LIBS.glob("kafka-clients-*.jar")
    found = re.fullmatch(r"kafka-clients-(.+)\.jar", jar.name)
    assert found is not None
    return found[1]


def written(answers: dict[str, Recorded]) -> str:
    """One line an answer, so that a change is seen for what it is."""
    cells = ",\n".join(f"{json.dumps(title)}: {_lines(answers[title])}" for title in answers)
    head = f'"asked": "Apache Kafka {kafka_version()}",\n"by": "{COMMAND}",\n"settings": {json.dumps(SETTINGS)},\n'
    return "{\n" + head + '"cells": {\n' + cells + "\n}\n}\n"


def _lines(answers: Recorded) -> str:
    return "[\n" + ",\n".join(f"  {json.dumps(each, ensure_ascii=False)}" for each in answers) + "\n]"


def chosen(words: list[str]) -> Iterator[Cell]:
    for title, cell in CELLS.items():
        if not words or any(word in title for word in words):
            yield cell


def on_many_stages(
    address: tuple[str, int], cells: Collection[Cell], do: Callable[[WireStage, Cell], T]
) -> dict[str, T]:
    """What `do` makes of each cell, many at a time: they spend their time waiting."""
    shared = {cell.title: cell for cell in cells if cell.ask.group is not None}
    with ThreadPoolExecutor(STAGES) as pool, contextlib.ExitStack() as stack:
        free: SimpleQueue[WireStage] = SimpleQueue()
        for _ in range(STAGES):
            free.put(stack.enter_context(WireStage(address)))

        def on_some_stage(cell: Cell) -> T:
            stage = free.get()
            try:
                return do(stage, cell)
            finally:
                free.put(stage)

        # The group without a name is one for all cells: what they leave behind is there for the next.
        done = {title: on_some_stage(cell) for title, cell in shared.items()}
        running_cells = {cell.title: pool.submit(on_some_stage, cell) for cell in cells if cell.title not in shared}
        return done | {title: each.result() for title, each in running_cells.items()}


def main() -> None:
    answers = recorded() if ANSWERS.exists() else {}
    with running("kafka", SETTINGS) as kafka:
        prepare(kafka.address)
        answers |= on_many_stages(kafka.address, [*chosen(sys.argv[1:])], record)
    ANSWERS.write_text(written({title: answers[title] for title in CELLS if title in answers}))
    print(f"{len(answers)} cells, {ANSWERS.stat().st_size} bytes")


if __name__ == "__main__":
    main()
