"""Batches made of Arrow rows are read by every client, and what every client wrote becomes the same Arrow rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.conformance.clients import clients
from tests.conformance.clients.base import CODECS, Can, Driver, Producing, Received, Record
from tests.conformance.conftest import NewTopic
from tests.conformance.raw import Wire

from lowwater.client.columns import Held
from lowwater.client.outgoing import OutgoingRows
from lowwater.client.slices import FetchedSlice
from lowwater.merge.mark import EVERYTHING
from lowwater.types import TopicPartition
from lowwater.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from lowwater.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PRODUCE_VERSION, FETCH_VERSION = 9, 12
NOW_MS = 1_700_000_000_000
RECORDS = [
    Record(b"value", b"key", (), NOW_MS),
    Record(b"", b"", (("h", b"x"), ("empty", b"")), NOW_MS + 1),
    Record(None, b"tombstone", (), NOW_MS - 70_000),
    Record(b"long " * 2000, None, (("h", b"1"), ("h", b"2")), NOW_MS + 100_000),
    *(Record(b"%d" % number, b"k%d" % (number % 7), (), NOW_MS + number) for number in range(500)),
]


def arrow_of(records: list[Record]) -> Any:
    headers = [list(one.headers) for one in records]
    columns = {
        "key": pa.array([one.key for one in records], pa.binary()),
        "value": pa.array([one.value for one in records], pa.binary()),
        "timestamp": pa.array([one.timestamp_ms for one in records], pa.timestamp("ms", "UTC")),
        "headers": pa.array(headers, pa.map_(pa.utf8(), pa.binary())),
    }
    return pa.RecordBatch.from_pydict(columns)


def send(wire: Wire, topic: str, records: list[Record], codec: str) -> None:
    rows = OutgoingRows(arrow_of(records), now_ms=NOW_MS)
    chosen, first = np.arange(rows.count), 0
    while first < rows.count:
        data, count = rows.encode(chosen, first, bytes_max=8192, codec=CODECS.index(codec))
        partition = PartitionProduceData(index=0, records=data)
        request = ProduceRequest(
            transactional_id=None,
            acks=-1,
            timeout_ms=30_000,
            topic_data=[TopicProduceData(name=topic, partition_data=[partition])],
        )
        [answer] = wire.ask(request, PRODUCE_VERSION).responses[0].partition_responses
        assert (answer.error_code, answer.base_offset) == (0, first)
        first += count


def shape(received: Received) -> tuple[Any, ...]:
    record = received.record
    return received.offset, record.key, record.value, sorted(record.headers), record.timestamp_ms


@pytest.mark.parametrize("codec", CODECS)
@clients(Can.HEADERS)
def test_rows_of_arrow_are_read_by_every_client(client: Driver, codec: str, wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic(f"arrow-{codec}")
    send(wire, topic, RECORDS, codec)
    expected = [shape(Received(offset, one)) for offset, one in enumerate(RECORDS)]
    assert [shape(one) for one in client.consume(topic, len(RECORDS))] == expected


def fetch(wire: Wire, topic: str, held: Held) -> list[tuple[Any, ...]]:
    one, rows, position, end = TopicPartition(topic, 0), [], 0, 1
    held.add(one, 0, 1 << 40)
    while position < end:
        wanted = FetchPartition(partition=0, fetch_offset=position, partition_max_bytes=4096)
        topics = [FetchTopic(topic=topic, partitions=[wanted])]
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics, forgotten_topics_data=[])
        [answer] = wire.ask(request, FETCH_VERSION).responses[0].partitions
        end = answer.high_watermark
        [arrival] = held.take([FetchedSlice(one, position, memoryview(bytes(answer.records or b"")))])
        assert arrival.error is None
        assert arrival.position > position
        position = arrival.position
        arrow = held.release(EVERYTHING).batch
        columns = [arrow.column(name).to_pylist() for name in ("offset", "key", "value", "headers")]
        rows += list(zip(*columns, arrow.column("timestamp").cast("int64").to_pylist(), strict=True))
    return [(*row[:3], sorted((pair["key"], pair["value"]) for pair in row[3]), row[4]) for row in rows]


@pytest.mark.parametrize("codec", CODECS)
@clients(Can.HEADERS, Can.STAMP, Can.NULL_VALUES)
def test_what_every_client_wrote_becomes_rows_of_arrow(
    client: Driver, codec: str, wire: Wire, new_topic: NewTopic
) -> None:
    topic = new_topic(f"{client.name}-{codec}")
    sent = RECORDS if Can.EMPTY_KEYS in client.can else [RECORDS[0], *RECORDS[2:]]
    client.produce(topic, sent, Producing(codec=codec))
    assert fetch(wire, topic, Held(order=None)) == [shape(Received(offset, one)) for offset, one in enumerate(sent)]
