"""The life of a transactional id goes along the rows of the table, and along all of them."""

from __future__ import annotations

import pytest
from tests.unit.transactions.transaction_world import HOUR_MS, NEW, SCAN_MS, TIMEOUT_MS, WEEK_MS, World

from lowwater.transactions.state import State
from lowwater.transactions.table import NEXT


def cause(world: World, event: str) -> None:
    identity = world.identity()
    {
        "init": world.init,
        "add": lambda: world.add(identity, "metrics-0"),
        "commit": lambda: world.commit(identity),
        "abort": lambda: world.abort(identity),
        "fence": lambda: world.pass_time(TIMEOUT_MS + SCAN_MS),
        "written": world.finish,
        "expire": lambda: world.pass_time(WEEK_MS + HOUR_MS),
    }[event]()


@pytest.mark.parametrize(("state", "event"), NEXT)
def test_each_row_happens(state, event):
    world = World()
    world.in_state(state, version=NEW)
    cause(world, event)
    after = NEXT[state, event]
    if after is State.DEAD:
        assert "a" not in world.shard.transactions
    elif after is State.PREPARE_ABORT and event == "abort" and state is not State.ONGOING:
        assert world.state() is State.COMPLETE_ABORT, "nothing was written, so no markers are"
    else:
        assert world.state() is after


def test_every_living_state_can_be_left():
    assert {state for state, _ in NEXT} == set(State) - {State.DEAD}


def test_what_is_decided_has_one_way_to_go():
    for state in (State.PREPARE_COMMIT, State.PREPARE_ABORT):
        assert [event for one, event in NEXT if one is state] == ["written"]
