"""The classic protocol: every row of its table, and the order of its checks."""

from __future__ import annotations

from collections.abc import Iterator

from tests.conformance.groups_cells.asks import (
    CHANGED,
    STRANGER,
    USUAL,
    Ask,
    Comes,
    Describe,
    Fetch,
    Heartbeat,
    Join,
    Leave,
    Sync,
    waits,
)
from tests.conformance.groups_cells.play import Cell
from tests.conformance.groups_cells.states import (
    ABSENT,
    CLASSIC,
    COMPLETING,
    COMPLETING_STATIC,
    EMPTY,
    EMPTY_STATIC,
    FULL,
    PREPARING,
    PREPARING_STATIC_PARKED,
    STABLE,
    STATIC_LEADER,
    WITH_MEMBERS,
    WITH_STATIC,
)

ROUND_ROBIN = (("roundrobin", USUAL),)
SOME_VERSIONS = (0, 3, 4, 5, 7, 9)
WITH_INSTANCE = (5, 7, 9)
AFTERWARDS: tuple[Ask, ...] = (Describe("N"),)


def joins() -> Iterator[Cell]:
    for state in CLASSIC:
        yield Cell("Join without an id", state, Join("N"), then=AFTERWARDS)
        yield Cell(
            "Join with an id just given",
            state,
            Join("N"),
            before=(Join("N", v=4),),
            then=AFTERWARDS,
            versions=SOME_VERSIONS,
        )
        yield Cell("Join of a new instance", state, Join("N", instance="n"), then=AFTERWARDS, versions=WITH_INSTANCE)
        yield Cell("Join with an unknown id", state, Join("N", member=STRANGER), versions=SOME_VERSIONS)
        yield Cell(
            "Join of an unknown instance with an id",
            state,
            Join("N", member=STRANGER, instance="n"),
            versions=WITH_INSTANCE,
        )
        yield Cell("Join of another type of protocol", state, Join("N", protocol_type="connect"), versions=(3, 9))
        yield Cell("Join without a protocol in common", state, Join("N", protocols=ROUND_ROBIN), versions=(3, 9))
        yield Cell("Join without any protocol", state, Join("N", protocols=()), versions=(3, 9))
        yield Cell("Join without a type of protocol", state, Join("N", protocol_type=""), versions=(3, 9))
        yield Cell("Join with too short a session", state, Join("N", session_ms=1), versions=(0, 3, 5, 9))
        yield Cell("Join with too long a session", state, Join("N", session_ms=1_800_001), versions=(3, 9))
        yield Cell("Join again of who has left or leads", state, Join("A"), then=AFTERWARDS, versions=SOME_VERSIONS)
    for state in WITH_MEMBERS:
        yield Cell("Join again of the follower", state, Join("B"), then=AFTERWARDS)
        yield Cell(
            "Join again of the follower with other metadata",
            state,
            Join("B", protocols=(("range", CHANGED),)),
            then=AFTERWARDS,
            versions=SOME_VERSIONS,
        )
        yield Cell(
            "Join again of the follower with a further protocol",
            state,
            Join("B", protocols=(("range", USUAL), *ROUND_ROBIN)),
            then=AFTERWARDS,
            versions=(3, 9),
        )
        yield Cell(
            "Join again of the follower with another protocol", state, Join("B", protocols=ROUND_ROBIN), versions=(3, 9)
        )
        yield Cell("Join again of the follower as an instance", state, Join("B", instance="b"), versions=WITH_INSTANCE)
        yield Cell(
            "Join again of the follower, then of the leader",
            state,
            Join("B", protocols=(("range", CHANGED),)),
            then=(Join("A"),) if state is not PREPARING else (),
            versions=(9,),
        )
        yield Cell(
            "Join of a fifth member",
            state,
            Join("F"),
            before=(Join("C"), Join("D"), Join("E")),
            versions=(3, 4, 9),
        )
    yield Cell("Join without a group", ABSENT, Join("N", group=""), versions=SOME_VERSIONS)
    yield Cell(
        "Join without a group and with too short a session", ABSENT, Join("N", group="", session_ms=1), versions=(3, 9)
    )
    yield Cell("Join of a group with two protocols", ABSENT, Join("N", protocols=(("range", USUAL), *ROUND_ROBIN), v=3))


