"""Micro-batches that end at one moment, on logs in memory: what each batch reads, and what it took to find out."""

from __future__ import annotations

import itertools

import pytest
from tests.timed_logs import TimedLog, TimedLogs

from lowwater.spark.aligning.alignment import Alignment, late_before
from lowwater.spark.aligning.logs import Edge
from lowwater.spark.aligning.windows import Windows
from lowwater.spark.limits import readable
from lowwater.spark.offsets import Offset, Place, Plan, advance, ranges
from lowwater.types import TopicPartition

P0, P1, P2 = (TopicPartition("t", number) for number in range(3))
OTHER = TopicPartition("u", 0)
CUT, IDLE = 600, 100
NOW = 1_000_000_000_000
FAR = 4_000_000_000_000


class Query:
    """Plans as a stream does; `now_ms` is ours to move."""

    def __init__(self, logs, *, own=None, starts=None, limit=1 << 62, is_live=False, windows=None):
        self.logs = logs
        self.own = own
        self.limit = limit
        self.is_live = is_live
        self.now_ms = NOW
        starts = starts or {one: log.log_start for one, log in logs.logs.items() if own is None or one in own}
        self.start = Offset.initial(starts, {}, "00000000")
        self.alignment = Alignment(logs, CUT, IDLE, windows=windows)
        self.alignment.begin_others({one: 0 for one in logs.logs if one not in starts})
        self.batches = []

    def plan(self):
        """The end of the next batch; None when there is none now."""
        snapshot = self.logs.snapshot(self.now_ms, self.own)
        found = readable(self.start, snapshot)
        edges = {one: Edge(found.begins[one], head) for one, head in found.heads.items()}
        planned = self.alignment.plan(
            self.start, edges, snapshot.others, limit=self.limit, now_ms=self.now_ms, is_live=self.is_live
        )
        if planned is None:
            return None
        end = advance(
            self.start, planned.ends, found.introduced, ids={}, plan=planned.plan, also_empty=planned.also_empty
        )
        return None if end is self.start else end

    def batch(self):
        """The offsets of the next batch by partition, without those that have none; None when there is none now."""
        end = self.plan()
        if end is None:
            return None
        found = {one: tuple(each) for one, each in ranges(self.start, end).items() if each.size}
        self.start = Offset.parse(end.to_json())
        self.batches.append(found)
        return found

    @property
    def cut(self):
        return self.start.plan.cut_ms

    def all(self):
        """Every batch until there is none."""
        return list(itertools.takewhile(lambda found: found is not None, iter(self.batch, object())))


def logs(*times):
    return TimedLogs({TopicPartition("t", number): TimedLog(list(each)) for number, each in enumerate(times)})


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


# ---- rows out of their time, and ends of transactions


def test_a_row_of_the_future_does_not_stop_its_partition():
    query = Query(logs([0, FAR, 650, 700, 1250], [0, 650, 1250, 1900]))
    assert query.all() == [{P0: (0, 1), P1: (0, 1)}, {P0: (1, 4), P1: (1, 2)}, {P0: (4, 5), P1: (2, 3)}, {P1: (3, 4)}]


def test_rows_of_the_future_are_counted():
    query = Query(logs([0, 650, FAR, 655, 1250], [0, 650, 1250, 1900]))
    ahead = 0
    while query.batch() is not None:
        ahead += query.start.plan.ahead
    assert ahead == 1


def test_rows_behind_one_of_the_future_come_in_their_own_batches():
    found = logs([0, FAR, *range(10, 3000, 10)], range(0, 3000, 10))
    query = Query(found)
    while (batch := query.batch()) is not None:
        for one, (start, end) in batch.items():
            rows = found.logs[one].rows(start, end).times_ms
            assert all(time_ms < query.cut for time_ms in rows if time_ms != FAR)


def test_rows_between_rows_of_the_future_are_not_late():
    found = logs([0, FAR, 10, FAR, 20, FAR, *range(30, 3000, 10)])
    query = Query(found)
    assert query.batch() == {P0: (0, 63)}
    assert query.batch() == {P0: (63, 123)}


