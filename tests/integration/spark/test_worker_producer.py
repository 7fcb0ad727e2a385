"""What a task writes, in a process that goes on to the next one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from tests.fresh import fresh
from tests.spark.writing import Topics

from lowwater.client.errors import ClientError, DeliveryError
from lowwater.spark import worker_producer
from lowwater.spark.sink_columns import WrittenColumns
from lowwater.spark.worker_producer import write_rows
from lowwater.testing import Broker

VALUES = WrittenColumns(("value",), (0,), None)


@pytest.fixture
def settings(broker: Broker) -> Iterator[dict[str, str]]:
    """As a worker begins: without producers."""
    given = {"bootstrap.servers": broker.bootstrap}
    yield given
    worker_producer._producers.forget(given)


@pytest.fixture(scope="module")
def topics(broker: Broker) -> Iterator[Topics]:
    topics = Topics(broker.bootstrap)
    yield topics
    topics.close()


def batches(*numbers: range) -> Iterator[Any]:
    for some in numbers:
        yield pa.record_batch({"value": [str(number) for number in some]})


def numbers(topics: Topics, topic: str) -> list[int]:
    return sorted(int(row.value or b"") for row in topics.read(topic))


def test_a_task_has_written_all_its_rows_when_it_ends(settings: dict[str, str], topics: Topics) -> None:
    topic = topics.create(3)
    written = write_rows(settings, VALUES._replace(topic=topic), batches(range(10_000), range(10_000, 25_000)))
    assert (written.delivered, written.failed) == (25_000, 0)
    assert sum(placed.rows for placed in written.partitions.values()) == 25_000
    assert numbers(topics, topic) == list(range(25_000))


def test_the_next_task_writes_by_the_same_producer(settings: dict[str, str], topics: Topics) -> None:
    columns = VALUES._replace(topic=topics.create(1))
    write_rows(settings, columns, batches(range(5)))
    producer = worker_producer._producers.get(settings)
    write_rows(settings, columns, batches(range(5, 10)))
    assert worker_producer._producers.get(settings) is producer


def test_rows_of_a_task_that_fails_half_way_are_not_written_by_the_next_one(
    settings: dict[str, str], topics: Topics
) -> None:
    columns = VALUES._replace(topic=topics.create(1))

    def killed() -> Iterator[Any]:
        yield from batches(range(5))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_rows(settings, columns, killed())
    before = numbers(topics, str(columns.topic))
    assert set(before) <= set(range(5))
    written = write_rows(settings, columns, batches(range(5, 10)))
    assert written.rows == 5
    assert numbers(topics, str(columns.topic)) == sorted([*before, *range(5, 10)])


def test_a_row_that_is_too_large_fails_the_task_and_is_told(settings: dict[str, str], topics: Topics) -> None:
    columns = VALUES._replace(topic=topics.create(1))
    large = pa.record_batch({"value": ["small", "x" * 2_000_000]})
    with pytest.raises(DeliveryError, match=r"1 of 2 rows were not written, row 1 because.*too large"):
        write_rows(settings, columns, iter([large]))
    assert write_rows(settings, columns, batches(range(1))).delivered == 1


def test_a_broker_that_is_gone_fails_the_task() -> None:
    with Broker() as short_lived:
        settings = {"bootstrap.servers": short_lived.bootstrap, "delivery.timeout.ms": "500"}
    with pytest.raises(ClientError, match="not written"):
        write_rows(settings, VALUES._replace(topic=fresh("gone")), batches(range(3)))
