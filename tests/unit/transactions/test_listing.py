"""DescribeTransactions and ListTransactions."""

from __future__ import annotations

import pytest
from tests.unit.transactions.transaction_world import FIRST_ID, TIMEOUT_MS, World, partitions

from lowwater.errors import ErrorCode
from lowwater.transactions.state import State


@pytest.fixture
def world() -> World:
    """One id that is Empty, one that is Ongoing for 5 s, one whose last transaction began 9 s ago and is complete."""
    world = World()
    world.add(world.begun("done"), name="done")
    world.commit(world.identity("done"), name="done")
    world.finish()
    world.pass_time(4_000)
    world.add(world.begun("open"), "orders-0", "orders-1", name="open")
    world.begun("new")
    world.pass_time(5_000)
    return world


def names(world: World, **filters: object) -> set[str]:
    return {one.transactional_id for one in world.listed(**filters).transactions}


def test_a_description_tells_all(world):
    known = world.describe("open")
    assert known.state.label == "Ongoing"
    assert known.timeout_ms == TIMEOUT_MS
    assert known.started_ms == world.wall_ms - 5_000
    assert (known.producer_id, known.producer_epoch) == (FIRST_ID + 1, 0)
    assert known.partitions == partitions("orders-0", "orders-1")


def test_an_id_that_is_not_there_cannot_be_described(world):
    assert world.describe("nobody") is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_states_have_the_names_that_tools_know():
    assert [state.label for state in State] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
    ]


def test_without_filters_all_are_listed(world):
    assert names(world) == {"done", "open", "new"}


def test_the_filter_for_states(world):
    assert names(world, states=("Ongoing",)) == {"open"}
    assert names(world, states=("Ongoing", "Empty")) == {"open", "new"}
    assert names(world, states=("ongoing",)) == set()


def test_states_that_nobody_knows_are_told_and_pass_nothing(world):
    answer = world.listed(states=("Ongoing", "Asleep", "PrepareEpochFence", "Dead", "Asleep"))
    assert answer.unknown_states == ("Asleep",)
    assert [one.transactional_id for one in answer.transactions] == ["open"]
    assert names(world, states=("Asleep",)) == set()


def test_the_filter_for_producer_ids(world):
    assert names(world, producer_ids=(FIRST_ID, FIRST_ID + 2)) == {"done", "new"}
    assert names(world, producer_ids=(5,)) == set()


def test_the_filter_for_durations_counts_from_the_start_and_passes_what_is_longer(world):
    assert names(world, longer_than_ms=4_999, states=("Ongoing",)) == {"open"}
    assert names(world, longer_than_ms=5_000, states=("Ongoing",)) == set()
    assert names(world, longer_than_ms=0) == {"done", "open", "new"}
    world.add(world.identity("new"), name="new")
    assert names(world, longer_than_ms=0) == {"done", "open"}


def test_the_filter_by_pattern_is_for_the_whole_id(world):
    assert names(world, pattern="o.*") == {"open"}
    assert names(world, pattern="o") == set()
    assert names(world, pattern="") == {"done", "open", "new"}


def test_all_filters_must_pass(world):
    assert names(world, pattern=".*", states=("Ongoing",), producer_ids=(FIRST_ID,)) == set()


def test_a_pattern_that_is_none_is_refused(world):
    from lowwater.transactions.commands import ListTransactions

    assert world.ask(ListTransactions(pattern="(")) is ErrorCode.INVALID_REGULAR_EXPRESSION
