"""The newer protocol: who may speak for a member, in which epoch, and what of groups of the other kind."""

from __future__ import annotations

from collections.abc import Iterator

from tests.conformance.groups_cells.asks import (
    MISSING_TOPIC,
    OTHER_TOPIC,
    STRANGER,
    TOPIC,
    Beat,
    Describe,
    DescribeConsumer,
    Heartbeat,
    Join,
    Leave,
    ListGroups,
    Sync,
    enter,
)
from tests.conformance.groups_cells.play import Cell
from tests.conformance.groups_cells.states import (
    ABSENT,
    CLASSIC,
    COMPLETING_STATIC,
    CONSUMER,
    CONSUMER_EMPTY,
    CONSUMER_ONE,
    CONSUMER_REVOKING,
    CONSUMER_SETTLED,
    CONSUMER_STATIC,
    CONSUMER_STATIC_AWAY,
    CONSUMER_TWO,
    EMPTY,
    EMPTY_WITH_OFFSET,
    SIMPLE,
    STABLE_STATIC,
)

SEEN = (DescribeConsumer("N"),)


def arrivals() -> Iterator[Cell]:
    for state in (ABSENT, *CONSUMER, CONSUMER_STATIC):
        yield Cell("A new member", state, enter("N"), then=SEEN)
        yield Cell("A new member without an id", state, enter("N", member=""))
        yield Cell("A new member without a rebalance timeout", state, enter("N", rebalance_ms=-1))
        yield Cell("A new member without topics", state, enter("N", topics=None))
        yield Cell("A new member of no topics", state, enter("N", topics=()), then=SEEN)
        yield Cell("A new member that says nothing of partitions", state, enter("N", owned=None))
        yield Cell("A new member that has partitions", state, enter("N", owned=(0,)))
        yield Cell("A new member with an unknown assignor", state, enter("N", assignor="nonsense"))
        yield Cell("A new member with the range assignor", state, enter("N", assignor="range"), then=SEEN)
        yield Cell("A new member of a missing topic", state, enter("N", topics=(MISSING_TOPIC,)), then=SEEN)
        yield Cell("A new member of two topics", state, enter("N", topics=(TOPIC, OTHER_TOPIC)), then=SEEN)
        yield Cell("A new member of a topic twice", state, enter("N", topics=(TOPIC, TOPIC)), then=SEEN)
        # What an unbroken pattern comes to depends on when Kafka has found the time to look for its topics.
        yield Cell("A new member of an empty pattern", state, enter("N", topics=None, regex=""), versions=(1,))
        yield Cell("A new member of a broken pattern", state, enter("N", topics=None, regex="(["), versions=(1,))
    yield Cell("A new member without a group", ABSENT, enter("N", group=""))
    yield Cell("A new member with an empty instance", ABSENT, enter("N", instance=""))
    yield Cell("A new member with an empty rack", ABSENT, enter("N", rack=""))
    yield Cell("A new member with an empty assignor", ABSENT, enter("N", assignor=""))
    yield Cell("A rebalance timeout of 0", ABSENT, enter("N", rebalance_ms=0))
    yield Cell("A fifth member", CONSUMER_TWO, enter("F"), before=(enter("C"), enter("D")))
    yield Cell("A member that comes again", CONSUMER_ONE, enter("A"), then=SEEN)
    yield Cell(
        "A member that comes again with other topics", CONSUMER_ONE, enter("A", topics=(OTHER_TOPIC,)), then=SEEN
    )


def beats() -> Iterator[Cell]:
    for state in (ABSENT, *CONSUMER):
        yield Cell("A heartbeat", state, Beat("A"), then=SEEN)
        yield Cell("A heartbeat of a stranger", state, Beat("N", 2, member=STRANGER))
        yield Cell("A heartbeat without an id", state, Beat("N", 2, member=""))
        yield Cell("A heartbeat in a coming epoch", state, Beat("A", 9))
        yield Cell("A heartbeat in the epoch before", state, Beat("A", 1))
        yield Cell("A heartbeat in the epoch before, with partitions", state, Beat("A", 1, owned=(0,)))
        yield Cell("A heartbeat in the epoch before, without partitions", state, Beat("A", 1, owned=()))
        yield Cell("A heartbeat in epoch -3", state, Beat("A", -3))
        yield Cell("Leaves", state, Beat("A", -1), then=SEEN)
        yield Cell("Leaves, a stranger", state, Beat("N", -1, member=STRANGER))
        yield Cell("Leaves for a while without an instance", state, Beat("A", -2))
        yield Cell("Leaves without an id", state, Beat("N", -1, member=""))
        yield Cell("An instance leaves for a while without an id", state, Beat("N", -2, member="", instance="s"))
    for state in CONSUMER:
        yield Cell("A heartbeat that tells all", state, Beat("A", rebalance_ms=60_000, topics=(TOPIC,), owned=(0, 1)))
        yield Cell("A heartbeat with what is owned", state, Beat("A", owned=(0,)), then=(Beat("B", owned=()), *SEEN))
        yield Cell("A heartbeat with partitions of others", state, Beat("B", owned=(0, 1)))
        yield Cell("A heartbeat with an unknown partition", state, Beat("A", owned=(0, 7)))
        yield Cell("A heartbeat with other topics", state, Beat("A", topics=(OTHER_TOPIC,)), then=SEEN)
        yield Cell("A heartbeat with another assignor", state, Beat("A", assignor="range"), then=SEEN)
        yield Cell("A heartbeat with an unknown assignor", state, Beat("A", assignor="nonsense"))
        yield Cell("A heartbeat with another rack", state, Beat("A", rack="r"), then=SEEN)
        yield Cell("A heartbeat with no topics any more", state, Beat("A", topics=()), then=SEEN)
        yield Cell("A heartbeat as an instance", state, Beat("A", instance="a"))
    yield Cell("Two epochs back", CONSUMER_SETTLED, Beat("A", 2, owned=(0,)))
    yield Cell("The epoch before, having less", CONSUMER_REVOKING, Beat("A", 2, owned=(0,)))
    yield Cell("The epoch before, having the same", CONSUMER_TWO, Beat("A", 2, owned=(0, 1)))
    yield Cell(
        "The waiting one asks again", CONSUMER_TWO, Beat("B"), then=(Beat("A"), Beat("A", owned=(0,)), Beat("B"))
    )
    yield Cell("The second leaves while it waits", CONSUMER_TWO, Beat("B", -1), then=(Beat("A"), *SEEN))
    yield Cell("The first leaves while it has to give up", CONSUMER_REVOKING, Beat("A", -1), then=(Beat("B"), *SEEN))
    yield Cell(
        "The first comes again while it has to give up",
        CONSUMER_REVOKING,
        enter("A", owned=()),
        then=(Beat("B"), Beat("A"), *SEEN),
    )
    yield Cell("The first comes again, having nothing", CONSUMER_SETTLED, enter("A", owned=()), then=(Beat("B"), *SEEN))
    yield Cell("The first gives up", CONSUMER_REVOKING, Beat("A", owned=(0,)), then=(Beat("B"), Beat("A"), *SEEN))


