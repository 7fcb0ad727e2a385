"""Requests of a producer with a transaction, as cells name them: the actor is the producer here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from tests.conformance.groups_cells.asks import TOPIC, Ask, Cast, MemberAsk

from lowwater.wire.messages import (
    AddOffsetsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)
from lowwater.wire.messages.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic

TIMEOUT_MS = 60_000
PRODUCER = "P"
NOBODY = (-1, -1)


def transactional_id(cast: Cast, producer: str) -> str:
    return f"{cast.group}-{producer}"


@dataclass(frozen=True)
class Init(Ask):
    """The producer gets its id, and a transaction may begin."""

    request_type = InitProducerIdRequest

    def request(self, cast: Cast, version: int) -> Any:
        return InitProducerIdRequest(
            transactional_id=transactional_id(cast, self.actor), transaction_timeout_ms=TIMEOUT_MS
        )


@dataclass(frozen=True)
class AddOffsets(Ask):
    """The transaction will have offsets of the group."""

    request_type = AddOffsetsToTxnRequest

    def request(self, cast: Cast, version: int) -> Any:
        producer_id, epoch = cast.producer(self.actor)
        return AddOffsetsToTxnRequest(
            transactional_id=transactional_id(cast, self.actor),
            producer_id=producer_id,
            producer_epoch=epoch,
            group_id=self.group_id(cast),
        )


@dataclass(frozen=True)
class TxnCommit(MemberAsk):
    """Offset 7 of partition 0 unless told otherwise, in the transaction of `producer`, as the member that asks."""

    _: KW_ONLY
    producer: str = PRODUCER
    topic: str = TOPIC
    partitions: Sequence[int] = (0,)
    offset: int = 7
    metadata: str | None = "in a transaction"
    request_type = TxnOffsetCommitRequest

    def request(self, cast: Cast, version: int) -> Any:
        producer_id, epoch = cast.producer(self.producer)
        parts = [
            TxnOffsetCommitRequestPartition(
                partition_index=each, committed_offset=self.offset, committed_metadata=self.metadata
            )
            for each in self.partitions
        ]
        request = TxnOffsetCommitRequest(
            transactional_id=transactional_id(cast, self.producer),
            group_id=self.group_id(cast),
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=[TxnOffsetCommitRequestTopic(name=self.topic, partitions=parts)],
        )
        if version >= MEMBERS_SINCE:
            request.generation_id, request.member_id = self.generation_id(cast), self.member_id(cast)
            request.group_instance_id = self.instance
        return request


MEMBERS_SINCE = 3  # TxnOffsetCommit of a member


@dataclass(frozen=True)
class End(Ask):
    """The transaction is committed, or not; the play goes on when that is done everywhere."""

    _: KW_ONLY
    commit: bool = True
    request_type = EndTxnRequest

    def request(self, cast: Cast, version: int) -> Any:
        producer_id, epoch = cast.producer(self.actor)
        return EndTxnRequest(
            transactional_id=transactional_id(cast, self.actor),
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=self.commit,
        )
