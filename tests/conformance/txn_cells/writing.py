"""Produce: batches in a transaction, outside one, and of those who lost it."""

from __future__ import annotations

from collections.abc import Iterator

from tests.conformance.txn_cells.asks import MISSING_TOPIC, Bound, Describe, End, Producers, Read, Write
from tests.conformance.txn_cells.play import Cell
from tests.conformance.txn_cells.states import (
    ALL,
    EMPTY,
    FENCED,
    FENCED_BUSY,
    LATER_EPOCH,
    NEW,
    NEW_COMMITTED,
    NEW_SECOND,
    OVERTAKEN,
    SECOND,
    WRITTEN,
)

LOOK = (Describe(), Producers(), Bound())
PATHS = (3, 11, 12, 13)
OTHERS = {
    "in the epoch before": {"epoch_by": -1},
    "in an epoch to come": {"epoch_by": 1, "sequence": 0},
    "as another producer": {"producer_of": "nobody", "sequence": 0},
}


def writes() -> Iterator[Cell]:
    for state in ALL:
        yield Cell("Write", state, Write(), then=LOOK, versions=PATHS)
        yield Cell("Write to another partition", state, Write(partition=1), then=LOOK, versions=(11, 12))
        yield Cell("Write outside of the transaction", state, Write(transactional=False), LOOK, versions=(11, 12))
        yield Cell("Write without saying of which id", state, Write(unnamed=True), then=LOOK, versions=(11, 12))
        for who, differs in OTHERS.items():
            yield Cell(f"Write {who}", state, Write(**differs), then=LOOK, versions=(11, 12))
            if differs.get("epoch_by") != -1 or state in (EMPTY, *LATER_EPOCH):
                outside = Write(transactional=False, v=12, **differs)
                yield Cell(f"Write outside of the transaction {who}", state, outside, then=LOOK)
    for state in (FENCED, FENCED_BUSY, OVERTAKEN):
        yield Cell("Write of the newer instance", state, Write("B"), then=LOOK, versions=(11, 12))


def sequences() -> Iterator[Cell]:
    for state in (EMPTY, WRITTEN, NEW, SECOND, NEW_SECOND, NEW_COMMITTED):
        yield Cell("Write the first again", state, Write(sequence=0), then=LOOK, versions=(11, 12))
        yield Cell("Write with a gap", state, Write(sequence=5), then=LOOK, versions=(11, 12))


def oddities() -> Iterator[Cell]:
    for state in (EMPTY, NEW):
        yield Cell("Write to a missing topic", state, Write(topic=MISSING_TOPIC), (Describe(),), versions=(11, 12, 13))
        yield Cell("Write to a missing partition", state, Write(partition=9), (Describe(),), versions=(11, 12))
        yield Cell("Write as another id", state, Write(id="+other"), LOOK, versions=(11, 12))
        yield Cell("Write to no name", state, Write(id=""), LOOK, versions=(11, 12))
    yield Cell(
        "Write, commit and write",
        EMPTY,
        Write(v=12),
        then=(End(), Describe(), Write(), Producers(), Read(), End(commit=False), Describe(), Producers(), Read()),
    )


CELLS = (*writes(), *sequences(), *oddities())
