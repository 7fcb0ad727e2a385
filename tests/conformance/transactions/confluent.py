"""Transactions by confluent-kafka (librdkafka)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tests.conformance.clients.base import ClientError
from tests.conformance.transactions.face import TIMEOUT_MS, TIMEOUT_S, MemberOf, Place, Reader, Transactor

from lowwater.errors import ErrorCode

T = TypeVar("T")
_silent = logging.Logger("silent", logging.CRITICAL + 1)  # librdkafka would print the end of every fenced producer
QUIET = {
    "log_level": 0,
    "logger": _silent,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    # When its only broker went away and librdkafka 2.16 begins at its bootstrap servers again, a transactional producer
    # may never send its offsets to the group's coordinator, though all that it asked was answered.
    "metadata.recovery.strategy": "none",
}


def broker_code(error: Any) -> int:
    """librdkafka has a code of its own for a fenced producer; what came before a fatal error it hides."""
    from confluent_kafka import KafkaError

    own = {KafkaError._FENCED: ErrorCode.PRODUCER_FENCED, KafkaError._TIMED_OUT: ErrorCode.REQUEST_TIMED_OUT}
    return int(own.get(error.code(), max(error.code(), ErrorCode.UNKNOWN_SERVER_ERROR)))


class ConfluentTransactor(Transactor):
    name = "confluent"
    peer = "confluent"
    can = frozenset()

    def __init__(self, *arguments: Any, **more: Any) -> None:
        from confluent_kafka import Producer

        super().__init__(*arguments, **more)
        self.producer = Producer(
            {
                **QUIET,
                "bootstrap.servers": self.bootstrap,
                "transactional.id": self.transactional_id,
                "transaction.timeout.ms": self.timeout_ms,
                # It may not be longer than the transaction.
                "message.timeout.ms": min(self.timeout_ms, TIMEOUT_MS),
                "linger.ms": 1,
            }
        )

    def init(self) -> None:
        _translated(lambda: self.producer.init_transactions(TIMEOUT_S))

    def begin(self) -> None:
        _translated(self.producer.begin_transaction)

    def send(self, topic: str, *values: bytes, partition: int = 0, key: bytes | None = None) -> list[int]:
        reports: list[tuple[Any, Any]] = []

        def send() -> None:
            for value in values:
                self.producer.produce(
                    topic, value, key, partition=partition, on_delivery=lambda *report: reports.append(report)
                )
            self.producer.flush(TIMEOUT_S)

        _translated(send)
        for error, _ in reports:
            if error is not None:
                raise ClientError(broker_code(error), error.str())
        return [message.offset() for _, message in reports]

    def send_offsets(self, member: MemberOf, offsets: Mapping[Place, int]) -> None:
        from confluent_kafka import TopicPartition

        wanted = [TopicPartition(*place, offset) for place, offset in offsets.items()]
        who = member.own or self._group_without_a_member(member.group)
        _translated(lambda: self.producer.send_offsets_to_transaction(wanted, who, TIMEOUT_S))

    def _group_without_a_member(self, group: str) -> Any:
        from confluent_kafka import Consumer

        consumer = Consumer({**QUIET, "bootstrap.servers": self.bootstrap, "group.id": group})
        found = consumer.consumer_group_metadata()
        consumer.close()
        return found

    def commit(self) -> None:
        _translated(lambda: self.producer.commit_transaction(TIMEOUT_S))

    def abort(self) -> None:
        _translated(lambda: self.producer.abort_transaction(TIMEOUT_S))

    def close(self) -> None:
        self.producer.purge()


class ConfluentReader(Reader):
    name = "confluent"
    peer = "confluent"

    def read(self, place: Place, *, committed: bool, start: int = 0) -> list[tuple[int, bytes]]:
        from confluent_kafka import Consumer, KafkaError, TopicPartition

        consumer = Consumer(
            {
                **QUIET,
                "bootstrap.servers": self.bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "fetch.wait.max.ms": 50,
            }
        )
        consumer.assign([TopicPartition(*place, start)])
        found: list[tuple[int, bytes]] = []
        while True:
            message = consumer.poll(TIMEOUT_S)
            if message is None:
                raise TimeoutError(f"librdkafka did not come to the end of {place}")
            error = message.error()
            if error is None:
                found.append((message.offset(), message.value()))
            elif error.code() == KafkaError._PARTITION_EOF:
                consumer.close()
                return found
            else:
                raise ClientError(broker_code(error), error.str())


def _translated(call: Callable[[], T]) -> T:
    from confluent_kafka import KafkaException

    try:
        return call()
    except KafkaException as error:
        raise ClientError(broker_code(error.args[0]), str(error)) from None
    except SystemError as error:
        # A fatal error and a delivery report in one poll: the library raises the one, and calls back for the other.
        if not isinstance(error.__cause__, KafkaException):
            raise
        raise ClientError(broker_code(error.__cause__.args[0]), str(error.__cause__)) from None
