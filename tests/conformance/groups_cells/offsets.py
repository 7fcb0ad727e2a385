"""Committed offsets: who may commit what when, and what is read."""

from __future__ import annotations

from collections.abc import Iterator

from tests.conformance.groups_cells.asks import (
    MISSING_TOPIC,
    OTHER_TOPIC,
    STRANGER,
    Commit,
    DeleteOffset,
    Fetch,
    Join,
)
from tests.conformance.groups_cells.play import Cell
from tests.conformance.groups_cells.states import (
    ABSENT,
    CLASSIC,
    CONSUMER,
    CONSUMER_EMPTY_WITH_OFFSET,
    CONSUMER_ONE,
    CONSUMER_SETTLED,
    CONSUMER_STATIC,
    CONSUMER_STATIC_AWAY,
    EMPTY_WITH_OFFSET,
    SIMPLE,
    STABLE,
    WITH_MEMBERS,
    WITH_STATIC,
)

LOOK = (Fetch("N"),)
BY_ANYBODY = {"member": "", "generation": -1}


def commits() -> Iterator[Cell]:
    for state in (*CLASSIC, *CONSUMER):
        yield Cell("Commit of who has left or leads", state, Commit("A"), then=LOOK)
        yield Cell("Commit of nobody", state, Commit("N", **BY_ANYBODY), then=LOOK)
        yield Cell("Commit of a stranger", state, Commit("N", member=STRANGER, generation=2))
        yield Cell("Commit of a stranger without a generation", state, Commit("N", member=STRANGER, generation=-1))
        yield Cell("Commit of a generation without an id", state, Commit("N", member="", generation=1))
    for state in WITH_MEMBERS:
        yield Cell("Commit of the follower", state, Commit("B"), then=LOOK)
        yield Cell("Commit of the last generation", state, Commit("B", generation=1))
        yield Cell("Commit of a coming generation", state, Commit("B", generation=3))
        yield Cell("Commit of a member without a generation", state, Commit("B", generation=-1))
        yield Cell("Commit of a pending member", state, Commit("N", generation=-1), before=(Join("N", v=4),))
    for state in WITH_STATIC:
        yield Cell("Commit of the instance", state, Commit("S", instance="s"), versions=(7, 9, 10))
        yield Cell(
            "Commit of the instance with the id of another",
            state,
            Commit("S", member=STRANGER, instance="s"),
            versions=(7, 9, 10),
        )
        yield Cell("Commit of an unknown instance", state, Commit("S", instance="zz"), versions=(7, 9))
        yield Cell(
            "Commit of an instance alone", state, Commit("S", member="", generation=-1, instance="s"), versions=(7, 9)
        )
    for state in (CONSUMER_ONE, CONSUMER_SETTLED):
        yield Cell("Commit of an older epoch", state, Commit("A", generation=1))
        yield Cell("Commit of epoch 0", state, Commit("A", generation=0), versions=(8, 9, 10))
        yield Cell("Commit of a coming epoch", state, Commit("A", generation=9))
        yield Cell("Commit of a member without an epoch", state, Commit("A", generation=-1), versions=(8, 9, 10))
        yield Cell("Commit of a partition of another", state, Commit("A", partition=1), versions=(9, 10))
        yield Cell("Commit of an unsubscribed topic", state, Commit("A", topic=OTHER_TOPIC), versions=(9,))
        for also in ((1,), (7,), (7, 1)):
            yield Cell(
                f"Commit of an older epoch, of its own and {also}",
                state,
                Commit("A", generation=2, also=also),
                then=LOOK,
                versions=(9, 10),
            )
    for state in (CONSUMER_STATIC, CONSUMER_STATIC_AWAY):
        yield Cell("Commit of the instance", state, Commit("S", instance="s"), versions=(9, 10))
        yield Cell("Commit of an unknown instance", state, Commit("S", instance="zz"), versions=(9, 10))


