"""What an application relies on when it produces and consumes, whichever client it uses."""

from __future__ import annotations

import random
import time

import pytest
from tests.conformance.clients import clients
from tests.conformance.clients.base import CODECS, EARLIEST, LATEST, Can, ClientError, Driver, Producing, Record
from tests.conformance.conftest import NewTopic

from lowwater.errors import ErrorCode

ONE_MB = 1_000_000


def values(client: Driver, topic: str, count: int, **where: int) -> list[bytes | None]:
    return [each.record.value for each in client.consume(topic, count, **where)]


def incompressible(size: int) -> bytes:
    # No control characters: kcat's input is split at some of them.
    return bytes(random.Random(size).choices(range(0x20, 0x100), k=size))


@clients()
@pytest.mark.parametrize("codec", CODECS)
def test_a_record_of_a_megabyte_is_stored_and_read(client: Driver, codec: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    big = incompressible(ONE_MB)
    client.produce(topic, [Record(b"before"), Record(big), Record(b"after")], Producing(codec=codec))
    assert values(client, topic, 3) == [b"before", big, b"after"]


@clients()
def test_a_record_above_the_topics_limit_is_refused_and_leaves_nothing(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic(**{"max.message.bytes": "10000"})
    with pytest.raises(ClientError) as refused:
        client.produce(topic, [Record(incompressible(20_000))])
    assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
    client.produce(topic, [Record(b"small")])
    [received] = client.consume(topic, 1)
    assert (received.offset, received.record.value) == (0, b"small")


@clients(Can.REPORT_OFFSETS)
@pytest.mark.parametrize("acks", ["1", "all"])
def test_offsets_are_reported_in_order_without_gaps(client: Driver, acks: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    first = client.produce(topic, [Record(b"%d" % each) for each in range(50)], Producing(acks=acks))
    second = client.produce(topic, [Record(b"%d" % each) for each in range(50, 60)], Producing(acks=acks))
    assert first + second == list(range(60))
    assert values(client, topic, 60) == [b"%d" % each for each in range(60)]


@clients()
def test_unacknowledged_records_arrive(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    client.produce(topic, [Record(b"fire"), Record(b"and"), Record(b"forget")], Producing(acks="0"))
    assert values(client, topic, 3) == [b"fire", b"and", b"forget"]


@clients(Can.IDEMPOTENCE)
@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_an_idempotent_producer_writes_each_record_once(client: Driver, codec: str, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=2)
    how = Producing(codec=codec, idempotent=True)
    for partition in (0, 1, 0):
        client.produce(topic, [Record(b"%d" % each, b"k") for each in range(100)], how, partition=partition)
    assert values(client, topic, 200) == [b"%d" % each for each in range(100)] * 2
    assert values(client, topic, 100, partition=1) == [b"%d" % each for each in range(100)]


@clients(Can.STAMP)
def test_with_create_time_the_producers_timestamp_is_kept(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic(**{"message.timestamp.type": "CreateTime"})
    stamps = [1_600_000_000_000, 1_500_000_000_000, 1_700_000_000_999]
    client.produce(topic, [Record(b"v", timestamp_ms=stamp) for stamp in stamps])
    received = client.consume(topic, 3)
    assert [each.record.timestamp_ms for each in received] == stamps
    assert {each.timestamp_type for each in received} <= {"create", None}


@clients()
def test_without_a_timestamp_the_client_stamps_with_the_time_of_sending(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    before_ms = int(time.time() * 1000)
    client.produce(topic, [Record(b"v")])
    after_ms = int(time.time() * 1000)
    [received] = client.consume(topic, 1)
    assert received.record.timestamp_ms is not None
    assert before_ms <= received.record.timestamp_ms <= after_ms


@clients()
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_with_log_append_time_the_broker_stamps(client: Driver, codec: str, new_topic: NewTopic) -> None:
    topic = new_topic(**{"message.timestamp.type": "LogAppendTime"})
    old = {"timestamp_ms": 1_500_000_000_000} if Can.STAMP in client.can else {}
    before_ms = int(time.time() * 1000)
    client.produce(topic, [Record(b"%d" % each, b"k", **old) for each in range(3)], Producing(codec=codec))
    after_ms = int(time.time() * 1000)
    received = client.consume(topic, 3)
    assert all(before_ms <= (each.record.timestamp_ms or 0) <= after_ms for each in received)
    if Can.TELL_TIMESTAMP_TYPE in client.can:
        assert {each.timestamp_type for each in received} == {"append"}


@clients()
def test_reading_starts_at_any_offset(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    client.produce(topic, [Record(b"%d" % each, b"k") for each in range(10)], Producing(codec="gzip"))
    client.produce(topic, [Record(b"%d" % each, b"k") for each in range(10, 20)])
    for start in (0, 3, 9, 10, 19):
        expected = [b"%d" % each for each in range(start, 20)]
        assert values(client, topic, 20 - start, start=start) == expected
    assert values(client, topic, 1, start=EARLIEST) == [b"0"]


@clients(Can.OFFSETS_FOR_TIMES)
def test_latest_is_where_the_next_record_goes(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    assert client.offset_at(topic, EARLIEST).offset == client.offset_at(topic, LATEST).offset == 0
    client.produce(topic, [Record(b"%d" % each) for each in range(7)])
    assert (client.offset_at(topic, EARLIEST).offset, client.offset_at(topic, LATEST).offset) == (0, 7)


@clients(Can.STAMP)
def test_a_timestamp_more_than_an_hour_ahead_is_refused(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    future_ms = int(time.time() * 1000) + 2 * 3_600_000
    with pytest.raises(ClientError) as refused:
        client.produce(topic, [Record(b"from the future", timestamp_ms=future_ms)])
    assert refused.value.code == ErrorCode.INVALID_TIMESTAMP


@clients()
def test_a_compacted_topic_refuses_records_without_a_key(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic(**{"cleanup.policy": "compact"})
    client.produce(topic, [Record(b"kept", b"k")])
    with pytest.raises((ClientError, TimeoutError)) as refused:
        client.produce(topic, [Record(b"no key")])
    if isinstance(refused.value, ClientError):
        assert refused.value.code in (ErrorCode.INVALID_RECORD, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert values(client, topic, 1) == [b"kept"]


@clients()
def test_a_missing_topic_is_created_by_the_first_record(client: Driver, fresh_name: str) -> None:
    client.produce(fresh_name, [Record(b"first"), Record(b"second")])
    assert values(client, fresh_name, 2) == [b"first", b"second"]


@clients()
def test_partitions_are_separate_logs(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=3)
    for partition in range(3):
        client.produce(topic, [Record(b"%d" % partition)] * (partition + 1), partition=partition)
    for partition in range(3):
        received = client.consume(topic, partition + 1, partition=partition)
        assert [each.offset for each in received] == list(range(partition + 1))
        assert {each.record.value for each in received} == {b"%d" % partition}
