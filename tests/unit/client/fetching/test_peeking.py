"""The first row at or behind an offset: what is passed over, what is asked for, and what is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.client.fetching.played import Batch, PlayedCluster

from lowwater.client.errors import ClientError, CorruptRecordsError, OffsetOutOfRangeError, TopicRecreatedError
from lowwater.client.flow import Flow
from lowwater.client.peeking import Peeked, peek
from lowwater.client.topic_ids import id_text
from lowwater.errors import ErrorCode
from lowwater.types import TopicPartition
from lowwater.wire.control import build_end_marker
from lowwater.wire.records import Record, build_batch, set_position

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


def cluster(*leaders: int, rows: int = 10, **settings: Any) -> PlayedCluster:
    played = PlayedCluster(**settings)
    for one in played.create("t", *leaders):
        if rows:
            played.append(one, rows)
    return played


def put(played: PlayedCluster, one: TopicPartition, data: bytearray, count: int) -> None:
    log = played.logs[one]
    set_position(data, log.end, 0)
    log.batches.append(Batch(log.end, log.end + count, bytes(data)))
    log.end += count


def look(played: PlayedCluster, offsets: dict[TopicPartition, int], advance_ms: int = 0, **options: Any) -> Any:
    flow = Flow(peek(played.cluster, offsets, **options))
    played.time.advance(advance_ms)
    return flow.result()


@pytest.mark.parametrize("offset", [0, 4, 9])
def test_the_row_at_an_offset_is_found_inside_its_batch(offset: int) -> None:
    assert look(cluster(1), {T0: offset}) == {T0: Peeked(offset, 1_000 + offset)}


def test_one_request_per_leader_finds_the_first_rows_of_all_partitions() -> None:
    played = cluster(1, 2, 1)
    assert look(played, {T0: 0, T1: 3, T2: 5}) == {T0: Peeked(0, 1_000), T1: Peeked(3, 1_003), T2: Peeked(5, 1_005)}
    assert len(played.fetches()) == 2


def test_at_the_end_there_is_no_row() -> None:
    played = cluster(1, 1)
    assert look(played, {T0: 10, T1: 9}) == {T0: None, T1: Peeked(9, 1_009)}
    assert look(cluster(1, rows=0), {T0: 0}) == {T0: None}


def test_markers_and_batches_that_compaction_emptied_are_passed_over() -> None:
    played = cluster(1)
    put(played, T0, build_end_marker(7, 0, True, 0, 5), 1)
    put(played, T0, build_batch([], base_offset=0, last_offset=3), 4)
    put(played, T0, build_batch([Record(2, 77, None, b"v")], base_offset=0), 3)
    assert look(played, {T0: 10}) == {T0: Peeked(17, 77)}


def test_a_gap_up_to_the_end_has_no_row() -> None:
    played = cluster(1)
    played.logs[T0].end = 15
    assert look(played, {T0: 12}) == {T0: None}


def test_readers_of_committed_records_see_no_further_than_the_last_stable_offset() -> None:
    played = cluster(1)
    played.logs[T0].last_stable = 0
    assert look(played, {T0: 0}, isolation="read_committed") == {T0: None}
    assert look(played, {T0: 0}, isolation="read_uncommitted") == {T0: Peeked(0, 1_000)}


def test_batches_larger_than_what_is_asked_for_come_in_a_few_rounds() -> None:
    played = PlayedCluster()
    partitions = played.create("t", *[1] * 20)
    for one in partitions:
        played.append(one, 2, b"v" * 60_000)
    found = look(played, dict.fromkeys(partitions, 1))
    assert found == dict.fromkeys(partitions, Peeked(1, 1_001))
    assert len(played.fetches()) == 2


def test_an_offset_that_is_not_there_is_an_error() -> None:
    with pytest.raises(OffsetOutOfRangeError, match="'t' partition 0 offset 11"):
        look(cluster(1), {T0: 11})


def test_a_leader_that_moved_is_found() -> None:
    played = cluster(1, 1)
    look(played, {T0: 0})
    played.move(T0, 2)
    assert look(played, {T0: 0, T1: 0}, 1_000) == {T0: Peeked(0, 1_000), T1: Peeked(0, 1_000)}


def test_a_broker_whose_quota_is_used_up_is_asked_again_when_it_listens() -> None:
    played = cluster(1, 2)
    played.throttle_ms = 50
    flow = Flow(peek(played.cluster, {T0: 0, T1: 3}, timeout_ms=60_000))
    played.time.advance(2_000)
    assert not flow.done
    played.throttle_ms = 0
    played.time.advance(2_000)
    assert flow.result() == {T0: Peeked(0, 1_000), T1: Peeked(3, 1_003)}


def test_what_stays_wrong_is_told_when_the_time_is_over() -> None:
    played = cluster(1)
    played.fails[T0] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(ClientError, match="NOT_LEADER_OR_FOLLOWER"):
        look(played, {T0: 0}, 5_000, timeout_ms=2_000)


def test_a_batch_that_is_damaged_is_an_error_only_where_it_is_looked_into() -> None:
    played = cluster(1)
    spoiled = bytearray(build_batch([Record(0, 5, None, b"v")], base_offset=0))
    put(played, T0, spoiled, 1)
    data = bytearray(played.logs[T0].batches[-1].data)
    data[-1] ^= 1
    played.logs[T0].batches[-1].data = bytes(data)
    assert look(played, {T0: 3}) == {T0: Peeked(3, 1_003)}
    with pytest.raises(CorruptRecordsError, match="checksum"):
        look(played, {T0: 10})


def test_a_topic_of_another_id_is_an_error_that_names_both() -> None:
    played = cluster(1)
    old = played.ids["t"]
    assert look(played, {T0: 0}, topic_ids={"t": old}) == {T0: Peeked(0, 1_000)}
    played.delete("t")
    played.create("u", 1)
    played.create("t", 1)
    with pytest.raises(TopicRecreatedError) as raised:
        look(played, {T0: 0}, 1_000, topic_ids={"t": old})
    assert (raised.value.expected_id, raised.value.found_id) == (id_text(old), id_text(played.ids["t"]))


def test_a_broker_that_sends_only_pieces_is_not_asked_for_ever() -> None:
    played = cluster(1, 1)
    piece = played.logs[T0].batches[0].data[:50]
    played.logs[T0].read = lambda *_, **__: piece  # type: ignore[method-assign]
    with pytest.raises(ClientError, match="without the next batch"):
        look(played, {T0: 0})
    assert len(played.fetches()) < 6
