"""Looks for what is new, on a topic that gets nothing and on one that does."""

from __future__ import annotations

from lowwater.spark.pacing import Pace
from lowwater.spark.snapshot import Head
from lowwater.types import TopicPartition

A = TopicPartition("a", 0)


def test_pauses_double_while_nothing_comes_up_to_a_bound() -> None:
    pace = Pace()
    pauses = []
    for _ in range(6):
        pace.saw({A: Head(0, 7)})
        pauses.append(pace.pause_ms(25))
    assert pauses == [25, 50, 100, 200, 200, 200]


def test_what_comes_makes_them_short_again() -> None:
    pace = Pace()
    for end in (7, 7, 7, 8):
        pace.saw({A: Head(0, end)})
    assert pace.pause_ms(25) == 25
