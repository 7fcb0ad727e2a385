"""Static members of consumer groups: as Apache Kafka 4.3 treats them."""

from __future__ import annotations

import pytest
from tests.unit.groups.consumer_world import SESSION_MS, World

from lowwater.errors import ErrorCode

JOIN = {"topics": ["t"], "owned": {}, "rebalance_timeout_ms": 60_000, "instance_id": "i1"}


@pytest.fixture
def world() -> World:
    world = World()
    world.join("a1", instance_id="i1")
    return world


def test_an_instance_that_is_held_is_not_given_away(world):
    assert world.refused("a2", 0, **JOIN) is ErrorCode.UNRELEASED_INSTANCE_ID
    assert world.refused("a1", 0, **JOIN) is ErrorCode.UNRELEASED_INSTANCE_ID
    assert list(world.members()) == ["a1"]


def test_another_member_cannot_speak_for_an_instance(world):
    assert world.refused("a2", 2, instance_id="i1") is ErrorCode.FENCED_INSTANCE_ID
    assert world.refused("a2", -1, instance_id="i1") is ErrorCode.FENCED_INSTANCE_ID
    assert world.refused("a2", -2, instance_id="i1") is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_need_not_repeat_its_instance(world):
    assert world.beat("a1", 2).member_epoch == 2
    assert world.written == []


def test_who_leaves_for_a_while_keeps_its_partitions(world):
    response = world.beat("a1", -2, instance_id="i1")
    assert (response.member_id, response.member_epoch) == ("a1", -2)
    assert world.members()["a1"].member_epoch == -2
    assert world.held() == {"a1": {"t": [0, 1, 2, 3]}}
    assert world.epochs() == (2, 2)
    assert world.group.state == "Reconciling"


def test_who_left_for_a_while_cannot_go_on_as_if_not(world):
    world.beat("a1", -2, instance_id="i1")
    assert world.refused("a1", 2, instance_id="i1") is ErrorCode.FENCED_MEMBER_EPOCH
    assert world.refused("a1", -2, instance_id="i1") is ErrorCode.NONE


@pytest.mark.parametrize("member_id", ["a2", "a1"])
def test_its_successor_gets_the_same_partitions_without_a_rebalance(world, member_id):
    world.beat("a1", -2, instance_id="i1")
    response = world.join(member_id, instance_id="i1")
    assert (response.member_epoch, world.assignment(response)) == (2, {"t": [0, 1, 2, 3]})
    assert world.epochs() == (2, 2)
    assert world.held() == {member_id: {"t": [0, 1, 2, 3]}}
    assert world.group.state == "Stable"
    assert world.metrics.total_members == 1


def test_the_predecessor_is_fenced(world):
    world.beat("a1", -2, instance_id="i1")
    world.join("a2", instance_id="i1")
    assert world.refused("a1", 2, instance_id="i1") is ErrorCode.FENCED_INSTANCE_ID
    assert world.refused("a1", 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_predecessors_session_does_not_end_the_successor(world):
    world.beat("a1", -2, instance_id="i1")
    world.wait(SESSION_MS - 1)
    world.join("a2", instance_id="i1")
    world.wait(SESSION_MS - 1)
    assert list(world.members()) == ["a2"]
    world.wait(1)
    assert world.members() == {}


def test_who_does_not_come_back_within_its_session_is_gone(world):
    world.wait(1_000)
    world.beat("a1", 2)
    world.wait(1_000)
    world.beat("a1", -2, instance_id="i1")
    world.wait(SESSION_MS - 1_001)
    assert "a1" in world.members()
    world.wait(1)
    assert world.members() == {}


def test_a_successor_with_another_subscription_begins_a_new_epoch():
    world = World({"t": 2, "u": 2})
    world.join("a1", instance_id="i1")
    world.beat("a1", -2, instance_id="i1")
    response = world.join("a2", instance_id="i1", topics=["u"])
    assert (response.member_epoch, world.assignment(response)) == (3, {"u": [0, 1]})


def test_who_leaves_for_a_while_has_given_up_what_it_was_told_to(world):
    world.join("b")
    world.beat("a1", 2)
    world.beat("a1", -2, instance_id="i1")
    kept = world.target()["a1"]
    assert world.held()["a1"] == kept
    assert world.beat("b", 3).assignment is not None
    response = world.join("a2", instance_id="i1")
    assert (response.member_epoch, world.assignment(response)) == (3, kept)
    assert world.group.state == "Stable"


def test_a_successor_owns_nothing_and_so_has_nothing_to_give_up(world):
    world.beat("a1", -2, instance_id="i1")
    world.join("b")
    response = world.join("a2", instance_id="i1")
    assert (response.member_epoch, world.assignment(response)) == (3, {"t": [0, 1]})
    assert world.assignment(world.beat("b", 3)) == {"t": [2, 3]}


def test_the_successor_is_known_after_a_restart(world):
    world.beat("a1", -2, instance_id="i1")
    world.join("a2", instance_id="i1")
    before = world.group.describe()
    world.reload()
    assert world.group.describe() == before
    assert world.refused("a3", 0, **JOIN) is ErrorCode.UNRELEASED_INSTANCE_ID


def test_a_left_instance_can_be_taken_over_after_a_restart(world):
    world.beat("a1", -2, instance_id="i1")
    world.reload()
    response = world.join("a2", instance_id="i1")
    assert (response.member_epoch, world.assignment(response)) == (2, {"t": [0, 1, 2, 3]})


def test_a_static_member_may_leave_for_good(world):
    world.beat("a1", -1, instance_id="i1")
    assert world.group.is_empty
    assert world.join("a2", instance_id="i1").member_epoch == 4
