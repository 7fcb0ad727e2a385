"""What queries went on without, as it stands in the ledger."""

from __future__ import annotations

import json

import pytest

from lowwater.spark.loss_records import Loss, from_record, put_together, to_record


def loss(first, behind, *, partition=0, found_ms=1000, why="expired", lineage="5f2c9a1e", **more):
    return Loss("a", partition, first, behind, why, found_ms, lineage, **more)


@pytest.mark.parametrize("one", [loss(3, 8), loss(3, None), loss(0, 1, query="id", group="g")])
def test_a_loss_comes_back_as_it_was_written(one):
    key, value = to_record(one)
    assert key == b"a-0"
    assert from_record(value) == one


@pytest.mark.parametrize(
    "value", [None, b"", b"x", b"[]", b"7", b"{}", b'{"lowwater_loss": 1}', b'{"lowwater_loss": 2}']
)
def test_what_is_not_a_loss_is_passed_over(value):
    assert from_record(value) is None


def test_what_a_later_version_adds_is_passed_over():
    given = json.loads(to_record(loss(3, 8))[1])
    assert from_record(json.dumps({**given, "colour": "red"}).encode()) == loss(3, 8)


def test_losses_are_counted():
    assert loss(3, 8).count == 5
    assert loss(3, None).count is None


def test_a_range_that_was_found_twice_is_there_once():
    assert put_together([loss(3, 8, found_ms=2000), loss(3, 8)]) == [loss(3, 8)]


def test_ranges_that_meet_become_one():
    assert put_together([loss(8, 12), loss(3, 8), loss(5, 7)]) == [loss(3, 12)]


def test_ranges_apart_stay_apart():
    assert put_together([loss(9, 12), loss(3, 8)]) == [loss(3, 8), loss(9, 12)]


@pytest.mark.parametrize(
    "other", [loss(3, 8, partition=1), loss(3, 8, lineage="00000001"), loss(3, 8, why="truncated")]
)
def test_other_partitions_queries_and_reasons_are_other_losses(other):
    assert len(put_together([loss(3, 8), other])) == 2


def test_batch_queries_go_by_their_id():
    one, other = loss(3, 8, lineage="", query="x"), loss(3, 8, lineage="", query="y")
    assert put_together([one, other, one]) == [one, other]


def test_partitions_that_went_away_are_there_once_per_place():
    assert put_together([loss(3, None), loss(3, None), loss(9, None)]) == [loss(3, None), loss(9, None)]


def test_they_come_by_the_time_they_were_found():
    early, late = loss(50, 60, found_ms=1), loss(3, 8, found_ms=2)
    assert put_together([late, early]) == [early, late]


def test_what_one_of_two_tells_is_kept():
    assert put_together([loss(3, 8), loss(5, 9, query="id", group="g")]) == [loss(3, 9, query="id", group="g")]
