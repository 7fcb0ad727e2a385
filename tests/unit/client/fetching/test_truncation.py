"""Logs that are cut off behind the reader's back (KIP-320): found out, told exactly, and never read on blindly."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.client.fetching.played import PlayedCluster, PlayedLog
from tests.unit.client.fetching.probe import Probe

from lowwater.client.errors import LogTruncatedError, OffsetOutOfRangeError
from lowwater.client.fetching.events import AtEnd, Reset, Truncated
from lowwater.errors import ErrorCode
from lowwater.types import TopicPartition
from lowwater.wire.messages.fetch import EpochEndOffset

T0, T1 = (TopicPartition("t", number) for number in range(2))


def cluster(*leaders: int, rows: int = 10, **settings: Any) -> PlayedCluster:
    played = PlayedCluster(**settings)
    for one in played.create("t", *leaders):
        played.append(one, rows)
    return played


def last_epochs(played: PlayedCluster) -> list[int]:
    """What the brokers were told, request by request, of the batch before."""
    found = [each for fetch in played.fetches() for topic in fetch.topics for each in topic.partitions]
    return [each.last_fetched_epoch for each in found]


def test_brokers_are_told_which_leader_took_what_was_read_last() -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 0})
    probe.drain()
    assert last_epochs(played) == [-1, 5]
    played.move(T0, 2)
    played.grew()
    played.append(T0, 1)
    probe.drain(1_000)
    assert probe.rows[T0] == [*range(11)]
    assert last_epochs(played)[-2:] == [5, 6]
    assert probe.events == []


def test_brokers_that_do_not_know_of_it_are_told_nothing() -> None:
    played = cluster(1, fetch_versions=(4, 11))
    probe = Probe(played, {T0: 0})
    probe.drain()
    assert probe.rows[T0] == [*range(10)]
    assert set(last_epochs(played)) == {-1}


def test_where_a_reader_starts_nothing_is_told() -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 4})
    probe.drain()
    probe.fetcher.seek(T0, 2)
    probe.drain()
    assert sorted(last_epochs(played)) == [-1, -1, 5]


def start_at(played: PlayedCluster, offset: int, epoch: int) -> Probe:
    """As a group's next reader does, with what the one before has committed."""
    probe = Probe(played, {})
    probe.run(played.cluster.topics(["t"]))
    probe.rows[T0] = []
    probe.fetcher.add({T0: offset}, {T0: epoch})
    probe.drain()
    return probe


def test_where_another_reader_left_off_the_broker_is_told_the_epoch_that_he_saw() -> None:
    played = cluster(1)
    probe = start_at(played, 4, 5)
    assert probe.rows[T0] == [4, 5, 6, 7, 8, 9]
    assert last_epochs(played)[0] == 5
    assert probe.events == []


def test_what_another_reader_has_read_and_is_gone_is_told_exactly() -> None:
    played = cluster(1)
    played.append(T0, 10)
    played.logs[T0].truncate(10)
    played.append(T0, 30)
    probe = start_at(played, 20, 5)
    assert (probe.rows[T0], probe.events) == ([], [Truncated(T0, 10, 20, goes_on=False)])


def test_an_epoch_that_never_was_is_not_waited_for() -> None:
    played = cluster(1)
    probe = start_at(played, 4, 77)
    assert probe.rows[T0] == [4, 5, 6, 7, 8, 9]
    assert last_epochs(played)[0] == -1


def test_the_epoch_of_what_came_is_known_also_of_partitions_that_are_finished() -> None:
    played = cluster(1)
    probe = start_at(played, 4, -1)
    assert probe.fetcher.epoch_behind(T0) == 5
    probe.fetcher.finish(T0)
    assert probe.fetcher.epoch_behind(T0) == 5
    probe.fetcher.add({T0: 0})
    assert probe.fetcher.epoch_behind(T0) == -1


@pytest.mark.parametrize("is_finished", [False, True])
def test_nothing_is_known_of_partitions_that_were_removed(is_finished: bool) -> None:
    played = cluster(1)
    probe = start_at(played, 4, -1)
    if is_finished:
        probe.fetcher.finish(T0)
    probe.fetcher.remove([T0])
    assert probe.fetcher.epoch_behind(T0) == -1


