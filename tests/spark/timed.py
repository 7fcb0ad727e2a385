"""Rows of chosen times, written by confluent-kafka, also in transactions; and what a planner makes of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka import TopicPartition as KafkaPartition
from tests.fresh import fresh

from lowwater.spark.offsets import Offset, ranges
from lowwater.spark.options import SourceOptions
from lowwater.spark.stream_planner import StreamPlanner
from lowwater.types import TopicPartition

PATIENCE_S = 60
NO_LIMIT = (1 << 63) - 1


class TimedWriter:
    """Values are the times, unless there are others."""

    def __init__(self, bootstrap: str) -> None:
        self._settings = {"bootstrap.servers": bootstrap, "log_level": 0, "linger.ms": 5}
        self._producer = Producer(self._settings)

    def write(self, topic: str, times_ms: Iterable[int], partition: int = 0) -> None:
        _produce(self._producer, topic, times_ms, partition)
        assert self._producer.flush(PATIENCE_S) == 0

    def write_in_transactions(self, topic: str, times_ms: Iterable[int], partition: int = 0, *, size: int) -> None:
        """Each has so many rows, and its end the time of the broker."""
        every = list(times_ms)
        with self.transactions() as producer:
            for first in range(0, len(every), size):
                producer.begin_transaction()
                _produce(producer, topic, every[first : first + size], partition)
                producer.commit_transaction(PATIENCE_S)

    @contextmanager
    def transactions(self) -> Iterator[Producer]:
        producer = Producer({**self._settings, "transactional.id": fresh("timed")})
        producer.init_transactions(PATIENCE_S)
        yield producer

    @contextmanager
    def open_transaction(self, topic: str, times_ms: Iterable[int], partition: int = 0) -> Iterator[None]:
        """Ends, committed, with the block."""
        with self.transactions() as producer:
            producer.begin_transaction()
            _produce(producer, topic, times_ms, partition)
            assert producer.flush(PATIENCE_S) == 0
            yield
            producer.commit_transaction(PATIENCE_S)


def stamps(bootstrap: str, topic: str) -> dict[tuple[str, int, int], int]:
    """The time of every committed row by its place, as confluent-kafka reads them; ends of transactions may be last."""
    settings = {"bootstrap.servers": bootstrap, "group.id": fresh("oracle"), "enable.auto.commit": False}
    consumer = Consumer({**settings, "enable.partition.eof": True, "auto.offset.reset": "earliest", "log_level": 0})
    found: dict[tuple[str, int, int], int] = {}
    left = set(consumer.list_topics(topic, PATIENCE_S).topics[topic].partitions)
    try:
        consumer.assign([KafkaPartition(topic, each, 0) for each in left])
        while left:
            message = consumer.poll(PATIENCE_S)
            assert message is not None, "the rows that are there come"
            if message.error() is None:
                found[(topic, message.partition(), message.offset())] = message.timestamp()[1]
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                left.discard(message.partition())
    finally:
        consumer.close()
    return found


def _produce(producer: Producer, topic: str, times_ms: Iterable[int], partition: int) -> None:
    for time_ms in times_ms:
        while True:
            try:
                producer.produce(topic, str(time_ms).encode(), partition=partition, timestamp=time_ms)
                break
            except BufferError:
                producer.poll(1)
        producer.poll(0)


class PlannedStream:
    """Plans as Spark lets a stream plan, without Spark: every offset goes through its text."""

    def __init__(self, bootstrap: str, **options: Any) -> None:
        named = {name.replace("_", "."): str(value) for name, value in options.items()}
        self.options = SourceOptions.parse({"kafka.bootstrap.servers": bootstrap, **named}, streaming=True)
        self.limit = self.options.offsets_max or NO_LIMIT
        self.planner = StreamPlanner(self.options)
        self.start: dict[str, Any] | None = None
        self.cuts: list[int] = []
        self.asked: list[int] = []

    def stop_at_what_is_there(self) -> None:
        self.planner.stop_at_what_is_there()

    def batch(self) -> dict[TopicPartition, tuple[int, int]] | None:
        """What the next one reads, without empty ranges; None: there is none now."""
        start = self.start or self.planner.initial_offset()
        end = json.loads(json.dumps(self.planner.latest_offset(start, self.limit)))
        if end == start:
            return None
        before, after = Offset.parse(start), Offset.parse(end)
        self.start = end
        assert after.plan is not None
        assert after.plan.cut_ms is not None
        self.cuts.append(after.plan.cut_ms)
        self.asked.append(after.plan.asked)
        return {one: tuple(each) for one, each in ranges(before, after).items() if each.size}

    def all(self) -> list[dict[TopicPartition, tuple[int, int]]]:
        found = []
        while (batch := self.batch()) is not None:
            found.append(batch)
        return found

    def close(self) -> None:
        self.planner.close()
