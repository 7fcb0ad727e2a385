"""Whose turn it is in order of time, and how much of each is asked for."""

from __future__ import annotations

from lowwater.client.fetching.partition import PartitionFetch
from lowwater.client.fetching.stored import NO_CLOCK, Piece
from lowwater.client.fetching.turns import PIECE_BYTES_MIN, due_first
from lowwater.types import TopicPartition

MEGABYTE = 1_000_000
NOW_MS = 1 << 50


def at(number: int, clock_ms: int, bytes_per_ms: float = 100.0, batch_bytes: int = 1000) -> PartitionFetch:
    partition = PartitionFetch(TopicPartition("t", number), 0)
    partition.clock_ms, partition.bytes_per_ms, partition.batch_bytes = clock_ms, bytes_per_ms, batch_bytes
    return partition


def asked(*partitions: PartitionFetch, bytes_max: int = MEGABYTE, piece_bytes: int = 0) -> dict[int, int]:
    return {one.partition: size for one, size in due_first(partitions, bytes_max, piece_bytes).items()}


def test_partitions_that_stand_together_share_what_comes() -> None:
    assert asked(at(0, 5000), at(1, 5000)) == {0: MEGABYTE // 2, 1: MEGABYTE // 2}


def test_the_one_that_is_behind_comes_alone_until_others_are_due() -> None:
    assert asked(at(0, 0), at(1, 10_001), at(2, 900_000)) == {0: MEGABYTE}
    assert list(asked(at(0, 0), at(1, 9_000), at(2, 900_000))) == [0, 1]


def test_all_are_asked_for_up_to_one_time() -> None:
    sizes = asked(at(0, 0), at(1, 4_000))
    assert sizes == {0: 700_000, 1: 300_000}, "both come to 7000"


def test_of_a_partition_with_eight_times_the_rows_eight_times_as_much_is_asked_for() -> None:
    assert asked(at(0, 0, 800.0), at(1, 0, 100.0), bytes_max=900_000) == {0: 800_000, 1: 100_000}


def test_a_batch_fits_into_what_is_asked_for() -> None:
    sizes = asked(at(0, 0, batch_bytes=800_000), at(1, 1, batch_bytes=800_000), at(2, 2, batch_bytes=800_000))
    assert sizes == {0: 900_000, 1: 900_000}, "and no more partitions than fill the answer"


def test_little_is_never_asked_for() -> None:
    assert asked(at(0, 0), at(1, 4_999), at(2, 0))[1] == PIECE_BYTES_MIN


def test_those_of_which_nothing_came_are_first() -> None:
    assert asked(at(0, 10), at(1, NO_CLOCK), at(2, NO_CLOCK), at(3, 5)) == {1: MEGABYTE // 4, 2: MEGABYTE // 4}
    many = [at(number, NO_CLOCK) for number in range(100)]
    assert asked(*many, piece_bytes=250_000) == dict.fromkeys(range(4), 250_000), "as many as come whole"


def test_one_is_asked_for_however_little_may_come() -> None:
    assert list(asked(at(0, 10), at(1, 5), bytes_max=1)) == [1]
    assert list(asked(at(0, NO_CLOCK), bytes_max=1, piece_bytes=MEGABYTE)) == [0]
    assert asked() == {}


def test_rows_of_one_moment_come_of_all_partitions() -> None:
    assert list(asked(at(0, 7, 1e9), at(1, 7, 1e9))) == [0, 1]


def test_a_clock_goes_on_with_what_came_but_not_into_the_future() -> None:
    partition = at(0, NO_CLOCK, batch_bytes=0)
    partition.go_on_with(Piece(10, batch_bytes=500, first_ms=1000, newest_ms=2000), 5_000, NOW_MS)
    assert (partition.position, partition.clock_ms, partition.bytes_per_ms) == (10, 2000, 5.0)
    partition.go_on_with(Piece(20, batch_bytes=90, first_ms=1500, newest_ms=1600), 90, NOW_MS)
    assert (partition.position, partition.clock_ms, partition.batch_bytes) == (20, 2000, 500), "it never goes back"
    partition.go_on_with(Piece(30, batch_bytes=90, first_ms=1500, newest_ms=NOW_MS + 1), 90, NOW_MS)
    assert (partition.position, partition.clock_ms) == (30, 2000)
