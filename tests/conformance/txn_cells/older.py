"""The same with the feature transaction.version at 1: epochs change as before, and nothing is added by Produce."""

from __future__ import annotations

from collections.abc import Iterator

from tests.conformance.txn_cells.asks import Add, AddOffsets, CommitOffset, Describe, End, Init, Producers, Read, Write
from tests.conformance.txn_cells.play import Cell
from tests.conformance.txn_cells.states import (
    ABORTED,
    BEGUN,
    COMMITTED,
    EMPTY,
    FENCED,
    FENCED_BUSY,
    OVERTAKEN,
    TIMED_OUT,
    UNKNOWN,
    WRITTEN,
)

LOOK = (Describe(), Producers(), Read())
LEVEL = 1
STATES = (UNKNOWN, EMPTY, BEGUN, WRITTEN, COMMITTED, ABORTED, FENCED, FENCED_BUSY, OVERTAKEN, TIMED_OUT)


def cells() -> Iterator[Cell]:
    for state in STATES:
        again = (Describe(), Init("N"), Describe(), Producers())
        yield Cell("Init of a new instance", state, Init("N"), again, versions=(4, 5), level=LEVEL)
        yield Cell("Init of who goes on", state, Init("A", knows=True), again, versions=(3, 5), level=LEVEL)
        yield Cell("Add", state, Add(), LOOK, versions=(3, 4, 5), level=LEVEL)
        yield Cell("Add offsets", state, AddOffsets(), LOOK, versions=(3, 4), level=LEVEL)
        yield Cell("Commit an offset", state, CommitOffset(), LOOK, versions=(3, 4, 5), level=LEVEL)
        yield Cell("Commit", state, End(), LOOK, versions=(3, 4, 5), level=LEVEL)
        yield Cell("Abort", state, End(commit=False), LOOK, versions=(3, 4, 5), level=LEVEL)
        yield Cell("Write", state, Write(), LOOK, versions=(11, 12), level=LEVEL)
        yield Cell("Write to another partition", state, Write(partition=1), LOOK, versions=(11, 12), level=LEVEL)


CELLS = tuple(cells())
