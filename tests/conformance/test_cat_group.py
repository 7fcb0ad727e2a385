"""-G: a member of a group, as kcat is one: what it prints, tells and commits, and how it shares with kcat."""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.conformance.cats.runs import QUICKLY, Done, cat, kcat, problem
from tests.conformance.cats.shelf import Shelf, stocked
from tests.conformance.conftest import NewTopic
from tests.conformance.under_test import UnderTest

pytestmark = [pytest.mark.peer("kcat"), pytest.mark.peer("confluent")]

DEADLINE_S = 100
PLACES = ("-f", r"%t %p %o\n")
FROM_START = ("-X", "auto.offset.reset=earliest")
OURS = [sys.executable, "-m", "lowwater.cli.main", "cat"]
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def shelf(broker: UnderTest, new_topic: NewTopic) -> Shelf:
    return stocked(broker.bootstrap, new_topic)


@pytest.fixture
def group() -> str:
    return f"cats-{next(_numbers)}"


def told(done: Done, group: str) -> list[str]:
    """Without the name of the group and which end was the last."""
    return sorted(line.replace(group, "…").removesuffix(": exiting") for line in done.err)


def alike(shelf: Shelf, group: str, *arguments: str) -> Done:
    """The same by both, in a group each."""
    mine = cat("-b", shelf.bootstrap, "-G", f"{group}-mine", *arguments)
    theirs = kcat("-b", shelf.bootstrap, "-G", f"{group}-theirs", *arguments)
    assert (mine.code, mine.lines) == (theirs.code, theirs.lines)
    assert told(mine, f"{group}-mine") == told(theirs, f"{group}-theirs")
    return mine


def test_without_a_committed_offset_reading_starts_at_the_end_or_as_told(shelf: Shelf, group: str) -> None:
    assert alike(shelf, group, shelf.spread, "-e").out == b""
    assert len(alike(shelf, f"{group}-2", shelf.spread, "-e", *FROM_START, *PLACES).lines) == 6


def test_what_was_printed_is_committed(shelf: Shelf, group: str) -> None:
    assert len(alike(shelf, group, shelf.spread, "-e", *FROM_START, *PLACES).lines) == 6
    assert alike(shelf, group, shelf.spread, "-e", *FROM_START, *PLACES).lines == []
    assert len(alike(shelf, group, shelf.spread, "-e", "-o", "beginning", "-q", *PLACES).lines) == 6


def test_what_is_not_to_be_stored_is_not_committed(shelf: Shelf, group: str) -> None:
    for _ in range(2):
        unstored = ("-X", "enable.auto.offset.store=false")
        assert len(alike(shelf, group, shelf.spread, "-e", *FROM_START, *unstored, *PLACES).lines) == 6


@pytest.mark.parametrize("start", ["-1", "1", "end"])
def test_a_start_is_for_every_partition(shelf: Shelf, group: str, start: str) -> None:
    alike(shelf, group, shelf.mixed, "-e", "-o", start, *PLACES)


def test_patterns_and_names_go_together(shelf: Shelf, group: str) -> None:
    done = alike(shelf, group, f"^{shelf.spread[:-1]}", shelf.packed, "-e", *FROM_START, *PLACES)
    assert len(done.lines) >= 10


def test_cooperative_members_tell_of_it(shelf: Shelf, group: str) -> None:
    strategy = ("-X", "partition.assignment.strategy=cooperative-sticky")
    assert len(alike(shelf, group, shelf.spread, "-e", *FROM_START, *strategy).lines) == 6


def test_a_count_ends_it_and_only_that_is_committed(shelf: Shelf, group: str) -> None:
    first = cat("-b", shelf.bootstrap, "-G", group, shelf.spread, "-c2", "-q", *FROM_START, *PLACES)
    rest = kcat("-b", shelf.bootstrap, "-G", group, shelf.spread, "-e", "-q", *FROM_START, *PLACES)
    assert len(first.lines) == 2
    assert len(rest.lines) == 4
    assert len({*first.lines, *rest.lines}) == 6


def test_nothing_is_committed_when_asked_for(shelf: Shelf, group: str) -> None:
    for _ in range(2):
        line = ("-b", shelf.bootstrap, "-G", group, shelf.spread, "-eq", "-X", "enable.auto.commit=false", *FROM_START)
        assert len(cat(*line).lines) == 6


def test_committed_offsets_are_where_stored_starts(shelf: Shelf, group: str) -> None:
    cat("-b", shelf.bootstrap, "-G", group, shelf.mixed, "-c4", "-q", *FROM_START)
    arguments = (
        "-C",
        "-b",
        shelf.bootstrap,
        "-t",
        shelf.mixed,
        "-e",
        "-o",
        "stored",
        "-X",
        f"group.id={group}",
        *PLACES,
    )
    mine = cat(*arguments)
    assert mine == kcat(*arguments)
    assert mine.out.splitlines()[0] == f"{shelf.mixed} 0 4".encode()


@pytest.mark.parametrize("topics", [["no-such-topic"], []])
def test_what_cannot_be_subscribed_to_ends_with_1(shelf: Shelf, group: str, topics: list[str]) -> None:
    mine, theirs = (run("-b", shelf.bootstrap, "-G", group, *topics, "-e") for run in (cat, kcat))
    assert mine[:2] == theirs[:2] == (1, b"")
    assert problem(mine)


class Running:
    """A process of either, that goes on until it is told to end."""

    def __init__(self, command: list[str], arguments: tuple[str, ...], directory: Path) -> None:
        self.out, self.err = directory / f"out-{next(_numbers)}", directory / f"err-{next(_numbers)}"
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(
                [*command, *QUICKLY, *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=err
            )

    def tells(self, text: str) -> bool:
        return text in self.err.read_text(errors="replace")

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline, self.err.read_text(errors="replace")
            assert self.process.poll() is None, self.err.read_text(errors="replace")
            time.sleep(0.05)

    def end(self) -> int:
        self.process.terminate()
        return self.process.wait(DEADLINE_S)


@pytest.fixture
def start(shelf: Shelf) -> Iterator[Callable[..., Running]]:
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))

        def begin(command: list[str], *arguments: str) -> Running:
            running = Running(command, ("-b", shelf.bootstrap, *arguments), directory)
            stack.callback(running.process.kill)
            return running

        yield begin


def test_partitions_are_shared_with_kcat_and_given_back(
    shelf: Shelf, group: str, start: Callable[..., Running]
) -> None:
    mine = start(OURS, "-G", group, shelf.spread, "-o", "beginning", *PLACES)
    mine.until(lambda: mine.tells(f"assigned: {shelf.spread} [0], {shelf.spread} [1], {shelf.spread} [2]\n"))
    theirs = start(["kcat"], "-G", group, shelf.spread, *FROM_START, *PLACES)
    theirs.until(lambda: theirs.tells("assigned: "))
    mine.until(lambda: mine.tells("revoked: "))
    assert theirs.end() == 0
    mine.until(lambda: mine.err.read_text().count(f"[0], {shelf.spread} [1], {shelf.spread} [2]") >= 3)
    assert mine.end() == 0
    lines = [*mine.out.read_bytes().splitlines(), *theirs.out.read_bytes().splitlines()]
    # Everything was committed before it was given up, and -o is not for what comes back.
    assert sorted(lines) == sorted({*lines})
    assert len(lines) == 6
