"""Topics made, written and read by confluent-kafka: what Spark gives is compared with that."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from tests.fresh import fresh

PATIENCE_S = 60
# Rows may be of any time; none is to be deleted or refused for it.
ANY_TIME = {"retention.ms": "-1", "message.timestamp.after.max.ms": str(2**63 - 1)}


class Written(NamedTuple):
    """A row as it was written, and where it landed. Without headers there are none, which is not the same as []."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] | None


class Topics:
    """Names are fresh: all suites share one broker."""

    def __init__(self, bootstrap: str, settings: Mapping[str, str] | None = None) -> None:
        # It would go on about a broker that is stopped before it.
        self._settings = {"bootstrap.servers": bootstrap, "log_level": 0, **(settings or {})}
        self.admin = AdminClient(self._settings)
        self._producer = self._producing()

    def _producing(self) -> Producer:
        return Producer({**self._settings, "linger.ms": 5})

    def close(self) -> None:
        self._producer.flush(PATIENCE_S)

    def create(self, partitions: int = 1, label: str = "spark", config: Mapping[str, str] | None = None) -> str:
        name = fresh(label)
        self.recreate(name, partitions, config)
        return name

    def recreate(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        new = NewTopic(name, num_partitions=partitions, replication_factor=1, config={**ANY_TIME, **(config or {})})
        self.admin.create_topics([new])[name].result(PATIENCE_S)

    def delete(self, name: str) -> None:
        self.admin.delete_topics([name])[name].result(PATIENCE_S)

    def grow(self, name: str, partitions: int) -> None:
        self.admin.create_partitions([NewPartitions(name, partitions)])[name].result(PATIENCE_S)
        self._producer = self._producing()  # the one before does not know of them for minutes
        deadline = time.monotonic() + PATIENCE_S
        while len(self._producer.list_topics(name, PATIENCE_S).topics[name].partitions) < partitions:
            assert time.monotonic() < deadline, "brokers do not tell of the new partitions"

    def write(
        self,
        topic: str,
        values: Sequence[bytes | None],
        partition: int = 0,
        *,
        times_ms: Sequence[int] = (),
        **more: Any,
    ) -> list[int]:
        """Their offsets. `more`: key, timestamp, headers of each; `times_ms`: a timestamp for every one."""
        offsets: list[int] = []

        def delivered(error: Any, message: Any) -> None:
            assert error is None, error
            offsets.append(message.offset())

        for place, value in enumerate(values):
            stamped = {"timestamp": times_ms[place]} if times_ms else {}
            self._producer.produce(topic, value, partition=partition, on_delivery=delivered, **stamped, **more)
            self._producer.poll(0)
        assert self._producer.flush(PATIENCE_S) == 0
        return offsets

    def fill(self, topic: str, partitions: int, rows: int) -> None:
        """`rows` numbered values in each partition."""
        for partition in range(partitions):
            self.write(topic, [f"{partition}-{row}".encode() for row in range(rows)], partition)

    def commit(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        consumer = Consumer({**self._settings, "group.id": group, "enable.auto.commit": False})
        wanted = [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
        consumer.commit(offsets=wanted, asynchronous=False)
        consumer.close()

    def committed(self, group: str, topic: str, partitions: int) -> dict[int, int]:
        """As another client sees it; partitions without an offset are left out."""
        consumer = Consumer({**self._settings, "group.id": group})
        try:
            found = consumer.committed([TopicPartition(topic, number) for number in range(partitions)], PATIENCE_S)
        finally:
            consumer.close()
        return {one.partition: one.offset for one in found if one.offset >= 0}

    def delete_before(self, topic: str, offset: int, partition: int = 0) -> None:
        [done] = self.admin.delete_records([TopicPartition(topic, partition, offset)]).values()
        assert done.result(PATIENCE_S).low_watermark == offset

    def read(self, *names: str) -> list[Written]:
        """Every row there is now, by topic, partition and offset."""
        consumer = Consumer({**self._settings, "group.id": fresh("oracle"), "enable.auto.commit": False})
        rows: list[Written] = []
        try:
            for name in names:
                for partition in consumer.list_topics(name, PATIENCE_S).topics[name].partitions:
                    rows += _read(consumer, name, partition)
        finally:
            consumer.close()
        return sorted(rows, key=lambda row: row[:3])


def _read(consumer: Consumer, topic: str, partition: int) -> list[Written]:
    rows: list[Written] = []
    start, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), PATIENCE_S)
    consumer.assign([TopicPartition(topic, partition, start)])
    while (rows[-1].offset + 1 if rows else start) < end:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, "the rows that are there come"
        assert message.error() is None, message.error()
        headers = message.headers()
        where = message.topic(), message.partition(), message.offset(), message.timestamp()[1]
        rows.append(Written(*where, message.key(), message.value(), None if headers is None else tuple(headers)))
    return rows
