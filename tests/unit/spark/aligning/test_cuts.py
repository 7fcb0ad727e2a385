"""Micro-batches that end at one moment, on logs in memory: what each batch reads, and what it took to find out."""

from __future__ import annotations

import pytest
from tests.timed_logs import TimedLog
from tests.unit.spark.aligning.cut_query import NOW, P0, P1, P2, Query, logs

from lowwater.spark.aligning.logs import Edge
from lowwater.spark.offsets import Offset, Place, Plan

# ---- the grid


def test_a_batch_ends_at_a_mark_of_the_grid_in_every_partition():
    query = Query(logs([0, 100, 599, 600, 1300], [599, 600, 700, 1199, 1200]))
    assert query.batch() == {P0: (0, 3), P1: (0, 1)}
    assert query.cut == 600
    assert query.batch() == {P0: (3, 4), P1: (1, 4)}
    assert query.cut == 1200
    assert query.batch() == {P0: (4, 5), P1: (4, 5)}
    assert query.batch() is None


def test_the_grid_is_that_of_the_epoch_wherever_a_log_begins():
    query = Query(logs([1_234_567, 1_234_568]))
    query.batch()
    assert query.cut == 1_234_800


def test_a_partition_without_so_late_a_row_is_read_to_its_end():
    query = Query(logs([0, 1, 2], [0, 5000]))
    assert query.batch() == {P0: (0, 3), P1: (0, 1)}


def test_a_late_starter_does_not_run_ahead():
    query = Query(logs([0, 700, 1300, 1900], [1250, 1260, 1900]))
    assert query.all() == [{P0: (0, 1)}, {P0: (1, 2)}, {P0: (2, 3), P1: (0, 2)}, {P0: (3, 4), P1: (2, 3)}]


def test_time_without_rows_is_passed_over_in_one_step():
    days = 3 * 24 * 3600 * 1000
    query = Query(logs([0, 1, days, days + 1], [5, days + 7]))
    assert query.all() == [{P0: (0, 2), P1: (0, 1)}, {P0: (2, 4), P1: (1, 2)}]
    assert query.start.plan.asked <= 5


def test_every_planning_asks_each_broker_once_when_time_goes_on_evenly():
    query = Query(logs(range(0, 6000, 10), range(5, 6000, 10)))
    query.batch()
    while query.batch() is not None:
        assert query.start.plan.asked == 1


def test_a_batch_says_which_cut_was_before_its_own():
    query = Query(logs([0, 700]))
    query.batch()
    assert (query.start.plan.after_ms, query.cut) == (None, 600)
    query.batch()
    assert (query.start.plan.after_ms, query.cut) == (600, 1200)


def test_nothing_to_read_is_no_batch_and_asks_nothing():
    empty = logs([], [])
    assert Query(empty).batch() is None
    assert empty.asked == 0


def test_a_query_that_begins_in_the_middle_begins_with_its_own_time():
    query = Query(logs([0, 100, 200, 9000, 9100]), starts={P0: 3})
    assert query.batch() == {P0: (3, 5)}
    assert query.cut == 9600


def test_a_query_that_had_no_cut_before_finds_one():
    query = Query(logs([0, 100, 9000, 9700]))
    query.start = Offset({P0: 2}, lineage="00000000")
    assert query.batch() == {P0: (2, 3)}


def test_rows_without_a_time_are_read():
    query = Query(logs([-1, -1, 100, 700]))
    assert query.all() == [{P0: (0, 2)}, {P0: (2, 3)}, {P0: (3, 4)}]


def test_a_new_partition_begins_with_what_it_has():
    found = logs([0, 700, 1300])
    query = Query(found)
    query.batch()
    found.logs[P1] = TimedLog([650, 1250])
    assert query.batch() == {P0: (1, 2), P1: (0, 1)}
    assert query.start.begin == {P1: 0}


def test_what_is_gone_from_a_log_is_not_planned():
    found = logs([0, 700, 1300])
    found.logs[P0].log_start = 1
    query = Query(found, starts={P0: 0})
    query.batch()
    assert query.cut == 1200


def test_what_came_behind_the_heads_is_left_to_the_next_planning():
    found = logs([0, 100, 200, 700], [0, 100])
    query = Query(found)
    edges = {P0: Edge(0, 2), P1: Edge(0, 1)}
    planned = query.alignment.plan(query.start, edges, {}, limit=100, now_ms=NOW, is_live=False)
    assert planned.ends == {P0: 2, P1: 1}


# ---- a limit


def test_a_limit_makes_the_cut_earlier():
    query = Query(logs(range(600), range(600)), limit=200)
    first = query.batch()
    assert first == {P0: (0, first[P0][1]), P1: (0, first[P0][1])}
    assert 50 <= first[P0][1] <= 100


