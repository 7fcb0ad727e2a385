"""Groups in every state are asked every request; the answers are those that were recorded from Apache Kafka.

`--against=kafka` verifies the recording itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.conformance.groups_cells.play import Cell
from tests.conformance.groups_cells.record import CELLS, SETTINGS, on_many_stages, play, prepare, recorded
from tests.conformance.groups_cells.wire_stage import WireStage
from tests.conformance.under_test import running

RECORDED = recorded()
Told = dict[int, Any]


def versions(answer: dict[str, Any]) -> set[int]:
    """Of versions that are answered alike, the first and the last are asked."""
    return {answer["versions"][0], answer["versions"][-1]}


def ask(stage: WireStage, cell: Cell) -> Told:
    told: Told = {}
    for answer in RECORDED[cell.title]:
        for version in versions(answer):
            try:
                told[version] = play(stage, cell, version, answer["told"])
            except (AssertionError, OSError) as error:
                told[version] = f"{type(error).__name__}: {error}"
    return told


@pytest.fixture(scope="module")
def told(against: str) -> Iterator[dict[str, Told]]:
    """What the broker under test says, in all cells."""
    with running(against, SETTINGS) as broker:
        prepare(broker.address)
        yield on_many_stages(broker.address, CELLS.values(), ask)


def test_every_cell_was_recorded() -> None:
    assert set(RECORDED) == set(CELLS)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("title", CELLS)
def test_the_answer_is_that_of_kafka(told: dict[str, Told], title: str) -> None:
    for answer in RECORDED[title]:
        for version in sorted(versions(answer)):
            assert told[title][version] == answer["told"], f"in version {version}"
