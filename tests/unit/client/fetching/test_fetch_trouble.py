"""Leaders that move, brokers that are gone, offsets that are not there, topics that are not the same any more."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.client.fetching.played import NODES, PlayedCluster
from tests.unit.client.fetching.probe import Probe
from tests.unit.client.virtual import Asked, refused

from lowwater.client.errors import (
    AuthenticationError,
    AuthorizationError,
    BrokerError,
    ClientError,
    ConnectError,
    OffsetOutOfRangeError,
    TopicRecreatedError,
    UnknownTopicError,
)
from lowwater.client.fetching.events import AtEnd, Failed, Reset
from lowwater.client.topic_ids import id_text
from lowwater.errors import ErrorCode
from lowwater.types import TopicPartition

T0, T1 = (TopicPartition("t", number) for number in range(2))
U0 = TopicPartition("u", 0)


def cluster(*leaders: int, rows: int = 10, **settings: object) -> PlayedCluster:
    played = PlayedCluster(**settings)  # type: ignore[arg-type]
    for one in played.create("t", *leaders):
        played.append(one, rows)
    return played


def asked(played: PlayedCluster, api: str) -> int:
    return len(played.driver.requests(api))


# ---- leaders


def test_a_leader_that_the_old_one_names_is_asked_at_once() -> None:
    played = cluster(1, 1)
    probe = Probe(played, {T0: 0, T1: 0})
    probe.drain()
    metadata = asked(played, "Metadata")
    played.move(T0, 2)
    played.grew()
    played.append(T0, 5)
    probe.drain()
    assert probe.rows[T0] == [*range(15)]
    assert asked(played, "Metadata") == metadata, "nobody else has to be asked who leads"


def test_a_leader_that_is_not_named_is_found() -> None:
    played = cluster(1, 1)
    played.names_leaders = False
    probe = Probe(played, {T0: 0, T1: 0})
    probe.drain()
    played.move(T0, 3)
    played.append(T0, 5)
    played.append(T1, 5)
    probe.drain(2_000)
    assert probe.rows == {T0: [*range(15)], T1: [*range(15)]}
    assert probe.events == []


def test_others_of_a_topic_go_on_while_a_leader_is_looked_for() -> None:
    played = cluster(1, 1)
    played.names_leaders = False
    probe = Probe(played, {T0: 0, T1: 0})
    probe.drain()
    played.move(T0, 3)
    played.grew()
    probe.drain()
    played.append(T1, 5)
    probe.drain()
    assert probe.rows[T1] == [*range(15)], "and no time passed"


def test_without_a_leader_it_is_tried_and_told_from_time_to_time() -> None:
    played = cluster(1, 1, default_api_timeout_ms=10_000)
    played.names_leaders = False
    probe = Probe(played, {T0: 0, T1: 0})
    probe.drain()
    played.move(T0, -1)
    played.append(T1, 1)
    probe.drain(25_000)
    assert probe.rows[T1] == [*range(11)]
    assert [event.partition for event in probe.of(Failed)] == [T0, T0]
    error = probe.of(Failed)[0].error
    assert isinstance(error, BrokerError)
    assert (error.code, error.retriable, error.tries > 5) == (ErrorCode.LEADER_NOT_AVAILABLE, True, True)
    played.move(T0, 2)
    played.append(T0, 1)
    probe.drain(2_000)
    assert probe.rows[T0] == [*range(11)]


def test_partitions_of_a_broker_that_is_gone_are_read_from_who_leads_them_now() -> None:
    played = cluster(1, 2)
    probe = Probe(played, {T0: 0, T1: 0})
    probe.drain()
    played.driver.unreachable[NODES[2]] = refused(NODES[2])
    for line in played.driver.open_lines:
        if line.address == NODES[2]:
            line.drop()
    played.move(T1, 3)
    played.append(T1, 5)
    probe.drain(3_000)
    assert probe.rows[T1] == [*range(15)]
    assert probe.events == []


def test_a_broker_that_stays_away_is_told_and_tried_until_it_is_back() -> None:
    played = cluster(1, 2, default_api_timeout_ms=20_000)
    probe = Probe(played, {T0: 0, T1: 0})
    probe.drain()
    played.driver.unreachable[NODES[2]] = refused(NODES[2])
    for line in played.driver.open_lines:
        if line.address == NODES[2]:
            line.drop()
    probe.drain(30_000)
    [failed] = probe.of(Failed)
    assert (failed.partition, type(failed.error), failed.error.retriable) == (T1, ConnectError, True)
    assert failed.error.elapsed_ms >= 20_000
    del played.driver.unreachable[NODES[2]]
    played.append(T1, 5)
    played.append(T0, 5)
    probe.drain(3_000)
    assert probe.rows == {T0: [*range(15)], T1: [*range(15)]}


def test_a_connection_that_breaks_costs_no_row_and_gives_none_twice() -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 0})
    probe.drain()
    for round in range(1, 6):
        for line in played.driver.open_lines:
            line.drop()
        played.append(T0, 2)
        probe.drain(2_000)
        assert probe.rows[T0] == [*range(10 + 2 * round)]
    assert probe.events == []


def test_a_broker_that_never_answers_is_given_up_and_asked_again() -> None:
    played = cluster(1, request_timeout_ms=3_000)
    probe = Probe(played, {T0: 0})
    played.time.advance(0)
    probe.drain()
    before = len(played.fetches())
    played._parked.clear()  # it forgets whoever waits
    probe.drain(5_000)
    assert len(played.fetches()) > before
    played.append(T0, 1)
    probe.drain(5_000)
    assert probe.rows[T0] == [*range(11)]


def test_a_login_that_is_refused_ends_it_for_all_partitions_of_the_broker() -> None:
    played = cluster(1, 2)
    played.driver.unreachable[NODES[2]] = AuthenticationError("wrong password")
    probe = Probe(played, {T0: 0, T1: 0})
    probe.drain(5_000)
    assert probe.rows[T0] == [*range(10)]
    assert [(event.partition, type(event.error)) for event in probe.of(Failed)] == [(T1, AuthenticationError)]


# ---- offsets that are not there


def test_an_offset_out_of_range_is_an_error_that_names_both_bounds() -> None:
    played = cluster(1, 1)
    played.logs[T0].start = 7
    probe = Probe(played, {T0: 3, T1: 99})
    probe.drain(5_000)
    below, above = sorted(probe.of(Failed))
    assert isinstance(below.error, OffsetOutOfRangeError)
    assert isinstance(above.error, OffsetOutOfRangeError)
    assert (below.error.offset, below.error.log_start, below.error.log_end) == (3, 7, 10)
    assert (above.error.offset, above.error.log_start, above.error.log_end) == (99, 0, 10)
    assert "'t' partition 0 offset 3" in str(below.error)
    assert "[7, 10]" in str(below.error)
    assert asked(played, "ListOffsets") == 2, "one for both ends each, whatever the number of partitions"
    assert probe.rows == {T0: [], T1: []}


def test_after_the_error_a_seek_goes_on() -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 99})
    probe.drain()
    assert len(probe.of(Failed)) == 1
    probe.fetcher.seek(T0, 5)
    probe.drain()
    assert probe.rows[T0] == [*range(5, 10)]


@pytest.mark.parametrize(
    ("policy", "offset", "position", "lost"),
    [
        ("earliest", 3, 7, (3, 7)),
        ("beginning", 99, 7, None),
        ("latest", 3, 10, (3, 10)),
        ("largest", 99, 10, None),
    ],
)
def test_a_reset_is_told_with_the_exact_range_that_is_lost(
    policy: str, offset: int, position: int, lost: tuple[int, int] | None
) -> None:
    played = cluster(1)
    played.logs[T0].start = 7
    probe = Probe(played, {T0: offset}, reset=policy, tell_ends=True)
    probe.drain()
    [reset] = probe.of(Reset)
    assert reset == Reset(T0, offset, position, log_start=7, log_end=10)
    assert reset.lost == lost
    assert probe.rows[T0] == [*range(position, 10)]
    assert [type(event) for event in probe.events] == [Reset, AtEnd], "in this order"


def test_the_setting_decides_about_a_reset_unless_told_otherwise() -> None:
    played = cluster(1, auto_offset_reset="smallest")
    probe = Probe(played, {T0: 99})
    probe.drain()
    assert probe.rows[T0] == [*range(10)]


def test_retention_that_overtakes_a_reader_is_told_behind_what_it_got_before() -> None:
    played = cluster(1, rows=5, max_partition_fetch_bytes=1)
    probe = Probe(played, {T0: 0}, reset="earliest")
    probe.drain()
    probe.fetcher.pause([T0])
    probe.drain(600)
    for _ in range(3):
        played.append(T0, 5)
    played.logs[T0].start = 15
    probe.fetcher.resume([T0])
    probe.drain()
    assert probe.rows[T0] == [0, 1, 2, 3, 4, 15, 16, 17, 18, 19]
    assert probe.of(Reset) == [Reset(T0, 5, 15, log_start=15, log_end=20)]


def test_a_seek_during_a_reset_wins() -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 99}, reset="earliest")
    while asked(played, "ListOffsets") == 0:
        assert played.time.turn()
    probe.fetcher.seek(T0, 8)
    probe.drain()
    assert probe.rows[T0] == [8, 9]
    assert probe.events == []


def test_a_removal_during_a_reset_is_heeded() -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 99}, reset="earliest")
    while asked(played, "ListOffsets") == 0:
        assert played.time.turn()
    probe.fetcher.remove([T0])
    probe.drain(2_000)
    assert (probe.rows[T0], probe.events) == ([], [])


def test_bounds_that_cannot_be_had_are_asked_for_again() -> None:
    played = cluster(1, default_api_timeout_ms=1_000)
    played.fails[T0] = ErrorCode.LEADER_NOT_AVAILABLE
    probe = Probe(played, {T0: 99}, reset="latest")
    played.fails.clear()
    while asked(played, "Fetch") == 0:
        played.time.turn()
    played.time.turn()
    played.fails[T0] = ErrorCode.OFFSET_NOT_AVAILABLE
    probe.drain(5_000)
    del played.fails[T0]
    probe.drain(3_000)
    assert len(probe.of(Reset)) == 1
    assert probe.fetcher.position(T0) == 10


# ---- topics


def test_a_deleted_topic_is_an_error_once_it_had_time_to_appear_again() -> None:
    played = cluster(1)
    [u0] = played.create("u", 1)
    played.append(u0, 3)
    probe = Probe(played, {T0: 0, u0: 0})
    probe.drain()
    played.delete("t")
    played.grew()
    probe.drain(4_000)
    assert probe.events == []
    probe.drain(3_000)
    [failed] = probe.of(Failed)
    assert (failed.partition, type(failed.error), failed.error.retriable) == (T0, UnknownTopicError, False)
    played.append(u0, 2)
    probe.drain()
    assert probe.rows[u0] == [*range(5)], "others go on"
    before = asked(played, "Metadata")
    probe.drain(60_000)
    assert asked(played, "Metadata") == before, "nobody looks for it any more"


def test_a_topic_that_was_made_anew_is_not_read_on_as_if_it_were_the_old_one() -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 0})
    probe.drain()
    played.delete("t")
    played.create("u", 1)
    played.create("t", 1)
    played.append(T0, 50)
    probe.drain(1_000)
    assert probe.rows[T0] == [*range(10)]
    [failed] = probe.of(Failed)
    assert isinstance(failed.error, TopicRecreatedError)
    probe.fetcher.seek(T0, 0)
    probe.drain()
    assert probe.rows[T0] == [*range(10), *range(50)], "unless that is what is wanted"
    metadata = asked(played, "Metadata")
    played.append(T0, 1)
    probe.drain(2_000)
    assert probe.rows[T0][-1] == 50
    known = {key[0] for session in played.sessions[1].values() for key in session.partitions}
    assert (known, asked(played, "Metadata")) == ({played.ids["t"]}, metadata), "the old one is forgotten"


def test_of_a_topic_that_has_another_id_than_expected_nothing_is_read() -> None:
    played = cluster(1)
    expected = b"another".ljust(16)
    probe = Probe(played, {T0: 0}, topic_ids={"t": expected})
    probe.drain(1_000)
    [error] = probe.errors
    assert isinstance(error, TopicRecreatedError)
    assert (error.expected_id, error.found_id) == (id_text(expected), id_text(played.ids["t"]))
    assert not error.retriable
    assert (probe.rows[T0], played.fetches()) == ([], [])


def test_a_topic_of_the_expected_id_that_is_made_anew_while_it_is_read_is_told_with_both_ids() -> None:
    played = cluster(1)
    old = played.ids["t"]
    probe = Probe(played, {T0: 0}, topic_ids={"t": old})
    probe.drain()
    played.delete("t")
    played.create("u", 1)
    played.create("t", 1)
    played.append(T0, 50)
    probe.drain(1_000)
    assert probe.rows[T0] == [*range(10)]
    [error] = probe.errors
    assert f"its id was {id_text(old)}, now it is {id_text(played.ids['t'])}" in str(error)


def test_a_topic_that_is_not_there_yet_is_waited_for() -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 0})
    probe.fetcher.add({U0: 0})
    probe.drain(2_000)
    played.create("u", 2)
    played.append(U0, 3)
    probe.drain(2_000)
    assert probe.rows[U0] == [0, 1, 2]
    assert probe.events == []


def test_a_partition_that_a_topic_does_not_have_is_an_error_at_once() -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 0, TopicPartition("t", 9): 0})
    probe.drain()
    [failed] = probe.of(Failed)
    assert isinstance(failed.error, UnknownTopicError)
    assert "the topic has 1 partitions" in str(failed.error)
    assert probe.rows[T0] == [*range(10)]


def test_a_topic_that_may_not_be_read_is_an_error_for_it_alone() -> None:
    played = cluster(1, 1)
    played.fails[T1] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    probe = Probe(played, {T0: 0, T1: 0})
    probe.drain(5_000)
    assert probe.rows == {T0: [*range(10)], T1: []}
    assert [type(error) for error in probe.errors] == [AuthorizationError]
    del played.fails[T1]
    probe.fetcher.seek(T1, 0)
    probe.drain()
    assert probe.rows[T1] == [*range(10)]


def test_an_error_that_passes_is_not_told() -> None:
    played = cluster(1, 1)
    played.fails[T1] = ErrorCode.OFFSET_NOT_AVAILABLE
    probe = Probe(played, {T0: 0, T1: 0})
    probe.drain(3_000)
    assert probe.rows == {T0: [*range(10)], T1: []}
    del played.fails[T1]
    probe.drain(3_000)
    assert probe.rows[T1] == [*range(10)]
    assert probe.events == []


def test_failures_that_lie_far_apart_do_not_add_up() -> None:
    played = cluster(1, default_api_timeout_ms=60_000)
    probe = Probe(played, {T0: 0})
    probe.drain()
    for _ in range(4):
        for line in played.driver.open_lines:
            line.drop()
        probe.drain(50_000)
    assert probe.events == []


def test_failures_between_which_nothing_was_said_of_a_partition_do_not_add_up() -> None:
    played = cluster(1, default_api_timeout_ms=60_000)
    played.tells_bounds_again = False
    probe = Probe(played, {T0: 10})
    probe.drain(1_000)
    for _ in range(4):
        played.fails[T0] = ErrorCode.OFFSET_NOT_AVAILABLE
        played.grew()
        probe.drain()
        played.fails.clear()
        probe.drain(50_000)
    assert probe.events == []


def test_a_new_partition_does_not_wait_for_one_that_fails() -> None:
    played = cluster(1)
    probe = Probe(played, {T0: 0})
    probe.drain()
    played.move(T0, -1)
    played.grew()
    probe.drain(10_000)
    played.create("u", 1)
    played.append(U0, 3)
    probe.fetcher.add({U0: 0})
    probe.drain()
    assert probe.rows[U0] == [0, 1, 2], "and no time passed"


def test_a_seek_while_its_leader_is_looked_for_counts() -> None:
    played = cluster(1)
    played.names_leaders = False
    probe = Probe(played, {T0: 10})
    probe.drain()
    played.move(T0, 2)
    played.grew()
    answer = played.driver.answer

    def answer_late(request: Asked) -> Any:
        if request.api.name == "Metadata":
            played.driver.call_soon(lambda: probe.fetcher.seek(T0, 8))  # before the answer comes
        return answer(request)

    played.driver.answer = answer_late
    probe.drain(2_000)
    assert probe.rows[T0] == [8, 9]
    played.append(T0, 1)
    probe.drain()
    assert probe.rows[T0] == [8, 9, 10]


def test_an_offset_that_turns_out_to_be_there_is_asked_for_again() -> None:
    played = cluster(1)
    played.fails_at[1, T0] = ErrorCode.OFFSET_OUT_OF_RANGE
    probe = Probe(played, {T0: 4})
    probe.drain()
    assert asked(played, "ListOffsets") == 2
    played.fails_at.clear()
    probe.drain(1_000)
    assert (probe.rows[T0], probe.events) == ([*range(4, 10)], [])


# ---- a replica nearby


def test_a_replica_nearby_is_read_when_the_leader_says_so() -> None:
    played = cluster(1, client_rack="here", metadata_max_age_ms=60_000)
    played.preferred[T0] = 3
    probe = Probe(played, {T0: 0})
    probe.drain(1_000)
    assert probe.rows[T0] == [*range(10)]
    at = {each.line.address for each in played.driver.requests("Fetch") if each.request.max_wait_ms}
    assert at == {NODES[3]}
    del played.preferred[T0]
    probe.drain(5_000)
    played.append(T0, 1)
    probe.drain(2_000)
    assert probe.rows[T0] == [*range(11)], "it does not follow the leader any more"


def test_what_a_replica_does_not_have_is_asked_of_the_leader() -> None:
    played = cluster(1, client_rack="here")
    played.preferred[T0] = 3
    probe = Probe(played, {T0: 0}, reset="latest")
    probe.drain(1_000)
    assert probe.rows[T0] == [*range(10)]
    played.fails_at[3, T0] = ErrorCode.OFFSET_OUT_OF_RANGE
    del played.preferred[T0]
    played.append(T0, 2)
    probe.drain()
    assert probe.rows[T0] == [*range(12)]
    assert probe.of(Reset) == []


def test_a_replica_that_is_gone_is_left_for_the_leader() -> None:
    played = cluster(1, client_rack="here")
    played.preferred[T0] = 3
    probe = Probe(played, {T0: 0})
    probe.drain(1_000)
    played.driver.unreachable[NODES[3]] = refused(NODES[3])
    for line in played.driver.open_lines:
        if line.address == NODES[3]:
            line.drop()
    del played.preferred[T0]
    played.append(T0, 1)
    probe.drain(3_000)
    assert probe.rows[T0] == [*range(11)]


def test_without_a_rack_nobody_is_sent_elsewhere() -> None:
    played = cluster(1)
    played.preferred[T0] = 3
    probe = Probe(played, {T0: 0})
    probe.drain(1_000)
    assert probe.rows[T0] == [*range(10)]
    assert {each.line.address for each in played.driver.requests("Fetch")} == {NODES[1]}


def test_a_batch_of_which_only_a_piece_is_ever_sent_is_told() -> None:
    played = cluster(1, rows=1, default_api_timeout_ms=5_000)
    batch = played.logs[T0].batches[0]
    batch.data = batch.data[:-1]
    probe = Probe(played, {T0: 0})
    probe.drain(10_000)
    [failed] = probe.of(Failed)
    assert "only a part of the next batch" in str(failed.error)
    assert isinstance(failed.error, ClientError)
    assert len(played.fetches()) < 30, "and the broker is not asked in a frenzy"