def test_a_clock_that_went_wrong_for_long_does_not_stop_its_partition():
    query = Query(logs([0, *([FAR] * 5000), 650, 1250], [0, 650, 1250, 1900]))
    assert query.batch() == {P0: (0, 1), P1: (0, 1)}
    while P0 not in query.batch():
        assert query.cut <= 1200
    query.all()
    assert query.start.at == {P0: 5003, P1: 4}


def test_a_last_row_of_the_future_is_read_too():
    query = Query(logs([0, 10, FAR], [0, 650]))
    query.all()
    assert query.start.at == {P0: 3, P1: 2}


def test_times_that_are_all_to_come_are_times_like_others():
    query = Query(logs([FAR, FAR + 700], [FAR + 700, FAR + 1300]))
    assert query.batch() == {P0: (0, 1)}
    assert query.batch() == {P0: (1, 2), P1: (0, 1)}


def transactional(times, marker_ms, every=3):
    log = TimedLog()
    for number, time_ms in enumerate(times, 1):
        log.write([time_ms])
        if number % every == 0:
            log.end_transaction(marker_ms)
    return log


def test_ends_of_transactions_with_the_brokers_time_do_not_stop_a_partition():
    found = TimedLogs({P0: transactional(range(0, 6000, 50), NOW), P1: transactional(range(0, 6000, 20), NOW)})
    query = Query(found)
    while (batch := query.batch()) is not None:
        for one, (start, end) in batch.items():
            times = found.logs[one].rows(start, end).times_ms
            assert all(query.cut - CUT <= each < query.cut for each in times), (query.cut, times)
    assert query.start.at == {one: log.end for one, log in found.logs.items()}
    assert len(query.batches) <= 11


def test_what_was_looked_at_is_not_fetched_again():
    found = TimedLogs({P0: transactional(range(0, 6000, 5), NOW), P1: TimedLog(list(range(0, 6000, 5)))})
    Query(found).all()
    assert found.fetched < 2 * 6000 / 5


def test_only_ends_of_transactions_are_passed_over():
    found = TimedLogs({P0: TimedLog([NOW] * 3, {0, 1, 2}), P1: TimedLog([0, 700])})
    query = Query(found)
    query.all()
    assert query.start.at == {P0: 3, P1: 2}


def test_a_long_way_to_look_is_gone_in_pieces_and_nobody_runs_ahead():
    found = TimedLogs({P0: transactional([*range(600), 650], NOW), P1: TimedLog([0, 650, 1250])})
    query = Query(found, windows=Windows(look=10, scan=100))
    batches = query.all()
    assert query.start.at == {one: log.end for one, log in found.logs.items()}
    places = [number for number, each in enumerate(batches) if P1 in each and each[P1][1] >= 2]
    assert all(found.logs[P0].times_ms[each[P0][1] - 2] < 600 for each in batches[: places[0]] if P0 in each)
    assert found.logs[P0].times_ms.index(650) in range(*batches[places[0]][P0])


def test_rows_out_of_order_come_with_a_later_batch_at_most():
    query = Query(logs([0, 610, 10, 620, 30, 1300]))
    query.all()
    assert query.start.at == {P0: 6}


# ---- the live edge


def test_a_cut_is_taken_when_every_partition_is_past_it():
    query = Query(logs([0, 600], [0, 601]), is_live=True)
    assert query.batch() == {P0: (0, 1), P1: (0, 1)}


def test_a_partition_without_new_rows_holds_the_cut_until_it_is_idle():
    query = Query(logs([0, 600], [0]), is_live=True)
    assert query.batch() is None
    query.now_ms += IDLE - 1
    assert query.batch() is None
    query.now_ms += 1
    assert query.batch() == {P0: (0, 1), P1: (0, 1)}


