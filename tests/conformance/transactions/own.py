"""Transactions by Lowwater's own producer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tests.conformance.clients.base import ClientError
from tests.conformance.transactions.face import TIMEOUT_MS, Can, MemberOf, Place, Transactor

from lowwater import Producer, TopicPartition
from lowwater.client import errors
from lowwater.client.coordinator import Identity
from lowwater.errors import ErrorCode

T = TypeVar("T")


class OwnTransactor(Transactor):
    name = "lowwater"
    peer = "confluent"  # what is written is read by another library
    can = frozenset({Can.NAME_ITS_MEMBER, Can.GO_ON_AFTER_REFUSAL})

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        config = {"transactional.id": self.transactional_id, "transaction.timeout.ms": self.timeout_ms, "linger.ms": 0}
        self.producer = Producer(self.bootstrap, config)

    def init(self) -> None:
        _translated(lambda: self.producer.init_transactions(TIMEOUT_MS))

    def begin(self) -> None:
        _translated(self.producer.begin_transaction)

    def send(self, topic: str, *values: bytes, partition: int = 0, key: bytes | None = None) -> list[int]:
        def send() -> list[int]:
            reports = {self.producer.send(topic, value, key=key, partition=partition): None for value in values}
            for report in reports:
                report.wait(TIMEOUT_MS).raise_failures()
            return [offset for report in reports for offset in report.offsets().to_pylist()]

        return _translated(send)

    def send_offsets(self, member: MemberOf, offsets: Mapping[Place, int]) -> None:
        wanted = {TopicPartition(*place): offset for place, offset in offsets.items()}
        by = Identity(member.member_id, member.generation)
        _translated(lambda: self.producer.send_offsets_to_transaction(wanted, member.group, by, TIMEOUT_MS))

    def commit(self) -> None:
        _translated(lambda: self.producer.commit_transaction(TIMEOUT_MS))

    def abort(self) -> None:
        _translated(lambda: self.producer.abort_transaction(TIMEOUT_MS))

    def close(self) -> None:
        """Without the abort that closing would say."""
        self.producer._driver.run(self.producer._close())
        self.producer._driver.close()


def _translated(call: Callable[[], T]) -> T:
    try:
        return call()
    except errors.ClientError as error:
        raise ClientError(_code(error), str(error)) from error


def _code(error: BaseException | None) -> int:
    """Of the broker's refusal behind it."""
    while error is not None:
        if isinstance(error, errors.BrokerError):
            return error.code
        if isinstance(error, errors.RecordTooLargeError):
            return ErrorCode.MESSAGE_TOO_LARGE
        error = error.__cause__
    return ErrorCode.UNKNOWN_SERVER_ERROR
