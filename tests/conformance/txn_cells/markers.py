"""WriteTxnMarkers, as an administrator sends them to end a hanging transaction."""

from __future__ import annotations

from collections.abc import Iterator

from tests.conformance.txn_cells.asks import (
    MISSING_TOPIC,
    UNCOMMITTED,
    Bound,
    Describe,
    End,
    Mark,
    Producers,
    Read,
    Write,
)
from tests.conformance.txn_cells.play import Cell
from tests.conformance.txn_cells.states import COMMITTED, EMPTY, LATER_EPOCH, NEW, NEW_COMMITTED, UNKNOWN, WRITTEN

LOOK = (Producers(), Bound(), Read(), Read(isolation=UNCOMMITTED), Describe())
STATES = (UNKNOWN, EMPTY, WRITTEN, NEW, COMMITTED, NEW_COMMITTED)


def marks() -> Iterator[Cell]:
    for state in STATES:
        yield Cell("Mark as aborted", state, Mark(), then=LOOK)
        yield Cell("Mark as committed", state, Mark(commit=True), then=LOOK)
        for version in (1, 2):
            yield Cell(
                f"Mark as aborted in transaction version {version}", state, Mark(transaction_version=version, v=2), LOOK
            )
            yield Cell(
                f"Mark as aborted in the next epoch and transaction version {version}",
                state,
                Mark(transaction_version=version, epoch_by=1, v=2),
                LOOK,
            )
        yield Cell("Mark in the next epoch", state, Mark(epoch_by=1), then=LOOK, versions=(2,))
        yield Cell("Mark of an older coordinator", state, Mark(coordinator_by=-1), then=LOOK, versions=(2,))
        yield Cell(
            "Mark of a newer coordinator", state, Mark(coordinator_by=7), then=(*LOOK, Mark(), *LOOK), versions=(2,)
        )
        yield Cell("Mark another partition", state, Mark(partition=1), then=LOOK, versions=(2,))
        yield Cell("Mark another producer", state, Mark(producer_of="nobody"), then=LOOK, versions=(2,))
    for state in (EMPTY, *LATER_EPOCH):
        yield Cell("Mark in the epoch before", state, Mark(epoch_by=-1), then=LOOK, versions=(2,))
    for state in (EMPTY, NEW):
        yield Cell("Mark a missing topic", state, Mark(topic=MISSING_TOPIC))
        yield Cell("Mark a missing partition", state, Mark(partition=9))
    for state in (WRITTEN, NEW):
        yield Cell("Mark, and write on", state, Mark(v=1), then=(Write(), Describe(), End(), Describe(), *LOOK))


CELLS = tuple(marks())
