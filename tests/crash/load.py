"""Load from three client libraries: each sends values of its own, and tails all partitions beside that.

Sends are bounded in flight, so the load follows the broker; a send is over when the library says so.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Protocol

import aiokafka
import confluent_kafka
import kafka
from aiokafka.errors import KafkaError as AioKafkaError
from tests.crash.recorder import Recorder
from tests.crash.values import value_of

from lowwater.types import TopicPartition

IN_FLIGHT_MAX = 40
VALUE_BYTES = (20, 1500)
DRAIN_TIMEOUT_S = 60
RECONNECT_MS = 20
RECONNECT_MAX_MS = 200


class Worker(Protocol):
    name: str

    def start(self) -> None: ...

    def stop(self) -> None:
        """Stop sending or reading, wait for what is under way, free everything."""


class _Threaded:
    """Runs `_run` in a thread until `stop`; an exception there is an error of the history."""

    def __init__(self, name: str, bootstrap: str, partitions: list[TopicPartition], recorder: Recorder) -> None:
        self.name = name
        self.bootstrap = bootstrap
        self.partitions = partitions
        self.recorder = recorder
        self.stopping = threading.Event()
        self._thread = threading.Thread(target=self._guarded, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.stopping.set()
        self._thread.join(DRAIN_TIMEOUT_S + 30)
        if self._thread.is_alive():
            self.recorder.failed(self.name, "did not stop")

    def _guarded(self) -> None:
        try:
            self._run()
        except Exception as error:
            self.recorder.failed(self.name, repr(error))

    def _run(self) -> None:
        raise AssertionError("each worker has its own")

    def _sends(self, *, idempotent: bool) -> Iterator[tuple[TopicPartition, bytes, int]]:
        """Endless (partition, value, ticket), each noted as begun."""
        draw = random.Random(self.name)
        for number in itertools.count():
            partition, name = draw.choice(self.partitions), f"{self.name}-{number}".encode()
            ticket = self.recorder.sending(self.name, partition, name, idempotent=idempotent)
            yield partition, value_of(name, draw.randint(*VALUE_BYTES)), ticket


class ConfluentSender(_Threaded):
    """librdkafka, idempotent, acks=all."""

    def _run(self) -> None:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": 0,
                "linger.ms": 2,
                "reconnect.backoff.ms": RECONNECT_MS,
                "reconnect.backoff.max.ms": RECONNECT_MAX_MS,
                "retry.backoff.ms": RECONNECT_MS,
                "retry.backoff.max.ms": RECONNECT_MAX_MS,
                "log_level": 0,
            }
        )
        sends = self._sends(idempotent=True)
        while not self.stopping.is_set():
            if len(producer) < IN_FLIGHT_MAX:
                self._send(producer, *next(sends))
                producer.poll(0)
            else:
                producer.poll(0.05)
        left = producer.flush(DRAIN_TIMEOUT_S)
        if left:
            self.recorder.failed(self.name, f"{left} sends without an end")

    def _send(self, producer: confluent_kafka.Producer, partition: TopicPartition, value: bytes, ticket: int) -> None:
        def delivered(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
            self.recorder.ended(ticket, None if error else message.offset(), str(error))

        producer.produce(partition.topic, value, partition=partition.partition, on_delivery=delivered)


class KafkaPythonSender(_Threaded):
    """kafka-python, acks=1, not idempotent: its retries may double a value, never lose one."""

    def _run(self) -> None:
        producer = kafka.KafkaProducer(
            bootstrap_servers=self.bootstrap,
            acks=1,
            enable_idempotence=False,
            max_in_flight_requests_per_connection=1,
            linger_ms=2,
            delivery_timeout_ms=10 * DRAIN_TIMEOUT_S * 1000,
            request_timeout_ms=DRAIN_TIMEOUT_S * 1000,
            reconnect_backoff_ms=RECONNECT_MS,
            reconnect_backoff_max_ms=RECONNECT_MAX_MS,
            retry_backoff_ms=RECONNECT_MS,
        )
        room = threading.Semaphore(IN_FLIGHT_MAX)
        sends = self._sends(idempotent=False)
        while not self.stopping.is_set():
            if room.acquire(timeout=0.05):
                self._send(producer, room, *next(sends))
        with suppress(kafka.errors.KafkaTimeoutError):
            producer.flush(DRAIN_TIMEOUT_S)
        producer.close(timeout=5)

    def _send(
        self,
        producer: kafka.KafkaProducer,
        room: threading.Semaphore,
        partition: TopicPartition,
        value: bytes,
        ticket: int,
    ) -> None:
        def ended(offset: int | None, error: str | None) -> None:
            room.release()
            self.recorder.ended(ticket, offset, error)

        future = producer.send(partition.topic, value, partition=partition.partition)
        future.add_callback(lambda metadata: ended(metadata.offset, None))
        future.add_errback(lambda error: ended(None, repr(error)))


class AioKafkaSender(_Threaded):
    """aiokafka, idempotent, acks=all."""

    def _run(self) -> None:
        asyncio.run(self._send_all())

    async def _send_all(self) -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            enable_idempotence=True,
            acks="all",
            linger_ms=2,
            retry_backoff_ms=RECONNECT_MS,
            request_timeout_ms=DRAIN_TIMEOUT_S * 1000,
        )
        await _started(producer)
        try:
            under_way: set[asyncio.Task[None]] = set()
            sends = self._sends(idempotent=True)
            while not self.stopping.is_set():
                if len(under_way) >= IN_FLIGHT_MAX:
                    _, under_way = await asyncio.wait(under_way, timeout=0.05, return_when=asyncio.FIRST_COMPLETED)
                    continue
                partition, value, ticket = next(sends)
                sent = await producer.send(partition.topic, value, partition=partition.partition)
                under_way.add(asyncio.create_task(self._ended(ticket, sent)))
            if under_way:
                await asyncio.wait(under_way, timeout=DRAIN_TIMEOUT_S)
        finally:
            await asyncio.wait_for(producer.stop(), DRAIN_TIMEOUT_S)

    async def _ended(self, ticket: int, sent: asyncio.Future[aiokafka.structs.RecordMetadata]) -> None:
        try:
            self.recorder.ended(ticket, (await sent).offset)
        except AioKafkaError as error:
            self.recorder.ended(ticket, None, repr(error))


class ConfluentTail(_Threaded):
    def _run(self) -> None:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "reconnect.backoff.ms": RECONNECT_MS,
                "reconnect.backoff.max.ms": RECONNECT_MAX_MS,
                "fetch.wait.max.ms": 100,
                "log_level": 0,
            }
        )
        consumer.assign([confluent_kafka.TopicPartition(*partition, 0) for partition in self.partitions])
        started: set[TopicPartition] = set()
        while not self.stopping.is_set():
            for message in consumer.consume(500, timeout=0.1):
                self._note(message, started)
        consumer.close()

    def _note(self, message: confluent_kafka.Message, started: set[TopicPartition]) -> None:
        if error := message.error():
            if not error.retriable() and error.code() != confluent_kafka.KafkaError._TRANSPORT:
                self.recorder.failed(self.name, error.str())
            return
        partition = TopicPartition(str(message.topic()), int(message.partition() or 0))
        sought = None if partition in started else 0
        started.add(partition)
        self.recorder.polled(self.name, partition, [(int(message.offset() or 0), message.value() or b"")], sought)


class KafkaPythonTail(_Threaded):
    def _run(self) -> None:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            reconnect_backoff_ms=RECONNECT_MS,
            reconnect_backoff_max_ms=RECONNECT_MAX_MS,
            fetch_max_wait_ms=100,
        )
        assigned = [kafka.TopicPartition(*partition) for partition in self.partitions]
        consumer.assign(assigned)
        for partition in assigned:
            consumer.seek(partition, 0)
        started: set[TopicPartition] = set()
        while not self.stopping.is_set():
            for where, messages in consumer.poll(timeout_ms=100).items():
                partition = TopicPartition(where.topic, where.partition)
                sought = None if partition in started else 0
                started.add(partition)
                records = [(message.offset, message.value) for message in messages]
                self.recorder.polled(self.name, partition, records, sought)
        consumer.close()


class AioKafkaTail(_Threaded):
    def _run(self) -> None:
        asyncio.run(self._read_all())

    async def _read_all(self) -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            retry_backoff_ms=RECONNECT_MS,
            fetch_max_wait_ms=100,
        )
        await _started(consumer)
        try:
            await self._follow(consumer)
        finally:
            await asyncio.wait_for(consumer.stop(), DRAIN_TIMEOUT_S)

    async def _follow(self, consumer: aiokafka.AIOKafkaConsumer) -> None:
        assigned = [aiokafka.TopicPartition(*partition) for partition in self.partitions]
        consumer.assign(assigned)
        for partition in assigned:
            consumer.seek(partition, 0)
        started: set[TopicPartition] = set()
        while not self.stopping.is_set():
            for where, messages in (await consumer.getmany(timeout_ms=100)).items():
                partition = TopicPartition(where.topic, where.partition)
                sought = None if partition in started else 0
                started.add(partition)
                records = [(message.offset, message.value or b"") for message in messages]
                self.recorder.polled(self.name, partition, records, sought)


async def _started(client: aiokafka.AIOKafkaProducer | aiokafka.AIOKafkaConsumer) -> None:
    """aiokafka gives up when its first connection fails; the broker may be down just then."""
    for attempt in itertools.count():
        try:
            await client.start()
            return
        except AioKafkaError:
            if attempt == 100:
                raise
            await asyncio.sleep(RECONNECT_MS / 1000)


def workers(bootstrap: str, partitions: list[TopicPartition], recorder: Recorder) -> list[Worker]:
    """A sender and a tail per library."""
    kinds: dict[str, type[_Threaded]] = {
        "confluent": ConfluentSender,
        "kafka-python": KafkaPythonSender,
        "aiokafka": AioKafkaSender,
        "confluent-tail": ConfluentTail,
        "kafka-python-tail": KafkaPythonTail,
        "aiokafka-tail": AioKafkaTail,
    }
    return [kind(name, bootstrap, partitions, recorder) for name, kind in kinds.items()]
