"""What an ordered reader may release, and whom it makes wait."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.merge.rows import PlainReader

from lowwater.merge.mark import EVERYTHING, NOTHING, Mark
from lowwater.merge.merging import Merging
from lowwater.types import TopicPartition

P0, P1, P2 = (TopicPartition("cars", index) for index in range(3))


def times(rows: list) -> list[int]:  # type: ignore[type-arg]
    return [row.timestamp_ms for row in rows]


def test_rows_up_to_the_slowest_clock_go_and_the_rest_when_all_are_live() -> None:
    reader = PlainReader({P0: [100, 200, 300, 400, 500], P1: [150, 250, 600]})
    reader.fetch(P0, 4)
    reader.fetch(P1, 2)
    assert times(reader.poll()) == [100, 150, 200, 250]
    reader.fetch(P0, 1)
    reader.fetch(P1, 1)
    assert times(reader.poll()) == [300, 400, 500, 600]


def test_a_partition_of_which_nothing_came_yet_holds_everything() -> None:
    reader = PlainReader({P0: [100, 200], P1: [50, 60]})
    reader.fetch(P0, 2)
    assert reader.merging.mark == NOTHING
    assert reader.poll() == []
    reader.fetch(P1, 1)
    assert times(reader.poll()) == [50]


def test_a_batch_is_no_larger_than_asked() -> None:
    reader = PlainReader({P0: list(range(10))}, batch_size=4)
    reader.fetch(P0, 10)
    assert [len(reader.poll()) for _ in range(4)] == [4, 4, 2, 0]


def test_a_partition_that_is_read_to_its_end_is_live_and_stays_so() -> None:
    merging = Merging(batch_size=10, held_bytes_max=1000)
    merging.add(P0, 5, 8)
    merging.arrived(P0, 7, newest_ms=100, rows=1, size=1)
    assert not merging.is_live
    merging.arrived(P0, 8)
    assert merging.is_live
    merging.arrived(P0, 9, newest_ms=50, rows=1, size=1)
    assert merging.is_live
    assert merging.mark == EVERYTHING


def test_a_partition_is_live_when_its_clock_reaches_the_cutoff() -> None:
    merging = Merging(batch_size=10, held_bytes_max=1000, cutoff_ms=200)
    merging.add(P0, 0, 100)
    merging.arrived(P0, 1, newest_ms=199, rows=1, size=1)
    assert not merging.is_live
    merging.arrived(P0, 2, newest_ms=200, rows=1, size=1)
    assert merging.is_live


def test_nothing_to_read_is_live_at_once() -> None:
    merging = Merging(batch_size=10, held_bytes_max=1000)
    merging.add(P0, 7, 7)
    merging.add(P1, 9, 7)
    assert merging.is_live
    assert merging.mark == EVERYTHING


def test_a_gap_at_the_end_does_not_keep_a_partition_from_being_live() -> None:
    reader = PlainReader({P0: [100, None, None], P1: [None, None]})
    reader.fetch(P0, 3)
    reader.fetch(P1, 2)
    assert reader.merging.is_live
    assert times(reader.poll()) == [100]


def test_timestamps_out_of_order_never_turn_live_back() -> None:
    reader = PlainReader({P0: [100, 300, 200], P1: [150]}, cutoff_ms=300)
    reader.fetch(P1, 1)
    reader.fetch(P0, 2)
    assert reader.merging.is_live
    reader.fetch(P0, 1)
    assert reader.merging.is_live
    assert times(reader.poll()) == [100, 150, 200, 300]


def test_rows_of_the_same_time_go_by_topic_and_partition_however_they_arrive() -> None:
    reader = PlainReader({P0: [100, 100, 100, 900], P1: [100, 100, 900]})
    reader.fetch(P1, 2)
    reader.fetch(P0, 1)
    assert [row.partition for row in reader.poll()] == [0]  # two more of partition 0 may be stamped 100
    reader.fetch(P0, 3)
    assert [(row.partition, row.offset) for row in reader.poll()] == [(0, 1), (0, 2), (1, 0), (1, 1)]


def test_partitions_ahead_pause_when_too_much_is_held_and_resume_when_little_is() -> None:
    reader = PlainReader({P0: [1, 100], P1: list(range(200, 300))}, batch_size=4)
    reader.fetch(P0, 1)
    reader.fetch(P1, 19)
    assert not reader.merging[P1].is_paused
    reader.fetch(P1, 1)
    assert reader.merging[P1].is_paused
    assert not reader.merging[P0].is_paused
    reader.fetch(P0, 1)  # and it is live
    assert not reader.merging[P1].is_paused  # the mark is its own now
    assert times(reader.poll()) == [1, 100, 200, 201]


def test_bytes_are_bounded_like_rows() -> None:
    merging = Merging(batch_size=1000, held_bytes_max=100)
    merging.add(P0, 0, 10)
    merging.add(P1, 0, 10)
    merging.arrived(P0, 1, newest_ms=1, rows=1, size=1)
    merging.arrived(P1, 1, newest_ms=50, rows=1, size=101)
    assert merging.balance() == ([P1], [])
    merging.left(P1, 1, 101)
    assert merging.balance() == ([], [P1])


def test_partitions_that_have_hardly_anything_go_on_together_with_the_one_that_is_waited_for() -> None:
    merging = Merging(batch_size=100, held_bytes_max=1_000_000)
    for one, newest_ms, rows in ((P0, 10, 1), (P1, 11, 20), (P2, 900, 600)):
        merging.add(one, 0, 1000)
        merging.arrived(one, rows, newest_ms=newest_ms, rows=rows, size=rows)
    assert merging.balance() == ([P2], [])
    merging.arrived(P1, 60, newest_ms=12, rows=40, size=40)
    assert merging.balance() == ([P1], [])  # it has more than its share now
    merging.left(P1, 50, 50)
    assert merging.balance() == ([], [P1])


def test_a_partition_without_any_rows_yet_never_pauses() -> None:
    merging = Merging(batch_size=1, held_bytes_max=100)
    merging.add(P0, 0, 10)
    merging.add(P1, 0, 10)
    merging.arrived(P0, 4)
    merging.arrived(P1, 6, newest_ms=1, rows=6, size=6)
    assert merging.balance() == ([P1], [])


def test_a_paused_partition_still_holds_the_mark() -> None:
    merging = Merging(batch_size=1, held_bytes_max=100)
    merging.add(P0, 0, 10)
    merging.add(P1, 0, 10)
    merging.add(P2, 0, 10)
    merging.arrived(P0, 1, newest_ms=10, rows=1, size=1)
    merging.arrived(P1, 1, newest_ms=20, rows=5, size=5)
    merging.arrived(P2, 1, newest_ms=30, rows=1, size=1)
    assert merging.balance() == ([P1, P2], [])
    merging.arrived(P0, 2, newest_ms=100)
    assert merging.mark == Mark(20, *P1)


def test_a_row_of_the_future_waits_and_does_not_move_the_clock() -> None:
    reader = PlainReader({P0: [100, 9000, 120, 500], P1: [110, 130, 600]}, created_ms=1000)
    reader.fetch(P0, 3)
    reader.fetch(P1, 2)
    assert times(reader.poll()) == [100, 110, 120]
    assert reader.merging[P0].future_rows == 1
    reader.fetch(P0, 1)
    reader.fetch(P1, 1)
    assert times(reader.poll()) == [130, 500, 600, 9000]


def test_rows_of_a_removed_partition_are_no_longer_held_nor_waited_for() -> None:
    merging = Merging(batch_size=10, held_bytes_max=1000)
    merging.add(P0, 0, 10)
    merging.add(P1, 0, 10)
    merging.arrived(P0, 10, newest_ms=5, rows=3, size=30)
    merging.arrived(P1, 2, newest_ms=1, rows=2, size=20)
    merging.remove(P1)
    assert (merging.held_rows, merging.held_bytes) == (3, 30)
    assert merging.is_live


def test_a_partition_that_is_found_later_holds_nobody_who_is_to_stay_live() -> None:
    reader = PlainReader({P0: [100]})
    reader.fetch(P0, 1)
    reader.merging.stay_live()
    reader.logs[P1] = [50, 200]
    reader.merging.add(P1, 0, 2)
    assert reader.merging.is_live
    assert times(reader.poll()) == [100]
    reader.fetch(P1, 2)
    assert times(reader.poll()) == [50, 200]


def test_a_partition_that_is_found_before_everything_was_returned_is_waited_for() -> None:
    reader = PlainReader({P0: [100]})
    reader.fetch(P0, 1)
    assert reader.merging.is_live
    reader.logs[P1] = [50, 200]
    reader.merging.add(P1, 0, 2)
    assert not reader.merging.is_live
    assert times(reader.poll()) == []
    reader.fetch(P1, 2)
    assert times(reader.poll()) == [50, 100, 200]


def test_where_all_partitions_went_the_next_ones_are_ordered() -> None:
    merging = Merging(batch_size=10, held_bytes_max=1000)
    merging.add(P0, 0, 10)
    merging.add(P1, 10, 10)
    merging.remove(P0)
    merging.remove(P1)
    assert not merging.is_live
    merging.add(P0, 0, 10)
    merging.add(P1, 10, 10)
    assert merging.mark == NOTHING


LOGS = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from(["cars", "bikes"]), st.integers(0, 2)),
    st.lists(st.none() | st.integers(0, 30), max_size=25),
    min_size=1,
    max_size=5,
)


def play(reader: PlainReader, chance: random.Random) -> list:  # type: ignore[type-arg]
    """Fetch and poll in any order until everything is out; each round makes progress."""
    out = []
    partitions = list(reader.logs)
    while reader.held or any(progress.position < progress.end for _, progress in reader.merging):
        before = len(out), sum(progress.position for _, progress in reader.merging)
        for one in chance.sample(partitions, len(partitions)):
            reader.fetch(one, chance.randint(1, 4))
            if chance.random() < 0.3:
                out += reader.poll()
        out += reader.poll()
        assert (len(out), sum(progress.position for _, progress in reader.merging)) != before
    return out


@given(LOGS, st.integers(1, 6), st.integers(0, 1 << 30))
def test_any_interleaving_gives_each_row_once_and_ordered_partitions_give_one_total_order(
    logs: dict[TopicPartition, list[int | None]], batch_size: int, seed: int
) -> None:
    ordered = {one: _sorted_where_there_are_rows(log) for one, log in logs.items()}
    first = play(PlainReader(ordered, batch_size=batch_size), random.Random(seed))
    assert first == sorted(first)
    assert len(first) == sum(ts is not None for log in ordered.values() for ts in log)
    assert first == play(PlainReader(ordered, batch_size=batch_size), random.Random(seed + 1))
    disordered = play(PlainReader(logs, batch_size=batch_size), random.Random(seed))
    assert sorted(disordered) == sorted(set(disordered))
    assert len(disordered) == len(first)


@given(LOGS, st.integers(1, 6), st.integers(0, 1 << 30))
def test_who_polls_before_fetching_more_holds_no_more_than_the_bound_and_one_fetch_of_each_partition(
    logs: dict[TopicPartition, list[int | None]], batch_size: int, seed: int
) -> None:
    reader = PlainReader(logs, batch_size=batch_size)
    chance = random.Random(seed)
    while reader.held or any(progress.position < progress.end for _, progress in reader.merging):
        while reader.poll():
            pass
        reader.fetch(chance.choice(list(logs)), 4)
    assert reader.held_most <= 5 * batch_size + 4 * len(logs)


def _sorted_where_there_are_rows(log: list[int | None]) -> list[int | None]:
    stamps = iter(sorted(ts for ts in log if ts is not None))
    return [None if ts is None else next(stamps) for ts in log]


def put_back_three() -> Merging:
    """Three that have read everything, while P0 and P1 are put back and P2 has one row, stamped 50."""
    merging = Merging(batch_size=10, held_bytes_max=100)
    for one in (P0, P1, P2):
        merging.add(one, 0, 10)
    for one, newest_ms in ((P0, 300), (P1, 200), (P2, 50)):
        merging.arrived(one, 9, newest_ms=newest_ms, rows=1, size=60)
    for one, key_ms in ((P0, 300), (P1, 200)):
        merging.left(one, 1, 60)
        merging.put_back(one, 4, key_ms, future_rows=0)
    return merging


def test_a_partition_that_was_put_back_holds_the_mark_where_its_next_row_is() -> None:
    merging = put_back_three()
    assert (merging.held_rows, merging.held_bytes, merging[P0].position) == (1, 60, 4)
    assert merging.mark == Mark(50, *P2)
    merging.arrived(P2, 10)
    assert merging.mark == Mark(200, *P1), "also when it had come to its end before"
    assert not merging.is_live


def test_what_was_put_back_and_came_again_holds_nobody_any_more() -> None:
    merging = put_back_three()
    merging.arrived(P2, 10, newest_ms=400, rows=2, size=100)
    merging.arrived(P1, 10, newest_ms=200, rows=1, size=60)
    assert merging.mark == Mark(300, *P0)
    merging.arrived(P0, 10, newest_ms=300, rows=1, size=60)
    assert merging.mark == EVERYTHING


def test_a_row_of_the_future_that_is_put_back_moves_no_clock_as_long_as_more_may_follow() -> None:
    merging = Merging(batch_size=10, held_bytes_max=100)
    merging.add(P0, 0, 10)
    merging.add(P1, 0, 10)
    merging.arrived(P0, 2, newest_ms=300, rows=2, size=60, future_rows=1)
    merging.arrived(P1, 9, newest_ms=100, rows=1, size=60)
    merging.left(P0, 1, 30)
    merging.put_back(P0, 1, 900, future_rows=1)
    merging.arrived(P1, 10)
    assert merging.mark == Mark(300, *P0), "the next row behind that of the future may be stamped 301"
    assert merging[P0].future_rows == 0


def test_a_partition_of_the_future_is_taken_at_its_word_when_there_is_no_other_way() -> None:
    merging = Merging(batch_size=10, held_bytes_max=100)
    merging.add(P0, 0, 10)
    merging.add(P1, 0, 10)
    merging.arrived(P0, 2, rows=2, size=200, future_rows=2)
    merging.arrived(P1, 9, newest_ms=100, rows=1, size=60)
    assert merging.can_be_put_back() == [P1], "P0 is waited for"
    assert merging.claim_the_future() == [P0]
    merging.left(P0, 1, 100)
    merging.put_back(P0, 1, 900, future_rows=1, is_believed=True)
    assert merging.mark == Mark(100, *P1)
    merging.arrived(P1, 10)
    assert merging.mark == Mark(900, *P0)


def test_those_who_are_waited_for_are_not_put_back() -> None:
    merging = Merging(batch_size=10, held_bytes_max=100)
    for one in (P0, P1, P2):
        merging.add(one, 0, 10)
    merging.arrived(P0, 1, newest_ms=100, rows=1, size=200)
    assert merging.can_be_put_back() == [P0], "the others are waited for, and have nothing"
    merging.arrived(P1, 1, newest_ms=50, rows=1, size=200)
    merging.arrived(P2, 1, newest_ms=70, rows=1, size=200)
    assert merging.can_be_put_back() == [P0, P2]
    assert put_back_three().can_be_put_back() == []