def test_batches_with_a_limit_stay_within_it_and_ask_at_most_twelve_times():
    uneven = logs([each * each // 50 for each in range(3000)], range(0, 180_000, 60))
    query = Query(uneven, limit=100)
    uneven.lookups = 0
    while (found := query.batch()) is not None:
        assert 0 < sum(end - start for start, end in found.values()) <= 100
        assert uneven.lookups <= 12
        uneven.lookups = 0
    assert query.start.at == {P0: 3000, P1: 3000}


DAY = 24 * 3600 * 1000


@pytest.mark.parametrize("begins", [0, 1, 5 * 3600 * 1000], ids=["at the cut", "at once", "hours later"])
@pytest.mark.parametrize("rows_a_ms", [1, 10, 100])
def test_a_burst_in_a_long_span_is_not_read_millisecond_by_millisecond(begins, rows_a_ms):
    """All rows of a day stand within a second."""
    burst = [begins + at // rows_a_ms for at in range(1000 * rows_a_ms)]
    found = logs([*burst, 2 * DAY], [*burst, 2 * DAY])
    query = Query(found, limit=200 * rows_a_ms, cut=DAY)
    found.lookups = 0
    sizes = []
    while (batch := query.batch()) is not None:
        assert found.lookups <= 12
        found.lookups = 0
        sizes.append(sum(end - start for start, end in batch.values()))
    assert max(sizes) <= 200 * rows_a_ms
    assert sum(sizes) == 2 * (1000 * rows_a_ms + 1)
    assert len(sizes) <= 24, "ten, if each were full"


def test_a_moment_with_too_many_rows_is_split_by_topic_partition_and_offset():
    query = Query(logs([5] * 7, [5] * 7, [9]), limit=5)
    assert query.batch() == {P0: (0, 5)}
    assert query.start.plan.rest == Place("t", 0, 5)
    assert query.batch() == {P0: (5, 7), P1: (0, 3)}
    assert query.start.plan.rest == Place("t", 1, 3)
    assert query.batch() == {P1: (3, 7)}
    assert query.start.plan.rest is None
    assert query.cut == 6
    assert query.batch() == {P2: (0, 1)}


def test_a_split_moment_goes_on_after_a_restart():
    found = logs([5] * 7, [5] * 7)
    query = Query(found, limit=5)
    query.batch()
    again = Query(found, limit=5)
    again.start = Offset.parse(query.start.to_json())
    assert again.batch() == {P0: (5, 7), P1: (0, 3)}


def test_after_an_earlier_cut_the_next_is_on_the_grid_again():
    query = Query(logs([*range(400), 1000]), limit=300)
    query.batch()
    assert query.cut < 600
    query.batch()
    assert query.cut == 600


def test_one_row_at_a_time_is_possible():
    query = Query(logs([0, 0, 1, 700], [0, 3]), limit=1)
    assert [sum(end - start for start, end in each.values()) for each in query.all()] == [1] * 6


def test_a_moment_with_too_many_rows_is_split_although_late_rows_come_all_the_time():
    found = logs([0, *([700] * 40)], [0])
    query = Query(found, limit=10)
    query.batch()
    for _ in range(12):
        found.logs[P1].write([1])
        query.batch()
    assert query.start.at == {P0: 41, P1: 13}


def test_a_partition_whose_clock_lags_leaves_room_for_the_others():
    found = logs(range(0, 6000, 10), [0])
    query = Query(found, limit=20)
    query.batch()
    for _ in range(200):
        found.logs[P1].write([1] * 10)
        if P0 not in query.batch():
            break
    assert query.start.at[P0] == 600


def test_late_rows_that_fill_a_batch_almost_leave_what_is_left_to_the_others():
    found = logs(range(0, 6000, 10), [0])
    query = Query(found, limit=20)
    query.batch()
    before = query.start.at[P0]
    for _ in range(20):
        found.logs[P1].write([1] * 16)
        query.batch()
    assert query.start.at[P0] - before >= 20 * 2


def test_nor_do_they_when_the_rows_of_others_come_in_bursts():
    found = logs([cell + 590 + each for cell in range(0, 60_000, 600) for each in range(8)], [0])
    query = Query(found, limit=20)
    query.batch()
    before = query.start.at[P0]
    for _ in range(20):
        found.logs[P1].write([1] * 16)
        query.batch()
    assert query.start.at[P0] - before >= 20


def test_a_moment_that_is_too_much_with_late_rows_alone_is_found_in_a_few_batches():
    day = 24 * 3600 * 1000
    found = logs([0, *([day + 1000] * 60)], [0])
    query = Query(found, limit=100, cut=day)
    query.batch()
    for _ in range(8):
        found.logs[P1].write([1] * 41)
        query.batch()
    assert query.start.at[P0] == 61


# ---- the plan itself


def test_the_plan_is_in_the_offset():
    query = Query(logs([0, 700]))
    end = query.plan()
    assert end.plan == Plan(None, 600, asked=2)
