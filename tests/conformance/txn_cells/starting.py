"""InitProducerId: a producer begins, goes on after an error, or takes over."""

from __future__ import annotations

from collections.abc import Iterator

from tests.conformance.txn_cells.asks import Describe, Find, Init, InitPlain, Write
from tests.conformance.txn_cells.play import Cell
from tests.conformance.txn_cells.states import ALL, EMPTY, NEW, OFFSETS, TAKEN_AWAY, TIMED_OUT, UNKNOWN, WRITTEN

LOOK = (Describe(),)
LOOK_AND_AGAIN = (Describe(), Init("N"), Describe())
KNOWS = (3, 4, 5)
TIMEOUT_MS_MAX = 900_000


def newcomers() -> Iterator[Cell]:
    for state in (*ALL, OFFSETS):
        yield Cell("Init of a new instance", state, Init("N"), then=LOOK_AND_AGAIN)
    for state in (EMPTY, WRITTEN):
        yield Cell("Init with another timeout", state, Init("N", timeout_ms=1234), then=LOOK, versions=(5,))


def goers_on() -> Iterator[Cell]:
    for state in ALL:
        yield Cell("Init of who goes on", state, Init("A", knows=True), then=LOOK_AND_AGAIN, versions=KNOWS)
        yield Cell(
            "Init of who goes on in the epoch before", state, Init("A", knows=True, epoch_by=-1), LOOK, versions=KNOWS
        )
        yield Cell(
            "Init of who goes on in an epoch to come", state, Init("A", knows=True, epoch_by=1), LOOK, versions=KNOWS
        )
        yield Cell(
            "Init of who goes on as another producer",
            state,
            Init("A", knows=True, producer_of="nobody"),
            LOOK,
            versions=KNOWS,
        )
    for state in TAKEN_AWAY:
        yield Cell("Init of the newer instance", state, Init("B", knows=True), then=LOOK, versions=KNOWS)
    yield Cell("Init twice of who goes on", WRITTEN, Init("A", knows=True, v=5), (Describe(), Init("A", knows=True)))
    yield Cell("Init after which the old one writes", NEW, Init("N", v=5), (Describe(), Init("N"), Write("A")))


def oddities() -> Iterator[Cell]:
    for timeout_ms in (-1, 0, TIMEOUT_MS_MAX, TIMEOUT_MS_MAX + 1):
        yield Cell(f"Init with a timeout of {timeout_ms}", UNKNOWN, Init("A", timeout_ms=timeout_ms), then=LOOK)
    yield Cell("Init without a name", UNKNOWN, Init("A", id=""))
    yield Cell("Init of an idempotent producer", UNKNOWN, InitPlain("A"))
    for state in (UNKNOWN, EMPTY, TIMED_OUT):
        yield Cell("Find the coordinator", state, Find("A"), versions=(1, 3, 4, 6))
    yield Cell("Find the coordinator of no name", UNKNOWN, Find("A", id=""), versions=(3, 6))


CELLS = (*newcomers(), *goers_on(), *oddities())
