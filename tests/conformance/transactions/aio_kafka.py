"""Transactions by aiokafka, on an event loop of its own in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from functools import cache
from typing import Any, TypeVar

from tests.conformance.clients.base import ClientError
from tests.conformance.transactions.face import TIMEOUT_MS, TIMEOUT_S, MemberOf, Place, Reader, Transactor
from tests.conformance.transactions.kafka_python import code_of

from lowwater.errors import ErrorCode

T = TypeVar("T")


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="aiokafka transactions", daemon=True).start()
    return loop


def run(work: Coroutine[Any, Any, T]) -> T:
    """On the loop of the transactions; refusals of the broker are raised as ClientError."""
    from aiokafka.errors import KafkaError, ProducerFenced

    try:
        return asyncio.run_coroutine_threadsafe(work, _loop()).result(TIMEOUT_S + 5)
    except ProducerFenced as error:  # an error of its own, without a code
        raise ClientError(ErrorCode.PRODUCER_FENCED, repr(error)) from None
    except KafkaError as error:
        raise ClientError(code_of(error), repr(error)) from None


class AioKafkaTransactor(Transactor):
    """It becomes the producer of its transactional id when it starts."""

    name = "aiokafka"
    peer = "aiokafka"
    can = frozenset()
    producer: Any

    def init(self) -> None:
        from aiokafka import AIOKafkaProducer
        from aiokafka.errors import KafkaError

        async def start() -> None:
            self.producer = AIOKafkaProducer(
                bootstrap_servers=self.bootstrap,
                transactional_id=self.transactional_id,
                transaction_timeout_ms=self.timeout_ms,
                retry_backoff_ms=20,
                request_timeout_ms=TIMEOUT_MS,
            )
            try:
                await self.producer.start()
            except KafkaError:
                await self.producer.stop()
                raise

        run(start())

    def begin(self) -> None:
        run(self.producer.begin_transaction())

    def send(self, topic: str, *values: bytes, partition: int = 0, key: bytes | None = None) -> list[int]:
        async def send() -> list[int]:
            sent = [await self.producer.send(topic, value, key, partition=partition) for value in values]
            return [report.offset for report in await asyncio.gather(*sent)]

        return run(send())

    def send_offsets(self, member: MemberOf, offsets: Mapping[Place, int]) -> None:
        from aiokafka import TopicPartition

        wanted = {TopicPartition(*place): offset for place, offset in offsets.items()}
        run(self.producer.send_offsets_to_transaction(wanted, member.group))

    def commit(self) -> None:
        run(self.producer.commit_transaction())

    def abort(self) -> None:
        run(self.producer.abort_transaction())

    def close(self) -> None:
        async def stop() -> None:
            # `stop` would wait for a transaction that is still open.
            self.producer._closed = True
            self.producer._sender._sender_task.cancel()
            await self.producer.client.close()

        run(stop())


class AioKafkaReader(Reader):
    name = "aiokafka"
    peer = "aiokafka"

    def read(self, place: Place, *, committed: bool, start: int = 0) -> list[tuple[int, bytes]]:
        return run(self._read(place, committed, start))

    async def _read(self, place: Place, committed: bool, start: int) -> list[tuple[int, bytes]]:
        from aiokafka import AIOKafkaConsumer, TopicPartition

        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            enable_auto_commit=False,
            isolation_level="read_committed" if committed else "read_uncommitted",
            fetch_max_wait_ms=50,
        )
        where = TopicPartition(*place)
        consumer.assign([where])
        await consumer.start()
        consumer.seek(where, start)
        end = (await consumer.end_offsets([where]))[where]
        found: list[tuple[int, bytes]] = []
        while await consumer.position(where) < end:
            for messages in (await consumer.getmany(timeout_ms=50)).values():
                found += [(message.offset, message.value) for message in messages]
        await consumer.stop()
        return found
