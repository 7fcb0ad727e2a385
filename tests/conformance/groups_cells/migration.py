"""Groups with members of both protocols: one comes to the other, until the last of its kind has gone."""

from __future__ import annotations

from collections.abc import Iterator

from tests.conformance.groups_cells.asks import (
    STRANGER,
    Ask,
    Beat,
    Commit,
    Delete,
    Describe,
    DescribeConsumer,
    Fetch,
    Heartbeat,
    Join,
    Leave,
    ListGroups,
    Sync,
    enter,
    metadata_with,
    waits,
)
from tests.conformance.groups_cells.play import Cell, State
from tests.conformance.groups_cells.states import CONSUMER_ONE, joined

SEEN: tuple[Ask, ...] = (DescribeConsumer("N"), Describe("N"), ListGroups("N"))


def owning(*partitions: int) -> tuple[tuple[str, bytes], ...]:
    return (("range", metadata_with(*partitions)),)


def shared(*actors: str, instance: str | None = None) -> tuple[Ask, ...]:
    leader, *others = actors
    return (
        Sync(leader, assign=actors, share=True),
        *(Sync(each, instance=instance) for each in others),
    )


B = Join("B")
S = Join("S", instance="s")
TWO = State("Classic, two readers", (*joined("A", B), *shared("A", "B")))
TWO_STATIC = State("Classic, a static reader", (*joined("A", S), *shared("A", "S", instance="s")))
TOLD_NOTHING = State("Classic, readers who are not told yet", joined("A", B))
TWO_PREPARING = State("Classic, readers coming together", (*TWO.asks, waits(Join("A"))))
UPGRADED = State("Mixed, one of the newer among two", (*TWO.asks, enter("N")))
UPGRADED_STATIC = State("Mixed, one of the newer beside a static one", (*TWO_STATIC.asks, enter("N")))
JOINED = State("Mixed, a classic one beside one of the newer", (*CONSUMER_ONE.asks, Join("B", protocols=owning(), v=3)))


def upgrades() -> Iterator[Cell]:
    for state in (TWO, TWO_STATIC, TOLD_NOTHING, TWO_PREPARING):
        yield Cell("One of the newer protocol comes", state, enter("N"), then=(*SEEN, Heartbeat("A"), Beat("N")))
        yield Cell(
            "A static one of the newer protocol comes", state, enter("N", instance="n"), then=SEEN, versions=(1,)
        )
        yield Cell(
            "The instance comes by the newer protocol", state, enter("N", instance="s"), then=SEEN, versions=(1,)
        )
        yield Cell("A member comes by the newer protocol", state, enter("N", member="A"), then=SEEN, versions=(1,))
        yield Cell("One who cannot come", state, enter("N", assignor="nonsense"), then=(Describe("N"),), versions=(1,))


def mixed() -> Iterator[Cell]:
    for state in (UPGRADED, JOINED):
        yield Cell("Described", state, DescribeConsumer("N"))
        yield Cell("Described as classic", state, Describe("N"), versions=(0, 6))
        yield Cell("Listed", state, ListGroups("N"), versions=(0, 4, 5))
        yield Cell("Heartbeat", state, Heartbeat("B"))
        yield Cell("Heartbeat of a wrong generation", state, Heartbeat("B", generation=1))
        yield Cell("Heartbeat of a coming generation", state, Heartbeat("B", generation=9))
        yield Cell("Heartbeat of a stranger", state, Heartbeat("B", member=STRANGER), versions=(4,))
        yield Cell("Heartbeat of the newer protocol of a classic member", state, Beat("B"))
        yield Cell("Sync", state, Sync("B"))
        yield Cell("Sync of a wrong generation", state, Sync("B", generation=1), versions=(3, 5))
        yield Cell("Sync of another protocol", state, Sync("B", protocol="sticky"), versions=(4, 5))
        yield Cell("Sync of one of the newer", state, Sync("N", generation=3), versions=(5,))
        yield Cell(
            "Join again",
            state,
            Join("B", protocols=owning()),
            then=(Sync("B"), Heartbeat("B"), *SEEN),
            versions=(3, 4, 9),
        )
        yield Cell(
            "Join again with metadata nobody can read", state, Join("B", protocols=(("range", b"?"),)), versions=(9,)
        )
        yield Cell(
            "Join of a third, without an id", state, Join("C", protocols=owning()), then=SEEN, versions=(3, 4, 9)
        )
        yield Cell(
            "Join of a third with its id",
            state,
            Join("C", protocols=owning()),
            before=(Join("C"),),
            then=(Sync("C"), *SEEN),
            versions=(4, 9),
        )
        yield Cell(
            "Join of an instance",
            state,
            Join("C", instance="c", protocols=owning()),
            then=(Sync("C", instance="c"), *SEEN),
            versions=(5, 9),
        )
        yield Cell("Leave", state, Leave("B"), then=SEEN)
        yield Cell("Leaves by the newer protocol, a classic member", state, Beat("B", -1), then=SEEN, versions=(1,))
        yield Cell("Commit", state, Commit("B"), then=(Fetch("N"),), versions=(2, 8, 9, 10))
        yield Cell("Commit of a wrong generation", state, Commit("B", generation=1), versions=(8, 9))
        yield Cell(
            "Commit of a wrong generation for what it has",
            state,
            Commit("B", partition=1, generation=1),
            versions=(8, 9),
        )
        yield Cell("Commit of a coming generation", state, Commit("B", generation=9), versions=(8, 9))
        yield Cell("Delete", state, Delete("N"), versions=(2,))
    yield Cell(
        "The last of the newer leaves",
        UPGRADED,
        Beat("N", -1),
        then=(Heartbeat("A"), Describe("N"), ListGroups("N"), DescribeConsumer("N")),
        versions=(1,),
    )
    yield Cell(
        "The last of the newer leaves",
        JOINED,
        Beat("A", -1),
        then=(Heartbeat("B"), Describe("N"), ListGroups("N"), DescribeConsumer("N")),
        versions=(1,),
    )
    for state in (UPGRADED, JOINED):
        yield Cell(
            "Join again with another protocol",
            state,
            Join("B", protocols=(("sticky", metadata_with()),)),
            versions=(9,),
        )
    yield Cell(
        "Three share two partitions",
        UPGRADED,
        Join("A", protocols=owning(0)),
        then=(Sync("A"), Join("B", protocols=owning(1)), Sync("B"), Beat("N"), *SEEN),
        versions=(9,),
    )
    yield Cell(
        "The static one comes by the newer protocol",
        UPGRADED_STATIC,
        enter("T", instance="s"),
        then=SEEN,
        versions=(1,),
    )
    yield Cell(
        "The static one joins again",
        UPGRADED_STATIC,
        Join("T", instance="s", protocols=owning(1)),
        then=(Sync("T", instance="s"), *SEEN),
        versions=(9,),
    )
    yield Cell(
        "The static one leaves", UPGRADED_STATIC, Leave("S", member="", instance="s"), then=SEEN, versions=(3, 5)
    )
    yield Cell(
        "The last classic ones leave",
        UPGRADED,
        Leave("A", others=(("B", None),)),
        then=(Beat("N"), *SEEN),
        versions=(5,),
    )


CELLS = (*upgrades(), *mixed())
