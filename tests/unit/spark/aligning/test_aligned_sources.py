"""Sources that read different topics and choose the same cuts, each for itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.timed_logs import TimedLog, TimedLogs
from tests.unit.spark.aligning.cut_query import FAR, NOW, OTHER, P0, Query

from lowwater.spark.offsets import Offset


def pair(**times):
    topics = {"t": P0, "u": OTHER}
    return TimedLogs({topics[name]: TimedLog(list(each)) for name, each in times.items()})


def cuts(query):
    found = []
    while query.batch() is not None:
        found.append(query.cut)
    return found


@pytest.mark.parametrize("limit", [1 << 62, 20])
def test_sources_that_read_other_topics_choose_the_same_cuts(limit):
    found = pair(t=range(0, 9000, 100), u=[*range(2000, 2300), *range(8000, 20_000, 100)])
    mine, other = (Query(found, own=[one], limit=limit) for one in (P0, OTHER))
    assert cuts(mine) == cuts(other)
    assert mine.start.at == {P0: found.logs[P0].end}
    assert other.start.at == {OTHER: found.logs[OTHER].end}


def test_sources_choose_the_same_cuts_when_both_are_restarted_at_every_batch():
    found = pair(t=range(0, 9000, 100), u=[*range(2000, 2300), *range(8000, 12_000, 100)])
    chosen = []
    for one in (P0, OTHER):
        start, mine = None, []
        while True:
            query = Query(found, own=[one])
            query.start = start or query.start
            if query.batch() is None:
                break
            mine.append(query.cut)
            start = Offset.parse(query.start.to_json())
        chosen.append(mine)
    assert chosen[0] == chosen[1]


def test_a_source_without_rows_goes_on_by_the_others_cuts():
    query = Query(pair(t=[0, 9000], u=range(0, 10_000, 500)), own=[P0])
    query.batch()
    assert query.batch() == {}
    assert query.cut == 1200


def test_a_limit_counts_the_rows_of_all_topics_that_are_aligned():
    found = pair(t=range(0, 600, 10), u=range(0, 600, 10))
    query = Query(found, own=[P0], limit=60)
    assert query.batch()[P0][1] <= 30


def cuts_with_restarts(found, own, limit):
    """As `cuts`, of a query that begins anew with what stands in its offset, for every batch."""
    chosen, start = [], None
    while True:
        query = Query(found, own=own, limit=limit)
        query.start = start or query.start
        if query.batch() is None:
            return chosen
        chosen.append(query.cut)
        assert len(chosen) < 1000, "there is an end"
        start = query.start


@pytest.mark.parametrize("limit", [1 << 62, 20, 7])
def test_a_restart_changes_no_cut_whatever_stands_in_the_other_topic(limit):
    """Ends of transactions with the broker's time, and rows of the far future: brokers find those and nothing else."""
    log = TimedLog()
    for number, time_ms in enumerate(range(0, 9000, 50), 1):
        log.write([FAR] if number % 40 == 3 else [time_ms])
        if number % 5 == 0:
            log.end_transaction(NOW)
    found = TimedLogs({P0: TimedLog(list(range(0, 9000, 100))), OTHER: log})
    expected = cuts(Query(found, own=[P0], limit=limit))
    assert cuts_with_restarts(found, [P0], limit) == expected
    assert cuts_with_restarts(found, [OTHER], limit) == expected


def test_where_the_others_are_stands_in_the_offset():
    query = Query(pair(t=[0, 700], u=[0, 10, 800]), own=[P0])
    query.batch()
    assert query.start.plan.others == {OTHER: 2}


def test_a_planning_that_has_to_find_the_others_first_asks_for_twelve_times_at_most():
    day = 24 * 3600 * 1000
    times = [0, *([3 * day + 40_000_123] * 100)]  # far away, and more than a batch may have
    found = pair(t=times, u=times)
    query = Query(found, own=[P0], limit=20, cut=day)
    query.batch()
    query.start = replace(query.start, plan=replace(query.start.plan, others={}))
    again = Query(found, own=[P0], limit=20, cut=day)
    again.start = query.start
    found.lookups = 0
    assert again.plan() is not None
    assert 8 < found.lookups <= 12
