"""Where a reset leads, and what becomes of it; on virtual time."""

from __future__ import annotations

import pytest
from tests.unit.lag.test_collecting import Cluster

from lowwater.errors import ConfigError
from lowwater.lag.resetting import ALL, Selection, Target, plan_reset, read_target
from lowwater.positions.grammar import parse_starts


@pytest.mark.parametrize(
    ("text", "target"),
    [("stored+5", Target(shift=5)), (" committed-10 ", Target(shift=-10)),
     ("stored", Target(to=parse_starts("stored"))), ("-5", Target(to=parse_starts("-5"))),
     ("t=stored|earliest", Target(to=parse_starts("t=stored|earliest")))],
)  # fmt: skip
def test_a_target_is_a_start_position_or_so_far_from_where_the_group_is(text: str, target: Target) -> None:
    assert read_target(text) == target


@pytest.mark.parametrize("text", ["", "stored+", "stored+1x", "yesterday-ish", "stored+" + "9" * 5000])
def test_what_is_no_target_is_the_mistake_of_who_asks(text: str) -> None:
    with pytest.raises(ConfigError, match="A start position is one of"):
        read_target(text)


def test_a_reset_to_what_is_not_stored_is_the_mistake_of_who_asks() -> None:
    cluster = Cluster()
    cluster.committed["g"] = {0: 7}
    there = Selection((("t", None),))
    with pytest.raises(ConfigError, match=r"no committed offset for t-1: .*stored\|earliest"):
        cluster.world.do(plan_reset(cluster.world.cluster, "g", read_target("stored"), there))
    plan = cluster.world.do(plan_reset(cluster.world.cluster, "g", read_target("stored+2"), ALL))
    assert [(move.before.offset, move.after.offset) for move in plan.moves] == [(7, 9)]
