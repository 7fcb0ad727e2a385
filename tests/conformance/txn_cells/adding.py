"""AddPartitionsToTxn, AddOffsetsToTxn and TxnOffsetCommit: what becomes part of a transaction."""

from __future__ import annotations

from collections.abc import Iterator

from tests.conformance.txn_cells.asks import MISSING_TOPIC, Add, AddOffsets, CommitOffset, Describe, End, ReadOffset
from tests.conformance.txn_cells.play import Cell
from tests.conformance.txn_cells.states import (
    ALL,
    BEGUN,
    EMPTY,
    FENCED,
    FENCED_BUSY,
    NEW,
    NEW_COMMITTED,
    NEW_OFFSETS,
    OFFSETS,
    UNKNOWN,
    WRITTEN,
)

LOOK = (Describe(),)
BATCHED = (4, 5)
OTHERS = {
    "in the epoch before": {"epoch_by": -1},
    "in an epoch to come": {"epoch_by": 1},
    "as another producer": {"producer_of": "nobody"},
}


def partitions() -> Iterator[Cell]:
    for state in ALL:
        yield Cell("Add", state, Add(), then=LOOK)
        yield Cell("Add another partition", state, Add(partitions=(1,)), then=LOOK, versions=(3, 5))
        yield Cell("Look for a partition", state, Add(verify=True), then=LOOK, versions=BATCHED)
        yield Cell("Look for another partition", state, Add(partitions=(1,), verify=True), versions=BATCHED)
        for who, differs in OTHERS.items():
            yield Cell(f"Add {who}", state, Add(**differs), then=LOOK, versions=(1, 3, 4, 5))
            yield Cell(f"Look for a partition {who}", state, Add(verify=True, **differs), versions=BATCHED)
    for state in (FENCED, FENCED_BUSY):
        yield Cell("Add of the newer instance", state, Add("B"), then=LOOK, versions=(3, 5))


def offsets() -> Iterator[Cell]:
    for state in ALL:
        yield Cell("Add offsets", state, AddOffsets(), then=LOOK)
        yield Cell("Commit an offset", state, CommitOffset(), then=(Describe(), ReadOffset(), ReadOffset(stable=True)))
        for who, differs in OTHERS.items():
            yield Cell(f"Add offsets {who}", state, AddOffsets(**differs), then=LOOK, versions=(1, 3, 4))
            yield Cell(f"Commit an offset {who}", state, CommitOffset(**differs), then=LOOK, versions=(0, 3, 4, 5))
    for state in (OFFSETS, NEW_OFFSETS):
        yield Cell("Add offsets again", state, AddOffsets(), then=LOOK, versions=(4,))
        yield Cell("Commit another offset", state, CommitOffset(offset=9), then=(ReadOffset(),), versions=(4, 5))
        for commit in (True, False):
            name = "Commit" if commit else "Abort"
            yield Cell(
                f"{name} with an offset",
                state,
                End(commit=commit),
                then=(Describe(), ReadOffset(), ReadOffset(stable=True)),
                versions=(4, 5),
            )
        yield Cell("Read the offset", state, ReadOffset(), versions=(8, 9))
        yield Cell("Read the stable offset", state, ReadOffset(stable=True), versions=(8, 9))


def oddities() -> Iterator[Cell]:
    for state in (UNKNOWN, EMPTY, BEGUN, NEW, NEW_COMMITTED):
        yield Cell("Add a missing topic", state, Add(topic=MISSING_TOPIC), then=LOOK, versions=(0, 3, 4, 5))
        yield Cell("Add a missing topic among others", state, Add(more=(MISSING_TOPIC,)), then=LOOK, versions=(3, 5))
        yield Cell("Add a missing partition", state, Add(partitions=(0, 99)), then=LOOK, versions=(3, 5))
        yield Cell("Add nothing", state, Add(partitions=()), then=LOOK, versions=(3, 5))
    yield Cell("Add to no name", UNKNOWN, Add(id=""), versions=(3, 4, 5))
    yield Cell("Add the offsets' own topic", EMPTY, Add(topic="__consumer_offsets"), then=LOOK, versions=(3, 5))
    yield Cell("Add offsets to no name", UNKNOWN, AddOffsets(id=""), versions=(3, 4))
    yield Cell("Add offsets of no group", EMPTY, AddOffsets(group=""), then=LOOK, versions=(3, 4))
    yield Cell("Commit an offset of a missing topic", WRITTEN, CommitOffset(topic=MISSING_TOPIC), versions=(3, 4, 5))
    yield Cell("Commit an offset to no name", UNKNOWN, CommitOffset(id=""), versions=(3, 4, 5))


CELLS = (*partitions(), *offsets(), *oddities())
