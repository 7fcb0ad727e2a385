"""Transactions by kafka-python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tests.conformance.clients.base import ClientError
from tests.conformance.transactions.face import TIMEOUT_MS, TIMEOUT_S, Can, MemberOf, Place, Reader, Transactor

T = TypeVar("T")


class KafkaPythonTransactor(Transactor):
    name = "kafka-python"
    peer = "kafka_python"
    can = frozenset({Can.NAME_ITS_MEMBER})

    def __init__(self, *arguments: Any, **more: Any) -> None:
        from kafka import KafkaProducer

        super().__init__(*arguments, **more)
        self.producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self.timeout_ms,
            max_block_ms=TIMEOUT_MS,
            retry_backoff_ms=20,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=200,
        )

    def init(self) -> None:
        _translated(self.producer.init_transactions)

    def begin(self) -> None:
        _translated(self.producer.begin_transaction)

    def send(self, topic: str, *values: bytes, partition: int = 0, key: bytes | None = None) -> list[int]:
        def send() -> list[int]:
            sent = [self.producer.send(topic, value, key, partition=partition) for value in values]
            return [future.get(TIMEOUT_S).offset for future in sent]

        return _translated(send)

    def send_offsets(self, member: MemberOf, offsets: Mapping[Place, int]) -> None:
        from kafka import TopicPartition
        from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata

        wanted = {TopicPartition(*place): OffsetAndMetadata(offset, "", -1) for place, offset in offsets.items()}
        who = ConsumerGroupMetadata(member.group, member.generation, member.member_id, None)
        _translated(lambda: self.producer.send_offsets_to_transaction(wanted, who))

    def commit(self) -> None:
        _translated(self.producer.commit_transaction)

    def abort(self) -> None:
        _translated(self.producer.abort_transaction)

    def close(self) -> None:
        self.producer.close(timeout=0)


class KafkaPythonReader(Reader):
    name = "kafka-python"
    peer = "kafka_python"

    def read(self, place: Place, *, committed: bool, start: int = 0) -> list[tuple[int, bytes]]:
        from kafka import KafkaConsumer, TopicPartition

        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            enable_auto_commit=False,
            isolation_level="read_committed" if committed else "read_uncommitted",
            fetch_max_wait_ms=50,
        )
        where = TopicPartition(*place)
        consumer.assign([where])
        consumer.seek(where, start)
        end = consumer.end_offsets([where])[where]
        found: list[tuple[int, bytes]] = []
        while consumer.position(where) < end:
            for messages in consumer.poll(timeout_ms=50).values():
                found += [(message.offset, message.value) for message in messages]
        consumer.close()
        return found


def _translated(call: Callable[[], T]) -> T:
    from kafka.errors import KafkaError

    try:
        return call()
    except KafkaError as error:
        raise ClientError(code_of(error), repr(error)) from None


def code_of(error: BaseException | None) -> int:
    """The broker's code, which may be hidden behind an error of the library's own."""
    seen = error
    while seen is not None:
        if (code := getattr(seen, "errno", None)) is not None and code > 0:
            return int(code)
        inner = [each for each in seen.args if isinstance(each, BaseException)]
        seen = seen.__cause__ or (inner[0] if inner else None)
    return -1