def test_an_empty_partition_holds_the_first_cut_only():
    query = Query(logs([0, 700, 1300, 1900], []), is_live=True)
    assert query.batch() is None
    query.now_ms += IDLE
    assert [query.batch(), query.batch(), query.batch()] == [{P0: (0, 1)}, {P0: (1, 2)}, {P0: (2, 3)}]


def test_a_partition_that_gets_rows_is_waited_for_until_it_is_past():
    query = Query(logs([0, 10], [0, 5]), is_live=True)
    for time_ms in range(20, 600, 50):
        query.now_ms += IDLE // 2
        query.logs.logs[P0].write([time_ms])
        query.logs.logs[P1].write([time_ms])
        assert query.batch() is None
    query.logs.logs[P0].write([600])
    query.logs.logs[P1].write([605])
    assert sum(end - start for start, end in query.batch().values()) == 28


def test_once_one_is_past_the_others_hold_the_cut_for_the_idle_timeout_at_most():
    query = Query(logs([0, 600], [0]), is_live=True)
    for time_ms in range(10):
        assert query.batch() is None
        query.now_ms += IDLE // 10
        query.logs.logs[P1].write([time_ms])
    assert query.batch() == {P0: (0, 1), P1: (0, 11)}


def test_rows_that_never_get_to_the_cut_do_not_hold_it_for_ever():
    query = Query(logs([0], [0]), is_live=True)
    until_ms = query.now_ms + CUT + IDLE
    while query.now_ms < until_ms:
        assert query.batch() is None
        query.logs.logs[P0].write([1])
        query.now_ms += 50
    assert query.batch() is not None


def test_what_comes_for_a_cut_that_is_over_is_read_at_once():
    query = Query(logs([0, 600], [0, 600]), is_live=True)
    query.batch()
    query.logs.logs[P0].write([])
    query.logs.logs[P1].times_ms[1:] = [20, 30]
    query.logs.logs[P0].times_ms[1:] = []
    assert query.batch() == {P1: (1, 3)}
    assert (query.start.plan.after_ms, query.cut) == (600, 600)


def test_pauses_do_not_make_the_cut_run_away():
    query = Query(logs([0], [0]), is_live=True)
    for time_ms in range(1, 30):
        if query.batch() is None:
            query.now_ms += IDLE
            query.batch()
        query.logs.logs[P0].write([time_ms])
    assert query.cut == 600


def test_a_held_cut_is_not_asked_for_again_while_nothing_is_new():
    found = logs([0, 600], [0])
    query = Query(found, is_live=True)
    query.batch()
    lookups = found.lookups
    for _ in range(50):
        assert query.batch() is None
    assert found.lookups == lookups


def test_an_open_transaction_holds_the_cut_for_the_idle_timeout_at_most():
    found = logs([0, 600], [0, 10, 600])
    found.logs[P1].open_from = 1
    query = Query(found, is_live=True)
    assert query.batch() is None
    query.now_ms += IDLE
    assert query.batch() == {P0: (0, 1), P1: (0, 1)}


def test_a_query_that_ends_waits_for_nobody():
    assert Query(logs([0, 600], [0], [])).batch() == {P0: (0, 1), P1: (0, 1)}


# ---- several sources


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


# ---- what is late


def offset_of(plan):
    return Offset({P0: 1}, lineage="00000000", plan=plan)


def test_rows_before_the_last_cut_are_late():
    assert late_before(offset_of(Plan(0, 600)), offset_of(Plan(600, 1200))) == 600


def test_the_rest_of_a_cut_is_not_late():
    first = offset_of(Plan(0, 600, Place("t", 0, 5)))
    assert late_before(first, offset_of(Plan(600, 600))) == 0


def test_nothing_is_late_before_there_was_a_cut():
    assert late_before(Offset.initial({P0: 0}, {}, "00000000"), offset_of(Plan(None, 600))) is None
    assert late_before(offset_of(None), offset_of(Plan(None, 600))) is None


# ---- limits of the plan itself


def test_the_plan_is_in_the_offset():
    query = Query(logs([0, 700]))
    end = query.plan()
    assert end.plan == Plan(None, 600, asked=2)