def static_joins() -> Iterator[Cell]:
    for state in (*WITH_STATIC, PREPARING_STATIC_PARKED, STATIC_LEADER, EMPTY_STATIC):
        then = (Describe("N"), Heartbeat("S", instance="s"), Sync("S", instance="s"))
        yield Cell("Join of the instance again", state, Join("T", instance="s"), then=then, versions=WITH_INSTANCE)
        yield Cell(
            "Join of the instance again with other metadata",
            state,
            Join("T", instance="s", protocols=(("range", CHANGED),)),
            then=then,
            versions=(5, 9),
        )
        yield Cell(
            "Join of the instance again with another protocol",
            state,
            Join("T", instance="s", protocols=ROUND_ROBIN),
            then=then,
            versions=(9,),
        )
        yield Cell(
            "Join of the instance with its id", state, Join("S", instance="s"), then=AFTERWARDS, versions=WITH_INSTANCE
        )
        yield Cell(
            "Join of the instance with the id of another",
            state,
            Join("N", member=STRANGER, instance="s"),
            versions=WITH_INSTANCE,
        )
        yield Cell("Join of the instance's id without the instance", state, Join("S"), then=AFTERWARDS, versions=(9,))
    yield Cell(
        "Join of the instance again while its Sync waits",
        COMPLETING_STATIC,
        Join("T", instance="s"),
        before=(waits(Sync("S", instance="s")),),
        then=(Describe("N"),),
        versions=(9,),
    )


def syncs() -> Iterator[Cell]:
    for state in CLASSIC:
        yield Cell("Sync of who has left or leads", state, Sync("A", assign=("A", "B")), then=AFTERWARDS)
        yield Cell("Sync of a stranger", state, Sync("A", member=STRANGER))
        yield Cell("Sync without an id", state, Sync("A", member=""))
    for state in WITH_MEMBERS:
        yield Cell("Sync of the follower", state, Sync("B"))
        yield Cell("Sync of the last generation", state, Sync("B", generation=1))
        yield Cell("Sync of a coming generation", state, Sync("B", generation=3))
        yield Cell("Sync without a generation", state, Sync("B", generation=-1))
        yield Cell("Sync without the protocol", state, Sync("A", protocol_type=None, protocol=None), versions=(4, 5))
        yield Cell("Sync without the type", state, Sync("A", protocol_type=None), versions=(5,))
        yield Cell("Sync without the name", state, Sync("A", protocol=None), versions=(5,))
        yield Cell(
            "Sync with another type", state, Sync("A", protocol_type="connect", protocol="range"), versions=(4, 5)
        )
        yield Cell(
            "Sync with another protocol", state, Sync("A", protocol_type="consumer", protocol="sticky"), versions=(4, 5)
        )
        yield Cell(
            "Sync of a wrong generation with another protocol",
            state,
            Sync("A", protocol="sticky", generation=1),
            versions=(5,),
        )
        yield Cell("Sync of the follower as an instance", state, Sync("B", instance="b"), versions=(3, 5))
        yield Cell(
            "Sync of the leader for itself alone",
            state,
            Sync("A", assign=("A",)),
            then=(Sync("B"), Sync("A")),
            versions=(3, 5),
        )
        yield Cell(
            "Sync of the follower, then of the leader",
            state,
            Sync("B"),
            then=(Sync("A", assign=("B", "A")),),
            versions=(3, 5),
        )
        yield Cell(
            "Sync of the leader for a stranger",
            state,
            Sync("A", assign=(STRANGER, "A", "B")),
            then=(Describe("N"),),
            versions=(5,),
        )
    for state in WITH_STATIC:
        yield Cell("Sync of the instance", state, Sync("S", instance="s"), versions=(3, 5))
        yield Cell(
            "Sync of the instance with the id of another",
            state,
            Sync("S", member=STRANGER, instance="s"),
            versions=(3, 5),
        )
        yield Cell("Sync of an unknown instance", state, Sync("S", instance="zz"), versions=(3, 5))
        yield Cell("Sync of the instance's id without the instance", state, Sync("S"), versions=(3, 5))
    yield Cell("Sync without a group", ABSENT, Sync("A", group=""))


