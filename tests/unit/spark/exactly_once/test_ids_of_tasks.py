"""The transactional ids of tasks, and which open ones nobody will commit."""

from __future__ import annotations

import pytest

from lowwater.spark.exactly_once.ids import left_over, sink_id_problem, transactional_id
from lowwater.spark.exactly_once.state import SinkState


def test_an_id_says_which_attempt_writes_and_by_which_plan() -> None:
    assert transactional_id("orders", 7, 2, 31, commits=5, epoch=12) == "orders-7-2-31-5.12"


def test_attempts_planned_before_the_last_intent_are_left_over_unless_it_names_them() -> None:
    older, committed, newer = "s-7-0-1-3.4", "s-7-0-2-3.4", "s-8-0-3-4.5"
    assert left_over("s", SinkState(4), [older, committed, newer], {committed}) == [older]


@pytest.mark.parametrize(
    "other",
    ["s", "s-1-2-3", "t-7-0-1-3.4", "s-x-7-0-1-3.4", "s-1-7-0-1-3.4", "s-7-0-1-3.4-x", "sx-7-0-1-3.4", "s-0-1-3.4"],
)
def test_ids_of_others_are_never_left_over(other: str) -> None:
    assert left_over("s", SinkState(9), [other], ()) == []


def test_the_name_of_a_sink_is_taken_as_it_is_and_not_as_a_pattern() -> None:
    assert left_over("a.b", SinkState(9), ["axb-7-0-1-3.4", "a.b-7-0-1-3.4"], ()) == ["a.b-7-0-1-3.4"]
    assert left_over("a-1", SinkState(9), ["a-1-7-0-1-3.4"], ()) == ["a-1-7-0-1-3.4"]


@pytest.mark.parametrize("name", ["", "a b", "a\n", "x" * 201, "a\x00"])
def test_some_names_cannot_be_a_sinks(name: str) -> None:
    assert sink_id_problem(name) is not None


@pytest.mark.parametrize("name", ["orders", "übung/1", "x" * 200])
def test_most_can(name: str) -> None:
    assert sink_id_problem(name) is None
