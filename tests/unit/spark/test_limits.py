"""Where a batch ends."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from lowwater.spark.limits import (
    WAIT,
    BatchEnd,
    Gap,
    RangeError,
    Why,
    batch_end,
    batch_ranges,
    default_limit,
    gaps,
)
from lowwater.spark.offsets import OFFSET_MAX, Offset, Range
from lowwater.spark.snapshot import Head, Snapshot
from lowwater.types import TopicPartition

P0, P1, P2 = (TopicPartition("t", number) for number in range(3))
NOW = 1_000_000


@dataclass
class Given:
    offsets_max: int | None = None
    offsets_min: int | None = None
    delay_max_ms: int = 900_000
    cut_ms: int | None = None


def snapshot(**heads):
    """p0=(log start, end) …"""
    return Snapshot({TopicPartition("t", int(name[1:])): Head(*head) for name, head in heads.items()}, {}, NOW)


def at(*offsets):
    return Offset({TopicPartition("t", number): offset for number, offset in enumerate(offsets)}, lineage="00000000")


def ends(start, heads, *, limit=None, given=None, last_ms=None, target=None):
    found = batch_end(start, heads, given or Given(), now_ms=NOW, last_ms=last_ms, limit=limit, target=target)
    assert isinstance(found, BatchEnd)
    return found


# ---- all there is


def test_without_a_limit_a_batch_goes_up_to_the_heads():
    assert ends(at(1, 2), snapshot(p0=(0, 10), p1=(0, 2))).ends == {P0: 10, P1: 2}


def test_once_leaves_the_limits_out():
    given = Given(offsets_max=1, offsets_min=1000)
    assert ends(at(0), snapshot(p0=(0, 10)), given=given, last_ms=NOW).ends == {P0: 10}


def test_a_new_partition_begins_at_its_earliest_record():
    found = ends(at(1), snapshot(p0=(0, 10), p1=(3, 8)))
    assert found.introduced == {P1: 3}
    assert found.ends == {P0: 10, P1: 8}


def test_a_log_that_ends_before_the_start_does_not_turn_the_batch_around():
    assert ends(at(20, 0), snapshot(p0=(0, 10), p1=(0, 5))).ends == {P0: 20, P1: 5}


def test_a_partition_that_is_not_there_has_no_end():
    assert ends(at(1, 2), snapshot(p0=(0, 10))).ends == {P0: 10}


# ---- maxOffsetsPerTrigger


def test_a_limit_is_shared_by_what_is_left():
    found = ends(at(0, 0), snapshot(p0=(0, 300), p1=(0, 100)), limit=40)
    assert found.ends == {P0: 30, P1: 10}


def test_shares_are_rounded_down():
    found = ends(at(0, 0, 0), snapshot(p0=(0, 10), p1=(0, 10), p2=(0, 10)), limit=10)
    assert found.ends == {P0: 3, P1: 3, P2: 3}


def test_each_partition_gets_at_least_one_record():
    found = ends(at(0, 0), snapshot(p0=(0, 1000), p1=(0, 1)), limit=10)
    assert found.ends == {P0: 9, P1: 1}


def test_a_limit_above_all_there_is_is_none():
    assert ends(at(5, 5), snapshot(p0=(0, 9), p1=(0, 5)), limit=OFFSET_MAX).ends == {P0: 9, P1: 5}


def test_shares_count_from_where_a_new_partition_begins():
    found = ends(at(0), snapshot(p0=(0, 100), p1=(1000, 1100)), limit=20)
    assert (found.ends, found.introduced) == ({P0: 10, P1: 1010}, {P1: 1000})


def test_a_limit_is_reached_batch_by_batch_and_everything_is_read():
    heads = snapshot(p0=(0, 1003), p1=(7, 1500), p2=(0, 1))
    start, batches = Offset({P0: 3, P1: 7, P2: 0}, lineage="00000000"), 0
    while (found := ends(start, heads, limit=100).ends) != start.at:
        assert all(found[one] >= start.at[one] for one in found)
        assert sum(found[one] - start.at[one] for one in found) <= 101
        start, batches = Offset(found, lineage="00000000"), batches + 1
    assert start.at == {P0: 1003, P1: 1500, P2: 1}
    assert batches in range(25, 40)


def test_records_that_are_gone_do_not_count_against_the_limit():
    found = ends(at(0, 0), snapshot(p0=(990, 1000), p1=(0, 10)), limit=10)
    assert found.ends == {P0: 995, P1: 5}


def test_equal_shares_of_a_huge_backlog_do_not_overflow():
    found = ends(at(0, 0), snapshot(p0=(0, OFFSET_MAX), p1=(0, OFFSET_MAX)), limit=OFFSET_MAX)
    assert all(0 < end <= OFFSET_MAX for end in found.ends.values())


# ---- minOffsetsPerTrigger, maxTriggerDelay

FEW = Given(offsets_min=100, delay_max_ms=60_000)


def decide(count, *, last_ms, given=FEW, target=None):
    heads = snapshot(p0=(0, count))
    return batch_end(at(0), heads, given, now_ms=NOW, last_ms=last_ms, limit=OFFSET_MAX, target=target)


def test_too_few_records_wait():
    assert decide(99, last_ms=NOW - 1) is WAIT


def test_enough_records_go_at_once():
    assert decide(100, last_ms=NOW - 1) == BatchEnd({P0: 100}, {})


def test_the_delay_ends_the_wait():
    assert decide(99, last_ms=NOW - 59_999) is WAIT
    assert decide(99, last_ms=NOW - 60_000) == BatchEnd({P0: 99}, {})


def test_the_first_batch_does_not_wait():
    assert decide(1, last_ms=None) == BatchEnd({P0: 1}, {})


def test_an_available_now_query_does_not_wait():
    assert decide(1, last_ms=NOW - 1, target={P0: 1}) == BatchEnd({P0: 1}, {})


def test_the_wait_and_the_limit_go_together():
    given = Given(offsets_max=150, offsets_min=100, delay_max_ms=60_000)
    found = batch_end(at(0), snapshot(p0=(0, 500)), given, now_ms=NOW, last_ms=NOW - 1, limit=150)
    assert found == BatchEnd({P0: 150}, {})


# ---- available now


def test_an_available_now_query_stops_at_the_heads_it_began_with():
    heads = snapshot(p0=(0, 50), p1=(0, 9), p2=(0, 4))
    assert ends(at(0, 0), heads, target={P0: 10, P1: 9}).ends == {P0: 10, P1: 9}


def test_partitions_that_came_later_are_left_to_the_next_run():
    found = ends(at(0), snapshot(p0=(0, 50), p1=(0, 9)), target={P0: 10})
    assert found.introduced == {}


def test_new_partitions_that_were_there_at_its_begin_are_read():
    found = ends(at(0), snapshot(p0=(0, 50), p1=(2, 9)), target={P0: 10, P1: 5})
    assert (found.ends, found.introduced) == ({P0: 10, P1: 5}, {P1: 2})


def test_its_limits_end_where_it_ends():
    assert ends(at(8), snapshot(p0=(0, 50)), limit=5, target={P0: 10}).ends == {P0: 10}


# ---- what Spark is told


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        (Given(), None),
        (Given(offsets_max=7), 7),
        (Given(offsets_min=7), OFFSET_MAX),
        (Given(offsets_max=9, offsets_min=7), 9),
        (Given(cut_ms=7), OFFSET_MAX),
        (Given(cut_ms=7, offsets_max=9), 9),
    ],
)
def test_the_usual_limit_is_a_number_as_soon_as_anything_limits(given, limit):
    assert default_limit(given) == limit


# ---- what is gone


def test_nothing_is_gone_from_partitions_that_have_all_that_is_to_be_read():
    assert gaps(at(3, 5), snapshot(p0=(3, 10), p1=(0, 5), p2=(0, 4))) == []


def test_what_is_gone_is_told_exactly():
    assert gaps(at(3), snapshot(p0=(8, 10))) == [Gap(P0, 3, 8, Why.EXPIRED)]


def test_a_removed_partition_is_told():
    assert gaps(at(3, 4), snapshot(p0=(0, 10))) == [Gap(P1, 4, None, Why.REMOVED)]


def test_a_log_that_ends_too_early_is_told():
    assert gaps(at(12), snapshot(p0=(0, 10))) == [Gap(P0, 10, 12, Why.TRUNCATED)]


def test_the_lost_beginning_of_a_new_partition_is_told():
    assert gaps(at(0), snapshot(p0=(0, 0), p1=(5, 9))) == [Gap(P1, 0, 5, Why.ADDED_LATE)]


# ---- batch queries


def test_a_batch_query_reads_from_its_starts_to_its_stops():
    assert batch_ranges({P1: 4, P0: 0}, {P0: 3, P1: 4}) == {P0: Range(0, 3), P1: Range(4, 4)}


def test_a_start_behind_its_stop_is_refused_in_the_connectors_words():
    with pytest.raises(RangeError, match="resolved start offset 9 is greater than the resolved end offset 3 for topic"):
        batch_ranges({P0: 9}, {P0: 3})
