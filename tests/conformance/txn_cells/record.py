"""Asks Apache Kafka and writes down what it says: `python -m tests.conformance.txn_cells.record [words of titles]`."""

from __future__ import annotations

import itertools
import json
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from tests.conformance.asking import eventually
from tests.conformance.creating import create_topic
from tests.conformance.groups_cells.record import kafka_version, wait_for_coordinator
from tests.conformance.raw import Wire
from tests.conformance.txn_cells import adding, ending, markers, older, reading, several, starting, stored, writing
from tests.conformance.txn_cells.asks import Add, CommitOffset, End, Init, InitPlain, Producers, Write, WriteBoth
from tests.conformance.txn_cells.play import Cell, Play, TooLateError
from tests.conformance.txn_cells.stored import know_stored, number_of, store
from tests.conformance.under_test import UnderTest, running

from lowwater.wire.messages import (
    ApiVersionsRequest,
    DeleteTopicsRequest,
    FindCoordinatorRequest,
    UpdateFeaturesRequest,
)
from lowwater.wire.messages.delete_topics import DeleteTopicState
from lowwater.wire.messages.update_features import FeatureUpdateKey

ANSWERS = Path(__file__).with_name("answers.json")
FAMILIES = (starting, adding, ending, writing, markers, reading, several, older, stored)
CELLS: dict[str, Cell] = {cell.title: cell for family in FAMILIES for cell in family.CELLS}
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}
COMMAND = "python -m tests.conformance.txn_cells.record"
SHARED_TOPIC = "shared"
FEATURE = "transaction.version"
UPGRADE, DOWNGRADE = 1, 2
LEVEL_MAX = 2
STAGES = 12
TRIES = 5
_numbers = itertools.count(1)

T = TypeVar("T")
Recorded = list[dict[str, Any]]
"""Of one cell: which versions were answered how."""


