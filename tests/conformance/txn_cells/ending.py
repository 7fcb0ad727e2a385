"""EndTxn: commit and abort, once, again, and of those who may not."""

from __future__ import annotations

from collections.abc import Iterator

from tests.conformance.txn_cells.asks import UNCOMMITTED, Add, Bound, Describe, End, Read, Write
from tests.conformance.txn_cells.play import Cell
from tests.conformance.txn_cells.states import (
    ALL,
    BEGUN,
    COMMITTED,
    EMPTY,
    FENCED_BUSY,
    NEW,
    NEW_ABORTED,
    NEW_COMMITTED,
    NEW_OVERTAKEN,
    NEW_TIMED_OUT,
    OVERTAKEN,
    TIMED_OUT,
    UNKNOWN,
    WRITTEN,
)

LOOK = (Describe(), Read(), Bound())
RESULTS = {"Commit": True, "Abort": False}
OTHERS = {
    "in the epoch before": {"epoch_by": -1},
    "in an epoch to come": {"epoch_by": 1},
    "in an epoch far ahead": {"epoch_by": 3},
    "as another producer": {"producer_of": "nobody"},
}
PATHS = (3, 4, 5)


def ends() -> Iterator[Cell]:
    for state in ALL:
        for name, commit in RESULTS.items():
            yield Cell(name, state, End(commit=commit), then=LOOK)
            for who, differs in OTHERS.items():
                yield Cell(f"{name} {who}", state, End(commit=commit, **differs), (Describe(),), versions=(1, 3, 4, 5))
    for state in (FENCED_BUSY, OVERTAKEN, NEW_OVERTAKEN, TIMED_OUT, NEW_TIMED_OUT):
        for name, commit in RESULTS.items():
            yield Cell(f"{name} of the newer instance", state, End("B", commit=commit), then=LOOK, versions=PATHS)


def repeats() -> Iterator[Cell]:
    """What a client sends again that lost an answer, and then goes on with."""
    for state in (NEW, WRITTEN, BEGUN, EMPTY):
        for name, commit in RESULTS.items():
            for again, other in RESULTS.items():
                yield Cell(
                    f"{name}, then {again.lower()} in the epoch before",
                    state,
                    End(commit=commit, v=5),
                    then=(Describe(), End(commit=other, epoch_by=-1), Describe()),
                )
    for state in (NEW_COMMITTED, NEW_ABORTED, COMMITTED):
        yield Cell(
            "Commit, and begin the next",
            state,
            End(commit=False, v=5),
            then=(Describe(), Write(), End(), Describe(), Read(), Read(isolation=UNCOMMITTED)),
        )
        yield Cell("Abort what was added again", state, Add(v=3), then=(End(commit=False, v=4), Describe()))


def oddities() -> Iterator[Cell]:
    yield Cell("End of no name", UNKNOWN, End(id=""), versions=PATHS)


CELLS = (*ends(), *repeats(), *oddities())
