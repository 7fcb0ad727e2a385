"""How long a cut is held for rows that may still come before it."""

from __future__ import annotations

from tests.unit.spark.aligning.cut_query import CUT, IDLE, P0, P1, Query, logs


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


def test_a_limit_does_not_make_a_cut_hold_for_longer():
    """With every row that comes the cut is another one; the time it is held is not."""
    query = Query(logs([0, *range(100, 580, 4)], [0]), limit=60, is_live=True)
    began_ms = query.now_ms
    while query.batch() is None:
        assert query.now_ms - began_ms < IDLE
        query.logs.logs[P0].write([590])
        query.logs.logs[P1].write([1])
        query.now_ms += IDLE // 10
    assert query.now_ms - began_ms == IDLE  # and not before


def test_late_rows_alone_do_not_begin_to_hold_the_next_cut():
    query = Query(logs([0, 600], [0, 600]), is_live=True)
    query.batch()
    query.logs.logs[P0].times_ms[1:] = []
    query.logs.logs[P1].times_ms[1:] = [20]
    assert query.batch() == {P1: (1, 2)}
    query.now_ms += 10 * CUT
    query.logs.logs[P0].write([6100])
    assert query.batch() is None
    query.logs.logs[P1].write([6200])
    assert query.batch() is None


def test_late_rows_all_the_time_do_not_make_a_cut_hold_for_longer():
    query = Query(logs([0, 600], [0, 600]), is_live=True)
    query.batch()
    query.logs.logs[P1].times_ms[1:] = [20]
    query.logs.logs[P0].write([1200])
    began_ms = query.now_ms
    while query.cut == 600:
        assert query.now_ms - began_ms <= IDLE
        query.batch()
        query.logs.logs[P1].write([20])
        query.now_ms += IDLE // 10
