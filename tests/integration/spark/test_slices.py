"""Ordered tasks on a real broker, without Spark: what they give together is what another client reads, sorted."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE as NO_TIME
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.fresh import fresh
from tests.reader.writing import Writer

from lowwater.client.ranges import OffsetRange
from lowwater.client.releasing import Lost
from lowwater.spark.batch_planner import plan
from lowwater.spark.columns import Chosen
from lowwater.spark.filters import Bounds
from lowwater.spark.options import SourceOptions
from lowwater.spark.ordering.reading import SliceReading
from lowwater.spark.shaping import shape_of
from lowwater.spark.splitting import Task
from lowwater.spark.worker_client import WorkerClient, clients, read_task
from lowwater.testing import Broker

T0 = 1_700_000_000_000
FAR = 4_070_908_800_000
MINUTE = 60_000
Row = tuple[int, str, int, int, int]
ALL = tuple(Chosen(name) for name in ("topic", "partition", "offset", "timestamp"))


@pytest.fixture
def producer(broker: Broker) -> Iterator[Producer]:
    made = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, "log_level": 0})
    yield made
    assert made.flush(60) == 0


def write(producer: Producer, topic: str, partition: int, times: list[int], size: int = 20) -> None:
    for time in times:
        producer.produce(topic, b"v" * size, partition=partition, timestamp=time)
        producer.poll(0)
    assert producer.flush(60) == 0


def transaction(broker: Broker, topic: str, partition: int, times: list[int], *, commits: bool = True) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": fresh("t"), "log_level": 0})
    producer.init_transactions(60)
    producer.begin_transaction()
    write(producer, topic, partition, times)
    if commits:
        producer.commit_transaction(60)
    else:
        producer.abort_transaction(60)


def oracle(broker: Broker, topic: str, out_of_order_ms: int) -> list[Row]:
    """(key, topic, partition, offset, timestamp): read by another client, and sorted."""
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": fresh("o"), "enable.partition.eof": True}
    consumer = Consumer({**settings, "isolation.level": "read_committed", "log_level": 0})
    rows: list[Row] = []
    for partition in consumer.list_topics(topic, 60).topics[topic].partitions:
        consumer.assign([TopicPartition(topic, partition, 0)])
        newest = None
        while (message := consumer.poll(60)).error() is None:
            kind, time = message.timestamp()
            time = -1 if kind == NO_TIME else time
            newest = time if newest is None else max(newest, time)
            rows.append((max(time, newest - out_of_order_ms), topic, partition, message.offset(), time))
    consumer.close()
    return sorted(rows)


def read(options: SourceOptions, task: Task) -> list[tuple[str, int, int, int]]:
    rows: list[tuple[str, int, int, int]] = []
    for batch in read_task(options.client.settings, task, shape_of(ALL, None), on_lost=refuse, patience_ms=60_000):
        columns = batch.columns
        times = [time // 1000 for time in columns[3].cast("int64").to_pylist()]
        rows += zip(*(column.to_pylist() for column in columns[:3]), times, strict=True)
    return rows


def refuse(lost: Lost) -> None:
    raise AssertionError(lost)


Options = Callable[..., SourceOptions]


def check(options: Options, broker: Broker, topic: str, out_of_order_ms: int = MINUTE, **given: Any) -> list[int]:
    """The rows of the slices are the oracle's; how many each has."""
    chosen = options(
        streaming=False,
        subscribe=topic,
        order="timestamp",
        maxOutOfOrder=f"{out_of_order_ms}ms",
        kafka_isolation_level="read_committed",
        **given,
    )
    tasks = plan(chosen, Bounds())
    parts = [read(chosen, task) for task in tasks]
    assert [row for part in parts for row in part] == [row[1:] for row in oracle(broker, topic, out_of_order_ms)]
    assert [read(chosen, unplanned(task)) for task in tasks] == parts, "a task that is read again has its rows"
    return [len(part) for part in parts]


def unplanned(task: Task) -> Task:
    """As it is when the driver was started anew: nobody knows any more where its slice lies."""
    assert task.slice is not None
    return replace(task, slice=replace(task.slice, extents=None))


