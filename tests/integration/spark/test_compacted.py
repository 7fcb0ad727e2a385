"""Gaps that compaction leaves are no losses, wherever a range begins and ends."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place
from tests.fresh import fresh
from tests.integration.spark.test_worker_client import rows, task
from tests.reader.writing import Writer

from lowwater.spark.columns import Chosen
from lowwater.spark.options import SourceOptions
from lowwater.spark.scan import Scan
from lowwater.spark.worker_client import clients
from lowwater.testing import Broker

PATIENCE_S = 90
QUICK = {"log.cleaner.backoff.ms": "100", "log.cleaner.min.cleanable.ratio": "0.01"}
COMPACT = {"cleanup.policy": "compact", "segment.bytes": str(1 << 20)}
ROWS = 40


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config=QUICK) as broker:
        yield broker


def offsets_there(broker: Broker, topic: str) -> list[int]:
    """As another client finds them."""
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": topic, "enable.partition.eof": True}
    consumer = Consumer(settings)
    consumer.assign([Place(topic, 0, 0)])
    found = []
    while (message := consumer.poll(PATIENCE_S)) is not None and message.error() is None:
        found.append(message.offset())
    consumer.close()
    return found


@pytest.fixture(scope="module")
def compacted(broker: Broker) -> str:
    """A partition whose first records are gone, and more of them further on."""
    topic = fresh("compacted")
    writer = Writer(broker.bootstrap)
    writer.create(topic, 1, COMPACT)
    writer.close()
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for row in range(ROWS):
        producer.produce(topic, bytes(100_000), key=f"k{row % 7 if row % 10 else row}".encode())
        producer.flush(PATIENCE_S)
    deadline = time.monotonic() + PATIENCE_S
    while len(offsets_there(broker, topic)) > ROWS - 12:
        assert time.monotonic() < deadline, "it is compacted"
    return topic


@pytest.mark.parametrize("fails", ["true", "false"])
@pytest.mark.parametrize(("start", "end"), [(0, ROWS), (1, 9), (5, 15), (2, 4)])
def test_gaps_of_compaction_are_no_losses(broker: Broker, compacted: str, start: int, end: int, fails: str) -> None:
    given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": compacted, "failOnDataLoss": fails}
    scan = Scan(SourceOptions.parse({**given, "lossLedger": fresh("none")}, streaming=True), (Chosen("offset"),))
    before = offsets_there(broker, compacted)
    try:
        found = [offset for (offset,) in rows(scan.read(task(compacted, (0, start, end))))]
    finally:
        clients.forget(scan.options.client.settings)
    # Compaction may go on meanwhile.
    after = offsets_there(broker, compacted)
    assert {one for one in after if start <= one < end} <= set(found) <= {one for one in before if start <= one < end}
    assert len(found) < end - start, "there is a gap"
