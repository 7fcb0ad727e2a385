"""Offsets committed in transactions: a producer begins one, commits in it, ends it, and begins the next."""

from __future__ import annotations

from typing import Any

from tests.sim.groups.client import Place, SimClient, commit_error
from tests.sim.groups.network import Exchange

from lowwater.errors import ErrorCode
from lowwater.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from lowwater.wire.messages.end_txn import EndTxnRequest
from lowwater.wire.messages.init_producer_id import InitProducerIdRequest
from lowwater.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

TRANSACTION_TIMEOUT_MS = 12_000
ABORTS = 0.25
FORGETS = 0.04
MORE = 0.3
COMMITS_AS_MEMBER_SINCE = 3
ADDS_ITSELF_SINCE = 5
REQUESTS = (InitProducerIdRequest, AddOffsetsToTxnRequest, TxnOffsetCommitRequest, EndTxnRequest)


class Transactions:
    """Of one client. Whatever goes wrong: it begins anew as another producer, and the old transaction times out."""

    def __init__(self, client: SimClient) -> None:
        self._client = client
        self._lives = 0
        self._next: tuple[TxnOffsetCommitRequest, int]
        self.forget()

    def forget(self) -> None:
        self._producer: tuple[int, int] | None = None
        self._is_busy = False

    @property
    def _id(self) -> str:
        return f"{self._client.name}-{self._lives}"

    def go_on(self, group: str, places: list[Place], said: dict[str, Any], version: int) -> None:
        """Commit these places, if nothing is under way; who has no producer id yet asks for one.

        `said` is what a member says of itself: member id, generation, instance.
        """
        if self._is_busy:
            return
        self._is_busy = True
        if self._producer is None:
            self._lives += 1
            request = InitProducerIdRequest(transactional_id=self._id, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS)
            self._client.post(request, 4)
            return
        commit = self._commit(group, places, said, version)
        if version >= ADDS_ITSELF_SINCE:
            self._client.post(commit, version)
        else:
            self._next = commit, version
            self._client.post(self._announced(commit), 3)

    @staticmethod
    def _announced(commit: TxnOffsetCommitRequest) -> AddOffsetsToTxnRequest:
        return AddOffsetsToTxnRequest(
            transactional_id=commit.transactional_id,
            producer_id=commit.producer_id,
            producer_epoch=commit.producer_epoch,
            group_id=commit.group_id,
        )

    def _commit(self, group: str, places: list[Place], said: dict[str, Any], version: int) -> TxnOffsetCommitRequest:
        assert self._producer is not None
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for topic, partition in places:
            offset = self._client.shore.new_offset()
            part = TxnOffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=self._client.name
            )
            topics.setdefault(topic, []).append(part)
        return TxnOffsetCommitRequest(
            transactional_id=self._id,
            group_id=group,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            topics=[TxnOffsetCommitRequestTopic(name=name, partitions=parts) for name, parts in topics.items()],
            **(said if version >= COMMITS_AS_MEMBER_SINCE else {}),
        )

    # -- answers

    def answered(self, exchange: Exchange) -> None:
        request, answer = exchange.request, exchange.response
        if isinstance(request, TxnOffsetCommitRequest):
            self._committed(commit_error(exchange))
        elif answer.error_code:
            self.forget()
        elif isinstance(request, AddOffsetsToTxnRequest):
            self._client.post(*self._next)
        else:
            self._producer = answer.producer_id, answer.producer_epoch
            self._is_busy = False

    def broken(self, exchange: Exchange) -> None:
        if isinstance(exchange.request, REQUESTS):
            self.forget()

    def _committed(self, code: ErrorCode) -> None:
        """Some processes forget what they began; others commit more in the same transaction, then end it."""
        draw = self._client.shore.draw
        if draw.random() < FORGETS:
            self.forget()
        elif not code and draw.random() < MORE:
            self._is_busy = False
        else:
            commit = not code and draw.random() >= ABORTS
            self._client.after(draw.random() * draw.choice((50, 2_000, 6_000)), lambda: self._end(commit))

    def _end(self, commit: bool) -> None:
        if self._producer is not None:
            producer_id, epoch = self._producer
            request = EndTxnRequest(
                transactional_id=self._id, producer_id=producer_id, producer_epoch=epoch, committed=commit
            )
            self._client.post(request, 5)