def heartbeats() -> Iterator[Cell]:
    for state in CLASSIC:
        yield Cell("Heartbeat of who has left or leads", state, Heartbeat("A"))
        yield Cell("Heartbeat of a stranger", state, Heartbeat("A", member=STRANGER))
        yield Cell("Heartbeat without an id", state, Heartbeat("A", member=""))
        yield Cell("Heartbeat of a pending member", state, Heartbeat("N", generation=0), before=(Join("N", v=4),))
    for state in WITH_MEMBERS:
        yield Cell("Heartbeat of the follower", state, Heartbeat("B"))
        yield Cell("Heartbeat of the last generation", state, Heartbeat("B", generation=1))
        yield Cell("Heartbeat of a coming generation", state, Heartbeat("B", generation=3))
        yield Cell("Heartbeat without a generation", state, Heartbeat("B", generation=-1))
    for state in WITH_STATIC:
        yield Cell("Heartbeat of the instance", state, Heartbeat("S", instance="s"), versions=(3, 4))
        yield Cell(
            "Heartbeat of the instance with the id of another",
            state,
            Heartbeat("S", member=STRANGER, instance="s"),
            versions=(3, 4),
        )
        yield Cell("Heartbeat of an unknown instance", state, Heartbeat("S", instance="zz"), versions=(3, 4))
        yield Cell(
            "Heartbeat of a wrong generation of another id",
            state,
            Heartbeat("S", member=STRANGER, instance="s", generation=1),
            versions=(4,),
        )
    yield Cell("Heartbeat without a group", ABSENT, Heartbeat("A", group=""))


def leaves() -> Iterator[Cell]:
    for state in CLASSIC:
        yield Cell("Leave of who has left or leads", state, Leave("A"), then=AFTERWARDS)
        yield Cell("Leave of a stranger", state, Leave("A", member=STRANGER))
        yield Cell("Leave without an id", state, Leave("A", member=""))
        yield Cell("Leave of a pending member", state, Leave("N"), before=(Join("N", v=4),), then=AFTERWARDS)
        yield Cell("Leave of an unknown instance", state, Leave("N", member="", instance="zz"), versions=(3, 4, 5))
    for state in WITH_MEMBERS:
        yield Cell("Leave of the follower", state, Leave("B"), then=AFTERWARDS)
        yield Cell(
            "Leave of both and a stranger",
            state,
            Leave("B", others=(("A", None), (STRANGER, None))),
            then=AFTERWARDS,
            versions=(3, 5),
        )
        yield Cell("Leave of both", state, Leave("A", others=(("B", None),)), then=AFTERWARDS, versions=(5,))
        yield Cell(
            "Leave twice in one request", state, Leave("B", others=(("B", None),)), then=AFTERWARDS, versions=(5,)
        )
    for state in (*WITH_STATIC, PREPARING_STATIC_PARKED):
        yield Cell(
            "Leave of the instance without its id",
            state,
            Leave("S", member="", instance="s"),
            then=AFTERWARDS,
            versions=(3, 4, 5),
        )
        yield Cell(
            "Leave of the instance with its id", state, Leave("S", instance="s"), then=AFTERWARDS, versions=(3, 5)
        )
        yield Cell(
            "Leave of the instance with the id of another",
            state,
            Leave("S", member=STRANGER, instance="s"),
            then=AFTERWARDS,
            versions=(3, 5),
        )
        yield Cell(
            "Leave of the instance's id without the instance", state, Leave("S"), then=AFTERWARDS, versions=(1, 5)
        )
    yield Cell("Leave without a group", ABSENT, Leave("A", group=""))
    yield Cell("Leave of nobody", STABLE, Leave("A", others=()), versions=(3,))


