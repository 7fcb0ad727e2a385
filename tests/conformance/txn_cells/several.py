"""Requests about several things at once: what is said of one is not said of the others."""

from __future__ import annotations

from collections.abc import Iterator

from tests.conformance.txn_cells.asks import AddMany, Describe, DescribeMany, Init, Producers, WriteBoth
from tests.conformance.txn_cells.play import Cell, State
from tests.conformance.txn_cells.states import EMPTY, NEW, NEW_COMMITTED, UNKNOWN, WRITTEN

TWO = State("Two ids", (Init("A"), Init("C", id="+c")))
LOOK = (Describe(), Producers(), Producers(partition=1))
BATCHED = (4, 5)
OLD_AND_NEW = (11, 12, 13)


def cells() -> Iterator[Cell]:
    others = {"the other": ("C", "+c"), "an unknown id": ("nobody", "+unknown"), "a stranger": ("A", "+c")}
    for name, other in others.items():
        many = DescribeMany(ids=("", "+c"))
        yield Cell(f"Add to one and {name}", TWO, AddMany(others=(other,)), then=(many,), versions=BATCHED)
        yield Cell(
            f"Add to one and look in {name}", TWO, AddMany(others=(other,), verify=True), then=(many,), versions=BATCHED
        )
    yield Cell("Describe several", TWO, DescribeMany(ids=("", "+unknown", "+c")))
    yield Cell("Describe one twice", TWO, DescribeMany(ids=("", "")))
    yield Cell("Describe none", TWO, DescribeMany())
    for state in (UNKNOWN, EMPTY, WRITTEN, NEW, NEW_COMMITTED):
        yield Cell("Write to two partitions", state, WriteBoth(), then=LOOK, versions=OLD_AND_NEW)
        yield Cell("Write to one that is missing", state, WriteBoth(second_partition=9), then=LOOK, versions=(11, 12))
        yield Cell("Write inside and outside", state, WriteBoth(outside=True), then=LOOK, versions=(11, 12))
    for state in (UNKNOWN, EMPTY):
        yield Cell("Write as two producers", state, WriteBoth(of_nobody=True, v=12), then=LOOK)


CELLS = tuple(cells())
