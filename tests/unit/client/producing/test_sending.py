"""Rows are written once and in their order, whatever brokers and connections do; what is not written is told."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.client.producing.played import NODES, TOPIC, Played, rows

from lowwater.client.errors import (
    AuthorizationError,
    BadRowsError,
    ClosedError,
    DeliveryError,
    DeliveryTimeoutError,
    DisconnectedError,
    RecordTooLargeError,
    UnknownTopicError,
)
from lowwater.client.flow import Flow
from lowwater.client.producing.reports import Report
from lowwater.errors import ErrorCode
from lowwater.types import TopicPartition
from lowwater.wire.messages import InitProducerIdResponse
from lowwater.wire.messages.metadata import MetadataResponseTopic
from lowwater.wire.records import BatchHeader

SMALL = {"batch_size": 200}
"""So that a few rows are many batches."""


def headers_of(played: Played) -> list[BatchHeader]:
    """Of every batch that was sent, in order."""
    return [
        BatchHeader.parse(bytes(data.records))
        for asked in played.asked("Produce")
        for topic in asked.request.topic_data
        for data in topic.partition_data
    ]


def test_rows_are_written_in_order_and_their_offsets_told() -> None:
    played = Played()
    played.settle(played.send(rows(0, 3)))
    report = played.settle(played.send(rows(3, 2)))
    assert played.values() == rows(0, 5)
    assert (report.rows, report.delivered, report.failed) == (2, 2, 0)
    assert report.partitions == {TopicPartition(TOPIC, 0): (3, 4, 2)}
    assert report.offsets().to_pylist() == [3, 4]


def test_at_most_five_requests_are_on_their_way_and_sequences_follow_each_other() -> None:
    played = Played(**SMALL)
    played.whim("Produce", played.serve, played.say_nothing)
    played.send(rows(0, 100))
    played.driver.time.advance(100)
    headers = headers_of(played)
    assert len(headers) == 1 + 5, "the first of a partition goes alone"
    sequences = list(itertools.accumulate((header.record_count for header in headers), initial=0))
    assert [header.base_sequence for header in headers] == sequences[:-1]


def test_the_first_batch_of_a_partition_goes_alone() -> None:
    """A broker that knows nothing of a producer takes any sequence, also that of the second batch before the first."""
    played = Played(**SMALL)
    played.whim("Produce", played.refuse(ErrorCode.NOT_ENOUGH_REPLICAS))
    played.settle(played.send(rows(0, 60)))
    assert played.values() == rows(0, 60)
    assert headers_of(played)[1].base_sequence == 0


def test_batches_of_several_partitions_share_a_request() -> None:
    played = Played(partitions=3)
    batch = pa.RecordBatch.from_pydict({"value": rows(0, 6), "partition": [0, 1, 2, 0, 1, 2]})
    report = played.settle(played.send_batch(batch))
    assert len(played.asked("Produce")) == 1
    found = [played.values(each) for each in range(3)]
    assert found == [[b"000000", b"000003"], [b"000001", b"000004"], [b"000002", b"000005"]]
    assert report.offsets().to_pylist() == [0, 0, 0, 1, 1, 1]


def test_a_write_whose_answer_was_lost_is_not_written_twice() -> None:
    played = Played()
    played.whim("Produce", played.write_and_hang_up)
    report = played.settle(played.send(rows(0, 4)))
    assert played.values() == rows(0, 4)
    assert report.offsets().to_pylist() == [0, 1, 2, 3]
    first, again = headers_of(played)
    assert (first.base_sequence, first.producer_id) == (again.base_sequence, again.producer_id)


def test_batches_behind_one_that_was_refused_keep_their_order() -> None:
    played = Played(**SMALL)
    played.whim("Produce", played.serve, played.refuse(ErrorCode.NOT_ENOUGH_REPLICAS))
    report = played.settle(played.send(rows(0, 60)))
    assert played.values() == rows(0, 60)
    assert report.failed == 0
    assert {header.producer_epoch for header in headers_of(played)} == {0}, "no gap was left: the epoch stays"


def test_a_retry_goes_alone() -> None:
    """With five others behind it, a broker would not know any more that it has it."""
    played = Played(**SMALL)
    played.settle(played.send(rows(0, 2)))

    def write_and_complain(asked: Any) -> Any:
        played.produce(asked)
        return played.refuse(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)(asked)

    played.whim("Produce", write_and_complain, *[played.serve] * 4, played.say_nothing)
    report = played.send(rows(2, 200))
    played.driver.time.advance(2_000)
    assert len(played.asked("Produce")) == 1 + 5 + 1
    played.settle(report)
    assert played.values() == rows(0, 202)


def test_batches_follow_their_leader_in_order() -> None:
    played = Played(**SMALL)

    def move(asked: Any) -> Any:
        played.leaders[TopicPartition(TOPIC, 0)] = 2
        return None

    played.whim("Produce", played.serve, move)
    played.settle(played.send(rows(0, 60)))
    assert played.values() == rows(0, 60)
    assert {asked.line.address for asked in played.asked("Produce")} == set(NODES.values())


def test_a_leader_that_falls_silent_is_replaced() -> None:
    played = Played(request_timeout_ms=1_000)

    def fall_silent(asked: Any) -> Any:
        played.leaders[TopicPartition(TOPIC, 0)] = 2
        return played.say_nothing(asked)

    played.whim("Produce", fall_silent)
    played.settle(played.send(rows(0, 3)))
    assert played.values() == rows(0, 3)


def test_a_partition_without_a_leader_waits_and_others_do_not() -> None:
    played = Played(partitions=2)
    played.leaders[TopicPartition(TOPIC, 0)] = -1
    late = played.send(rows(0, 2), partition=0)
    played.settle(played.send(rows(2, 2), partition=1))
    assert not late.done
    played.leaders[TopicPartition(TOPIC, 0)] = 2
    played.settle(late)
    assert played.values(0) == rows(0, 2)


def test_rows_that_are_too_late_fail_and_say_why() -> None:
    played = Played(delivery_timeout_ms=2_000)
    played.more["Produce"] = played.refuse(ErrorCode.NOT_ENOUGH_REPLICAS)
    began_ms = played.driver.monotonic_ms()
    report = played.settle(played.send(rows(0, 3)))
    assert 2_000 <= played.driver.monotonic_ms() - began_ms < 4_000
    assert report.failed == 3
    [failure] = report.failures
    assert isinstance(failure.error, DeliveryTimeoutError)
    assert "NOT_ENOUGH_REPLICAS" in str(failure.error)
    assert list(failure.rows) == [0, 1, 2]
    assert failure.table().column("value").to_pylist() == rows(0, 3)
    with pytest.raises(DeliveryError, match="3 of 3 rows"):
        report.raise_failures()


def test_a_gap_that_the_broker_sees_begins_a_new_epoch_with_sequence_0() -> None:
    played = Played(delivery_timeout_ms=2_000, request_timeout_ms=1_000)
    played.settle(played.send(rows(0, 2)))
    played.whim("Produce", played.say_nothing, played.say_nothing)
    assert played.settle(played.send(rows(2, 3))).failed == 3
    played.settle(played.send(rows(5, 2)))
    assert played.values() == [*rows(0, 2), *rows(5, 2)]
    last = headers_of(played)[-1]
    assert (last.producer_epoch, last.base_sequence) == (1, 0)


def test_when_what_nobody_knew_of_was_written_sequences_go_on() -> None:
    played = Played(delivery_timeout_ms=1_500, request_timeout_ms=1_000, retries=0)
    played.whim("Produce", played.write_and_hang_up)
    [failure] = played.settle(played.send(rows(0, 2))).failures
    assert isinstance(failure.error, DisconnectedError)
    played.settle(played.send(rows(2, 2)))
    assert played.values() == rows(0, 4)
    last = headers_of(played)[-1]
    assert (last.producer_epoch, last.base_sequence) == (0, 2)


def test_other_partitions_adopt_the_new_epoch_from_sequence_0() -> None:
    played = Played(partitions=2)
    played.settle(played.send(rows(0, 2), partition=0))
    played.settle(played.send(rows(2, 2), partition=1))
    played.logs[TopicPartition(TOPIC, 0)].writers[70].next_sequence = 99
    played.settle(played.send(rows(4, 2), partition=0))
    played.settle(played.send(rows(6, 2), partition=1))
    assert played.values(1) == [*rows(2, 2), *rows(6, 2)]
    last = headers_of(played)[-1]
    assert (last.producer_epoch, last.base_sequence) == (1, 0)


def test_when_all_epochs_are_used_up_there_is_another_producer_id() -> None:
    played = Played()
    played.whim("InitProducerId", lambda _: InitProducerIdResponse(producer_id=7, producer_epoch=2**15 - 1))
    played.settle(played.send(rows(0, 2)))
    played.logs[TopicPartition(TOPIC, 0)].writers[7].next_sequence = 99
    report = played.settle(played.send(rows(2, 2)))
    assert report.failed == 0
    assert headers_of(played)[-1].producer_id == 70


def test_a_batch_that_is_too_large_for_its_topic_is_halved() -> None:
    played = Played()
    limit = 3

    def serve(asked: Any) -> Any:
        def append(one: TopicPartition, data: bytes) -> tuple[int, int]:
            if BatchHeader.parse(data).record_count > limit:
                return ErrorCode.MESSAGE_TOO_LARGE, -1
            return played.logs[one].append(data)

        return played.produced(asked, append)

    played.more["Produce"] = serve
    report = played.settle(played.send(rows(0, 20)))
    assert report.failed == 0
    assert played.values() == rows(0, 20)
    assert report.offsets().to_pylist() == list(range(20))


def test_a_record_that_is_too_large_for_its_topic_is_named() -> None:
    played = Played()
    played.whim("Produce", played.refuse(ErrorCode.MESSAGE_TOO_LARGE))
    [failure] = played.settle(played.send(rows(0, 1))).failures
    assert isinstance(failure.error, RecordTooLargeError)
    assert "row 0" in str(failure.error)


def test_a_record_that_is_too_large_to_send_is_named_and_the_others_are_written() -> None:
    played = Played(max_request_size=1_000)
    report = played.settle(played.send([b"small", b"x" * 2_000, b"after"]))
    assert played.values() == [b"small", b"after"]
    [failure] = report.failures
    assert isinstance(failure.error, RecordTooLargeError)
    assert list(failure.rows) == [1]
    assert report.offsets().to_pylist() == [0, None, 1]


def test_what_will_not_pass_is_told_at_once() -> None:
    played = Played()
    played.whim("Produce", played.refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    began_ms = played.driver.monotonic_ms()
    [failure] = played.settle(played.send(rows(0, 2))).failures
    assert isinstance(failure.error, AuthorizationError)
    assert played.driver.monotonic_ms() - began_ms < 100
    assert played.settle(played.send(rows(2, 2))).failed == 0


def test_rows_for_a_topic_that_is_not_there_fail() -> None:
    played = Played(topic_metadata_propagation_max_ms=1_000)
    missing = MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name="nope", partitions=[])

    def metadata(asked: Any) -> Any:
        answer = played.metadata()
        answer.topics = [missing] if asked.request.topics[0].name == "nope" else answer.topics
        return answer

    played.more["Metadata"] = metadata
    report = played.settle(played.send(rows(0, 2), topic="nope"))
    assert isinstance(report.failures[0].error, UnknownTopicError)
    assert played.settle(played.send(rows(0, 2))).failed == 0


def test_rows_whose_topic_nobody_tells_of_in_time_are_late_as_all_others() -> None:
    played = Played(delivery_timeout_ms=1_000)
    played.whim("Metadata", *[played.say_nothing] * 50)
    [failure] = played.settle(played.send(rows(0, 2))).failures
    assert isinstance(failure.error, DeliveryTimeoutError)
    assert list(failure.rows) == [0, 1]


def test_rows_that_name_a_partition_which_is_not_there_fail_and_others_do_not() -> None:
    played = Played(partitions=2)
    batch = pa.RecordBatch.from_pydict({"value": rows(0, 4), "partition": pa.array([0, 2, -7, 1 << 40], pa.int64())})
    report = played.settle(played.send_batch(batch))
    assert played.values(0) == rows(0, 1)
    assert list(report.failures[0].rows) == [1, 2, 3]
    assert "2 partitions" in str(report.failures[0].error)


def test_a_topic_that_was_deleted_and_made_again_gets_what_waits() -> None:
    played = Played()
    played.settle(played.send(rows(0, 2)))
    played.topic_id = b"the new topic's."
    played.logs[TopicPartition(TOPIC, 0)].writers.clear()
    played.whim("Produce", lambda asked: refuse_id(played, asked))
    assert played.settle(played.send(rows(2, 2))).failed == 0
    assert played.asked("Produce")[-1].request.topic_data[0].topic_id == played.topic_id


def refuse_id(played: Played, asked: Any) -> Any:
    now, played.topic_id = played.topic_id, asked.request.topic_data[0].topic_id
    answer = played.produced(asked, lambda one, data: (ErrorCode.UNKNOWN_TOPIC_ID, -1))
    played.topic_id = now
    return answer


def test_older_brokers_are_told_topics_by_name() -> None:
    played = Played()
    played.versions = {0: (3, 9), 3: (0, 9), 18: (0, 3), 22: (0, 4)}
    report = played.settle(played.send(rows(0, 2)))
    [asked] = played.asked("Produce")
    assert (asked.version, asked.request.topic_data[0].name) == (9, TOPIC)
    assert report.delivered == 2


def test_without_answers_rows_count_as_delivered_when_they_are_sent() -> None:
    played = Played(acks="0")
    report = played.settle(played.send(rows(0, 3)))
    assert played.values() == rows(0, 3)
    assert report.partitions == {TopicPartition(TOPIC, 0): (-1, -1, 3)}
    assert report.offsets().null_count == 3
    assert played.asked("InitProducerId") == []


def test_a_producer_that_is_not_idempotent_has_no_identity() -> None:
    played = Played(enable_idempotence=False)
    played.whim("Produce", played.hang_up)
    played.settle(played.send(rows(0, 3)))
    assert played.values() == rows(0, 3)
    assert {(header.producer_id, header.base_sequence) for header in headers_of(played)} == {(-1, -1)}


def test_retries_may_be_none() -> None:
    played = Played(retries=0)
    played.whim("Produce", played.refuse(ErrorCode.NOT_ENOUGH_REPLICAS))
    assert played.settle(played.send(rows(0, 3))).failed == 3
    assert len(played.asked("Produce")) == 1


def test_without_a_producer_id_nothing_is_written_and_everybody_is_told() -> None:
    played = Played()
    refusal = InitProducerIdResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, producer_epoch=-1)
    played.whim("InitProducerId", lambda _: refusal)
    assert isinstance(played.settle(played.send(rows(0, 3))).failures[0].error, AuthorizationError)
    assert played.settle(played.send(rows(3, 3))).failed == 0, "it may be allowed by now"


def test_rows_wait_while_the_memory_is_full() -> None:
    played = Played(buffer_memory=1_000)
    played.whim("Produce", played.say_nothing)
    first = played.send([b"x" * 2_000])
    batch = pa.RecordBatch.from_pydict({"value": [b"y"], "partition": [0]})
    report = Report()
    accepting = Flow(played.core.accept(TOPIC, batch, report))
    played.driver.time.advance(1_000)
    assert not accepting.done
    played.settle(first)
    played.driver.time.advance(10)
    assert accepting.done
    report.complete()
    played.settle(report)
    assert played.values() == [b"x" * 2_000, b"y"]


def test_a_flush_tells_of_everything_since_the_last_one() -> None:
    played = Played(partitions=2)
    played.send(rows(0, 2), partition=0)
    played.send(rows(2, 3), partition=1)
    played.send(rows(5, 1), partition=0)
    summary = played.run(played.core.flush())
    assert (summary.rows, summary.delivered, summary.failed) == (6, 6, 0)
    assert summary.partitions == {TopicPartition(TOPIC, 0): (0, 2, 3), TopicPartition(TOPIC, 1): (0, 2, 3)}
    assert played.run(played.core.flush()).rows == 0


def test_closing_fails_what_is_not_written() -> None:
    played = Played(**SMALL)
    played.whim("Produce", played.serve, played.say_nothing)
    report = played.send(rows(0, 100))
    played.driver.time.advance(10)
    played.core.close()
    played.network.close()
    assert report.done
    assert report.failed == 100 - report.delivered > 50
    assert all(isinstance(failure.error, ClosedError) for failure in report.failures)
    with pytest.raises(ClosedError):
        played.send(rows(0, 1))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"value": [1.5]}, "double"),
        ({"value": [b"x"], "partition": ["0"]}, "partition"),
        ({"value": [b"x"], "headers": [3]}, "headers"),
    ],
)
def test_columns_that_cannot_be_records_are_refused_when_they_are_handed_in(columns: Any, words: str) -> None:
    with pytest.raises(BadRowsError, match=words):
        Played().send_batch(pa.RecordBatch.from_pydict(columns))


def test_rows_may_name_their_topics() -> None:
    played = Played()
    batch = pa.RecordBatch.from_pydict({"topic": [TOPIC, TOPIC], "value": [b"a", b"b"], "partition": [0, 0]})
    assert played.settle(played.send_batch(batch, topic=None)).offsets().to_pylist() == [0, 1]
    with pytest.raises(BadRowsError, match="row 1 has no topic"):
        played.send_batch(pa.RecordBatch.from_pydict({"topic": [TOPIC, None], "value": [b"a", b"b"]}), topic=None)
    with pytest.raises(BadRowsError, match="no column topic"):
        played.send_batch(pa.RecordBatch.from_pydict({"value": [b"a"]}), topic=None)
