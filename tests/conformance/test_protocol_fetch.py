"""Fetch at the level of requests: bounds, epochs, sizes, waiting and sessions."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.conformance.asking import (
    UNKNOWN_ID,
    Ask,
    batch_of,
    fetch,
    fetch_one,
    fetch_request,
    produce,
    size_of,
    topic_id,
)
from tests.conformance.conftest import NewTopic
from tests.conformance.raw import Wire
from tests.conformance.under_test import UnderTest

from lowwater.errors import ErrorCode
from lowwater.wire.messages.fetch import ForgottenTopic, ReplicaState
from lowwater.wire.records import BatchHeader

NEW_SESSION = (0, 0)
BATCH = batch_of(b"v" * 1000)


@pytest.fixture
def filled(wire: Wire, new_topic: NewTopic) -> str:
    """A topic with five batches of one record, each of about a kilobyte."""
    topic = new_topic(partitions=2)
    for _ in range(5):
        assert produce(wire, topic, BATCH).error_code == 0
    return topic


def batches(records: Any) -> list[BatchHeader]:
    data = b"".join(bytes(part) for part in (records if isinstance(records, list) else [records or b""]))
    found, position = [], 0
    while position + 61 <= len(data):
        header = BatchHeader.parse(data, position)
        if position + header.size > len(data):
            break
        found.append(header)
        position += header.size
    return found


def offsets(records: Any) -> list[int]:
    return [header.base_offset for header in batches(records)]


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version_reads_batches_as_they_were_stored(wire: Wire, version: int, filled: str) -> None:
    ask = Ask(filled, id=topic_id(wire, filled), offset=2)
    answer = fetch(wire, ask, version=version)
    [topic] = answer.responses
    assert (bytes(topic.topic_id) if version >= 13 else topic.topic) == (ask.id if version >= 13 else filled)
    [partition] = topic.partitions
    assert (partition.partition_index, partition.error_code) == (0, 0)
    assert (partition.high_watermark, partition.last_stable_offset) == (5, 5)
    assert partition.log_start_offset == (0 if version >= 5 else -1)
    assert partition.preferred_read_replica == -1
    assert offsets(partition.records) == [2, 3, 4]
    assert size_of(partition.records) == 3 * len(BATCH)


def test_stored_batches_carry_offset_and_leader_epoch(wire: Wire, filled: str) -> None:
    headers = batches(fetch_one(wire, Ask(filled)).records)
    assert [(each.base_offset, each.leader_epoch) for each in headers] == [(offset, 0) for offset in range(5)]


def test_the_batch_that_holds_the_offset_is_returned_whole(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic()
    produce(wire, topic, batch_of(*[b"v"] * 10))
    assert offsets(fetch_one(wire, Ask(topic, offset=7)).records) == [0]


@pytest.mark.parametrize("offset", [-1, 6, 1000])
def test_an_offset_outside_the_log_is_out_of_range(wire: Wire, offset: int, filled: str) -> None:
    answer = fetch_one(wire, Ask(filled, offset=offset))
    assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (-1, -1, -1)
    assert size_of(answer.records) == 0


def test_the_end_of_the_log_is_an_empty_answer(wire: Wire, filled: str) -> None:
    answer = fetch_one(wire, Ask(filled, offset=5))
    assert (answer.error_code, answer.high_watermark, size_of(answer.records)) == (0, 5, 0)
    assert answer.records is not None


def test_an_unknown_topic_or_partition_is_refused(wire: Wire, filled: str, fresh_name: str) -> None:
    for ask in (Ask(fresh_name), Ask(filled, partition=9)):
        answer = fetch_one(wire, ask)
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (-1, -1, -1)


def test_an_unknown_topic_id_is_refused(wire: Wire, filled: str) -> None:
    answer = fetch(wire, Ask("", id=UNKNOWN_ID), Ask("", id=topic_id(wire, filled)), version=13)
    found = {bytes(topic.topic_id): topic.partitions[0].error_code for topic in answer.responses}
    assert answer.error_code == 0
    assert found == {UNKNOWN_ID: ErrorCode.UNKNOWN_TOPIC_ID, topic_id(wire, filled): 0}


@pytest.mark.parametrize("version", [9, 12])
def test_a_newer_leader_epoch_than_ours_is_unknown(wire: Wire, version: int, filled: str) -> None:
    answer = fetch_one(wire, Ask(filled, leader_epoch=1), version=version)
    assert answer.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert fetch_one(wire, Ask(filled, leader_epoch=0), version=version).error_code == 0


def test_a_last_fetched_epoch_that_matches_is_no_divergence(wire: Wire, filled: str) -> None:
    answer = fetch_one(wire, Ask(filled, offset=5, last_fetched_epoch=0))
    assert answer.error_code == 0
    assert answer.diverging_epoch is None or answer.diverging_epoch.epoch == -1


def test_a_last_fetched_epoch_that_never_was_is_out_of_range(wire: Wire, filled: str) -> None:
    assert fetch_one(wire, Ask(filled, last_fetched_epoch=5)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_negative_epochs_stand_for_none(wire: Wire, filled: str) -> None:
    for none in (-1, -2):
        assert fetch_one(wire, Ask(filled, leader_epoch=none, last_fetched_epoch=none)).error_code == 0


def test_the_partition_limit_cuts_at_bytes_but_the_first_batch_is_whole(wire: Wire, filled: str) -> None:
    size = len(BATCH)
    assert offsets(fetch_one(wire, Ask(filled, bytes_max=1)).records) == [0]
    assert offsets(fetch_one(wire, Ask(filled, bytes_max=2 * size)).records) == [0, 1]
    assert offsets(fetch_one(wire, Ask(filled, bytes_max=3 * size - 1)).records) == [0, 1]


def test_only_the_first_partition_with_data_may_exceed_the_limits(wire: Wire, filled: str, new_topic: NewTopic) -> None:
    other = new_topic()
    produce(wire, other, BATCH)
    answer = fetch(wire, Ask(filled, bytes_max=1), Ask(other, bytes_max=1), max_bytes=1 << 20)
    found = {topic.topic: offsets(topic.partitions[0].records) for topic in answer.responses}
    assert found == {filled: [0], other: []}


def test_the_response_limit_is_shared_by_the_partitions(wire: Wire, filled: str, new_topic: NewTopic) -> None:
    other = new_topic()
    produce(wire, other, BATCH)
    answer = fetch(wire, Ask(filled), Ask(other), max_bytes=3 * len(BATCH))
    found = {topic.topic: offsets(topic.partitions[0].records) for topic in answer.responses}
    assert found == {filled: [0, 1, 2], other: []}


def test_an_offset_out_of_range_is_told_although_there_is_no_room_left(
    wire: Wire, filled: str, new_topic: NewTopic
) -> None:
    answer = fetch(wire, Ask(filled), Ask(new_topic(), offset=99), max_bytes=1)
    assert [topic.partitions[0].error_code for topic in answer.responses] == [0, ErrorCode.OFFSET_OUT_OF_RANGE]


def test_an_empty_partition_does_not_use_up_the_whole_first_batch(wire: Wire, filled: str) -> None:
    answer = fetch(wire, Ask(filled, partition=1), Ask(filled, partition=0, bytes_max=1), max_bytes=1)
    found = {each.partition_index: offsets(each.records) for topic in answer.responses for each in topic.partitions}
    assert found == {1: [], 0: [0]}


def test_zero_bytes_give_no_data_and_no_error(wire: Wire, filled: str) -> None:
    answer = fetch_one(wire, Ask(filled, bytes_max=0))
    assert answer.error_code == 0


def test_a_fetch_waits_until_enough_bytes_arrive(wire: Wire, filled: str, broker: UnderTest) -> None:
    correlation_id = wire.send(fetch_request(Ask(filled, offset=5), min_bytes=2 * len(BATCH), wait_ms=15_000), 12)
    with Wire(broker.address) as writer:
        for _ in range(2):
            produce(writer, filled, BATCH)
    started = time.monotonic()
    answer = wire.receive(1, 12, correlation_id)
    assert time.monotonic() - started < 10
    assert offsets(answer.responses[0].partitions[0].records) == [5, 6]


def test_a_fetch_gives_up_at_its_deadline_with_what_there_is(wire: Wire, filled: str) -> None:
    started = time.monotonic()
    answer = fetch_one(wire, Ask(filled, offset=4), min_bytes=1 << 20, wait_ms=300)
    waited = time.monotonic() - started
    assert 0.28 <= waited < 5
    assert offsets(answer.records) == [4]


def test_an_error_does_not_wait(wire: Wire, filled: str) -> None:
    started = time.monotonic()
    answer = fetch_one(wire, Ask(filled, offset=99), min_bytes=1, wait_ms=15_000)
    assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert time.monotonic() - started < 10


def test_no_partitions_do_not_wait(wire: Wire) -> None:
    started = time.monotonic()
    assert fetch(wire, min_bytes=1, wait_ms=15_000).responses == []
    assert time.monotonic() - started < 10


def test_many_waiting_fetches_are_woken_by_one_append(filled: str, broker: UnderTest, wire: Wire) -> None:
    readers = [Wire(broker.address) for _ in range(20)]
    asked = [reader.send(fetch_request(Ask(filled, offset=5), min_bytes=1, wait_ms=15_000), 12) for reader in readers]
    produce(wire, filled, BATCH)
    for reader, correlation_id in zip(readers, asked, strict=True):
        with reader:
            answer = reader.receive(1, 12, correlation_id)
            assert offsets(answer.responses[0].partitions[0].records) == [5]


# ---- sessions (KIP-227)


def start_session(wire: Wire, *asks: Ask, version: int = 12) -> int:
    answer = fetch(wire, *asks, session=NEW_SESSION, version=version)
    assert answer.error_code == 0
    assert answer.session_id != 0
    return int(answer.session_id)


def told(answer: Any) -> dict[tuple[str, int], list[int]]:
    return {
        (topic.topic, each.partition_index): offsets(each.records)
        for topic in answer.responses
        for each in topic.partitions
    }


def test_without_a_session_the_answer_has_none(wire: Wire, filled: str) -> None:
    assert fetch(wire, Ask(filled)).session_id == 0


def test_a_session_answers_only_what_changed(wire: Wire, filled: str) -> None:
    session = start_session(wire, Ask(filled, offset=5), Ask(filled, partition=1))
    assert told(fetch(wire, session=(session, 1))) == {}
    produce(wire, filled, BATCH)
    answer = fetch(wire, session=(session, 2))
    assert (answer.error_code, answer.session_id) == (0, session)
    assert told(answer) == {(filled, 0): [5]}
    assert told(fetch(wire, session=(session, 3))) == {(filled, 0): [5]}
    assert told(fetch(wire, Ask(filled, offset=6), session=(session, 4))) == {}


def test_a_session_keeps_its_partitions_and_takes_new_ones(wire: Wire, filled: str, new_topic: NewTopic) -> None:
    other = new_topic()
    produce(wire, other, BATCH)
    session = start_session(wire, Ask(filled, offset=5))
    assert told(fetch(wire, Ask(other), session=(session, 1))) == {(other, 0): [0]}


def test_a_forgotten_partition_is_not_answered(wire: Wire, filled: str) -> None:
    session = start_session(wire, Ask(filled))
    forgotten = [ForgottenTopic(topic=filled, partitions=[0])]
    assert told(fetch(wire, session=(session, 1), forgotten=forgotten)) == {}
    # The session stays, with nothing in it.
    assert fetch(wire, Ask(filled), session=(session, 2)).error_code in (0, ErrorCode.FETCH_SESSION_ID_NOT_FOUND)


def test_a_session_tells_an_error_again_and_again(wire: Wire, filled: str) -> None:
    session = start_session(wire, Ask(filled, offset=5))
    for epoch in (1, 2):
        answer = fetch(wire, *([Ask(filled, offset=99)] if epoch == 1 else []), session=(session, epoch))
        assert answer.responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_session_tells_a_moved_log_start(wire: Wire, filled: str) -> None:
    from lowwater.wire.messages import DeleteRecordsRequest
    from lowwater.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsTopic

    session = start_session(wire, Ask(filled, offset=5))
    wanted = DeleteRecordsTopic(name=filled, partitions=[DeleteRecordsPartition(partition_index=0, offset=3)])
    wire.ask(DeleteRecordsRequest(topics=[wanted], timeout_ms=5000))
    answer = fetch(wire, session=(session, 1))
    assert [each.log_start_offset for topic in answer.responses for each in topic.partitions] == [3]


def test_epoch_0_with_a_session_ends_it_and_starts_another(wire: Wire, filled: str) -> None:
    session = start_session(wire, Ask(filled, offset=5))
    answer = fetch(wire, session=(session, 0))
    assert answer.error_code == 0
    assert answer.session_id not in (0, session)
    assert fetch(wire, session=(session, 1)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("epoch", [2, 7])
def test_a_wrong_session_epoch_is_refused(wire: Wire, epoch: int, filled: str) -> None:
    session = start_session(wire, Ask(filled, offset=5))
    answer = fetch(wire, session=(session, epoch))
    assert (answer.error_code, answer.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)
    assert answer.responses == []
    # The session itself is unharmed.
    assert fetch(wire, session=(session, 1)).error_code == 0


@pytest.mark.parametrize("epoch", [1, 5])
def test_an_unknown_session_is_refused(wire: Wire, epoch: int, filled: str) -> None:
    answer = fetch(wire, Ask(filled), session=(123456789, epoch))
    assert (answer.error_code, answer.session_id, answer.responses) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, [])


def test_a_session_closed_by_its_owner_is_gone(wire: Wire, filled: str) -> None:
    session = start_session(wire, Ask(filled, offset=5))
    answer = fetch(wire, session=(session, -1))
    assert (answer.error_code, answer.session_id) == (0, 0)
    assert fetch(wire, session=(session, 1)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_an_unknown_topic_id_stays_in_the_session_with_its_error(wire: Wire, filled: str) -> None:
    session = start_session(wire, Ask("", id=UNKNOWN_ID), Ask("", id=topic_id(wire, filled), offset=5), version=13)
    answer = fetch(wire, session=(session, 1), version=13)
    found = {bytes(topic.topic_id): topic.partitions[0].error_code for topic in answer.responses}
    assert (answer.error_code, found) == (0, {UNKNOWN_ID: ErrorCode.UNKNOWN_TOPIC_ID})


def test_a_session_by_name_is_not_continued_by_id(wire: Wire, filled: str) -> None:
    session = start_session(wire, Ask(filled, offset=5), version=12)
    answer = fetch(wire, session=(session, 1), version=13)
    assert answer.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_when_sessions_run_out_a_fetch_is_served_without_one(own_broker: Any) -> None:
    from tests.conformance.conftest import create_topic

    broker = own_broker({"max.incremental.fetch.session.cache.slots": "8"})
    create_topic(broker.address, "crowded")
    with Wire(broker.address) as wire:
        produce(wire, "crowded", BATCH)
        given = [fetch(wire, Ask("crowded"), session=NEW_SESSION) for _ in range(100)]
        assert {answer.error_code for answer in given} == {0}
        assert all(told(answer) == {("crowded", 0): [0]} for answer in given)
        assert sum(answer.session_id != 0 for answer in given) == 8


# ---- replicas


def test_a_client_that_claims_to_be_a_replica_gets_no_data(wire: Wire, filled: str) -> None:
    answer = wire.ask(fetch_request(Ask(filled), replica_id=5), 12)
    refused = answer.responses[0].partitions[0]
    assert (refused.error_code, size_of(refused.records)) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)
    answer = wire.ask(
        fetch_request(Ask("", id=topic_id(wire, filled)), replica_state=ReplicaState(replica_id=5, replica_epoch=1)), 15
    )
    refused = answer.responses[0].partitions[0]
    assert (refused.error_code, size_of(refused.records)) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)


def test_a_waiting_fetch_is_dropped_with_its_connection(filled: str, broker: UnderTest, wire: Wire) -> None:
    with Wire(broker.address) as gone:
        gone.send(fetch_request(Ask(filled, offset=5), min_bytes=1, wait_ms=15_000), 12)
    produce(wire, filled, BATCH)
    assert offsets(fetch_one(wire, Ask(filled, offset=5)).records) == [5]
