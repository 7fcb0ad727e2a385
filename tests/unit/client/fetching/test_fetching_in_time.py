"""In order of time: those who are furthest behind are asked for, wherever they are, and nobody before his turn."""

from __future__ import annotations

from tests.unit.client.fetching.played import PlayedCluster
from tests.unit.client.fetching.probe import Probe

from lowwater.types import TopicPartition
from lowwater.wire.messages import FetchRequest

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
KILOBYTE = b"v" * 1000
NEVER_MS = 1 << 60


def cluster(*leaders: int, starts_ms: tuple[int, ...], batches: int = 100, step_ms: int = 10) -> PlayedCluster:
    """Topic t; each partition has batches of ten rows of a kilobyte, one a millisecond, from its own time on."""
    played = PlayedCluster()
    for one, start_ms in zip(played.create("t", *leaders), starts_ms, strict=True):
        for number in range(batches):
            played.append(one, 10, KILOBYTE, start_ms + number * step_ms)
    return played


def probe_of(played: PlayedCluster, *, until_ms: int = NEVER_MS, bytes_max: int = 1 << 20) -> Probe:
    probe = Probe(played, {}, bytes_max=bytes_max)
    probe.rows = {one: [] for one in played.logs}
    probe.run(played.cluster.topics({"t"}))
    probe.fetcher.read_in_time(until_ms)
    probe.fetcher.add(dict.fromkeys(played.logs, 0))
    return probe


def named(request: FetchRequest) -> list[int]:
    return [each.partition for topic in request.topics for each in topic.partitions]


def forgotten(request: FetchRequest) -> list[int]:
    return [number for topic in request.forgotten_topics_data for number in topic.partitions]


def test_after_the_first_rows_of_all_only_the_one_that_is_behind_is_asked_for() -> None:
    played = cluster(1, 1, 1, starts_ms=(0, 100_000, 200_000))
    probe = probe_of(played)
    probe.drain()
    first, second, *others = played.fetches(waiting=False)
    assert named(first) == [0, 1, 2]
    assert (named(second), sorted(forgotten(second))) == ([0], [1, 2])
    turns = [number for each in others for number in named(each)]
    assert turns == sorted(turns), "one after the other, as they follow in time"
    assert probe.rows == {one: [*range(1000)] for one in played.logs}


def test_partitions_that_stand_together_are_asked_for_together() -> None:
    played = cluster(1, 1, 1, starts_ms=(0, 0, 0))
    probe = probe_of(played)
    probe.drain()
    asked = [named(each) for each in played.fetches(waiting=False) if named(each)]
    assert asked[:-1] == [[0, 1, 2]] * (len(asked) - 1)


def test_a_broker_whose_partitions_are_ahead_has_to_wait() -> None:
    played = cluster(1, 2, starts_ms=(0, 100_000), batches=300)
    probe = probe_of(played)
    while len(probe.rows[T0]) < 2_900:
        assert len(probe.rows[T1]) < 1_500, "a piece or two"
        probe.wait()
        probe.take()
    probe.drain()
    assert probe.rows == {one: [*range(3000)] for one in played.logs}


def test_rows_of_the_future_do_not_let_a_partition_wait() -> None:
    played = cluster(1, 1, starts_ms=(0, 100_000))
    probe = probe_of(played, until_ms=99_999)
    probe.drain()
    assert [named(each) for each in played.fetches(waiting=False)][:2] == [[0, 1], [1]], "nothing counts of it so far"
    assert probe.rows == {one: [*range(1000)] for one in played.logs}


def test_without_an_order_of_time_everybody_has_his_turn_again() -> None:
    played = cluster(1, 1, starts_ms=(0, 100_000), batches=300)
    probe = probe_of(played)
    probe.wait()
    probe.take()
    probe.fetcher.read_in_time(None)
    while len(probe.rows[T0]) < 3000:
        probe.wait()
        probe.take()
    assert len(probe.rows[T1]) > 1500
    probe.drain()
    assert probe.rows == {one: [*range(3000)] for one in played.logs}


def test_the_first_rows_of_all_brokers_come_side_by_side() -> None:
    played = cluster(*[1] * 20, *[2] * 20, *[3] * 20, starts_ms=(0,) * 60, batches=3)
    probe = probe_of(played, bytes_max=2 << 20)
    probe.wait()
    assert {number // 20 for each in played.fetches(waiting=False) for number in named(each)} == {0, 1, 2}
    probe.drain()
    assert probe.rows == {one: [*range(30)] for one in played.logs}


def test_where_rows_lead_to_is_as_the_reader_says() -> None:
    played = cluster(1, 1, starts_ms=(0, 100_000))
    probe = probe_of(played)
    while not probe.rows[T1]:
        probe.wait()
        probe.take()
    before = len(played.fetches())
    probe.fetcher.stands_at(T0, 5, 300_000)
    probe.fetcher.stands_at(T1, probe.fetcher.position(T1), 0)
    probe.fetcher.stands_at(T0, probe.fetcher.position(T0), 200_000)
    probe.fetcher.stands_at(T2, 0, 0)
    probe.wait()
    probe.take()
    probe.wait()
    asked = [named(each) for each in played.fetches()[before + 1 :] if named(each)]
    assert asked[0] == [1], "by its headers the other is behind"
    probe.drain()
    assert probe.rows == {one: [*range(1000)] for one in played.logs}


def test_what_is_put_back_comes_again_when_others_have_come_so_far() -> None:
    played = cluster(1, 1, starts_ms=(0, 100_000))
    probe = probe_of(played)
    while not probe.rows[T1]:
        probe.wait()
        probe.take()
    probe.fetcher.put_back({T1: (0, 100_000)})
    probe.rows[T1].clear()
    while len(probe.rows[T0]) < 1_000:
        assert probe.rows[T1] == []
        probe.wait()
        probe.take()
    probe.drain()
    assert probe.rows == {one: [*range(1000)] for one in played.logs}


def test_one_that_was_done_and_removed_can_be_put_back() -> None:
    played = cluster(1, starts_ms=(0,))
    probe = probe_of(played)
    probe.drain()
    probe.fetcher.remove([T0])
    probe.rows[T0].clear()
    probe.fetcher.put_back({T0: (500, 0)})
    probe.drain()
    assert probe.rows[T0] == [*range(500, 1000)]


def test_batches_that_become_larger_do_not_come_one_by_one() -> None:
    played = cluster(*[1] * 40, starts_ms=(0,) * 40, batches=1)
    for one in played.logs:
        for number in range(5):
            played.append(one, 40, KILOBYTE, 1_000 + 100 * number)
    probe = probe_of(played, bytes_max=32 << 20)
    probe.drain()
    assert {len(rows) for rows in probe.rows.values()} == {210}
    assert len(played.fetches(waiting=False)) < 60, "which are 200 batches of 40 kB"
