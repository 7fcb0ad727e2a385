"""What planning and reading by time ask of brokers, counted where the requests arrive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.fresh import fresh
from tests.integration.spark.test_slices import MINUTE, T0, disordered, read, unplanned, write
from tests.reader.writing import Writer
from tests.spark.timed import PlannedStream

from lowwater.spark.driver_client import DriverClient
from lowwater.spark.offsets import Plan, Range
from lowwater.spark.options import SourceOptions
from lowwater.spark.ordering.surveying import TIMES_MAX
from lowwater.spark.slicing import ordered_tasks, plan_slices
from lowwater.spark.splitting import Task
from lowwater.testing import Broker
from lowwater.types import TopicPartition

PARTITIONS = 3
LOOKUPS_MAX = 12
"""By time, of one planning that has to keep to a limit."""
BY_TIME = "ListOffsets by time"


class Wire:
    """Counts what the broker is asked; questions for times apart from those for the ends of partitions.

    Only by one client: requests that others have left behind may arrive later.
    """

    def __init__(self, broker: Broker) -> None:
        self.client = fresh("client")
        self._router = broker.node.router
        self._before = self._router.intercept
        self._asked: Counter[str] = Counter()
        self._router.intercept = self._note

    def close(self) -> None:
        self._router.intercept = self._before

    def _note(self, route: Any, request: Any, context: Any) -> Any:
        if context.client_id == self.client:
            self._asked[BY_TIME if _is_by_time(request) else route.api.name] += 1
        return None if self._before is None else self._before(route, request, context)

    def take(self) -> Counter[str]:
        """What was asked since the last time."""
        asked, self._asked = self._asked, Counter()
        return asked


def _is_by_time(request: Any) -> bool:
    if type(request).__name__ != "ListOffsetsRequest":
        return False
    return any(partition.timestamp >= 0 for topic in request.topics for partition in topic.partitions)


@pytest.fixture
def wire(broker: Broker) -> Iterator[Wire]:
    wire = Wire(broker)
    yield wire
    wire.close()


@pytest.fixture
def producer(broker: Broker) -> Producer:
    return Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, "log_level": 0})


@pytest.fixture
def topic(writer: Writer) -> str:
    name = fresh("asked")
    writer.create(name, PARTITIONS)
    return name


def planned_stream(broker: Broker, topic: str, wire: Wire, **more: Any) -> PlannedStream:
    given = {"subscribe": topic, "startingOffsets": "earliest", "kafka_client_id": wire.client}
    stream = PlannedStream(broker.bootstrap, cut="10m", **given, **more)
    stream.stop_at_what_is_there()
    return stream


def questions_by_batch(stream: PlannedStream, wire: Wire) -> list[Counter[str]]:
    """Of each planning that led to a batch."""
    found = []
    try:
        while stream.batch() is not None:
            found.append(wire.take())
    finally:
        stream.close()
    return found


def test_a_cut_is_planned_with_one_question_for_a_time(
    broker: Broker, topic: str, producer: Producer, wire: Wire
) -> None:
    for partition in range(PARTITIONS):
        write(producer, topic, partition, [T0 + MINUTE * row for row in range(120)])
    first, *more = questions_by_batch(planned_stream(broker, topic, wire), wire)
    assert len(more) >= 10
    assert [asked[BY_TIME] for asked in more] == [1] * len(more)
    assert all(asked.keys() == {BY_TIME} for asked in more), "where partitions end is known"
    assert first[BY_TIME] == 1


def test_a_cut_within_a_limit_is_found_with_twelve_questions_for_times(
    broker: Broker, topic: str, producer: Producer, wire: Wire
) -> None:
    write(producer, topic, 0, [T0] * 250 + [T0 + 5000 * row for row in range(700)])
    write(producer, topic, 1, [T0] * 250 + [T0 + 59 * MINUTE + row for row in range(150)])
    stream = planned_stream(broker, topic, wire, maxOffsetsPerTrigger=100)
    asked = questions_by_batch(stream, wire)
    assert max(each[BY_TIME] for each in asked) > 1, "it had to look for the moment"
    assert max(each[BY_TIME] for each in asked) <= LOOKUPS_MAX


Options = Callable[..., SourceOptions]


def plan_in_order(
    options: Options, topic: str, rows: int, wire: Wire, slices: int
) -> tuple[SourceOptions, list[Task], Counter[str]]:
    """Of a batch with so many rows in each partition: its tasks, and what was asked for them."""
    given = {"subscribe": topic, "order": "timestamp", "minPartitions": slices, "kafka_client_id": wire.client}
    chosen = options(streaming=False, **given)
    ranges = {TopicPartition(topic, partition): Range(0, rows) for partition in range(PARTITIONS)}
    client = DriverClient(chosen.client.settings)
    wire.take()
    try:
        sliced = plan_slices(client, ranges, Plan(), chosen)
    finally:
        client.close()
    return chosen, ordered_tasks(ranges, sliced.plan, ids={}, extents=sliced.extents), wire.take()


def test_slices_of_steady_rows_are_planned_with_two_fetches_and_a_question_for_each_bound(
    options: Options, topic: str, producer: Producer, wire: Wire
) -> None:
    for partition in range(PARTITIONS):
        write(producer, topic, partition, disordered(1000))
    chosen, tasks, asked = plan_in_order(options, topic, 1000, wire, 4)
    assert len(tasks) == 4
    assert asked["Fetch"] == 2
    assert asked[BY_TIME] == 3 + 1, "one more tells whether a row of the far future is among them"
    assert asked["ListOffsets"] == 0
    for task in tasks:
        read(chosen, task)
    assert wire.take().keys() & {BY_TIME, "ListOffsets"} == set(), "tasks are told where their slices lie"
    for task in tasks:
        read(chosen, unplanned(task))
        again = wire.take()
        assert again[BY_TIME] + again["ListOffsets"] <= 3


def test_slices_of_rows_uneven_in_time_are_planned_with_a_bounded_number_of_questions(
    options: Options, topic: str, producer: Producer, wire: Wire
) -> None:
    for partition in range(PARTITIONS):
        write(producer, topic, partition, [T0 + 2 ** (row // 30) for row in range(1000)])
    _, tasks, asked = plan_in_order(options, topic, 1000, wire, 40)
    assert len(tasks) > TIMES_MAX
    assert asked["Fetch"] == 2
    assert asked[BY_TIME] + asked["ListOffsets"] <= TIMES_MAX