def statics() -> Iterator[Cell]:
    for state in (CONSUMER_STATIC, CONSUMER_STATIC_AWAY):
        yield Cell("The instance again", state, enter("T", instance="s"), then=SEEN)
        yield Cell("The instance again with its id", state, enter("S", instance="s"), then=SEEN)
        yield Cell("A heartbeat of the instance", state, Beat("S", instance="s"))
        yield Cell("A heartbeat of the instance by another", state, Beat("N", 2, member=STRANGER, instance="s"))
        yield Cell("A heartbeat of an unknown instance", state, Beat("S", instance="zz"))
        yield Cell("A heartbeat without the instance", state, Beat("S"))
        yield Cell("The instance leaves", state, Beat("S", -1, instance="s"), then=SEEN)
        yield Cell("The instance leaves for a while", state, Beat("S", -2, instance="s"), then=SEEN)
        yield Cell("Another leaves for the instance", state, Beat("N", -1, member=STRANGER, instance="s"), then=SEEN)
        yield Cell("Another leaves for a while for the instance", state, Beat("N", -2, member=STRANGER, instance="s"))
        yield Cell("Leaves for the instance without an id", state, Beat("N", -1, member="", instance="s"))
        yield Cell("Leaves for a while for the instance without an id", state, Beat("N", -2, member="", instance="s"))
        yield Cell("An unknown instance leaves", state, Beat("N", -1, member=STRANGER, instance="zz"))
        yield Cell(
            "The instance again, then its old self",
            state,
            enter("T", instance="s"),
            then=(Beat("S", instance="s"), Beat("T", instance="s", owned=(0, 1)), *SEEN),
        )


def the_other_kind() -> Iterator[Cell]:
    """Requests of the one protocol to groups of the other."""
    for state in (*CLASSIC, EMPTY_WITH_OFFSET, STABLE_STATIC, COMPLETING_STATIC):
        yield Cell("A new member of the newer protocol", state, enter("N"), then=(Describe("N"), DescribeConsumer("N")))
        yield Cell("A heartbeat of the newer protocol", state, Beat("A", 2))
        yield Cell("A heartbeat of the newer protocol of a stranger", state, Beat("N", 2, member=STRANGER))
        yield Cell("Leaves by the newer protocol", state, Beat("A", -1))
    for state in (*CONSUMER, CONSUMER_STATIC):
        yield Cell(
            "Join without an id", state, Join("N"), then=(Describe("N"), DescribeConsumer("N")), versions=(3, 4, 9)
        )
        yield Cell("Join with an unknown id", state, Join("N", member=STRANGER), versions=(3, 9))
        yield Cell("Join with the id of a member", state, Join("A"), versions=(9,))
        yield Cell("Join of a new instance", state, Join("N", instance="n"), versions=(5, 9))
        yield Cell("Join of the instance", state, Join("N", instance="s"), versions=(9,))
        yield Cell("Join of another type of protocol", state, Join("N", protocol_type="connect"), versions=(3, 9))
        yield Cell(
            "Join with metadata nobody can read", state, Join("N", protocols=(("range", b"?"),)), versions=(3, 9)
        )
        yield Cell("Sync", state, Sync("A", generation=2))
        yield Cell("Sync of a stranger", state, Sync("N", member=STRANGER, generation=2), versions=(5,))
        yield Cell("Heartbeat", state, Heartbeat("A", generation=2))
        yield Cell("Heartbeat of a stranger", state, Heartbeat("N", member=STRANGER, generation=2), versions=(4,))
        yield Cell("Leave", state, Leave("A"), then=SEEN)
        yield Cell("Leave of a stranger", state, Leave("N", member=STRANGER))
        yield Cell("Leave of the instance", state, Leave("N", member="", instance="s"), then=SEEN, versions=(3, 5))
    yield Cell(
        "A classic member after the newer protocol",
        CONSUMER_EMPTY,
        Join("N", v=3),
        then=(Sync("N", assign=("N",)), Describe("N"), ListGroups("N")),
    )
    for state in (SIMPLE, EMPTY, EMPTY_WITH_OFFSET):
        yield Cell(
            "The group is of the newer protocol now",
            state,
            enter("N"),
            then=(Beat("N", owned=(0, 1)), ListGroups("N"), Beat("N", -1), ListGroups("N")),
            versions=(1,),
        )


CELLS = (*arrivals(), *beats(), *statics(), *the_other_kind())