def oddities() -> Iterator[Cell]:
    odd = BY_ANYBODY
    for state in (ABSENT, SIMPLE, STABLE):
        yield Cell(
            "Commit for a missing topic",
            state,
            Commit("N", topic=MISSING_TOPIC, **odd),
            then=(Fetch("N", topic=MISSING_TOPIC, v=9),),
        )
        yield Cell("Commit for a missing partition", state, Commit("N", partition=7, **odd))
        yield Cell("Commit with too long a note", state, Commit("N", metadata="x" * 4097, **odd), versions=(2, 9, 10))
    yield Cell("Commit for a negative partition", ABSENT, Commit("N", partition=-1, **odd), versions=(2, 9, 10))
    yield Cell("Commit with the longest note", ABSENT, Commit("N", metadata="x" * 4096, **odd), versions=(9,))
    yield Cell(
        "Commit with the longest note of wide letters", ABSENT, Commit("N", metadata="€" * 4096, **odd), versions=(9,)
    )
    yield Cell("Commit without a note", ABSENT, Commit("N", metadata=None, **odd), then=LOOK)
    yield Cell("Commit of a negative offset", ABSENT, Commit("N", offset=-1, **odd), then=LOOK, versions=(2, 9))
    yield Cell("Commit of a very negative offset", ABSENT, Commit("N", offset=-7, **odd), then=LOOK, versions=(2, 9))
    yield Cell("Commit without a group", ABSENT, Commit("N", group="", **odd), then=(Fetch("N", group=""),))
    yield Cell("Commit without a group of a member", ABSENT, Commit("N", group="", member=STRANGER, generation=1))
    yield Cell("Commit for a name nobody can have", ABSENT, Commit("N", topic="a b", **odd), versions=(2, 9))
    yield Cell(
        "Commit for the offsets themselves", ABSENT, Commit("N", topic="__consumer_offsets", **odd), versions=(2, 9)
    )


def fetches() -> Iterator[Cell]:
    for state in (ABSENT, SIMPLE, EMPTY_WITH_OFFSET, STABLE, CONSUMER_ONE, CONSUMER_EMPTY_WITH_OFFSET):
        yield Cell("Fetch", state, Fetch("N"))
        yield Cell("Fetch of everything", state, Fetch("N", topic=None), versions=tuple(range(2, 11)))
        yield Cell("Fetch of a missing topic", state, Fetch("N", topic=MISSING_TOPIC))
        yield Cell("Fetch of what is stable", state, Fetch("N", stable=True), versions=(7, 8, 9, 10))
        yield Cell("Fetch of a stranger", state, Fetch("N", member=STRANGER, generation=2), versions=(9, 10))
        yield Cell(
            "Fetch of a stranger without an epoch", state, Fetch("N", member=STRANGER, generation=-1), versions=(9, 10)
        )
        yield Cell("Fetch of an epoch without an id", state, Fetch("N", generation=5), versions=(9,))
        yield Cell("Fetch of an empty id", state, Fetch("N", member="", generation=5), versions=(9,))
    yield Cell("Fetch of the member", STABLE, Fetch("A", member="A", generation=2), versions=(9,))
    yield Cell("Fetch of the member in another generation", STABLE, Fetch("A", member="A", generation=1), versions=(9,))
    for epoch in (-1, 0, 1, 2, 3, 9):
        yield Cell(
            f"Fetch of the member in epoch {epoch}",
            CONSUMER_ONE,
            Fetch("A", member="A", generation=epoch),
            versions=(9, 10),
        )
    yield Cell("Fetch without a group", ABSENT, Fetch("N", group=""))


def deletions() -> Iterator[Cell]:
    for state in (*CLASSIC, EMPTY_WITH_OFFSET, *CONSUMER, CONSUMER_EMPTY_WITH_OFFSET):
        yield Cell("Delete an offset of a topic", state, DeleteOffset("N"), then=LOOK)
        yield Cell("Delete an offset of a topic nobody reads", state, DeleteOffset("N", topic=OTHER_TOPIC))
        yield Cell("Delete an offset of a missing topic", state, DeleteOffset("N", topic=MISSING_TOPIC))
    yield Cell("Delete an offset of a missing partition", SIMPLE, DeleteOffset("N", partition=9))
    yield Cell("Delete an offset that was never committed", SIMPLE, DeleteOffset("N", partition=1))
    yield Cell("Delete an offset without a group", ABSENT, DeleteOffset("N", group=""))
    yield Cell(
        "Delete an offset of a group that speaks no consumer protocol",
        ABSENT,
        DeleteOffset("N"),
        before=(Join("A", v=3, protocol_type="connect"),),
    )


CELLS = (*commits(), *oddities(), *fetches(), *deletions())
