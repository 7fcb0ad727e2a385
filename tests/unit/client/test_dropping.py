"""Rows that are put back because more is held than is allowed: those due last, and never one that would come twice."""

from __future__ import annotations

from typing import Any

from tests.unit.client.fetched import P0, P1, batch, rows_of

from lowwater.client.columns import Held
from lowwater.client.slices import FetchedSlice
from lowwater.merge.mark import EVERYTHING, Mark

EVERY = 1_000_000


def held_of(*slices: tuple[Any, bytes], order: Any = "timestamp") -> Held:
    held = Held(order=order)
    for one in (P0, P1):
        held.add(one, 0, 100)
    for one, data in slices:
        held.take([FetchedSlice(one, 0, memoryview(data))])
    return held


def offsets(arrow: Any) -> list[tuple[int, int]]:
    return [(row[1], row[2]) for row in rows_of(arrow)]


def test_the_rows_that_are_due_last_go_and_the_first_ones_stay() -> None:
    held = held_of((P0, bytes(batch(0, 10, 30, 50))), (P1, bytes(batch(0, 20, 40, 60))))
    dropped, left = held.put_back([P0, P1], 4 * 90)
    assert [(one, each.offset, each.key_ms, each.rows) for one, each in dropped] == [(P0, 2, 50, 1), (P1, 2, 60, 1)]
    assert sorted(one for one, _, _ in left) == [P0, P1]
    assert held.committable() == {P0: 0, P1: 0}
    assert offsets(held.release(EVERYTHING).batch) == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert held.committable() == {P0: 2, P1: 2}, "the others are to be fetched from there"


def test_they_come_again_as_they_were() -> None:
    data = bytes(batch(0, 10, 30, 50))
    held = held_of((P0, data))
    held.put_back([P0], 1)
    [arrival] = held.take([FetchedSlice(P0, 1, memoryview(data))])
    assert (arrival.position, arrival.rows) == (3, 2)
    assert offsets(held.release(EVERYTHING).batch) == [(0, 0), (0, 1), (0, 2)]


def test_the_row_that_is_due_first_always_stays() -> None:
    held = held_of((P0, bytes(batch(0, 10, 30))))
    [(_, dropped)], _ = held.put_back([P0], 0)
    assert (dropped.offset, dropped.rows) == (1, 1)


def test_what_stands_behind_a_dropped_row_goes_with_it_also_when_it_is_older() -> None:
    held = held_of((P0, bytes(batch(0, 10, 90, 20))), (P1, bytes(batch(0, 15))))
    [(one, dropped)], _ = held.put_back([P0, P1], 3 * 90)
    assert (one, dropped.offset, dropped.key_ms, dropped.rows) == (P0, 1, 20, 2)


def test_nothing_is_dropped_of_which_a_later_row_was_released() -> None:
    held = held_of((P0, bytes(batch(0, 10, 90, 20))), (P1, bytes(batch(0, 15, 80))))
    assert offsets(held.release(Mark(20, *P1)).batch) == [(0, 0), (1, 0), (0, 2)]
    dropped, _ = held.put_back([P0, P1], 0)
    assert [one for one, _ in dropped] == [], "the row at 2 would come twice; the one of P1 is due first"
    dropped, _ = held_of((P0, bytes(batch(0, 10, 90))), (P1, bytes(batch(0, 15)))).put_back([P0], 0)
    assert [(one, each.offset) for one, each in dropped] == [(P0, 1)]


def test_only_the_partitions_that_are_named_lose_rows() -> None:
    held = held_of((P0, bytes(batch(0, 10, 30, 50))), (P1, bytes(batch(0, 20, 40, 60))))
    dropped, _ = held.put_back([P1], 0)
    assert [one for one, _ in dropped] == [P1]
    assert offsets(held.release(EVERYTHING).batch) == [(0, 0), (0, 1), (0, 2)]


def test_rows_of_the_same_time_go_back_by_topic_and_partition() -> None:
    held = held_of((P1, bytes(batch(0, 10, 10))), (P0, bytes(batch(0, 10, 10))))
    dropped, _ = held.put_back([P0, P1], 2 * 90)
    assert [(one, each.offset) for one, each in dropped] == [(P1, 0)]


def test_by_partition_the_key_of_a_row_is_the_same_when_it_comes_again() -> None:
    data = bytes(batch(0, 100, 50, 70))
    held = held_of((P0, data), (P1, bytes(batch(0, 60, 100))), order="partition")
    [(_, each)], _ = held.put_back([P0], 2 * 90)
    assert (each.offset, each.key_ms) == (1, 100)
    held.take([FetchedSlice(P0, each.offset, memoryview(data))])
    assert offsets(held.release(EVERYTHING).batch) == [(1, 0), (0, 0), (0, 1), (0, 2), (1, 1)]
