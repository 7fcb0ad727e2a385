"""Members of consumer groups that are silent, or that do not let go."""

from __future__ import annotations

import pytest
from tests.unit.groups.consumer_world import REBALANCE_MS, SESSION_MS, World

from lowwater.errors import ErrorCode
from lowwater.groups.config import ConsumerTimes


@pytest.fixture
def world() -> World:
    return World()


def test_a_silent_member_is_gone_after_its_session(world):
    world.join("m1")
    world.wait(SESSION_MS - 1)
    assert "m1" in world.members()
    world.wait(1)
    assert world.members() == {}
    assert world.metrics.member_timeouts == 1
    assert world.refused("m1", 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_every_heartbeat_begins_a_new_session(world):
    world.join("m1")
    for _ in range(5):
        world.wait(SESSION_MS - 1)
        world.beat("m1", 2)
    assert "m1" in world.members()


def test_a_refused_heartbeat_begins_no_session(world):
    world.join("m1")
    world.wait(SESSION_MS - 1)
    world.refused("m1", 99)
    world.wait(1)
    assert world.members() == {}


def test_the_partitions_of_a_silent_member_go_to_the_others(world):
    world.join("m1")
    world.join("m2")
    world.wait(SESSION_MS - 1)
    world.beat("m2", 3)
    world.wait(1)
    assert world.epochs() == (4, 3)
    assert world.assignment(world.beat("m2", 3)) == {"t": [0, 1, 2, 3]}


def test_members_that_fall_silent_together_are_one_change(world):
    for number in range(5):
        world.join(f"m{number}")
    epoch, _ = world.epochs()
    world.wait(SESSION_MS)
    assert world.members() == {}
    assert world.epochs()[0] == epoch + 1
    assert world.metrics.member_timeouts == 5


def test_a_jump_of_the_wall_clock_ends_no_session(world):
    world.join("m1")
    ten_years_ms = 10 * 365 * 86_400_000
    for jump_ms in (ten_years_ms, -2 * ten_years_ms):
        world.wall_ms += jump_ms
        world.tick()
        world.beat("m1", 2)
    assert "m1" in world.members()


def test_a_group_may_have_a_session_timeout_of_its_own():
    world = World(consumer_times_of={"g": ConsumerTimes(10_000, 1_000)})
    assert world.join("m1").heartbeat_interval_ms == 1_000
    assert world.beat("m1", 2).heartbeat_interval_ms == 1_000
    world.wait(10_000)
    assert world.members() == {}


def test_a_member_that_does_not_let_go_is_put_out_after_its_rebalance_timeout(world):
    world.join("m1", rebalance_timeout_ms=10_000)
    world.join("m2")
    world.beat("m1", 2)
    world.wait(9_999)
    world.beat("m1", 2, owned={"t": [0, 1, 2, 3]})
    assert "m1" in world.members()
    world.wait(1)
    assert list(world.members()) == ["m2"]
    assert world.metrics.member_timeouts == 1
    assert world.assignment(world.beat("m2", 3)) == {"t": [0, 1, 2, 3]}


def test_a_member_that_let_go_is_not_put_out(world):
    world.join("m1", rebalance_timeout_ms=10_000)
    world.join("m2")
    world.beat("m1", 2)
    world.wait(9_999)
    world.beat("m1", 2, owned={"t": [0, 1]})
    world.wait(1)
    assert list(world.members()) == ["m1", "m2"]


def test_a_member_that_has_not_been_told_to_let_go_has_time(world):
    world.join("m1", rebalance_timeout_ms=10_000)
    world.join("m2")
    world.wait(20_000)
    assert "m1" in world.members()


def test_a_member_that_is_gone_leaves_no_timer_behind(world):
    world.join("m1", rebalance_timeout_ms=REBALANCE_MS)
    world.join("m2")
    world.beat("m1", 2)
    world.beat("m1", -1)
    world.beat("m2", -1)
    world.wait(10 * REBALANCE_MS)
    assert world.metrics.member_timeouts == 0
    assert world.timers.next_deadline_ms is None


def test_after_a_restart_members_have_their_full_time(world):
    world.join("m1", rebalance_timeout_ms=10_000)
    world.join("m2", rebalance_timeout_ms=10_000)
    world.beat("m1", 2)
    world.wait(9_000)
    world.reload()
    world.wait(9_999)
    assert list(world.members()) == ["m1", "m2"]
    world.wait(1)
    assert list(world.members()) == ["m2"]
    world.wait(SESSION_MS - 10_001)
    assert list(world.members()) == ["m2"]
    world.wait(1)
    assert world.members() == {}