@pytest.mark.parametrize(("policy", "goes_on"), [("error", False), ("earliest", True), ("latest", True)])
def test_what_was_read_and_is_gone_is_told_exactly(policy: str, goes_on: bool) -> None:
    played = cluster(1, 1)
    played.append(T0, 10)
    probe = Probe(played, {T0: 0, T1: 0}, reset=policy)
    probe.drain()
    played.logs[T0].truncate(10)
    played.append(T0, 30)
    probe.drain(2_000)
    assert probe.of(Truncated) == [Truncated(T0, 10, 20, goes_on)]
    assert probe.rows[T0] == [*range(20)], "nothing of the other log is taken for what follows"
    probe.fetcher.seek(T0, 10)
    played.append(T1, 1)
    probe.drain()
    assert probe.rows[T0] == [*range(20), *range(10, 40)]
    assert probe.rows[T1] == [*range(11)], "others are not touched"


def test_a_log_that_is_shorter_now_is_not_out_of_range_but_truncated() -> None:
    played = cluster(1)
    played.append(T0, 5)
    probe = Probe(played, {T0: 0}, tell_ends=True)
    probe.drain()
    played.logs[T0].truncate(10)
    played.grew()
    probe.drain(2_000)
    assert probe.events == [AtEnd(T0, 15), Truncated(T0, 10, 15, False)]


def test_a_leader_that_lost_nothing_is_read_on_from() -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 0})
    probe.drain()
    played.logs[T0].truncate(10)
    played.append(T0, 3)
    probe.drain(2_000)
    assert (probe.rows[T0], probe.events) == ([*range(13)], [])


def test_a_gap_that_was_passed_over_is_no_truncation() -> None:
    played = cluster(1)
    played.logs[T0].epoch += 1
    played.append(T0, 10)
    played.logs[T0].batches.pop()  # compacted, to the last record of that leader
    probe = Probe(played, {T0: 0})
    probe.drain(1_000)
    played.logs[T0].epoch += 1
    played.append(T0, 1)
    probe.drain(2_000)
    assert (probe.rows[T0], probe.events) == ([*range(10), 20], [])


def test_a_replica_that_lags_does_not_make_it_a_truncation() -> None:
    played = cluster(1, client_rack="here")
    played.preferred[T0] = 2
    probe = Probe(played, {T0: 0})
    probe.drain()
    log = played.logs[T0]
    behind = [EpochEndOffset(epoch=5, end_offset=3)]
    log.end_of = lambda epoch: behind.pop() if behind else PlayedLog.end_of(log, epoch)  # type: ignore[method-assign]
    played.append(T0, 1)
    probe.drain(1_000)
    assert behind == []
    assert (probe.rows[T0], probe.events) == ([*range(11)], [])


@pytest.mark.parametrize("length", [4, 10, 30])
def test_a_leader_who_never_heard_of_the_one_before_is_an_error_whatever_the_log_s_length(length: int) -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 0})
    probe.drain()
    log = played.logs[T0]
    log.batches, log.end, log.epoch = [], 0, 6
    log.append(length)
    log.end_of = lambda _: None  # type: ignore[method-assign]
    played.grew()
    probe.drain(3_000)
    [error] = probe.errors
    assert isinstance(error, LogTruncatedError)
    assert (error.first, error.behind, error.log_start, error.log_end) == (0, 10, 0, length)


def test_leaders_older_than_the_one_that_was_read_from_are_not_believed() -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 0})
    probe.drain()
    played.logs[T0].epoch = 4  # as a broker says who has not heard of the newer one
    played.fails[T0] = ErrorCode.FENCED_LEADER_EPOCH
    played.grew()
    probe.drain(100)
    del played.fails[T0]
    before = len(played.fetches())
    probe.drain(2_000)
    assert len(played.fetches()) == before
    played.logs[T0].epoch = 6
    played.append(T0, 1)
    probe.drain(3_000)
    assert (probe.rows[T0], probe.events) == ([*range(11)], [])


def test_after_a_reset_nothing_is_told_of_what_was_read_before() -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 0}, reset="earliest")
    probe.drain()
    played.logs[T0].start = 12
    played.logs[T0].end = 20
    played.logs[T0].batches = []
    played.append(T0, 1)
    probe.drain(2_000)
    assert probe.of(Reset) == [Reset(T0, 10, 12, 12, 21)]
    assert probe.rows[T0] == [*range(10), 20]


def test_what_retention_took_is_out_of_range_as_before() -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 0})
    probe.drain()
    played.logs[T0].start, played.logs[T0].batches = 15, []
    played.logs[T0].end = 15
    played.append(T0, 1)
    probe.drain(2_000)
    [error] = probe.errors
    assert type(error) is OffsetOutOfRangeError
