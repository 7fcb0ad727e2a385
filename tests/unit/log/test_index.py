"""The sparse index, in memory and in Kafka's files."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from lowwater.log.index import SegmentIndex
from lowwater.log.tally import Tally

BASE = 1000
batches = st.lists(
    st.tuples(st.integers(1, 5), st.integers(0, 50), st.integers(70, 400)), min_size=0, max_size=60
)  # (records, timestamp, size)


def tally_of(layout: list[tuple[int, int, int]], interval: int = 300) -> tuple[Tally, list[tuple[int, int, int]]]:
    """The tally, and (position, last offset, timestamp) of each batch."""
    tally = Tally(BASE, 0)
    tally.start_over()
    noted = []
    offset = BASE
    for count, timestamp, size in layout:
        last = offset + count - 1
        noted.append((tally.size, last, timestamp))
        tally.note(struct.pack(">q13x", offset), last, timestamp, size, interval)
        offset = last + 1
    return tally, noted


@given(batches, st.integers(0, 300))
def test_the_search_for_an_offset_begins_at_a_batch_at_or_before_it(
    layout: list[tuple[int, int, int]], offset: int
) -> None:
    tally, noted = tally_of(layout)
    begin = tally.index.position_before(offset)
    wanted = next((position for position, last, _ in noted if last >= BASE + offset), tally.size)
    assert begin == 0 or begin in {position for position, _, _ in noted}
    assert begin <= wanted
    assert sum(1 for position, _, _ in noted if begin <= position < wanted) <= 6


@given(batches, st.integers(0, 51))
def test_the_search_for_a_time_begins_before_the_first_batch_that_late(
    layout: list[tuple[int, int, int]], timestamp: int
) -> None:
    tally, noted = tally_of(layout)
    begin = tally.index.position_for_time(timestamp)
    first = next((position for position, _, time in noted if time >= timestamp), None)
    assert first is None or begin <= first


@given(batches)
def test_kafkas_files_give_the_same_index_back(layout: list[tuple[int, int, int]]) -> None:
    tally, _ = tally_of(layout)
    index = tally.index
    again = SegmentIndex.from_files(
        index.offset_file(),
        index.time_file(tally.max_timestamp, tally.max_timestamp_offset - BASE),
        index.entries.sums.tobytes(),
    )
    ours, theirs = index.entries, again.entries
    assert (theirs.offsets, theirs.positions, theirs.sums) == (ours.offsets, ours.positions, ours.sums)
    assert theirs.times[: len(ours.times)] == ours.times
    for timestamp in range(52):
        assert again.position_for_time(timestamp) == index.position_for_time(timestamp)
    for offset in range(0, 200, 7):
        assert again.position_before(offset) <= index.position_before(offset)


def test_entries_have_kafkas_layout() -> None:
    tally, _ = tally_of([(2, 10, 301), (3, 20, 301), (1, 5, 100), (1, 30, 301)], interval=300)
    index = tally.index
    assert index.offset_file() == struct.pack(">iiii", 4, 301, 5, 602)
    assert index.time_file(30, 6) == struct.pack(">qiqi", 20, 4, 30, 6)
    assert index.time_file(20, 4) == struct.pack(">qi", 20, 4)


def test_boundaries_are_batches() -> None:
    tally, noted = tally_of([(1, 0, 150)] * 20)
    positions = {position for position, _, _ in noted}
    for position in range(0, tally.size, 10):
        boundary = tally.index.boundary_before(position)
        assert boundary in positions
        assert boundary <= position
