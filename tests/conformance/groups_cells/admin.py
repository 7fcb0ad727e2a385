"""Groups seen from outside: described, listed, deleted."""

from __future__ import annotations

from collections.abc import Iterator

from tests.conformance.groups_cells.asks import Delete, Describe, DescribeConsumer, Fetch, Heartbeat, Join, ListGroups
from tests.conformance.groups_cells.play import Cell
from tests.conformance.groups_cells.states import (
    ABSENT,
    CLASSIC,
    CONSUMER,
    CONSUMER_EMPTY_WITH_OFFSET,
    CONSUMER_STATIC,
    CONSUMER_STATIC_AWAY,
    EMPTY_WITH_OFFSET,
    STABLE_STATIC,
)

EVERY = (*CLASSIC, STABLE_STATIC, *CONSUMER, CONSUMER_STATIC, CONSUMER_STATIC_AWAY)
STATES = (
    "Stable",
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Dead",
    "Assigning",
    "Reconciling",
    "stable",
    "EMPTY",
    "preparing_rebalance",
    "Nonsense",
    "",
)


def descriptions() -> Iterator[Cell]:
    for state in EVERY:
        yield Cell("Describe", state, Describe("N"))
        yield Cell("Describe as a consumer group", state, DescribeConsumer("N"))
    yield Cell("Describe without a group", ABSENT, Describe("N", group=""))
    yield Cell("Describe a consumer group without a group", ABSENT, DescribeConsumer("N", group=""))
    yield Cell("Describe a group with a pending member", ABSENT, Describe("N"), before=(Join("N"),), versions=(0, 6))


def listings() -> Iterator[Cell]:
    for state in EVERY:
        yield Cell("List", state, ListGroups("N"))
        for name in STATES:
            yield Cell(f"List those in state {name!r}", state, ListGroups("N", states=(name,)), versions=(4, 5))
        for kind in ("classic", "consumer", "Classic", "CONSUMER", "share", "nonsense"):
            yield Cell(f"List those of type {kind!r}", state, ListGroups("N", types=(kind,)), versions=(5,))
        both = ListGroups("N", states=("Stable", "Empty"), types=("classic", "consumer"))
        yield Cell("List by state and type", state, both, versions=(5,))
    yield Cell("List a group with a pending member", ABSENT, ListGroups("N"), before=(Join("N"),), versions=(0, 5))


def deletions() -> Iterator[Cell]:
    gone = (Describe("N"), Fetch("N"), Heartbeat("A"), ListGroups("N"))
    for state in (*EVERY, EMPTY_WITH_OFFSET, CONSUMER_EMPTY_WITH_OFFSET):
        yield Cell("Delete", state, Delete("N"), then=gone)
        yield Cell("Delete twice at once", state, Delete("N", twice=True))
    yield Cell("Delete without a group", ABSENT, Delete("N", group=""))
    yield Cell(
        "Delete a group with a pending member",
        ABSENT,
        Delete("N"),
        before=(Join("N"),),
        then=(Join("N"),),
        versions=(2,),
    )


CELLS = (*descriptions(), *listings(), *deletions())
