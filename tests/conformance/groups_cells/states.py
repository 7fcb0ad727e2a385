"""The states in which groups are asked, and the way there."""

from __future__ import annotations

from tests.conformance.groups_cells.asks import (
    TOPIC,
    Ask,
    Beat,
    Comes,
    Commit,
    Join,
    Leave,
    Sync,
    enter,
    waits,
)
from tests.conformance.groups_cells.play import State


def joined(leader: str, *others: Ask) -> tuple[Ask, ...]:
    """The leader is in, alone; each of the others joins; the leader joins again: all are in one generation.

    A member without an instance asks for its id first.
    """
    first = (Join(leader), Join(leader), Sync(leader, assign=(leader,)))
    asking = tuple(each for each in others if isinstance(each, Join) and each.instance is None)
    if not others:
        return (*first, Join(leader))
    return (
        *first,
        *asking,
        *(waits(each) for each in others),
        Join(leader),
        *(Comes(each.actor) for each in others),
    )


def synced(leader: str, *others: Ask) -> tuple[Ask, ...]:
    actors = [leader, *(each.actor for each in others)]
    followers = (Sync(each.actor, instance=getattr(each, "instance", None)) for each in others)
    return (*joined(leader, *others), Sync(leader, assign=actors), *followers)


B = Join("B")
S = Join("S", instance="s")

ABSENT = State("Absent")
SIMPLE = State("Simple", (Commit("", member="", generation=-1),))
EMPTY = State("Empty", (Join("A"), Join("A"), Sync("A", assign=("A",)), Leave("A")))
EMPTY_WITH_OFFSET = State(
    "Empty, with an offset", (Join("A"), Join("A"), Sync("A", assign=("A",)), Commit("A"), Leave("A"))
)
COMPLETING = State("Completing", joined("A", B))
FULL = State("Stable with four members", synced("A", B, Join("C"), Join("D")))
STABLE = State("Stable", synced("A", B))
PREPARING = State("Preparing", (*synced("A", B), waits(Join("A"))))
COMPLETING_STATIC = State("Completing with a static member", joined("A", S))
STABLE_STATIC = State("Stable with a static member", synced("A", S))
PREPARING_STATIC = State("Preparing with a static member", (*synced("A", S), waits(Join("A"))))
PREPARING_STATIC_PARKED = State(
    "Preparing, the static member waiting",
    (*synced("A", S), waits(Join("S", instance="s", protocols=(("range", b"new"),)))),
)
STATIC_LEADER = State(
    "Stable, led by a static member",
    (Join("S", instance="s"), Sync("S", instance="s", assign=("S",))),
)
EMPTY_STATIC = State("Empty, a static member left", (*STATIC_LEADER.asks, Leave("", member="", instance="s")))

CLASSIC = (ABSENT, SIMPLE, EMPTY, PREPARING, COMPLETING, STABLE)
MEMBERLESS = (ABSENT, SIMPLE, EMPTY)
WITH_MEMBERS = (PREPARING, COMPLETING, STABLE)
WITH_STATIC = (PREPARING_STATIC, COMPLETING_STATIC, STABLE_STATIC)

# The newer protocol: A has both partitions; then B comes, and waits until A has given one up.
CONSUMER_ONE = State("Consumer, one member", (enter("A"), Beat("A", owned=(0, 1))))
CONSUMER_TWO = State("Consumer, a second member waits", (*CONSUMER_ONE.asks, enter("B")))
CONSUMER_REVOKING = State("Consumer, the first has to give up", (*CONSUMER_TWO.asks, Beat("A", owned=(0, 1))))
CONSUMER_SETTLED = State(
    "Consumer, two members",
    (*CONSUMER_REVOKING.asks, Beat("A", owned=(0,)), Beat("B", owned=()), Beat("B", owned=(1,)), Beat("A", owned=(0,))),
)
CONSUMER_STATIC = State("Consumer, a static member", (enter("S", instance="s"), Beat("S", instance="s", owned=(0, 1))))
CONSUMER_STATIC_AWAY = State("Consumer, a static member is away", (*CONSUMER_STATIC.asks, Beat("S", -2, instance="s")))
CONSUMER_EMPTY = State("Consumer, all have left", (enter("A"), Beat("A", owned=(0, 1)), Beat("A", -1)))
CONSUMER_EMPTY_WITH_OFFSET = State(
    "Consumer, all have left, with an offset",
    (enter("A"), Beat("A", owned=(0, 1)), Commit("A", topic=TOPIC), Beat("A", -1)),
)
CONSUMER = (CONSUMER_ONE, CONSUMER_TWO, CONSUMER_REVOKING, CONSUMER_SETTLED, CONSUMER_EMPTY)
