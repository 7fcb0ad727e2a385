"""`order=timestamp` on Spark: rows of batches, task after task, are what another client reads, sorted.

Every test has a topic of its own, with disorder, transactions and their markers, a hundred thousand rows of one moment,
a partition that stays empty, one that gets no more after the first half, one that is added half-way, and a row of 2099.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from pyspark.sql import Row
from pyspark.sql.functions import spark_partition_id
from tests.fresh import fresh
from tests.spark.reading import PATIENCE_S, Spark, written
from tests.spark.test_replay import forget_from, planned
from tests.spark.writing import Topics, Written

from lowwater.spark.offsets import Offset, ranges

T0 = 1_700_000_000_000
FAR = 4_070_908_800_000
MINUTE = 60_000
HOT = 100_000
SLICES_MIN = 4
IDLE = 4
"""The partition that has rows in the first half alone; the one behind it is not there before the second."""
Place = tuple[int, int]  # partition, offset
Log = dict[Place, Written]
SCHEMA = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int, "
    "headers array<struct<key: string, value: binary>>"
)
OPTIONS = {
    "startingOffsets": "earliest",
    "order": "timestamp",
    "maxOutOfOrder": "1m",
    "includeHeaders": True,
    "kafka_isolation_level": "read_committed",
    "minPartitions": 5,
}


def disordered(count: int, begin: int) -> list[int]:
    """Some rows are a little behind, a few more than a minute."""
    return [begin + 300 * place - 20_000 * (place % 5 == 3) - 95_000 * (place % 83 == 7) for place in range(count)]


class Backlog:
    """The topic, in two halves. No two rows are alike."""

    def __init__(self, bootstrap: str, topics: Topics) -> None:
        self._bootstrap = bootstrap
        self._topics = topics
        self._rows = 0
        self.topic = topics.create(5)
        plain = self._producer()
        self._write(plain, 0, [*disordered(900, T0), FAR, *disordered(900, T0 + 270_000)])
        self._write(plain, 1, [T0 + 200_000, *[T0 + 300_000] * HOT, *disordered(300, T0 + 400_000)])
        self._write(plain, IDLE, [*disordered(400, T0), *[T0 + 300_000] * 400])
        for number in range(3):
            self._transaction(disordered(300, T0 + 90_000 * number), number != 1)

    def add_the_second_half(self) -> None:
        self._topics.grow(self.topic, IDLE + 2)
        plain = self._producer()
        for partition in (0, 1, IDLE + 1):
            self._write(plain, partition, disordered(1000, T0 + 480_000))
        self._transaction(disordered(500, T0 + 480_000), True)

    def _producer(self) -> Producer:
        return Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 20, "log_level": 0})

    def _write(self, producer: Producer, partition: int, times: Iterable[int]) -> None:
        for time in times:
            self._rows += 1
            key, value = (b"key-%d" % (self._rows % 7) if self._rows % 5 else None), b"value-%d" % self._rows
            headers = [("row", b"%d" % self._rows)] if self._rows % 3 else None
            while True:
                try:
                    producer.produce(self.topic, value, key, partition=partition, timestamp=time, headers=headers)
                    break
                except BufferError:
                    producer.poll(0.1)
        assert producer.flush(PATIENCE_S) == 0

    def _transaction(self, times: list[int], commits: bool) -> None:
        settings = {"bootstrap.servers": self._bootstrap, "transactional.id": fresh("order"), "log_level": 0}
        producer = Producer(settings)
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        self._write(producer, 2, times)
        if commits:
            producer.commit_transaction(PATIENCE_S)
        else:
            producer.abort_transaction(PATIENCE_S)

    def read(self) -> Log:
        """By another client, partition by partition."""
        settings = {"bootstrap.servers": self._bootstrap, "group.id": fresh("order"), "enable.partition.eof": True}
        consumer = Consumer({**settings, "isolation.level": "read_committed", "log_level": 0})
        rows: Log = {}
        for partition in consumer.list_topics(self.topic, PATIENCE_S).topics[self.topic].partitions:
            consumer.assign([TopicPartition(self.topic, partition, 0)])
            while (message := consumer.poll(PATIENCE_S)).error() is None:
                rows[partition, message.offset()] = as_written(message)
        consumer.close()
        return rows


def as_written(message: Message) -> Written:
    headers = message.headers()
    where = message.topic(), message.partition(), message.offset(), message.timestamp()[1]
    return Written(*where, message.key(), message.value(), None if headers is None else tuple(headers))


@pytest.fixture
def backlog(broker: Any, topics: Topics) -> Backlog:
    return Backlog(broker.bootstrap, topics)


def keyed(rows: Log, after: int | None = None, cut: int | None = None) -> list[tuple[int, Place]]:
    """Keys and rows, sorted: the definition in the docs, in a few lines."""
    newest: dict[int, int] = {}
    found = []
    for (partition, offset), row in sorted(rows.items()):
        time = row.timestamp_ms if cut is None else min(row.timestamp_ms, cut)
        newest[partition] = max(time, newest.get(partition, time))
        key = max(time, newest[partition] - MINUTE)
        found.append((key if after is None else max(key, after), (partition, offset)))
    return sorted(found)


def places(rows: list[Row]) -> list[Place]:
    return [(row.partition, row.offset) for row in rows]


def expected(log: Log, start: Offset | None, end: Offset) -> list[tuple[int, Place]]:
    """The rows of a batch, as its offsets say, in the order that its plan promises."""
    whole = Offset.initial(dict.fromkeys(end.at, 0), {}, "00000000") if start is None else start
    found = {one.partition: each for one, each in ranges(whole, end).items()}
    rows = {one: row for one, row in log.items() if one[0] in found and one[1] in range(*found[one[0]])}
    assert end.plan is not None
    return keyed(rows, end.plan.after_ms, end.plan.cut_ms)


def check(batches: list[list[Row]], checkpoint: str, log: Log) -> list[int]:
    """Every batch is what it should be, and together they are all rows; their keys, one after the other."""
    keys = []
    for number, batch in enumerate(batches):
        end = planned(checkpoint, number)
        wanted = expected(log, planned(checkpoint, number - 1) if number else None, end)
        assert places(batch) == [place for _, place in wanted]
        assert written(batch) == [log[place] for place in sorted(places(batch))]
        assert end.plan is not None
        assert len(end.plan.slices) >= SLICES_MIN - 1
        keys += [key for key, _ in wanted]
    assert sorted(place for batch in batches for place in places(batch)) == sorted(log)
    return keys


def hottest(batches: list[list[Row]]) -> int:
    return max(range(len(batches)), key=lambda number: len(batches[number]))


def replayed(spark: Spark, checkpoint: str, number: int, options: dict[str, Any]) -> list[Row]:
    """Of a batch that was read and never finished, as a driver leaves it that is killed: what the next one reads."""
    forget_from(checkpoint, commits=number, offsets=number + 1)
    return spark.drain(checkpoint, SCHEMA, **options)[0]


def test_batches_of_a_stream_are_in_order_and_read_again_the_same(spark: Spark, backlog: Backlog) -> None:
    checkpoint = spark.checkpoint()
    options = {**OPTIONS, "subscribe": backlog.topic, "maxOffsetsPerTrigger": 60_000}
    batches = spark.drain(checkpoint, SCHEMA, **options)
    backlog.add_the_second_half()
    batches += spark.drain(checkpoint, SCHEMA, **options)
    check(batches, checkpoint, backlog.read())
    for number in (len(batches) - 1, hottest(batches)):
        assert replayed(spark, checkpoint, number, options) == batches[number]


def test_a_stream_of_batches_that_end_at_cuts_is_in_order_from_end_to_end(spark: Spark, backlog: Backlog) -> None:
    checkpoint = spark.checkpoint()
    options = {**OPTIONS, "subscribe": backlog.topic, "cut": "5m"}
    batches = spark.drain(checkpoint, SCHEMA, **options)
    second = len(batches)
    backlog.add_the_second_half()
    batches += spark.drain(checkpoint, SCHEMA, **options)
    keys = check(batches, checkpoint, backlog.read())
    assert keys == sorted(keys)
    for number in (second, hottest(batches)):
        assert replayed(spark, checkpoint, number, options) == batches[number]


def test_a_batch_query_is_in_order_with_columns_of_its_own_and_filters(spark: Spark, backlog: Backlog) -> None:
    backlog.add_the_second_half()
    frame = spark.read("offset long, partition int", **OPTIONS, subscribe=backlog.topic)
    rows = frame.withColumn("task", spark_partition_id()).filter("offset % 2 = 0").collect()
    assert places(rows) == [place for _, place in keyed(backlog.read()) if place[1] % 2 == 0]
    sizes = [sum(row.task == task for row in rows) for task in range(5)]
    assert sum(sizes) == len(rows)
    assert max(sizes) <= 1.5 * len(rows) / 5