class Stage:
    """One connection, on which cells are played one after the other."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._wire = Wire(address)
        self._coordinator_epoch = coordinator_epoch(self._wire)

    def play(self, cell: Cell, version: int) -> dict[str, Any]:
        """One cell in one version. On a slow machine a transaction may time out on its way to its state: once more."""
        for _ in range(TRIES - 1):
            try:
                return self._play(cell, version)
            except TooLateError:
                continue
        return self._play(cell, version)

    def _play(self, cell: Cell, version: int) -> dict[str, Any]:
        """With a transactional id of its own, and a topic if it looks at logs."""
        stored = cell.state.stored
        number = next(_numbers) if stored is None else number_of(cell, version)
        topic = f"topic-{number}" if cell.looks_at_logs else SHARED_TOPIC
        if cell.looks_at_logs:
            create_topic(self._address, topic, partitions=2)
        try:
            play = Play(self._wire, f"tx-{number}", topic, f"group-{number}", self._coordinator_epoch)
            if stored is not None:
                know_stored(play, stored, number)
            told = play.run(cell, version)
        except Exception:
            self._wire = Wire(self._address)  # an answer may still be under way on the old one
            raise
        if cell.looks_at_logs:
            self._wire.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=10_000))
        return told


def prepare(address: tuple[str, int]) -> None:
    """The shared topic, and coordinators that are at work."""
    create_topic(address, SHARED_TOPIC, partitions=2)
    wait_for_coordinators(address)


def wait_for_coordinators(address: tuple[str, int]) -> None:
    """They are found, have read what is stored, and have producer ids to give."""
    with Wire(address) as wire:
        find = FindCoordinatorRequest(coordinator_keys=["x"], key_type=1)
        eventually(lambda: wire.ask(find).coordinators[0].error_code == 0)
    wait_for_coordinator(address)
    with Wire(address) as wire:
        first = Play(wire, "first", SHARED_TOPIC, "group", 0)
        first.prepare((InitPlain("N"), Init(), Add(v=3), End(v=4)))


def coordinator_epoch(wire: Wire) -> int:
    """Which Apache Kafka counts from 0 and ours from 1; as the end of the first transaction says it."""
    first = Play(wire, "first", SHARED_TOPIC, "group", 0)
    topics = wire.ask(Producers().request(first, 0)).topics
    return max(producer.coordinator_epoch for producer in topics[0].partitions[0].active_producers)


def set_level(address: tuple[str, int], level: int) -> None:
    """Of the feature; wait until the broker has heard of it."""
    with Wire(address) as wire:
        if level_of(wire) == level:
            return
        how = UPGRADE if level > level_of(wire) else DOWNGRADE
        update = FeatureUpdateKey(feature=FEATURE, max_version_level=level, upgrade_type=how)
        assert wire.ask(UpdateFeaturesRequest(feature_updates=[update])).error_code == 0
        eventually(lambda: level_of(wire) == level)


def level_of(wire: Wire) -> int:
    features = wire.ask(ApiVersionsRequest(client_software_name="x", client_software_version="1")).finalized_features
    return next((each.max_version_level for each in features if each.name == FEATURE), 0)


def record(stage: Stage, cell: Cell) -> Recorded:
    answers: Recorded = []
    for version in cell.all_versions():
        told = stage.play(cell, version)
        if answers and answers[-1]["told"] == told:
            answers[-1]["versions"].append(version)
        else:
            answers.append({"versions": [version], "told": told})
    return answers


def recorded() -> dict[str, Recorded]:
    answers: dict[str, Recorded] = json.loads(ANSWERS.read_text())["cells"]
    return answers


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


def on_stages(broker: UnderTest, cells: Collection[Cell], do: Callable[[Stage, Cell], T]) -> dict[str, T]:
    """What `do` makes of each cell: those of one level of the feature after those of another, the stored ones last."""
    told: dict[str, T] = {}
    asked = [cell for cell in cells if cell.state.stored is None]
    for level in sorted({cell.level for cell in asked}, reverse=True):
        set_level(broker.address, level)
        told |= _on_many_stages(broker, [cell for cell in asked if cell.level == level], do)
    found = [cell for cell in cells if cell.state.stored is not None]
    if found:
        set_level(broker.address, LEVEL_MAX)
        with Wire(broker.address) as wire:
            store(wire, found, SHARED_TOPIC)
        broker.restart()
        wait_for_coordinators(broker.address)
        told |= _on_many_stages(broker, found, do)
    return told


def _on_many_stages(broker: UnderTest, cells: Collection[Cell], do: Callable[[Stage, Cell], T]) -> dict[str, T]:
    """Many at a time.

    Apache Kafka looks for the partitions of several requests at once, and may answer one in the words of another's
    version; so those that ask it to look go one by one.
    """
    local = threading.local()

    def on_own_stage(cell: Cell) -> T:
        if not hasattr(local, "stage"):
            local.stage = Stage(broker.address)
        return do(local.stage, cell)

    lookers = (Write, WriteBoth, CommitOffset) if broker.name == "kafka" else ()
    alone = [cell for cell in cells if isinstance(cell.ask, lookers)]
    with ThreadPoolExecutor(STAGES) as pool:
        under_way = {cell.title: pool.submit(on_own_stage, cell) for cell in cells if cell not in alone}
        told = {title: each.result() for title, each in under_way.items()}
    return told | {cell.title: on_own_stage(cell) for cell in alone}


def main() -> None:
    answers = recorded() if ANSWERS.exists() else {}
    with running("kafka", SETTINGS) as kafka:
        prepare(kafka.address)
        answers |= on_stages(kafka, [*chosen(sys.argv[1:])], record)
    kept = {title: answers[title] for title in CELLS if title in answers}
    ANSWERS.write_text(written(kept))
    print(f"{len(kept)} cells, {ANSWERS.stat().st_size} bytes")


if __name__ == "__main__":
    main()
