"""Topics with everything in them that a log can hold, written and read by confluent-kafka."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, TypeAlias

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import OffsetSpec
from tests.fresh import fresh
from tests.spark.writing import PATIENCE_S, Topics, Written

Place: TypeAlias = tuple[str, int]
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"
BEGAN_MS = 1_700_000_000_000
STEP_MS = 1_000
ROWS = 12
CODECS = ("lz4", "gzip", "zstd")
HEADERS = [("a", b"1"), ("a", b"2"), ("nothing", None), ("empty", b"")]


class Prepared:
    """Three topics, made once and only read: `mixed` (nulls, headers, codecs, a log whose beginning is gone), `stamped`
    (by the broker) and `open` (finished, aborted and unfinished transactions)."""

    def __init__(self, bootstrap: str, topics: Topics) -> None:
        self._settings = {"bootstrap.servers": bootstrap, "log_level": 0}
        self.prefix = fresh("prepared")
        self._topics = topics
        self.mixed = self._create("mixed", len(CODECS))
        self.stamped = self._create("stamped", 2, {"message.timestamp.type": "LogAppendTime"})
        self.open = self._create("open", 2)
        self._write_mixed()
        topics.fill(self.stamped, 2, 5)
        # Kept: a producer that goes away would abort what it has not finished.
        self._unfinished = self._write_transactions()
        self.rows = {isolation: self._read(isolation) for isolation in (COMMITTED, UNCOMMITTED)}

    def _create(self, label: str, partitions: int, config: Mapping[str, str] | None = None) -> str:
        name = f"{self.prefix}-{label}"
        self._topics.recreate(name, partitions, config)
        return name

    @property
    def names(self) -> list[str]:
        return sorted([self.mixed, self.stamped, self.open])

    @property
    def partitions(self) -> dict[str, int]:
        return {self.mixed: len(CODECS), self.stamped: 2, self.open: 2}

    @property
    def places(self) -> list[Place]:
        return [(name, number) for name in self.names for number in range(self.partitions[name])]

    # -- writing

    def _write_mixed(self) -> None:
        for partition, codec in enumerate(CODECS):
            producer = Producer({**self._settings, "compression.type": codec, "linger.ms": 50})
            for number in range(ROWS):
                producer.produce(
                    self.mixed,
                    None if number % 5 == 3 else b"" if number % 5 == 4 else f"{partition}-{number}".encode() * 20,
                    key=None if number % 3 == 0 else b"" if number % 3 == 1 else b"key",
                    headers=HEADERS if number % 4 == 1 else None,
                    timestamp=BEGAN_MS + number * STEP_MS,
                    partition=partition,
                )
            assert producer.flush(PATIENCE_S) == 0
        self._topics.delete_before(self.mixed, 4, len(CODECS) - 1)

    def _write_transactions(self) -> Producer:
        producer = Producer(
            {**self._settings, "transactional.id": fresh("prepared"), "transaction.timeout.ms": 900_000}
        )
        producer.init_transactions(PATIENCE_S)
        for label, finish in (("one", producer.commit_transaction), ("no", producer.abort_transaction)) * 2:
            producer.begin_transaction()
            self._produce_open(producer, label)
            finish(PATIENCE_S)
        producer.begin_transaction()
        self._produce_open(producer, "not yet", partitions=1)
        return producer

    def _produce_open(self, producer: Producer, label: str, partitions: int = 2) -> None:
        for partition in range(partitions):
            for number in range(3):
                at = BEGAN_MS + (partition * 3 + number) * STEP_MS
                producer.produce(self.open, f"{label} {number}".encode(), partition=partition, timestamp=at)
        assert producer.flush(PATIENCE_S) == 0

    # -- reading

    def _read(self, isolation: str) -> list[Written]:
        mine = {"group.id": fresh("oracle"), "enable.auto.commit": False, "enable.partition.eof": True}
        how = {"isolation.level": isolation, "auto.offset.reset": "error", "fetch.wait.max.ms": 10}
        consumer = Consumer({**self._settings, **mine, **how})
        try:
            return sorted(self._until_the_end(consumer), key=lambda row: row[:3])
        finally:
            consumer.close()

    def _until_the_end(self, consumer: Consumer) -> Iterator[Written]:
        consumer.assign([TopicPartition(*place, self.earliest[place]) for place in self.places])
        to_come = set(self.places)
        while to_come:
            message = consumer.poll(PATIENCE_S)
            assert message is not None, "the rows that are there come, and then their end"
            if (error := message.error()) is None:
                yield _written(message)
                continue
            assert error.code() == KafkaError._PARTITION_EOF, error
            to_come.discard((message.topic(), message.partition()))

    @cached_property
    def earliest(self) -> dict[Place, int]:
        return self._listed(OffsetSpec.earliest())

    def latest(self, isolation: str) -> dict[Place, int]:
        return self._latest[isolation]

    @cached_property
    def _latest(self) -> dict[str, dict[Place, int]]:
        """Readers of committed rows come as far as the first unfinished transaction."""
        ends = self._listed(OffsetSpec.latest())
        stable = ends | {
            (self.open, 0): next(row.offset for row in self.rows[UNCOMMITTED] if row.value == b"not yet 0")
        }
        return {UNCOMMITTED: ends, COMMITTED: stable}

    def at(self, timestamp_ms: int) -> dict[Place, int | None]:
        """By partition, the first offset that is stamped so late; None where there is none."""
        found = self._listed(OffsetSpec.for_timestamp(timestamp_ms))
        return {place: offset if offset >= 0 else None for place, offset in found.items()}

    def _listed(self, spec: Any) -> dict[Place, int]:
        asked = self._topics.admin.list_offsets({TopicPartition(*place): spec for place in self.places})
        return {(one.topic, one.partition): future.result(PATIENCE_S).offset for one, future in asked.items()}


def _written(message: Message) -> Written:
    headers = message.headers()
    where = message.topic(), message.partition(), message.offset(), message.timestamp()[1]
    return Written(*where, message.key(), message.value(), None if headers is None else tuple(headers))
