"""Where a slice lies in a partition, by what brokers answer."""

from __future__ import annotations

import pytest

from lowwater.client.offsets import Found
from lowwater.client.ranges import OffsetRange
from lowwater.spark.offsets import Bound, Range
from lowwater.spark.ordering.extents import Extent, end_ms, ended, guessed, start_ms, started
from lowwater.spark.splitting import Slice
from lowwater.types import TopicPartition

WHOLE = OffsetRange(TopicPartition("t", 0), 100, 200)


@pytest.mark.parametrize(
    ("answer", "log_start", "start"),
    [
        (150, 0, 150),
        (100, 0, 100),
        (40, 0, 100),  # a row of the far future stands before the range
        (200, 0, 200),
        (250, 0, 250),
        (-1, 0, 200),  # nothing is stamped so late
        (150, 120, 150),  # what is gone is older than the slice
        (120, 120, 100),  # it may have begun in what is gone: whoever reads that is told
        (-1, 120, 200),
        (300, 300, 100),
        (-1, 200, 100),
    ],
)
def test_a_slice_begins_where_no_row_of_it_can_lie_before(answer, log_start, start):
    assert started(WHOLE, Found(answer), log_start) == start


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        (None, 200),
        (-1, 200),
        (150, 151),  # with the row that shows that the slice is over
        (119, 200),  # found before the slice, so of no use
        (120, 121),
        (199, 200),
        (500, 200),
    ],
)
def test_a_slice_ends_behind_the_first_row_that_is_too_late(answer, end):
    found = None if answer is None else Found(answer)
    assert ended(Extent(120, 200, 200), found) == Extent(120, end, 200)


@pytest.mark.parametrize(
    ("part", "start", "end"),
    [
        (Slice(None, None, 5), None, None),
        (Slice(Bound(10), Bound(20), 5), 10, 25),
        (Slice(Bound(10, "a", 0, 3), Bound(20, "a", 0, 3), 5), 10, 26),
        (Slice(Bound(10), Bound(20), 5, floor_ms=9), 10, 25),
        (Slice(Bound(10), Bound(20), 5, floor_ms=10), None, 25),  # what is older than the cut before it is there too
        (Slice(Bound(10), Bound(20), 5, cap_ms=25), 10, 25),
        (Slice(Bound(10), Bound(20), 5, cap_ms=24), 10, None),  # nothing counts as so late that it would be over
        (Slice(Bound(10), Bound((1 << 63) - 3), 5), 10, None),
    ],
)
def test_brokers_are_asked_for_times_that_bound_the_slice(part, start, end):
    assert (start_ms(part), end_ms(part)) == (start, end)


@pytest.mark.parametrize(
    ("first", "behind", "extent"),
    [
        (None, None, (100, 200)),
        (150, None, (150, 200)),
        (-1, None, (200, 200)),  # nothing is stamped so late
        (40, 150, (100, 151)),
        (120, 130, (120, 131)),
        (100, 164, (100, 166)),  # a little more than was guessed, which is likely to do
        (150, 120, (150, 151)),
        (120, 500, (120, 200)),
        (500, None, (200, 200)),
    ],
)
def test_planning_tells_where_a_slice_begins_and_guesses_where_it_ends(first, behind, extent):
    assert guessed(Range(100, 200), first, behind) == extent
