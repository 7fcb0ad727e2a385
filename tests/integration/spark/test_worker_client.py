"""What a task reads, in a process that goes on to the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.fresh import fresh
from tests.reader.writing import Writer

from lowwater import TopicPartition
from lowwater.client.errors import ClientError, TopicRecreatedError
from lowwater.spark.columns import Chosen
from lowwater.spark.data_loss import DataLossError
from lowwater.spark.ledger import losses
from lowwater.spark.options import SourceOptions
from lowwater.spark.scan import Scan
from lowwater.spark.splitting import Task, TaskRange
from lowwater.spark.worker_client import clients
from lowwater.testing import Broker

ROWS = 30_000
Scanning = Callable[..., Scan]


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    name = fresh("tasks")
    for partition in range(2):
        broker.fill(name, partition, next=ROWS)
    return name


@pytest.fixture
def scanning(options: Callable[..., SourceOptions], topic: str) -> Iterator[Scanning]:
    """Clients that tasks keep are closed with the test, as with the process of a worker."""
    made: list[Scan] = []

    def make(*names: str, **given: Any) -> Scan:
        chosen = tuple(map(Chosen, names or ("partition", "offset")))
        made.append(Scan(options(**{"subscribe": topic} | given), chosen))
        return made[-1]

    yield make
    for scan in made:
        clients.forget(scan.options.client.settings)


def task(topic: str, *ranges: tuple[int, int, int]) -> Task:
    return Task(tuple(TaskRange(topic, partition, start, end, "") for partition, start, end in ranges))


def rows(batches: Iterator[Any]) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for batch in batches for row in batch.to_pylist())


def test_a_task_reads_all_of_its_ranges_and_no_more(scanning: Scanning, topic: str) -> None:
    found = rows(scanning().read(task(topic, (0, 5, 5_005), (1, 100, 110))))
    assert found == [(0, offset) for offset in range(5, 5_005)] + [(1, offset) for offset in range(100, 110)]


def test_the_task_of_nothing_reads_nothing(scanning: Scanning) -> None:
    assert list(scanning().read(None)) == []


def test_batches_have_5_to_10_thousand_rows_and_one_schema(scanning: Scanning, topic: str) -> None:
    batches = list(scanning("value", "offset").read(task(topic, (0, 0, ROWS), (1, 0, ROWS))))
    sizes = [batch.num_rows for batch in batches]
    assert sum(sizes) == 2 * ROWS
    assert max(sizes) <= 10_000
    assert sum(sizes) / len(sizes) >= 5_000
    assert {batch.schema for batch in batches} == {batches[0].schema}


def test_the_next_task_has_its_connections_already(scanning: Scanning, topic: str, broker: Broker) -> None:
    scan = scanning()
    rows(scan.read(task(topic, (0, 0, 10))))
    before = broker.requests()
    assert rows(scan.read(task(topic, (0, 10, 12)))) == [(0, 10), (0, 11)]
    asked = {name for name, count in broker.requests().items() if count > before.get(name, 0)}
    assert asked == {"Fetch"}


def test_a_task_that_is_left_half_way_disturbs_no_other(scanning: Scanning, topic: str) -> None:
    scan = scanning()
    half = scan.read(task(topic, (0, 0, ROWS)))
    next(half)
    half.close()
    assert rows(scan.read(task(topic, (1, 0, 3)))) == [(1, 0), (1, 1), (1, 2)]


def test_deleted_rows_fail_the_task_with_their_range_or_are_skipped(
    scanning: Scanning, broker: Broker, writer: Writer, caplog: pytest.LogCaptureFixture
) -> None:
    name, ledger = fresh("tasks-deleted"), fresh("ledger")
    broker.fill(name, next=100)
    writer.admin.delete_records({TopicPartition(name, 0): 40})
    with pytest.raises(DataLossError, match=rf"'{name}' partition 0: offsets \[10, 40\) are gone"):
        rows(scanning(subscribe=name).read(task(name, (0, 10, 50))))
    goes_on = scanning(subscribe=name, failOnDataLoss="false", lossLedger=ledger)
    assert rows(goes_on.read(task(name, (0, 10, 50)))) == [(0, offset) for offset in range(40, 50)]
    assert "[10, 40)" in caplog.text
    assert [(loss.first, loss.behind) for loss in losses(broker.bootstrap, ledger=ledger)] == [(10, 40)]


def test_a_topic_of_the_same_name_and_another_id_is_not_read(scanning: Scanning, topic: str) -> None:
    planned = Task((TaskRange(topic, 0, 0, 10, "f9Gx2kq0T1i8mO3bq7n0Yw"),))
    with pytest.raises(TopicRecreatedError, match="f9Gx2kq0T1i8mO3bq7n0Yw"):
        rows(scanning().read(planned))


def test_after_a_failure_the_next_task_begins_anew(scanning: Scanning, topic: str, broker: Broker) -> None:
    scan = scanning(kafkaConsumer_pollTimeoutMs=200)
    settings = scan.options.client.settings
    rows(scan.read(task(topic, (0, 0, 1))))
    failed = clients.get(settings)
    broker.faults.delay("Fetch", 60_000)
    try:
        with pytest.raises(ClientError):
            rows(scan.read(task(topic, (0, 1, 2))))
    finally:
        broker.faults.clear()
    assert clients.get(settings) is not failed
    assert rows(scan.read(task(topic, (0, 1, 2)))) == [(0, 1)]


@pytest.mark.parametrize(("isolation", "count"), [("read_committed", 2), ("read_uncommitted", 4)])
def test_isolation_is_the_clients(scanning: Scanning, writer: Writer, isolation: str, count: int) -> None:
    name = fresh("tasks-aborted")
    writer.create(name, 1)
    writer.write(TopicPartition(name, 0), [1, {"abort": [2, 3]}, {"commit": [4]}])
    scan = scanning(subscribe=name, kafka_isolation_level=isolation)
    assert len(rows(scan.read(task(name, (0, 0, 6))))) == count