def rounds() -> Iterator[Cell]:
    """What a rebalance comes to."""
    quick = Join("A", session_ms=1_000, rebalance_ms=1_000)
    yield Cell(
        "A rebalance ends without who does not come",
        STABLE,
        quick,
        then=(Comes("A"), Heartbeat("B"), Describe("N")),
        versions=(9,),
    )
    yield Cell(
        "The leader leaves before it has assigned",
        COMPLETING,
        Leave("A"),
        then=(Join("B"), Describe("N")),
        versions=(5,),
    )
    yield Cell(
        "The leader leaves while the follower waits to be told",
        COMPLETING,
        Leave("A"),
        before=(waits(Sync("B")),),
        then=(Join("B"), Sync("B", assign=("B",))),
        versions=(5,),
    )
    yield Cell(
        "A new one comes while the follower waits to be told",
        COMPLETING,
        Join("N", instance="n"),
        before=(waits(Sync("B")),),
        then=(Describe("N"),),
        versions=(9,),
    )
    yield Cell(
        "The leader tells while the follower waits",
        COMPLETING,
        Sync("A", assign=("A", "B")),
        before=(waits(Sync("B")),),
    )
    yield Cell("A fifth member", FULL, Join("N"), then=AFTERWARDS, versions=(3, 4, 9))
    yield Cell("A fifth member, an instance", FULL, Join("N", instance="n"), then=AFTERWARDS, versions=(9,))
    yield Cell("One of four comes again", FULL, Join("B"), then=AFTERWARDS, versions=(9,))
    yield Cell("A fifth member of another protocol", FULL, Join("N", protocols=ROUND_ROBIN), versions=(3,))
    yield Cell(
        "The follower comes, both are in the next generation",
        PREPARING,
        Join("B"),
        then=(Sync("B"), Sync("A", assign=("A", "B"))),
        versions=(9,),
    )
    yield Cell(
        "A third one comes while the others are told",
        COMPLETING,
        Join("N", instance="n"),
        then=(Join("A"), Join("B")),
        versions=(9,),
    )
    yield Cell(
        "The last one leaves, a new one starts again",
        EMPTY,
        Join("N", instance="n"),
        then=(Sync("N", instance="n", assign=("N",)), Describe("N")),
        versions=(9,),
    )
    yield Cell(
        "Members vote for a protocol",
        ABSENT,
        Join("A", v=3, protocols=(("x", b"x"), ("y", b"y"))),
        then=(
            Sync("A", assign=("A",)),
            Join("B", v=3, protocols=(("y", b"y"), ("x", b"x"))),
            Join("A", v=3, protocols=(("x", b"x"), ("y", b"y"))),
        ),
    )
    yield Cell(
        "Members vote among what all know",
        ABSENT,
        Join("A", v=3, protocols=(("x", b"x"), ("y", b"y"))),
        then=(
            Sync("A", assign=("A",)),
            Join("B", v=3, protocols=(("z", b"z"), ("y", b"y"))),
            Join("A", v=3, protocols=(("x", b"x"), ("y", b"y"))),
        ),
    )
    yield Cell(
        "The static leader comes back, and may not assign",
        STATIC_LEADER,
        Join("T", instance="s"),
        then=(Sync("T", instance="s", assign=("T",)), Describe("N")),
        versions=(5, 8, 9),
    )
    yield Cell("Nothing was committed", STABLE, Fetch("A"), versions=(9,))


CELLS = (*joins(), *static_joins(), *syncs(), *heartbeats(), *leaves(), *rounds())
