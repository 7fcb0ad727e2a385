"""Produce at the level of requests: what is refused, with which code, and that a refusal writes nothing."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest
from tests.conformance.asking import (
    UNKNOWN_ID,
    Ask,
    batch_of,
    fetch_one,
    look_up,
    new_producer,
    now_ms,
    produce,
    produce_request,
    size_of,
    topic_id,
)
from tests.conformance.conftest import NewTopic
from tests.conformance.raw import Wire
from tests.conformance.under_test import UnderTest

from lowwater.errors import ErrorCode
from lowwater.wire.messages.produce import PartitionProduceData, TopicProduceData
from lowwater.wire.records import BatchHeader, Record, build_batch, read_records, seal

HOUR_MS = 3_600_000
# Positions in a batch's header.
LENGTH, MAGIC, CRC, ATTRIBUTES, LAST_OFFSET_DELTA, MAX_TIMESTAMP, COUNT = 8, 16, 17, 21, 23, 35, 57
ZSTD = 4


def end(wire: Wire, topic: str) -> int:
    return int(look_up(wire, topic, -1).offset)


def patched(batch: bytearray, position: int, form: str, value: int) -> bytearray:
    """The batch with one header field changed, and a right checksum."""
    struct.pack_into(form, batch, position, value)
    if position != CRC:
        seal(batch)
    return batch


@pytest.mark.parametrize("version", range(3, 14))
def test_every_version_appends_and_tells_the_offset(wire: Wire, version: int, new_topic: NewTopic) -> None:
    topic = new_topic()
    answer = produce(wire, topic, batch_of(b"1", b"2"), version=version)
    assert (answer.index, answer.error_code, answer.base_offset, answer.log_append_time_ms) == (0, 0, 0, -1)
    assert answer.log_start_offset == (0 if version >= 5 else -1)
    assert produce(wire, topic, batch_of(b"3"), version=version).base_offset == 2
    read = fetch_one(wire, Ask(topic))
    assert (read.high_watermark, read.last_stable_offset, read.log_start_offset) == (3, 3, 0)


@pytest.mark.parametrize("acks", [1, -1])
def test_acks_1_and_all_are_answered(wire: Wire, acks: int, new_topic: NewTopic) -> None:
    topic = new_topic()
    assert produce(wire, topic, batch_of(b"v"), acks=acks).error_code == 0
    assert end(wire, topic) == 1


def test_acks_0_is_not_answered(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic()
    wire.send(produce_request(topic, batch_of(b"v"), acks=0), 9)
    assert end(wire, topic) == 1


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_other_acks_are_refused(wire: Wire, acks: int, new_topic: NewTopic) -> None:
    topic = new_topic()
    answer = produce(wire, topic, batch_of(b"v"), acks=acks)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.INVALID_REQUIRED_ACKS, -1)
    assert end(wire, topic) == 0


def test_acks_0_with_an_error_ends_the_connection(wire: Wire, fresh_name: str) -> None:
    wire.send(produce_request(fresh_name, batch_of(b"v"), acks=0), 9)
    assert wire.is_closed_by_peer()


def test_an_unknown_topic_or_partition_is_refused(wire: Wire, fresh_name: str, new_topic: NewTopic) -> None:
    answer = produce(wire, fresh_name, batch_of(b"v"))
    assert (answer.error_code, answer.base_offset) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    answer = produce(wire, new_topic(), batch_of(b"v"), partition=7)
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_unknown_topic_id_is_refused(wire: Wire) -> None:
    answer = wire.ask(produce_request("", batch_of(b"v"), id=UNKNOWN_ID), 13)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_good_partition_beside_a_bad_one_is_written(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=2)
    request = produce_request(topic, batch_of(b"good"))
    request.topic_data[0].partition_data.append(PartitionProduceData(index=5, records=batch_of(b"bad")))
    request.topic_data.append(
        TopicProduceData(name="no-such", partition_data=[PartitionProduceData(index=0, records=batch_of(b"bad"))])
    )
    answer = wire.ask(request, 9)
    found = {
        (topic.name, each.index): each.error_code for topic in answer.responses for each in topic.partition_responses
    }
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert found == {(topic, 0): 0, (topic, 5): unknown, ("no-such", 0): unknown}
    assert end(wire, topic) == 1


BAD_BATCHES: dict[str, tuple[Callable[[], Any], ErrorCode]] = {
    "wrong-crc": (lambda: patched(batch_of(b"v"), CRC, ">I", 12345), ErrorCode.CORRUPT_MESSAGE),
    "flipped-payload": (lambda: batch_of(b"v")[:-1] + b"\x01", ErrorCode.CORRUPT_MESSAGE),
    "no-batch": (lambda: b"", ErrorCode.INVALID_RECORD),
    "two-batches": (lambda: batch_of(b"1") + batch_of(b"2"), ErrorCode.INVALID_RECORD),
    "cut-short": (lambda: batch_of(b"v" * 100)[:-1], ErrorCode.INVALID_RECORD),
    "shorter-than-a-header": (lambda: batch_of(b"v")[:20], ErrorCode.INVALID_RECORD),
    "impossible-length": (lambda: patched(batch_of(b"v"), LENGTH, ">i", 5), ErrorCode.CORRUPT_MESSAGE),
    "negative-length": (lambda: patched(batch_of(b"v"), LENGTH, ">i", -5), ErrorCode.CORRUPT_MESSAGE),
    "magic-3": (lambda: patched(batch_of(b"v"), MAGIC, ">b", 3), ErrorCode.CORRUPT_MESSAGE),
    "control-batch": (lambda: batch_of(b"v", attributes=0x20), ErrorCode.INVALID_RECORD),
    "count-too-high": (lambda: patched(batch_of(b"v"), COUNT, ">i", 2), ErrorCode.INVALID_RECORD),
    "count-zero": (lambda: patched(batch_of(b"v"), COUNT, ">i", 0), ErrorCode.INVALID_RECORD),
    "count-negative": (lambda: patched(batch_of(b"v"), COUNT, ">i", -1), ErrorCode.INVALID_RECORD),
    "last-offset-too-high": (lambda: patched(batch_of(b"v"), LAST_OFFSET_DELTA, ">i", 7), ErrorCode.INVALID_RECORD),
    "last-offset-negative": (lambda: patched(batch_of(b"v"), LAST_OFFSET_DELTA, ">i", -1), ErrorCode.INVALID_RECORD),
    "base-offset-7": (lambda: patched(batch_of(b"v"), 0, ">q", 7), ErrorCode.INVALID_RECORD),
    "transactional": (lambda: batch_of(b"v", attributes=0x10), ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    "too-large": (lambda: batch_of(b"v" * 1_048_577), ErrorCode.MESSAGE_TOO_LARGE),
}


@pytest.mark.parametrize("name", BAD_BATCHES)
def test_a_bad_batch_is_refused_and_nothing_is_written(wire: Wire, name: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    make, expected = BAD_BATCHES[name]
    answer = produce(wire, topic, make())
    assert (answer.error_code, answer.base_offset) == (expected, -1)
    assert end(wire, topic) == 0
    assert size_of(fetch_one(wire, Ask(topic)).records) == 0


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("timestamp", [0, 1 << 28, (1 << 40) - 1], ids=["bits-clear", "bit-28", "bits-set"])
def test_the_old_record_formats_are_refused(wire: Wire, magic: int, timestamp: int, new_topic: NewTopic) -> None:
    """Whatever their times are, of which some bits stand where the attributes of a batch do."""
    topic = new_topic()
    answer = produce(wire, topic, old_message_set(magic, timestamp))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert end(wire, topic) == 0


def old_message_set(magic: int, timestamp: int) -> bytes:
    import zlib

    stamp = struct.pack(">q", timestamp) if magic else b""
    body = struct.pack(">bb", magic, 0) + stamp + struct.pack(">ii", -1, 1) + b"v"
    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0, len(message)) + message


def test_bytes_after_the_batch_never_enter_the_log(wire: Wire, new_topic: NewTopic, broker: UnderTest) -> None:
    topic = new_topic()
    # Apache Kafka drops them and keeps the batch: docs/differences.md.
    expected, stored = (0, len(batch_of(b"v"))) if broker.name == "kafka" else (ErrorCode.INVALID_RECORD, 0)
    assert produce(wire, topic, batch_of(b"v") + b"\0").error_code == expected
    assert size_of(fetch_one(wire, Ask(topic)).records) == stored


def test_an_unknown_codec_is_refused(wire: Wire, new_topic: NewTopic, broker: UnderTest) -> None:
    topic = new_topic()
    # Apache Kafka says only that something went wrong: docs/differences.md.
    expected = ErrorCode.UNKNOWN_SERVER_ERROR if broker.name == "kafka" else ErrorCode.INVALID_RECORD
    assert produce(wire, topic, patched(batch_of(b"v"), ATTRIBUTES, ">h", 5)).error_code == expected
    assert end(wire, topic) == 0


@pytest.mark.parametrize("version", [3, 6, 7, 9])
def test_zstd_needs_version_7(wire: Wire, version: int, new_topic: NewTopic) -> None:
    topic = new_topic()
    answer = produce(wire, topic, batch_of(b"v", codec=ZSTD), version=version)
    assert answer.error_code == (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE if version < 7 else 0)


def test_a_batch_of_exactly_the_limit_is_taken(wire: Wire, new_topic: NewTopic) -> None:
    size = len(batch_of(b"v" * 500))
    assert produce(wire, new_topic(**{"max.message.bytes": str(size)}), batch_of(b"v" * 500)).error_code == 0
    answer = produce(wire, new_topic(**{"max.message.bytes": str(size - 1)}), batch_of(b"v" * 500))
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_a_null_key_in_a_compacted_topic_is_refused(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic(**{"cleanup.policy": "compact"})
    for codec in range(5):
        answer = produce(wire, topic, batch_of(b"1", b"2", key=None, codec=codec))
        assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [each.batch_index for each in answer.record_errors] == [0, 1]
    assert answer.log_start_offset == 0
    assert end(wire, topic) == 0


@pytest.mark.parametrize(
    ("ahead_ms", "expected"), [(HOUR_MS - 60_000, 0), (HOUR_MS + 60_000, ErrorCode.INVALID_TIMESTAMP)]
)
def test_timestamps_may_be_at_most_an_hour_ahead(wire: Wire, ahead_ms: int, expected: int, new_topic: NewTopic) -> None:
    topic = new_topic()
    assert produce(wire, topic, batch_of(b"v", timestamp=now_ms() + ahead_ms)).error_code == expected


def test_old_timestamps_are_taken_unless_the_topic_says_otherwise(wire: Wire, new_topic: NewTopic) -> None:
    assert produce(wire, new_topic(), batch_of(b"v", timestamp=0)).error_code == 0
    strict = new_topic(**{"message.timestamp.before.max.ms": "60000"})
    answer = produce(wire, strict, batch_of(b"v", timestamp=now_ms() - 120_000))
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP


STRANGE_BATCHES: dict[str, Callable[[], Any]] = {
    "append-time-by-the-producer": lambda: batch_of(b"v", attributes=0x08),
    "delete-horizon": lambda: batch_of(b"v", attributes=0x40),
    "producer-without-an-epoch": lambda: batch_of(b"v", producer_id=5, base_sequence=0),
}


@pytest.mark.parametrize("name", STRANGE_BATCHES)
def test_what_only_a_broker_may_write_is_taken_by_kafka_and_refused_here(
    wire: Wire, name: str, new_topic: NewTopic, broker: UnderTest
) -> None:
    # docs/differences.md: Apache Kafka writes these fields anew, we keep what the producer sent.
    answer = produce(wire, new_topic(), STRANGE_BATCHES[name]())
    refused = ErrorCode.INVALID_TIMESTAMP if name.startswith("append-time") else ErrorCode.INVALID_RECORD
    assert answer.error_code == (0 if broker.name == "kafka" else refused)


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("told", [-1, 5])
def test_the_largest_timestamp_is_found_when_the_header_does_not_tell_it(
    wire: Wire, told: int, codec: int, new_topic: NewTopic
) -> None:
    """Some producers never fill in that field of the header."""
    topic, stamp = new_topic(), now_ms()
    records = [Record(offset, stamp + late, b"k", b"v", ()) for offset, late in enumerate((0, 900, 300))]
    assert produce(wire, topic, build_batch(records, codec=codec, max_timestamp=told)).error_code == 0
    assert (look_up(wire, topic, stamp + 1).offset, look_up(wire, topic, stamp + 901).offset) == (1, -1)
    latest = look_up(wire, topic, -3)
    assert (latest.offset, latest.timestamp) == (1, stamp + 900)
    stored = BatchHeader.parse(b"".join(parts(fetch_one(wire, Ask(topic)).records)))
    assert stored.max_timestamp == stamp + 900


def test_log_append_time_is_told_and_overrides_every_timestamp(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic(**{"message.timestamp.type": "LogAppendTime"})
    before_ms = now_ms()
    answer = produce(wire, topic, batch_of(b"1", b"2", timestamp=before_ms + 100 * HOUR_MS))
    assert answer.error_code == 0
    assert before_ms <= answer.log_append_time_ms <= now_ms()
    [first, second] = read_records(b"".join(parts(fetch_one(wire, Ask(topic)).records)))
    assert first.timestamp == second.timestamp == answer.log_append_time_ms


def parts(records: Any) -> list[bytes]:
    return [bytes(part) for part in (records if isinstance(records, list) else [records])]


def idempotent(wire: Wire, topic: str, producer: tuple[int, int], sequence: int, *values: bytes) -> Any:
    producer_id, epoch = producer
    batch = batch_of(*values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    return produce(wire, topic, batch)


def test_a_repeated_batch_is_answered_with_its_first_offset(wire: Wire, new_topic: NewTopic) -> None:
    topic, producer = new_topic(), new_producer(wire)
    offsets = [idempotent(wire, topic, producer, 2 * each, b"1", b"2").base_offset for each in range(5)]
    assert offsets == [0, 2, 4, 6, 8]
    for each in range(5):
        again = idempotent(wire, topic, producer, 2 * each, b"1", b"2")
        assert (again.error_code, again.base_offset) == (0, 2 * each)
    assert end(wire, topic) == 10


def test_a_repeat_older_than_five_batches_is_out_of_order(wire: Wire, new_topic: NewTopic) -> None:
    topic, producer = new_topic(), new_producer(wire)
    for sequence in range(6):
        assert idempotent(wire, topic, producer, sequence, b"v").error_code == 0
    assert idempotent(wire, topic, producer, 0, b"v").error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert end(wire, topic) == 6


def test_a_gap_in_the_sequence_is_out_of_order(wire: Wire, new_topic: NewTopic) -> None:
    topic, producer = new_topic(), new_producer(wire)
    assert idempotent(wire, topic, producer, 0, b"v").error_code == 0
    refused = idempotent(wire, topic, producer, 2, b"v")
    assert (refused.error_code, refused.base_offset) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert idempotent(wire, topic, producer, 1, b"v").error_code == 0
    assert end(wire, topic) == 2


def test_a_refused_sequence_tells_the_log_start(wire: Wire, new_topic: NewTopic) -> None:
    topic, producer = new_topic(), new_producer(wire)
    assert idempotent(wire, topic, producer, 0, b"v").error_code == 0
    assert idempotent(wire, topic, producer, 5, b"v").log_start_offset == 0
    assert idempotent(wire, topic, (producer[0], 7), 0, b"v").error_code == 0
    assert idempotent(wire, topic, (producer[0], 6), 0, b"v").log_start_offset == 0
    late = batch_of(b"v", timestamp=now_ms() + 2 * HOUR_MS)
    assert produce(wire, topic, late).log_start_offset == 0
    assert produce(wire, topic, patched(batch_of(b"v"), CRC, ">I", 12345)).log_start_offset == -1


def test_an_overlapping_batch_is_out_of_order(wire: Wire, new_topic: NewTopic) -> None:
    topic, producer = new_topic(), new_producer(wire)
    assert idempotent(wire, topic, producer, 0, b"1", b"2").error_code == 0
    assert idempotent(wire, topic, producer, 1, b"2", b"3").error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert idempotent(wire, topic, producer, 0, b"1").error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_unknown_producer_may_start_at_any_sequence(wire: Wire, new_topic: NewTopic) -> None:
    topic, producer = new_topic(), new_producer(wire)
    assert idempotent(wire, topic, producer, 41, b"v").error_code == 0
    assert idempotent(wire, topic, producer, 42, b"v").error_code == 0


def test_a_sequence_wraps_around_after_the_largest_number(wire: Wire, new_topic: NewTopic) -> None:
    topic, producer = new_topic(), new_producer(wire)
    assert idempotent(wire, topic, producer, 2**31 - 2, b"1", b"2", b"3").error_code == 0
    assert idempotent(wire, topic, producer, 1, b"4").error_code == 0
    again = idempotent(wire, topic, producer, 2**31 - 2, b"1", b"2", b"3")
    assert (again.error_code, again.base_offset) == (0, 0)


def test_an_older_epoch_is_fenced_and_a_newer_one_starts_at_zero(wire: Wire, new_topic: NewTopic) -> None:
    topic, (producer_id, _) = new_topic(), new_producer(wire)
    assert idempotent(wire, topic, (producer_id, 3), 0, b"v").error_code == 0
    assert idempotent(wire, topic, (producer_id, 2), 1, b"v").error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert idempotent(wire, topic, (producer_id, 4), 1, b"v").error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert idempotent(wire, topic, (producer_id, 4), 0, b"v").error_code == 0
    assert end(wire, topic) == 2


def test_sequences_are_kept_per_partition(wire: Wire, new_topic: NewTopic) -> None:
    topic, (producer_id, epoch) = new_topic(partitions=2), new_producer(wire)
    for partition in (0, 1):
        batch = batch_of(b"v", producer_id=producer_id, producer_epoch=epoch, base_sequence=0)
        assert produce(wire, topic, batch, partition=partition).base_offset == 0


def test_a_producer_id_without_a_sequence_is_refused(wire: Wire, new_topic: NewTopic) -> None:
    topic, (producer_id, epoch) = new_topic(), new_producer(wire)
    batch = batch_of(b"v", producer_id=producer_id, producer_epoch=epoch, base_sequence=-1)
    answer = produce(wire, topic, batch)
    assert answer.error_code == ErrorCode.INVALID_RECORD


def test_producer_ids_are_never_given_twice(wire: Wire) -> None:
    given = [new_producer(wire) for _ in range(20)]
    assert len({producer_id for producer_id, _ in given}) == 20
    assert {epoch for _, epoch in given} == {0}


def test_topics_go_by_id_since_version_13(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic()
    answer = wire.ask(produce_request("", batch_of(b"v"), id=topic_id(wire, topic)), 13)
    assert bytes(answer.responses[0].topic_id) == topic_id(wire, topic)
    assert answer.responses[0].partition_responses[0].error_code == 0
    assert end(wire, topic) == 1
