"""What a worker takes its input with: a consumer of its library that reads what its group has not yet committed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.conformance.transactions.confluent import QUIET
from tests.conformance.transactions.face import MemberOf

SESSION_MS = 6000
HEARTBEAT_MS = 200
POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Taken:
    partition: int
    offset: int
    value: bytes


@dataclass(frozen=True, slots=True)
class Share:
    """Of which group the worker is, and the partitions of the input that are its own where a worker chooses them."""

    worker: str
    bootstrap: str
    topic: str
    group: str
    partitions: tuple[int, ...]


class Intake(ABC):
    """Begun only when the producer has its epoch: the offsets of an earlier instance are then decided."""

    def __init__(self, share: Share) -> None:
        self.share = share

    @abstractmethod
    def take(self, most: int) -> list[Taken]: ...

    @abstractmethod
    def give_back(self, taken: Iterable[Taken]) -> None:
        """Take these again: their transaction was aborted."""

    def member(self) -> MemberOf:
        return MemberOf(self.share.group)


class ConfluentIntake(Intake):
    """A member of its group: partitions come and go, and its generation goes with the offsets. The next process of the
    same worker takes its place at once, as a static member."""

    def protocol(self) -> dict[str, Any]:
        return {
            "group.instance.id": self.share.worker,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "partition.assignment.strategy": "range",
        }

    def __init__(self, share: Share) -> None:
        from confluent_kafka import Consumer

        super().__init__(share)
        self.consumer = Consumer(
            {
                **QUIET,
                **self.protocol(),
                "bootstrap.servers": share.bootstrap,
                "group.id": share.group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 50,
            }
        )
        self.consumer.subscribe([share.topic])

    def take(self, most: int) -> list[Taken]:
        messages = [each for each in self.consumer.consume(most, timeout=POLL_S) if each.error() is None]
        return [Taken(each.partition(), each.offset(), each.value()) for each in messages]

    def give_back(self, taken: Iterable[Taken]) -> None:
        from confluent_kafka import KafkaException, TopicPartition

        for partition, offset in firsts(taken).items():
            try:
                self.consumer.seek(TopicPartition(self.share.topic, partition, offset))
            except KafkaException:  # It is another member's by now, which begins at the committed offset.
                continue

    def member(self) -> MemberOf:
        return MemberOf(self.share.group, own=self.consumer.consumer_group_metadata())


class NewConfluentIntake(ConfluentIntake):
    """A dynamic member of a group of the consumer protocol: the place of a dead one is free when its session ends."""

    def protocol(self) -> dict[str, Any]:
        return {"group.protocol": "consumer"}


class KafkaPythonIntake(Intake):
    def __init__(self, share: Share) -> None:
        from kafka import KafkaConsumer, TopicPartition

        super().__init__(share)
        self.consumer = KafkaConsumer(
            bootstrap_servers=share.bootstrap,
            group_id=share.group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=200,
            retry_backoff_ms=20,
            fetch_max_wait_ms=50,
        )
        self.consumer.assign([TopicPartition(share.topic, index) for index in share.partitions])

    def take(self, most: int) -> list[Taken]:
        from kafka.errors import KafkaError

        try:
            came = self.consumer.poll(timeout_ms=int(POLL_S * 1000), max_records=most)
        except KafkaError:  # the broker is away
            return []
        return [Taken(each.partition, each.offset, each.value) for messages in came.values() for each in messages]

    def give_back(self, taken: Iterable[Taken]) -> None:
        from kafka import TopicPartition

        for partition, offset in firsts(taken).items():
            self.consumer.seek(TopicPartition(self.share.topic, partition), offset)


class AioKafkaIntake(Intake):
    def __init__(self, share: Share) -> None:
        from tests.conformance.transactions.aio_kafka import run

        super().__init__(share)
        self._run = run
        self._run(self._start())

    async def _start(self) -> None:
        from aiokafka import AIOKafkaConsumer, TopicPartition

        self.consumer = AIOKafkaConsumer(
            bootstrap_servers=self.share.bootstrap,
            group_id=self.share.group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            retry_backoff_ms=20,
            fetch_max_wait_ms=50,
        )
        self.consumer.assign([TopicPartition(self.share.topic, index) for index in self.share.partitions])
        await self.consumer.start()

    def take(self, most: int) -> list[Taken]:
        came = self._run(self.consumer.getmany(timeout_ms=int(POLL_S * 1000), max_records=most))
        return [Taken(each.partition, each.offset, each.value) for messages in came.values() for each in messages]

    def give_back(self, taken: Iterable[Taken]) -> None:
        from aiokafka import TopicPartition

        for partition, offset in firsts(taken).items():
            self.consumer.seek(TopicPartition(self.share.topic, partition), offset)


def firsts(taken: Iterable[Taken]) -> dict[int, int]:
    """The first offset of each partition."""
    found: dict[int, int] = {}
    for each in taken:
        found[each.partition] = min(each.offset, found.get(each.partition, each.offset))
    return found
