"""Rows out of their time, and ends of transactions: what brokers find by time need not be what is to be read next."""

from __future__ import annotations

from tests.timed_logs import TimedLog, TimedLogs
from tests.unit.spark.aligning.cut_query import CUT, FAR, IDLE, NOW, P0, P1, Query, logs

from lowwater.spark.aligning.windows import Windows
from lowwater.spark.offsets import TIME_MAX


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


# ---- a live stream that sees little but rows of the far future


MICROS = NOW * 1000


def test_a_live_stream_does_not_begin_with_a_few_rows_of_the_far_future():
    found = logs([MICROS, MICROS + 1], [])
    query = Query(found, is_live=True)
    query.batch()
    query.now_ms += IDLE
    assert query.batch() == {P0: (0, 2)}
    assert NOW < query.cut <= NOW + 2 * CUT
    assert query.start.plan.ahead == 2


def test_a_live_stream_begins_in_the_future_when_all_that_was_looked_for_lies_there():
    query = Query(logs([MICROS] * 10, [MICROS] * 10), is_live=True, windows=Windows(look=20))
    query.now_ms += IDLE
    query.batch()
    query.now_ms += IDLE
    query.batch()
    assert query.cut > MICROS


def test_no_single_row_takes_the_cuts_of_a_live_stream_to_the_far_future():
    """Nor when its clocks are a little ahead, and its cuts with them."""
    found = logs([NOW + 2 * CUT - 1], [NOW + 2 * CUT - 1])
    query = Query(found, is_live=True)
    query.batch()
    query.now_ms += IDLE
    assert query.batch() is not None
    assert query.cut > NOW + CUT
    for _ in range(20):
        found.logs[P0].write([MICROS])
        while query.batch() is None:
            query.now_ms += IDLE
            assert query.now_ms < NOW + 100 * IDLE
    assert query.cut <= query.now_ms + 3 * CUT


def test_the_last_time_there_is_is_read_too():
    query = Query(logs([TIME_MAX, TIME_MAX], [TIME_MAX - 1]))
    query.all()
    assert query.start.at == {P0: 2, P1: 1}
    assert query.cut <= TIME_MAX


# ---- ends of transactions among rows of the same time


def marked(*times):
    """Negative ones are ends of transactions."""
    log = TimedLog()
    for time_ms in times:
        if time_ms < 0:
            log.end_transaction(-time_ms)
        else:
            log.write([time_ms])
    return log


def test_rows_behind_the_end_of_a_transaction_are_not_late():
    query = Query(TimedLogs({P0: marked(590, 595, -601, 598, 599, 650), P1: marked(0, 700)}))
    assert query.batch() == {P0: (0, 5), P1: (0, 1)}
    assert query.batch() == {P0: (5, 6), P1: (1, 2)}


def test_the_end_of_a_transaction_is_where_a_partition_ends_when_only_later_rows_are_behind_it():
    query = Query(TimedLogs({P0: marked(590, 595, -601, 650, 660), P1: marked(0, 700)}))
    assert query.batch() == {P0: (0, 2), P1: (0, 1)}


def test_whether_it_is_a_row_that_was_found_takes_one_request_and_no_more_while_nothing_is_new():
    times = [time_ms for ten in range(0, 6000, 10) for time_ms in (ten, -(ten + 5))]
    found = TimedLogs({P0: marked(*times[2:])})
    query = Query(found, windows=Windows(look=5))
    query.batch()
    while query.batch() is not None:
        assert query.start.plan.asked <= 3


def test_a_limit_is_kept_where_ends_of_transactions_stand_between_the_rows():
    found = TimedLogs({P0: marked(590, 595, -601, *([598] * 9), 650), P1: marked(0, 700)})
    query = Query(found, limit=4)
    assert all(sum(end - start for start, end in each.values()) <= 4 for each in query.all())
    assert query.start.at == {one: log.end for one, log in found.logs.items()}