def disordered(count: int, step: int = 100, begin: int = T0) -> list[int]:
    return [begin + step * place - 7_000 * (place % 7 == 3) - 90_000 * (place % 97 == 5) for place in range(count)]


def test_slices_are_even_and_their_rows_in_order(
    options: Options, broker: Broker, writer: Writer, producer: Producer
) -> None:
    topic = fresh("slices")
    writer.create(topic, 4)
    for partition, count in ((0, 4000), (1, 2000), (2, 500)):  # the last one has nothing
        write(producer, topic, partition, disordered(count, 8000 // (count // 500)))
    sizes = check(options, broker, topic, minPartitions=4)
    assert len(sizes) == 4
    assert max(sizes) <= 1.5 * sum(sizes) / 4


def test_slices_are_even_in_bytes_not_in_rows(
    options: Options, broker: Broker, writer: Writer, producer: Producer
) -> None:
    topic = fresh("slices")
    writer.create(topic, 2)
    write(producer, topic, 0, [T0 + place for place in range(2000)], size=1000)
    write(producer, topic, 1, [T0 + 100_000 + place for place in range(2000)], size=10)
    small = check(options, broker, topic, 0, minPartitions=4)
    assert len(small) == 4
    assert small[0] < 700 < 1500 < small[-1]


def test_a_moment_with_most_rows_is_split(options: Options, broker: Broker, writer: Writer, producer: Producer) -> None:
    topic = fresh("slices")
    writer.create(topic, 3)
    for partition in range(3):
        write(producer, topic, partition, [T0, *[T0 + 5_000_000] * 4000, T0 + 9_000_000])
    sizes = check(options, broker, topic, minPartitions=5)
    assert len(sizes) == 5
    assert max(sizes) <= 1.5 * sum(sizes) / 5


def test_a_row_of_the_far_future_takes_those_behind_it_along_and_slices_stay_even(
    options: Options, broker: Broker, writer: Writer, producer: Producer
) -> None:
    topic = fresh("slices")
    writer.create(topic, 2)
    write(producer, topic, 0, [*disordered(1500), FAR, *disordered(1500, begin=T0 + 150_000)])
    write(producer, topic, 1, disordered(3000))
    sizes = check(options, broker, topic, minPartitions=4)
    assert len(sizes) == 4
    assert max(sizes) <= 1.5 * sum(sizes) / 4


def test_markers_and_what_was_aborted_neither_hide_nor_move_rows(
    options: Options, broker: Broker, writer: Writer, producer: Producer
) -> None:
    """Markers are stamped by the broker: now, long after the rows that follow them."""
    topic = fresh("slices")
    writer.create(topic, 2)
    for number in range(6):
        times = disordered(300, begin=T0 + 30_000 * number)
        transaction(broker, topic, 0, times)
        if number % 2:
            transaction(broker, topic, 0, [FAR, *times], commits=False)
    write(producer, topic, 1, disordered(1800))
    sizes = check(options, broker, topic, 10_000, minPartitions=5)
    assert len(sizes) == 5


def test_rows_without_a_time_come_first(options: Options, broker: Broker, writer: Writer, producer: Producer) -> None:
    topic = fresh("slices")
    writer.create(topic, 2)
    writer.write(_one(topic, 0), [None, None, T0 + 5, None])
    write(producer, topic, 1, [T0 + place for place in range(1000)])
    assert len(check(options, broker, topic, minPartitions=4)) == 4


def test_the_brokers_own_times_are_an_order_too(
    options: Options, broker: Broker, writer: Writer, producer: Producer
) -> None:
    topic = fresh("slices")
    writer.create(topic, 2, {"message.timestamp.type": "LogAppendTime"})
    for _ in range(5):
        for partition in (0, 1):
            write(producer, topic, partition, [T0] * 200)
    assert sum(check(options, broker, topic, minPartitions=4)) == 2000


def test_little_is_one_task_unless_more_are_wanted(
    options: Options, broker: Broker, writer: Writer, producer: Producer
) -> None:
    topic = fresh("slices")
    writer.create(topic, 3)
    write(producer, topic, 0, disordered(100))
    assert check(options, broker, topic) == [100]


def test_a_range_that_begins_behind_a_row_of_the_far_future_is_read_in_order(
    options: Options, broker: Broker, writer: Writer, producer: Producer
) -> None:
    """To every question for a time the broker answers with that row."""
    topic = fresh("slices")
    writer.create(topic, 1)
    write(producer, topic, 0, [FAR, *disordered(1000)])
    chosen = options(streaming=False, subscribe=topic, order="timestamp", minPartitions=4, start=f"{topic}[0]=1")
    parts = [read(chosen, task) for task in plan(chosen, Bounds())]
    rows = [row for part in parts for row in part]
    assert len(parts) == 4
    assert sorted(row[2] for row in rows) == list(range(1, 1001))
    newest, keys = 0, {}
    for *_, offset, time in sorted(rows):
        newest = max(newest, time)
        keys[offset] = max(time, newest - MINUTE)
    assert [(keys[row[2]], row[2]) for row in rows] == sorted((key, offset) for offset, key in keys.items())


def _one(topic: str, partition: int) -> Any:
    from lowwater import TopicPartition as One

    return One(topic, partition)


def test_beyond_its_memory_a_slice_goes_to_files_that_are_gone_afterwards(
    options: Options, broker: Broker, writer: Writer, producer: Producer
) -> None:
    topic = fresh("slices")
    writer.create(topic, 3)
    for partition in range(3):
        write(producer, topic, partition, disordered(12_000))
    chosen = options(streaming=False, subscribe=topic, order="timestamp", minPartitions=1)
    [task] = plan(chosen, Bounds())
    ranges = [OffsetRange(_one(topic, each.partition), each.start, each.end) for each in task.ranges]
    client = WorkerClient(chosen.client.settings)
    assert task.slice is not None
    before = open_files()
    try:
        reading = SliceReading(client, ranges, task.slice, COLUMNS, on_lost=refuse, held_bytes_max=20_000)
        offsets = [place for batch in reading.batches() for place in places(batch)]
        assert reading.spilled > 1
        assert reading.late_rows > 0
        assert offsets == [row[2:4] for row in oracle(broker, topic, MINUTE)]
        abandoned = SliceReading(client, ranges, task.slice, COLUMNS, on_lost=refuse, held_bytes_max=20_000).batches()
        next(abandoned)
        assert any(LEFT in name for name in open_files() - before)
        abandoned.close()
        assert not any(LEFT in name for name in open_files() - before)
    finally:
        client.close()


COLUMNS = ("partition", "offset")
LEFT = "(deleted)"


def places(batch: Any) -> list[tuple[int, int]]:
    return list(zip(*(batch.column(name).to_pylist() for name in COLUMNS), strict=True))


def open_files() -> set[str]:
    names = set()
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            names.add(f"{entry.name} {entry.readlink()}")
    return names


def test_slices_of_one_worker_share_its_one_connection(
    options: Options, broker: Broker, writer: Writer, producer: Producer
) -> None:
    topic = fresh("slices")
    writer.create(topic, 8)
    for partition in range(8):
        write(producer, topic, partition, disordered(200))
    chosen = options(streaming=False, subscribe=topic, order="timestamp", minPartitions=4)
    tasks = plan(chosen, Bounds())
    clients.forget(chosen.client.settings)
    before = connections(broker)
    read(chosen, tasks[0])
    opened = connections(broker) - before
    for task in (*tasks[1:], *map(unplanned, tasks)):
        read(chosen, task)
    assert connections(broker) - before == opened
    assert len(opened) == 1


def connections(broker: Broker) -> set[str]:
    """Of this machine to the broker, by their own ports."""
    rows = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    remote = f":{broker.port:04X}"
    return {local for _, local, other, state, *_ in rows if other.endswith(remote) and state == ESTABLISHED}


ESTABLISHED = "01"
