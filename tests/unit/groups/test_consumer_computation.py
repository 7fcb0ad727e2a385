"""Assignments that are so big that they are computed elsewhere."""

from __future__ import annotations

import pickle

import pytest
from tests.unit.groups.consumer_world import World


@pytest.fixture
def world() -> World:
    return World(assignments_inline_max=0)


def test_who_joins_meanwhile_is_in_the_epoch_before_the_first_with_nothing(world):
    response = world.join("m1")
    assert (response.member_epoch, world.assignment(response)) == (1, {})
    assert (world.epochs(), world.group.state) == ((2, 0), "Assigning")
    world.compute()
    assert (world.epochs(), world.group.state) == ((2, 2), "Reconciling")
    told = world.beat("m1", 1)
    assert (told.member_epoch, world.assignment(told)) == (2, {"t": [0, 1, 2, 3]})
    assert world.group.state == "Stable"


def test_members_keep_what_they_have_meanwhile(world):
    world.join("m1")
    world.compute()
    world.beat("m1", 1)
    assert world.join("m2").member_epoch == 2
    assert world.beat("m1", 2).member_epoch == 2
    assert world.held() == {"m1": {"t": [0, 1, 2, 3]}, "m2": {}}
    world.compute()
    assert world.assignment(world.beat("m1", 2)) == {"t": [0, 1]}


def test_one_computation_at_a_time(world):
    world.join("m1")
    world.join("m2")
    world.beat("m1", 1)
    assert len(world.computations) == 1


def test_a_result_of_an_older_epoch_is_dropped_and_computed_again(world):
    world.join("m1")
    world.join("m2")
    world.compute()
    assert (world.written, len(world.computations)) == ([], 1)
    world.compute()
    assert world.epochs() == (3, 3)
    assert world.target() == {"m1": {"t": [0, 1]}, "m2": {"t": [2, 3]}}


def test_a_result_is_dropped_when_the_same_members_read_other_topics_by_now():
    world = World({"t": 2, "u": 2}, assignments_inline_max=0)
    world.join("m1", topics=["t", "u"])
    world.compute()
    world.beat("m1", 1)
    world.join("m2", topics=["t"])
    world.beat("m1", 2, topics=["t"])
    world.beat("m2", 2, topics=["t", "u"])
    world.compute()
    assert world.written == []
    world.compute()
    assert world.target() == {"m1": {"t": [0, 1]}, "m2": {"u": [0, 1]}}


def test_a_result_for_other_topics_is_dropped_until_the_next_heartbeat(world):
    world.join("m1")
    world.topics.grow("t", 6)
    world.compute()
    assert (world.written, world.computations) == ([], [])
    world.beat("m1", 1)
    world.compute()
    assert world.target() == {"m1": {"t": [0, 1, 2, 3, 4, 5]}}


def test_a_result_for_a_group_that_everybody_left_is_dropped(world):
    world.join("m1")
    world.beat("m1", -1)
    world.compute()
    assert (world.written, world.computations, world.group.state) == ([], [], "Empty")


def test_a_failed_computation_is_begun_again_by_the_next_heartbeat(world):
    world.join("m1")
    world.come_back(world.computations.pop(), RuntimeError("the worker died"))
    assert (world.written, world.computations) == ([], [])
    assert world.beat("m1", 1).member_epoch == 1
    world.compute()
    assert world.assignment(world.beat("m1", 1)) == {"t": [0, 1, 2, 3]}


def test_a_computation_that_a_crash_took_is_begun_again(world):
    world.join("m1")
    world.reload()
    world.beat("m1", 1)
    world.compute()
    assert world.epochs() == (2, 2)


def test_a_static_successor_inherits_the_target(world):
    world.join("a1", instance_id="i")
    world.compute()
    world.beat("a1", 1, instance_id="i")
    world.join("b")
    world.beat("a1", -2, instance_id="i")
    response = world.join("a2", instance_id="i")
    assert (response.member_epoch, world.assignment(response)) == (2, {"t": [0, 1, 2, 3]})


def test_a_result_for_a_static_member_that_was_replaced_meanwhile_is_computed_again(world):
    world.join("a1", instance_id="i")
    world.join("b")
    world.compute()
    world.beat("a1", -2, instance_id="i")
    world.join("a2", instance_id="i")
    world.compute()
    assert world.computations
    world.compute()
    assert world.target() == {"a2": {"t": [0, 1]}, "b": {"t": [2, 3]}}


def test_what_is_sent_away_survives_pickling(world):
    world.join("m1", instance_id="i", rack_id="r")
    (computation,) = world.computations
    work, argument, then = pickle.loads(pickle.dumps((computation.work, computation.argument, computation.then)))
    assert then(work(argument)) == computation.then(computation.work(computation.argument))


def test_small_assignments_are_made_at_once():
    world = World(assignments_inline_max=4)
    assert world.join("m1").member_epoch == 2
    world.join("m2")
    assert (world.epochs(), len(world.computations)) == ((3, 2), 1)
