"""The transaction coordinator as a shard of groups meets it. It never fails: that is not the matter here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from tests.sim.groups.events import Events
from tests.sim.groups.transactions import TRANSACTION_TIMEOUT_MS

from lowwater.errors import ErrorCode
from lowwater.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from lowwater.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from lowwater.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from lowwater.wire.messages.txn_offset_commit import TxnOffsetCommitRequest


class Stage(Enum):
    IDLE = auto()
    ONGOING = auto()
    DECIDED = auto()  # until its marker is durable


@dataclass(slots=True)
class Producer:
    producer_id: int
    epoch: int = 0
    stage: Stage = Stage.IDLE
    commit: bool = False


class SimTransactions:
    """`decided(producer)` is called once for each transaction that has to be ended in the log."""

    def __init__(self, decided: Callable[[Producer], None]) -> None:
        self.events: Events
        self._decided = decided
        self._producers: dict[int, Producer] = {}
        self._ids: dict[str, int] = {}

    @property
    def decided(self) -> list[Producer]:
        """Those whose marker is not durable."""
        return [one for one in self._producers.values() if one.stage is Stage.DECIDED]

    def init(self, request: InitProducerIdRequest) -> InitProducerIdResponse:
        """Every process has a transactional id of its own; a copy of its request is answered alike."""
        assert request.transactional_id is not None
        producer_id = self._ids.setdefault(request.transactional_id, len(self._ids) + 1)
        producer = self._producers.setdefault(producer_id, Producer(producer_id))
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=producer.epoch)

    def admit(self, request: TxnOffsetCommitRequest | AddOffsetsToTxnRequest) -> ErrorCode:
        """Whether the producer may write; its transaction has begun then."""
        producer = self._producers.get(request.producer_id)
        if producer is None or producer.epoch != request.producer_epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if producer.stage is Stage.DECIDED:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if producer.stage is Stage.IDLE:
            producer.stage = Stage.ONGOING
            epoch = producer.epoch
            self.events.after(TRANSACTION_TIMEOUT_MS, lambda: self._time_out(producer, epoch))
        return ErrorCode.NONE

    def _time_out(self, producer: Producer, epoch: int) -> None:
        if producer.stage is Stage.ONGOING and producer.epoch == epoch:
            self._decide(producer, commit=False)

    def end(self, request: EndTxnRequest) -> EndTxnResponse:
        producer = self._producers.get(request.producer_id)
        if producer is None or producer.epoch != request.producer_epoch:
            return EndTxnResponse(error_code=ErrorCode.PRODUCER_FENCED)
        if producer.stage is Stage.IDLE:
            return EndTxnResponse(error_code=ErrorCode.INVALID_TXN_STATE)
        if producer.stage is Stage.DECIDED and producer.commit != request.committed:
            return EndTxnResponse(error_code=ErrorCode.INVALID_TXN_STATE)
        if producer.stage is Stage.ONGOING:
            self._decide(producer, request.committed)
        return EndTxnResponse(producer_id=producer.producer_id, producer_epoch=producer.epoch + 1)

    def _decide(self, producer: Producer, commit: bool) -> None:
        producer.stage, producer.commit = Stage.DECIDED, commit
        self._decided(producer)

    def complete(self, producer: Producer) -> None:
        producer.stage = Stage.IDLE
        producer.epoch += 1
