"""Exact ranges of offsets on a cluster that is kept, from a broker that has lost some of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.conformance.under_test import NO_RETENTION_RUNS
from tests.fresh import fresh
from tests.reader.writing import Writer

from lowwater import TopicPartition
from lowwater.client.blocking import BlockingDriver
from lowwater.client.cluster import Cluster
from lowwater.client.config import ClientConfig
from lowwater.client.errors import TopicRecreatedError
from lowwater.client.network import Network
from lowwater.client.ranges import OffsetRange, RangeReading
from lowwater.client.releasing import Lost
from lowwater.testing import Broker

ROWS = 1_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config=NO_RETENTION_RUNS) as broker:
        yield broker


@pytest.fixture(scope="module")
def writer(broker: Broker) -> Iterator[Writer]:
    writer = Writer(broker.bootstrap)
    yield writer
    writer.close()


class Kept:
    """A client that goes on from reading to reading."""

    def __init__(self, broker: Broker, **settings: Any) -> None:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        config = ClientConfig({"bootstrap.servers": broker.bootstrap, **given})
        self._driver = BlockingDriver(config)
        self.cluster = Cluster(Network(config, self._driver))
        self.lost: list[Lost] = []

    def read(self, *ranges: OffsetRange, **options: Any) -> list[tuple[int, int]]:
        """(partition, offset) of every row."""
        on_lost = options.pop("on_lost", self.lost.append)
        reading = RangeReading(self.cluster, ranges, on_lost=on_lost, columns=("partition", "offset"), **options)
        rows: list[tuple[int, int]] = []
        try:
            while (batch := self._driver.run(reading.next(), 60_000)) is not None:
                rows += zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
        finally:
            self._driver.run(reading.close())
        return sorted(rows)

    def read_until_dropped(self, dropped: TopicPartition, *ranges: OffsetRange) -> tuple[list[int], list[set[int]]]:
        """Offsets of the others, once the first rows came; and after each batch, of which partitions more may come."""
        reading = RangeReading(
            self.cluster, ranges, on_lost=self.lost.append, columns=("partition", "offset"), batch_size=50
        )
        rows: list[int] = []
        unread: list[set[int]] = []
        while (batch := self._driver.run(reading.next(), 60_000)) is not None:
            if dropped in reading.unread():
                reading.drop(dropped)
            else:
                assert dropped.partition not in batch.column(0).to_pylist()
            places = zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
            rows += [offset for partition, offset in places if partition != dropped.partition]
            unread.append({one.partition for one in reading.unread()})
        self._driver.run(reading.close())
        return rows, unread

    def topic_id(self, topic: str) -> bytes:
        return self._driver.run(self.cluster.topics([topic]))[topic].id

    def close(self) -> None:
        self.cluster.network.close()
        self._driver.close()


@pytest.fixture
def kept(broker: Broker) -> Iterator[Kept]:
    kept = Kept(broker, topic_metadata_propagation_max_ms=200, max_partition_fetch_bytes=20_000)
    yield kept
    kept.close()


@pytest.fixture
def topic(broker: Broker, writer: Writer) -> str:
    name = fresh("ranges")
    writer.create(name, 3)
    for partition in range(3):
        broker.fill(name, partition, next=ROWS)
    return name


def of(topic: str, partition: int, start: int, end: int, topic_id: bytes = bytes(16)) -> OffsetRange:
    return OffsetRange(TopicPartition(topic, partition), start, end, topic_id)


def offsets(partition: int, start: int, end: int) -> list[tuple[int, int]]:
    return [(partition, offset) for offset in range(start, end)]


def test_every_offset_of_the_ranges_comes_once_and_no_other(kept: Kept, topic: str) -> None:
    rows = kept.read(of(topic, 0, 0, ROWS), of(topic, 1, 17, 18), of(topic, 2, 500, 731))
    assert rows == offsets(0, 0, ROWS) + offsets(1, 17, 18) + offsets(2, 500, 731)
    assert kept.lost == []


def test_an_empty_range_is_not_asked_for(kept: Kept, topic: str) -> None:
    assert kept.read(of(topic, 0, 40, 40)) == []
    assert kept.lost == []


def test_a_second_reading_on_the_same_cluster_needs_no_lookup(kept: Kept, broker: Broker, topic: str) -> None:
    kept.read(of(topic, 0, 0, 10))
    before = broker.requests()
    assert kept.read(of(topic, 0, 10, 20)) == offsets(0, 10, 20)
    asked = {name for name, count in broker.requests().items() if count > before.get(name, 0)}
    assert asked == {"Fetch"}


def test_deleted_offsets_are_told_and_the_rest_is_read(kept: Kept, writer: Writer, topic: str) -> None:
    writer.admin.delete_records({TopicPartition(topic, 0): 300})
    assert kept.read(of(topic, 0, 100, 500), of(topic, 1, 0, 10)) == offsets(0, 300, 500) + offsets(1, 0, 10)
    assert kept.lost == [Lost(topic, 0, 100, 300)]


def test_a_range_that_is_gone_altogether_is_told_as_a_whole(kept: Kept, writer: Writer, topic: str) -> None:
    writer.admin.delete_records({TopicPartition(topic, 0): 300})
    assert kept.read(of(topic, 0, 100, 200)) == []
    assert kept.lost == [Lost(topic, 0, 100, 200)]


def test_what_lies_behind_the_end_of_the_log_is_lost(kept: Kept, topic: str) -> None:
    rows = kept.read(of(topic, 0, ROWS - 3, ROWS + 10), of(topic, 1, ROWS + 5, ROWS + 7), of(topic, 2, ROWS, ROWS + 1))
    assert rows == offsets(0, ROWS - 3, ROWS)
    assert sorted(kept.lost) == [
        Lost(topic, 0, ROWS, ROWS + 10),
        Lost(topic, 1, ROWS + 5, ROWS + 7),
        Lost(topic, 2, ROWS, ROWS + 1),
    ]


def test_what_is_raised_for_a_loss_ends_the_reading(kept: Kept, writer: Writer, topic: str) -> None:
    writer.admin.delete_records({TopicPartition(topic, 0): 300})

    def refuse(lost: Lost) -> None:
        raise LookupError(str(lost))

    with pytest.raises(LookupError, match="first=100, behind=300"):
        kept.read(of(topic, 0, 100, 500), on_lost=refuse)


def test_a_topic_that_was_deleted_is_lost(kept: Kept, writer: Writer, topic: str) -> None:
    writer.admin.delete_topics([topic]).checked()
    assert kept.read(of(topic, 0, 100, 500), of(topic, 1, 3, 4)) == []
    assert sorted(kept.lost) == [Lost(topic, 0, 100, 500), Lost(topic, 1, 3, 4)]


def test_another_topic_of_the_same_name_is_an_error_that_names_both_ids(
    kept: Kept, broker: Broker, writer: Writer, topic: str
) -> None:
    expected = kept.topic_id(topic)
    writer.admin.delete_topics([topic]).checked()
    writer.create(topic, 3)
    broker.fill(topic, 0, next=ROWS)
    with pytest.raises(TopicRecreatedError) as raised:
        kept.read(of(topic, 0, 100, 500, expected))
    assert raised.value.expected_id in str(raised.value)
    assert raised.value.found_id in str(raised.value)


def test_ranges_of_the_new_topic_are_read_by_a_cluster_that_knew_the_old_one(
    kept: Kept, broker: Broker, writer: Writer, topic: str
) -> None:
    kept.topic_id(topic)
    writer.admin.delete_topics([topic]).checked()
    writer.create(topic, 3)
    broker.fill(topic, 0, next=ROWS)
    other = Kept(broker)
    found = other.topic_id(topic)
    other.close()
    assert kept.read(of(topic, 0, 100, 500, found)) == offsets(0, 100, 500)


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_offsets_of_markers_and_of_aborted_records_are_no_loss(kept: Kept, writer: Writer, isolation: str) -> None:
    topic = fresh("ranges-aborted")
    writer.create(topic, 1)
    writer.write(TopicPartition(topic, 0), [1, 2, {"abort": [3, 4]}, {"commit": [5]}, {"abort": [6]}])
    rows = kept.read(of(topic, 0, 0, 9), isolation=isolation)
    committed = [(0, 0), (0, 1), (0, 5)]
    assert rows == (committed if isolation == "read_committed" else [*committed[:2], (0, 2), (0, 3), (0, 5), (0, 7)])
    assert kept.lost == []


def test_of_a_range_that_is_dropped_nothing_more_comes(writer: Writer, kept: Kept) -> None:
    topic = fresh("ranges")
    writer.create(topic, 2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    for one in (first, second):
        writer.write(one, [1_700_000_000_000 + row for row in range(300)])
    rows, unread = kept.read_until_dropped(second, OffsetRange(first, 0, 300), OffsetRange(second, 0, 300))
    assert sorted(rows) == list(range(300))
    assert unread[0] == {0}
    assert unread[-1] == set()
    assert kept.read(OffsetRange(second, 290, 300)) == [(1, offset) for offset in range(290, 300)]
    assert kept.lost == []
