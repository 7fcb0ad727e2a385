"""What is told of transactions, and what readers see of them."""

from __future__ import annotations

from collections.abc import Iterator

from tests.conformance.txn_cells.asks import COMMITTED, UNCOMMITTED, Bound, Describe, Listed, Producers, Read
from tests.conformance.txn_cells.play import Cell
from tests.conformance.txn_cells.states import (
    ALL,
    ANOTHER_COMMITTED,
    ANOTHER_WRITES,
    EMPTY,
    LONG_AGO,
    LONG_AGO_MS,
    NEW_COMMITTED,
    UNKNOWN,
    WRITTEN,
)

ISOLATIONS = {"committed": COMMITTED, "uncommitted": UNCOMMITTED}
END, START, LARGEST_TIME, FIRST_RECORD = -1, -2, -3, 0
STATES = ("Empty", "Ongoing", "CompleteCommit", "CompleteAbort")


def readers() -> Iterator[Cell]:
    for state in (*ALL, ANOTHER_WRITES, ANOTHER_COMMITTED):
        for name, isolation in ISOLATIONS.items():
            yield Cell(f"Read {name}", state, Read(isolation=isolation), versions=(4, 12, 18))
            end, *others = (
                Bound(isolation=isolation, timestamp=each) for each in (END, START, LARGEST_TIME, FIRST_RECORD)
            )
            yield Cell(f"Find offsets, {name}", state, end, then=tuple(others), versions=(7, 11))
    for state in (ANOTHER_WRITES, ANOTHER_COMMITTED):
        for offset in (1, 2, 3, 4):
            yield Cell(f"Read committed from {offset}", state, Read(offset=offset), versions=(4, 18))


def times() -> Iterator[Cell]:
    for timestamp in (LONG_AGO_MS - 1, LONG_AGO_MS, LONG_AGO_MS + 1):
        yield Cell(f"Find the offset of {timestamp}", LONG_AGO, Bound(timestamp=timestamp), versions=(11,))
    yield Cell("Find the largest timestamp", LONG_AGO, Bound(timestamp=LARGEST_TIME), versions=(11,))


def tellers() -> Iterator[Cell]:
    for state in (*ALL, ANOTHER_WRITES, ANOTHER_COMMITTED):
        yield Cell("Describe", state, Describe())
        yield Cell("Describe the producers", state, Producers())
        yield Cell("List", state, Listed(), versions=(0, 2))
        first, *others = (Listed(states=(name,)) for name in STATES)
        yield Cell("List by the state", state, first, then=tuple(others), versions=(0, 2))
    for state in (UNKNOWN, EMPTY, WRITTEN, NEW_COMMITTED):
        yield Cell("List by an unknown state", state, Listed(states=("Nonsense",)))
        yield Cell("List by several states", state, Listed(states=("Nonsense", *STATES)))
        yield Cell("List by the producer", state, Listed(producers=("A",)))
        yield Cell("List by another producer", state, Listed(producers=("nobody",)))
        yield Cell("List what began long ago", state, Listed(longer_than_ms=1 << 40), versions=(1, 2))
        yield Cell("List what has begun", state, Listed(longer_than_ms=0), versions=(1, 2))
        yield Cell("List by the name", state, Listed(pattern="{id}"), versions=(2,))
        yield Cell("List by a part of the name", state, Listed(pattern="tx"), versions=(2,))
        yield Cell("List by a pattern", state, Listed(pattern="^t.+[0-9]$"), versions=(2,))
        yield Cell("List by another name", state, Listed(pattern="nothing"), versions=(2,))
        yield Cell("List by an empty pattern", state, Listed(pattern=""), versions=(2,))
        yield Cell("List by no pattern at all", state, Listed(pattern="["), versions=(2,))
    yield Cell("Describe no name", UNKNOWN, Describe(id=""))


CELLS = (*readers(), *times(), *tellers())
