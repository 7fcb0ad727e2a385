"""Offsets by time, as the clients' own look-ups see them."""

from __future__ import annotations

import pytest
from tests.conformance.clients import clients
from tests.conformance.clients.base import (
    CODECS,
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    Can,
    Driver,
    OffsetAt,
    Producing,
    Record,
)
from tests.conformance.conftest import NewTopic

T = 1_600_000_000_000
OUT_OF_ORDER = [T + 100, T + 300, T + 200, T + 500, T + 400, T + 500, T + 50]
# when -> the lowest offset whose timestamp is at or after it
EXPECTED = {
    T - 1000: 0,
    T + 100: 0,
    T + 101: 1,
    T + 200: 1,
    T + 300: 1,
    T + 301: 3,
    T + 400: 3,
    T + 500: 3,
    T + 501: -1,
}


def stamped(stamps: list[int]) -> list[Record]:
    return [Record(b"%d" % index, b"k", timestamp_ms=stamp) for index, stamp in enumerate(stamps)]


def fill(writer: Driver, topic: str, stamps: list[int], how: Producing, *, batch: int) -> None:
    for start in range(0, len(stamps), batch):
        writer.produce(topic, stamped(stamps[start : start + batch]), how)


@clients(Can.STAMP, Can.OFFSETS_FOR_TIMES)
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("batch", [1, 3, 7], ids=lambda size: f"batches-of-{size}")
def test_the_first_offset_at_or_after_a_time_is_found_among_unordered_timestamps(
    client: Driver, codec: str, batch: int, new_topic: NewTopic
) -> None:
    topic = new_topic()
    fill(client, topic, OUT_OF_ORDER, Producing(codec=codec), batch=batch)
    assert {when: client.offset_at(topic, when).offset for when in EXPECTED} == EXPECTED


@pytest.mark.peer("kcat")
@pytest.mark.peer("confluent")
def test_kcat_finds_offsets_by_time(drivers, new_topic: NewTopic) -> None:
    topic = new_topic()
    fill(drivers("confluent"), topic, OUT_OF_ORDER, Producing(), batch=3)
    found = {when: drivers("kcat").offset_at(topic, when).offset for when in EXPECTED}
    # librdkafka turns "none" into the end of the partition.
    assert found == {when: -1 if offset < 0 else offset for when, offset in EXPECTED.items()}


@clients(Can.STAMP, Can.OFFSETS_FOR_TIMES)
def test_a_look_up_tells_the_timestamp_of_the_record_it_found(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    fill(client, topic, OUT_OF_ORDER, Producing(), batch=7)
    assert client.offset_at(topic, T + 101).timestamp_ms in (T + 300, None)
    assert client.offset_at(topic, T + 501).timestamp_ms in (-1, None)


@clients(Can.STAMP, Can.MAX_TIMESTAMP_OFFSET)
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("batch", [1, 3, 7], ids=lambda size: f"batches-of-{size}")
def test_the_maximum_timestamp_is_the_first_record_that_has_it(
    client: Driver, codec: str, batch: int, new_topic: NewTopic
) -> None:
    topic = new_topic()
    assert client.offset_at(topic, MAX_TIMESTAMP) == OffsetAt(-1, -1)
    fill(client, topic, OUT_OF_ORDER, Producing(codec=codec), batch=batch)
    assert client.offset_at(topic, MAX_TIMESTAMP) == OffsetAt(3, T + 500)


@clients(Can.STAMP, Can.OFFSETS_FOR_TIMES, Can.DELETE_RECORDS)
def test_look_ups_never_answer_below_the_log_start(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    fill(client, topic, OUT_OF_ORDER, Producing(), batch=7)
    assert client.delete_records(topic, 2) == 2
    assert client.offset_at(topic, EARLIEST).offset == 2
    assert client.offset_at(topic, LATEST).offset == 7
    assert client.offset_at(topic, T - 1000).offset == 2
    assert client.offset_at(topic, T + 300).offset == 3
    [received] = client.consume(topic, 1, start=EARLIEST)
    assert (received.offset, received.record.timestamp_ms) == (2, T + 200)


@clients(Can.OFFSETS_FOR_TIMES)
def test_an_empty_partition_has_no_offset_for_any_time(client: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    assert client.offset_at(topic, EARLIEST).offset == 0
    assert client.offset_at(topic, LATEST).offset == 0
    assert client.offset_at(topic, T).offset == -1
