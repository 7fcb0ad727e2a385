"""Transactional ids in every state are asked every request; the answers are those that were recorded from Apache Kafka.

`--against=kafka` verifies the recording itself.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pytest
from tests.conformance.txn_cells.differences import DIFFERENCES, Told, difference_of
from tests.conformance.txn_cells.play import Cell
from tests.conformance.txn_cells.record import CELLS, SETTINGS, Stage, on_stages, prepare, recorded
from tests.conformance.under_test import running

RECORDED = recorded()


def versions(title: str) -> dict[int, Told]:
    """What is asked, and told by Kafka: of versions that are answered alike one, another one in every cell."""
    chosen = zlib.crc32(title.encode())
    return {answer["versions"][chosen % len(answer["versions"])]: answer["told"] for answer in RECORDED[title]}


def expected(title: str, version: int, told: Told, against: str) -> Told:
    known = difference_of(title) if against == "lowwater" else None
    return told if known is None else known.ours(told, version)


def ask(stage: Stage, cell: Cell) -> dict[int, Told | str]:
    answers: dict[int, Told | str] = {}
    for version in versions(cell.title):
        try:
            answers[version] = stage.play(cell, version)
        except (AssertionError, OSError) as error:
            answers[version] = f"{type(error).__name__}: {error}"
    return answers


@pytest.fixture(scope="module")
def told(against: str) -> Iterator[dict[str, dict[int, Told | str]]]:
    """What the broker under test says, in all cells."""
    with running(against, SETTINGS) as broker:
        prepare(broker.address)
        yield on_stages(broker, CELLS.values(), ask)


def test_every_cell_was_recorded() -> None:
    assert set(RECORDED) == set(CELLS)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("title", CELLS)
def test_the_answer_is_that_of_kafka(told: dict[str, dict[int, Told | str]], title: str, against: str) -> None:
    for version, kafka in versions(title).items():
        answer = told[title][version]
        assert isinstance(answer, dict), answer
        wanted = expected(title, version, kafka, against)
        whole = wanted is kafka
        assert (answer if whole else {name: answer.get(name) for name in wanted}) == wanted, f"in version {version}"


@pytest.mark.only_against("lowwater")
@pytest.mark.parametrize("title", [title for each in DIFFERENCES for title in sorted(each.titles)])
def test_a_known_difference_is_one(told: dict[str, dict[int, Told | str]], title: str) -> None:
    assert any(told[title][version] != kafka for version, kafka in versions(title).items())
