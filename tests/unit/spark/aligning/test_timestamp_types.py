"""What is said about topics whose times are not those of events."""

from __future__ import annotations

from lowwater.spark.aligning.timestamp_types import problem


def test_times_of_producers_are_nothing_to_speak_of():
    assert problem({"a": "CreateTime", "b": "CreateTime"}) is None
    assert problem({}) is None


def test_times_of_the_broker_are_told():
    said = problem({"a": "LogAppendTime"})
    assert said is not None
    assert said.startswith("a: ")


def test_a_mixture_is_told_with_both_sides():
    said = problem({"b": "CreateTime", "a": "LogAppendTime"})
    assert said is not None
    assert "those of b" in said
