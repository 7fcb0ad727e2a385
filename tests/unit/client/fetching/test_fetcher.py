"""What is asked of which broker, and what comes out: on virtual time, with brokers that are played."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.unit.client.fetching.played import LIST_OFFSETS, NODES, PlayedCluster
from tests.unit.client.fetching.probe import Probe

from lowwater.client.errors import BrokerError
from lowwater.client.fetching.events import AtEnd, Bounds
from lowwater.client.network import FETCHING, WAITING
from lowwater.client.session import Leased
from lowwater.types import TopicPartition
from lowwater.wire.messages import FetchRequest

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
KILOBYTE = b"v" * 1000


def cluster(*leaders: int, rows: int = 10, **settings: object) -> PlayedCluster:
    """Topic t, its partitions with ten rows each unless told otherwise."""
    played = PlayedCluster(**settings)  # type: ignore[arg-type]
    for one in played.create("t", *leaders):
        if rows:
            played.append(one, rows)
    return played


def named(request: FetchRequest) -> list[int]:
    """Partitions that a request tells the broker about."""
    return [each.partition for topic in request.topics for each in topic.partitions]


def forgotten(request: FetchRequest) -> list[int]:
    return [number for topic in request.forgotten_topics_data for number in topic.partitions]


def test_every_partition_is_read_from_its_start_by_the_broker_that_leads_it() -> None:
    played = cluster(1, 2, 1)
    played.append(T0, 5)
    probe = Probe(played, {T0: 3, T1: 0, T2: 10})
    probe.drain()
    assert probe.rows == {T0: [*range(3, 15)], T1: [*range(10)], T2: []}
    assert {line.address for line in played.driver.lines if any(one.api.name == "Fetch" for one in line.asked)} == {
        NODES[1],
        NODES[2],
    }


def test_rows_that_are_written_later_come_when_they_are_there() -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 0})
    probe.drain(5_000)
    played.append(T0, 3)
    probe.drain()
    played.append(T0, 2)
    probe.drain()
    assert probe.rows[T0] == [*range(15)]


def test_position_and_bounds_are_those_of_the_last_answer() -> None:
    played = cluster(1)
    played.logs[T0].last_stable = 7
    probe = Probe(played, {T0: 10}, isolation="read_uncommitted")
    assert probe.fetcher.bounds(T0) is None
    probe.drain()
    assert probe.fetcher.bounds(T0) == Bounds(log_start=0, high_watermark=10, last_stable=7)
    played.append(T0, 5)
    probe.wait()
    assert (probe.fetcher.position(T0), probe.rows[T0]) == (15, []), "it counts what came, taken or not"


def test_readers_of_committed_records_stop_at_the_last_stable_offset() -> None:
    played = cluster(1, rows=0)
    for _ in range(3):
        played.append(T0, 5)
    played.logs[T0].last_stable = 10
    probe = Probe(played, {T0: 0}, tell_ends=True)
    probe.drain()
    assert probe.rows[T0] == [*range(10)]
    assert probe.of(AtEnd) == [AtEnd(T0, 10)]
    played.logs[T0].last_stable = None
    played.grew()
    probe.drain()
    assert probe.rows[T0] == [*range(15)]


# ---- sessions


def test_a_session_is_told_only_what_is_different() -> None:
    played = cluster(1, 1, 1)
    probe = Probe(played, {T0: 10, T1: 10, T2: 10})
    probe.drain(1_200)
    waiting = played.fetches(waiting=True)
    assert named(waiting[0]) == [0, 1, 2]
    assert [named(each) for each in waiting[1:]] == [[], []], "nothing happened, nothing is said"
    played.append(T1, 1)
    probe.drain()
    last = played.fetches(waiting=True)[-1]
    assert (named(last), last.topics[0].partitions[0].fetch_offset) == ([1], 11)


def test_idle_partitions_cost_nothing() -> None:
    played = cluster(*[1] * 1_024, rows=0)
    probe = Probe(played, dict.fromkeys(played.logs, 0))
    probe.drain()
    before = len(played.fetches())
    probe.drain(5_000)
    quiet = played.fetches()[before:]
    assert len(quiet) == 10, "one long poll after another"
    assert all(not each.topics and not each.forgotten_topics_data for each in quiet)
    played.append(T2, 1)
    probe.drain()
    assert [named(each) for each in played.fetches()[-1:]] == [[2]]


def test_a_broker_that_keeps_no_sessions_is_told_everything_and_everybody_has_a_turn() -> None:
    played = cluster(1, 1, 1, rows=0, max_partition_fetch_bytes=2_000, fetch_max_bytes=2_000)
    played.keeps_sessions = False
    for _ in range(4):
        for one in played.logs:
            played.append(one, 1, KILOBYTE)
    probe = Probe(played, dict.fromkeys(played.logs, 0))
    turns: list[int] = []
    while len(turns) < 6:
        probe.wait()
        turns += [one.partition.partition for each in probe.take() for one in each.slices]
    assert turns == [0, 1, 2, 0, 1, 2]
    probe.drain(1_200)
    assert probe.rows == {one: [0, 1, 2, 3] for one in played.logs}
    assert {each.session_id for each in played.fetches()} == {0}
    assert [sorted(named(each)) for each in played.fetches(waiting=True)[-2:]] == [[0, 1, 2]] * 2


@pytest.mark.parametrize(
    ("version", "uses_ids", "has_sessions"), [(18, True, True), (12, False, True), (6, False, False)]
)
def test_older_brokers_are_asked_in_their_way(version: int, uses_ids: bool, has_sessions: bool) -> None:
    played = cluster(1, 1, fetch_versions=(4, version))
    probe = Probe(played, {T0: 0, T1: 0})
    probe.drain(1_200)
    played.append(T1, 2)
    probe.drain()
    assert probe.rows == {T0: [*range(10)], T1: [*range(12)]}
    first, last = played.fetches()[0], played.fetches()[-1]
    assert (first.topics[0].topic_id == played.ids["t"], first.topics[0].topic == "t") == (uses_ids, not uses_ids)
    assert (last.session_id != 0, named(last)) == (has_sessions, [1] if has_sessions else [0, 1])


def test_topics_without_an_id_are_asked_for_by_name() -> None:
    played = cluster(1)
    played.ids["t"] = bytes(16)
    probe = Probe(played, {T0: 0})
    probe.drain()
    assert probe.rows[T0] == [*range(10)]
    assert {each.version for each in played.driver.requests("Fetch")} == {12}


def test_a_session_that_the_broker_has_dropped_is_begun_again_and_nothing_is_lost() -> None:
    played = cluster(1, 1)
    probe = Probe(played, {T0: 0, T1: 0})
    probe.drain()
    played.sessions[1].clear()
    played.append(T0, 1)
    probe.drain(600)
    played.append(T1, 1)
    probe.drain(600)
    assert probe.rows == {T0: [*range(11)], T1: [*range(11)]}
    assert len(played.sessions[1]) == 1


def test_a_session_of_another_epoch_is_replaced() -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 0})
    probe.drain()
    for session in played.sessions[1].values():
        session.epoch += 7
    played.append(T0, 1)
    probe.drain(600)
    played.append(T0, 1)
    probe.drain(600)
    assert probe.rows[T0] == [*range(12)]
    assert len(played.sessions[1]) == 2, "one of each kind: the old one is not left behind"


def test_a_broker_that_refuses_every_session_is_asked_with_patience() -> None:
    played = cluster(1, default_api_timeout_ms=5_000)
    played.refuses_sessions = True
    probe = Probe(played, {T0: 0})
    probe.drain(10_000)
    assert [type(error) for error in probe.errors] == [BrokerError]
    assert len(played.fetches()) < 80, "and not in a frenzy"
    played.refuses_sessions = False
    probe.drain(3_000)
    assert probe.rows[T0] == [*range(10)]


def test_sessions_are_ended_at_the_brokers() -> None:
    played = cluster(1, 2)
    probe = Probe(played, {T0: 0, T1: 0})
    probe.drain(600)
    assert [len(played.sessions[node]) for node in (1, 2)] == [2, 2]
    probe.run(probe.fetcher.aclose())
    assert [len(played.sessions[node]) for node in (1, 2)] == [0, 0]
    before = len(played.fetches())
    probe.wait(5_000)
    assert len(played.fetches()) == before, "a closed fetcher asks for nothing"


def test_where_there_is_no_session_none_is_ended() -> None:
    played = cluster(1)
    played.keeps_sessions = False
    probe = Probe(played, {T0: 0})
    probe.drain(600)
    before = len(played.fetches())
    probe.run(probe.fetcher.aclose())
    assert len(played.fetches()) == before


# ---- pausing, seeking, removing


def test_a_paused_partition_is_not_asked_for_and_goes_on_where_it_was() -> None:
    played = cluster(1, 1)
    probe = Probe(played, {T0: 0, T1: 0})
    probe.drain()
    probe.fetcher.pause([T0])
    probe.drain(600)
    assert forgotten(played.fetches(waiting=True)[-1]) == [0]
    played.append(T0, 5)
    probe.drain(2_000)
    assert probe.rows[T0] == [*range(10)]
    probe.fetcher.resume([T0])
    probe.drain(600)
    assert probe.rows[T0] == [*range(15)]


def test_a_partition_that_is_resumed_does_not_wait_behind_the_long_poll_of_others() -> None:
    played = cluster(1, 1, max_partition_fetch_bytes=1)
    played.append(T0, 1)
    probe = Probe(played, {T0: 0, T1: 10})
    probe.fetcher.pause([T0])
    probe.drain(100)
    assert played.fetches()[-1].max_wait_ms > 0, "the other one waits at the broker"
    probe.fetcher.resume([T0])
    probe.drain()
    assert probe.rows[T0] == [*range(11)], "and no time passed"


def test_what_was_written_during_a_pause_comes_at_once() -> None:
    played = cluster(1, 1)
    probe = Probe(played, {T0: 0, T1: 0})
    probe.drain()
    probe.fetcher.pause([T0])
    probe.drain(600)
    played.append(T0, 5)
    probe.fetcher.resume([T0])
    probe.drain()
    assert probe.rows[T0] == [*range(15)], "and no time passed"


def test_pausing_and_resuming_at_once_changes_nothing() -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 10})
    probe.drain()
    for _ in range(3):
        probe.fetcher.pause([T0])
        probe.fetcher.resume([T0])
    probe.drain(1_000)
    played.append(T0, 2)
    probe.drain()
    assert probe.rows[T0] == [10, 11]
    assert all(forgotten(each) in ([], [0]) for each in played.fetches())


def test_what_was_asked_for_before_a_pause_is_given_out_once() -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 0})
    probe.fetcher.pause([T0])
    probe.drain()
    probe.fetcher.resume([T0])
    probe.drain(600)
    assert probe.rows[T0] == [*range(10)]


def test_an_answer_that_comes_after_a_pause_asks_for_no_more() -> None:
    played = cluster(1, rows=0, max_partition_fetch_bytes=1)
    for _ in range(5):
        played.append(T0, 1)
    probe = Probe(played, {T0: 0})
    while not played.fetches():
        assert played.time.turn()
    probe.fetcher.pause([T0])
    probe.drain(2_000)
    assert (probe.rows[T0], len(played.fetches())) == ([0], 1)


def test_after_a_seek_nothing_of_before_is_given_out() -> None:
    played = cluster(1, 1)
    probe = Probe(played, {T0: 0, T1: 0})
    probe.wait()  # both have come, and were not taken
    probe.fetcher.seek(T0, 8)
    probe.drain(600)
    assert probe.rows == {T0: [8, 9], T1: [*range(10)]}
    probe.fetcher.seek(T0, 9)  # while the long poll is on its way
    probe.drain()
    assert probe.rows[T0] == [8, 9, 9]


def test_a_seek_does_not_end_a_pause() -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 10})
    probe.drain()
    probe.fetcher.pause([T0])
    probe.fetcher.seek(T0, 3)
    probe.drain(2_000)
    assert probe.rows[T0] == []
    probe.fetcher.resume([T0])
    probe.drain()
    assert probe.rows[T0] == [*range(3, 10)]


def test_a_seek_while_the_answer_is_on_its_way_counts() -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 0})
    probe.fetcher.seek(T0, 4)
    probe.fetcher.seek(T0, 6)
    probe.drain(600)
    assert probe.rows[T0] == [6, 7, 8, 9]


def test_a_removed_partition_is_forgotten_and_may_come_back() -> None:
    played = cluster(1, 1)
    probe = Probe(played, {T0: 0, T1: 0})
    probe.wait()
    probe.fetcher.remove([T0])
    assert T0 not in probe.fetcher
    assert len(probe.fetcher) == 1
    probe.drain(600)
    assert probe.rows == {T0: [], T1: [*range(10)]}
    assert forgotten(played.fetches(waiting=True)[-1]) == [0]
    probe.fetcher.add({T0: 5})
    probe.drain(600)
    assert probe.rows[T0] == [*range(5, 10)]


def test_an_answer_of_which_nothing_is_wanted_any_more_is_let_go() -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 0})
    released: list[Leased] = []
    release, Leased.release = Leased.release, lambda self: (released.append(self), release(self))[1]  # type: ignore
    try:
        probe.wait()
        probe.fetcher.remove([T0])
        assert probe.take() == []
    finally:
        Leased.release = release  # type: ignore[method-assign]
    assert len(released) == 1


# ---- ends, gaps and bad bytes


def test_an_end_is_told_once_each_time_it_is_reached() -> None:
    played = cluster(1, 1)
    probe = Probe(played, {T0: 0, T1: 10}, tell_ends=True)
    probe.drain(5_000)
    assert sorted(probe.of(AtEnd)) == [AtEnd(T0, 10), AtEnd(T1, 10)]
    played.append(T0, 1)
    probe.drain(5_000)
    assert probe.of(AtEnd)[2:] == [AtEnd(T0, 11)]


def test_ends_are_told_only_when_wished() -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 0})
    probe.drain(1_000)
    assert probe.events == []
    wished = cluster(1, enable_partition_eof=True)
    probe = Probe(wished, {T0: 0})
    probe.drain(1_000)
    assert probe.events == [AtEnd(T0, 10)]


def test_a_tail_that_compaction_has_emptied_is_read_to_its_end() -> None:
    played = cluster(1, 1)
    played.logs[T0].end = 25  # of what was there nothing is left
    probe = Probe(played, {T0: 0, T1: 0}, tell_ends=True)
    probe.drain(2_000)
    assert probe.rows == {T0: [*range(10)], T1: [*range(10)]}
    assert sorted(probe.of(AtEnd)) == [AtEnd(T0, 25), AtEnd(T1, 10)]
    assert probe.fetcher.position(T0) == 25
    played.append(T0, 2)
    probe.drain()
    assert probe.rows[T0] == [*range(10), 25, 26]


def test_a_tail_in_tiered_storage_that_does_not_come_in_time_is_not_skipped() -> None:
    played = cluster(1)
    played.logs[T0].local_start = 10
    played.logs[T0].is_slow = True
    probe = Probe(played, {T0: 0}, tell_ends=True)
    probe.drain(5_000)
    assert (probe.rows[T0], probe.events, probe.fetcher.position(T0)) == ([], [], 0)
    assert len(played.fetches()) < 40, "and the broker is not asked in a frenzy"
    played.logs[T0].is_slow = False
    played.grew()
    probe.drain(1_000)
    assert (probe.rows[T0], probe.events) == ([*range(10)], [AtEnd(T0, 10)])


def test_brokers_without_tiered_storage_are_not_asked_about_it() -> None:
    played = cluster(1)
    played.versions[LIST_OFFSETS] = (1, 7)
    played.logs[T0].end = 25
    probe = Probe(played, {T0: 0}, tell_ends=True)
    probe.drain()
    assert probe.of(AtEnd) == [AtEnd(T0, 25)]


def test_an_answer_that_was_filled_by_what_is_not_wanted_any_more_does_not_look_empty() -> None:
    played = cluster(1, 1, rows=0, fetch_max_bytes=1)
    for one in (T0, T1):
        played.append(one, 1, KILOBYTE)
        played.append(one, 1, KILOBYTE)
    probe = Probe(played, {T0: 0, T1: 0}, tell_ends=True)
    while not played.fetches():
        assert played.time.turn()
    probe.fetcher.seek(T0, 1)
    probe.drain()
    assert probe.rows == {T0: [1], T1: [0, 1]}


def test_a_broker_whose_quota_is_used_up_does_not_look_empty() -> None:
    played = cluster(1)
    played.throttle_ms = 300
    probe = Probe(played, {T0: 0}, tell_ends=True)
    probe.drain(200)
    assert probe.events == []
    played.throttle_ms = 0
    probe.drain(400)
    assert probe.rows[T0] == [*range(10)]


def test_a_quota_that_is_used_up_in_the_middle_skips_nothing() -> None:
    played = cluster(1, rows=0, max_partition_fetch_bytes=1)
    for _ in range(5):
        played.append(T0, 1)
    probe = Probe(played, {T0: 0}, tell_ends=True)
    probe.wait()
    played.throttle_ms = 300
    assert len(probe.take()) == 2
    probe.drain(200)
    assert (probe.rows[T0], probe.events) == ([0, 1], [])
    played.throttle_ms = 0
    probe.drain(1_000)
    assert (probe.rows[T0], probe.events) == ([0, 1, 2, 3, 4], [AtEnd(T0, 5)])


def test_a_partition_that_was_not_asked_for_yet_does_not_look_empty() -> None:
    played = cluster(1, 1, rows=0, max_partition_fetch_bytes=1)
    for _ in range(5):
        played.append(T0, 1)
    probe = Probe(played, {T0: 0, T1: 0})
    probe.wait()
    probe.fetcher.pause([T0, T1])
    probe.drain(600)
    had = len(probe.rows[T0])
    assert 0 < had < 5
    before = len(played.fetches(waiting=False))
    probe.fetcher.resume([T1])
    while len(played.fetches(waiting=False)) == before:
        assert played.time.turn()
    probe.fetcher.resume([T0])  # while nothing is being answered about the other one
    probe.drain()
    assert probe.rows[T0] == [0, 1, 2, 3, 4]


def test_a_partition_that_is_asked_for_twice_by_a_resume_is_taken_once_and_does_not_falter() -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 10})
    probe.drain(100)
    probe.fetcher.pause([T0])
    probe.fetcher.resume([T0])
    played.append(T0, 5)  # also answered to the poll that was waiting
    probe.drain()
    assert probe.rows[T0] == [*range(10, 15)]
    played.append(T0, 5)
    probe.drain()
    assert probe.rows[T0] == [*range(10, 20)], "and no time passed"


def test_a_record_larger_than_every_bound_still_comes() -> None:
    played = cluster(1, 1, max_partition_fetch_bytes=500, fetch_max_bytes=800, rows=0)
    for one in (T0, T1, T0):
        played.append(one, 1, KILOBYTE * 20)
        played.append(one, 1)
    probe = Probe(played, {T0: 0, T1: 0})
    probe.drain(2_000)
    assert probe.rows == {T0: [0, 1, 2, 3], T1: [0, 1]}


def test_a_batch_that_is_cut_off_comes_whole_the_next_time() -> None:
    played = cluster(1, rows=0, max_partition_fetch_bytes=2_500)
    for _ in range(5):
        played.append(T0, 1, KILOBYTE)
    probe = Probe(played, {T0: 0})
    probe.drain(600)
    assert probe.rows[T0] == [*range(5)]


def test_bytes_that_are_no_batch_are_given_out_once_and_wait_for_a_seek() -> None:
    played = cluster(1)
    played.append(T0, 5)
    bad = played.logs[T0].batches[1]
    bad.data = bad.data[:16] + b"\x00" + bad.data[17:]
    played.append(T0, 5)
    fetcher = Probe(played, {T0: 0}).fetcher
    played.time.advance(2_000)
    [answer] = fetcher.take()
    assert (answer.slices[0].fetch_offset, answer.positions) == (0, [10])
    played.time.advance(5_000)
    assert fetcher.take() == []
    fetcher.seek(T0, 15)
    played.time.advance(600)
    [answer] = fetcher.take()
    assert answer.positions == [20]


# ---- how far ahead


def test_the_next_answer_is_asked_for_before_the_last_one_is_taken_and_no_further() -> None:
    played = cluster(1, rows=0, max_partition_fetch_bytes=1)
    for _ in range(10):
        played.append(T0, 1, KILOBYTE)
    probe = Probe(played, {T0: 0})
    probe.wait(10_000)
    assert len(played.fetches()) == 2, "one to take, and one more"
    assert len(probe.take()) == 2
    probe.wait(10_000)
    assert len(played.fetches()) == 4
    probe.drain()
    assert probe.rows[T0] == [*range(10)]


def test_no_more_is_held_and_on_its_way_than_is_allowed() -> None:
    played = cluster(1, 2, 3, rows=0, max_partition_fetch_bytes=4_000)
    for one in played.logs:
        for _ in range(50):
            played.append(one, 1, KILOBYTE)
    held = 0
    probe = Probe(played, dict.fromkeys(played.logs, 0), bytes_max=64_000, held_bytes=lambda: held)
    largest = 0
    while any(len(rows) < 50 for rows in probe.rows.values()):
        for _ in range(3):
            probe.wait()
            held += sum(len(one.records) for each in probe.take() for one in each.slices)
        largest = max(largest, held)
        held = 0
    assert 40_000 < largest <= 64_000
    assert probe.rows == {one: [*range(50)] for one in played.logs}


def test_where_everything_is_full_those_who_have_to_come_still_come_little_by_little() -> None:
    played = cluster(1, rows=0)
    for _ in range(8):
        played.append(T0, 1, KILOBYTE)
    probe = Probe(played, {T0: 0}, bytes_max=32_000, held_bytes=lambda: 1 << 40)
    probe.drain()
    assert probe.rows[T0] == [*range(8)]
    assert {each.max_bytes for each in played.fetches()} == {2_000}


def test_batches_that_are_larger_than_the_pieces_do_not_come_one_by_one() -> None:
    played = cluster(*[1] * 128, rows=0)
    for one in played.logs:
        for _ in range(5):
            played.append(one, 1, KILOBYTE * 40)
    probe = Probe(played, dict.fromkeys(played.logs, 0), bytes_max=2048 * 1024)
    probe.drain()
    assert probe.rows == {one: [*range(5)] for one in played.logs}
    assert len(played.fetches(waiting=False)) < 60, "which are 640 batches, and there is room for twenty at a time"


def test_few_partitions_are_asked_for_in_large_pieces_unless_the_user_says_how_large() -> None:
    for settings, pieces in (({}, {4 << 20}), ({"max_partition_fetch_bytes": 1 << 20}, {1 << 20})):
        played = cluster(1, **settings)
        Probe(played, {T0: 0}).drain()
        assert {each.partition_max_bytes for each in played.fetches()[0].topics[0].partitions} == pieces


def test_the_first_answers_are_small() -> None:
    played = cluster(1, rows=0, max_partition_fetch_bytes=1)
    for _ in range(5):
        played.append(T0, 1, KILOBYTE)
    probe = Probe(played, {T0: 0})
    probe.drain()
    assert [each.max_bytes >> 20 for each in played.fetches(waiting=False)] == [1, 2, 4, 4, 4]


def test_where_answers_take_long_they_become_larger() -> None:
    played = cluster(1, rows=0, max_partition_fetch_bytes=1)
    for _ in range(6):
        played.append(T0, 1, KILOBYTE)
    played.answers_after_ms = 30
    probe = Probe(played, {T0: 0})
    while len(probe.rows[T0]) < 6:
        probe.drain(30)
    assert [each.max_bytes >> 20 for each in played.fetches(waiting=False)] == [1, 2, 4, 4, 8, 8]


def test_answers_that_are_held_up_now_and_then_make_the_next_ones_no_larger() -> None:
    delays_ms = [30, 30, 30, 1] * 3
    played = cluster(1, rows=0, max_partition_fetch_bytes=1)
    for _ in delays_ms:
        played.append(T0, 1, KILOBYTE)
    played.answers_after_ms = delays_ms[0]
    probe = Probe(played, {T0: 0})
    for delay_ms, of_the_next_ms in pairwise([*delays_ms, 1]):
        probe.drain()
        played.answers_after_ms = of_the_next_ms
        probe.drain(delay_ms)
    assert probe.rows[T0] == [*range(len(delays_ms))]
    assert max(each.max_bytes for each in played.fetches(waiting=False)) == 4 << 20


def test_nothing_is_asked_for_behind_a_stop() -> None:
    """Also not before anybody has looked at what came: an answer in vain is as large as the others."""
    played = cluster(1, 1, rows=0, max_partition_fetch_bytes=1)
    for one in (T0, T1):
        for _ in range(10):
            played.append(one, 1, KILOBYTE)
    probe = Probe(played, {T0: 0, T1: 0})
    probe.fetcher.stop_at(T0, 3)
    probe.drain(5_000)
    asked = [each for request in played.fetches() for topic in request.topics for each in topic.partitions]
    assert [each.fetch_offset for each in asked if each.partition == 0] == [0, 1, 2]
    assert probe.rows == {T0: [0, 1, 2], T1: [*range(10)]}


def test_the_last_request_before_a_stop_asks_for_no_more_than_is_left() -> None:
    played = cluster(1, rows=0, max_partition_fetch_bytes=8_000)
    for _ in range(40):
        played.append(T0, 1, KILOBYTE)
    probe = Probe(played, {T0: 0})
    probe.fetcher.stop_at(T0, 9)
    probe.drain()
    sizes = [each.partition_max_bytes for request in played.fetches() for each in request.topics[0].partitions]
    assert sizes[0] == 8_000
    assert sizes[1:]
    assert max(sizes[1:]) < 4_000, "which are the rows that are left, one more, and a little"
    assert probe.rows[T0][-1] <= 11


def test_a_log_that_begins_behind_the_stop_is_asked_for_sensibly() -> None:
    """Retention has overtaken the reader. Kafka refuses sizes below zero as an error of its own."""
    played = cluster(1, rows=0, max_partition_fetch_bytes=3_000)
    for _ in range(40):
        played.append(T0, 1, KILOBYTE)
    probe = Probe(played, {T0: 0}, reset="earliest")
    probe.fetcher.stop_at(T0, 9)
    played.time.advance(0)
    probe.take()
    log = played.logs[T0]
    log.start, log.batches = 30, [batch for batch in log.batches if batch.first >= 30]
    probe.drain(5_000)
    asked = [each for request in played.fetches() for topic in request.topics for each in topic.partitions]
    assert max(each.fetch_offset for each in asked) >= 30
    assert min(each.partition_max_bytes for each in asked) > 0


def test_a_stop_holds_when_rows_are_put_back() -> None:
    played = cluster(1, rows=0, max_partition_fetch_bytes=1)
    for _ in range(10):
        played.append(T0, 1, KILOBYTE)
    probe = Probe(played, {T0: 0})
    probe.fetcher.stop_at(T0, 3)
    probe.drain()
    probe.fetcher.finish(T0)
    probe.fetcher.put_back({T0: (1, 0)})
    probe.drain(5_000)
    assert probe.rows[T0] == [0, 1, 2, 1, 2]


def test_without_lanes_there_is_one_connection_and_nothing_waits_long_on_it() -> None:
    played = cluster(1)
    played.cluster.network.has_lanes = False
    probe = Probe(played, {T0: 0})
    probe.drain(100)
    assert [line.address for line in played.driver.lines].count(NODES[1]) == 1
    assert {each.max_wait_ms for each in played.fetches()} == {0, 20}


def test_connections_of_both_kinds_are_used_only_when_needed() -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 10})
    probe.drain(5_000)
    network = played.cluster.network
    assert network.is_ready(1, FETCHING)
    assert network.is_ready(1, WAITING)
    assert [each.max_wait_ms for each in played.fetches()] == [0, *[500] * 11]


# ---- waiting


def test_whoever_waits_is_woken_when_something_came() -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 10})
    probe.drain()
    waiter = probe.fetcher.fetched()
    assert not waiter.done
    probe.wait(3_000)
    assert not waiter.done, "an answer without anything wakes nobody"
    played.append(T0, 1)
    probe.wait()
    assert waiter.done
    assert probe.fetcher.fetched().done, "until it is taken"
    probe.take()
    assert not probe.fetcher.fetched().done


def test_a_waiter_that_gives_up_leaves_nothing_behind() -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 10})
    probe.drain()
    first = probe.fetcher.fetched()
    first.abandon()
    second = probe.fetcher.fetched()
    assert second is not first
    assert not second.done


def test_a_fault_in_the_fetcher_itself_is_raised_where_rows_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 0})
    monkeypatch.setattr("lowwater.client.fetching.fetcher.look_at", None)
    waiter = probe.fetcher.fetched()
    probe.wait()
    assert waiter.done
    with pytest.raises(TypeError):
        probe.take()
