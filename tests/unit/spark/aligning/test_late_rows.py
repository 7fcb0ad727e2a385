"""Which rows of a batch are late: those of a cut that was over."""

from __future__ import annotations

from tests.unit.spark.aligning.cut_query import P0, P1, Query, logs

from lowwater.spark.aligning.alignment import late_before
from lowwater.spark.offsets import Offset, Plan


def offset_of(plan):
    return Offset({P0: 1}, lineage="00000000", plan=plan)


def test_rows_before_the_last_cut_are_late():
    assert late_before(offset_of(Plan(0, 600)), offset_of(Plan(600, 1200))) == 600


def late_bounds(query):
    """Of every batch."""
    found = []
    while (end := query.plan()) is not None:
        found.append(late_before(query.start, end))
        query.batch()
    return found


def test_no_rest_of_a_cut_is_late_however_long_its_chain():
    query = Query(logs([0, *([700] * 9)]), limit=2)
    query.batch()
    cut = query.cut
    assert late_bounds(query) == [cut] * 5


def test_no_rest_of_the_first_cut_is_late():
    query = Query(logs([5] * 9), limit=2)
    assert [bound for bound in late_bounds(query) if bound is not None and bound > 5] == []


def test_the_rest_of_late_rows_is_late():
    found = logs([0, 700], [0, 700])
    query = Query(found, limit=2, is_live=True)
    query.batch()
    found.logs[P0].times_ms[1:] = [10] * 6
    found.logs[P1].times_ms[1:] = []
    assert late_bounds(query) == [query.cut] * 3


def test_the_floor_of_a_rest_is_its_cut():
    query = Query(logs([0, *([700] * 9)]), limit=2)
    query.all()
    assert query.start.plan.after_ms == query.cut


def test_nothing_is_late_before_there_was_a_cut():
    assert late_before(Offset.initial({P0: 0}, {}, "00000000"), offset_of(Plan(None, 600))) is None
    assert late_before(offset_of(None), offset_of(Plan(None, 600))) is None
