"""A transactional producer over a virtual broker, of either kind: one that keeps its epoch, one that moves on."""

from __future__ import annotations

from typing import Any

from tests.sim.batches import Batch, decode_all, encode
from tests.unit.broker.talk import FETCH_BY_NAME, MUCH, partition_of, placed, produce_request, want

from lowwater.errors import ErrorCode
from lowwater.testing.virtual_time import Asked, VirtualBroker
from lowwater.wire.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    FetchRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
    TxnOffsetCommitRequest,
)
from lowwater.wire.messages.add_partitions_to_txn import AddPartitionsToTxnTopic
from lowwater.wire.messages.fetch import FetchTopic
from lowwater.wire.messages.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic

OK = ErrorCode.NONE
READ_COMMITTED = 1


class TxnProducer:
    """`moves_on`: speaks as clients do since transaction.version 2, with a new epoch after each end."""

    def __init__(self, broker: VirtualBroker, name: str = "x", *, moves_on: bool = True) -> None:
        self.broker = broker
        self.name = name
        self.moves_on = moves_on
        self.producer_id = self.epoch = -1
        self._sequences: dict[tuple[str, int], int] = {}

    # -- beginning

    def init(self, timeout_ms: int = 60_000, version: int | None = None) -> ErrorCode:
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=timeout_ms)
        answer = self.broker.ask(request, version)
        if not answer.error_code:
            self._became(answer)
        return ErrorCode(answer.error_code)

    def begin(self) -> TxnProducer:
        """Until it succeeds: the transaction of an instance before may have to be aborted first."""
        while (code := self.init()) is not OK:
            assert code is ErrorCode.CONCURRENT_TRANSACTIONS
            self.broker.time.advance(10)
        return self

    def _became(self, answer: Any) -> None:
        if (answer.producer_id, answer.producer_epoch) != (self.producer_id, self.epoch):
            self._sequences.clear()
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch

    # -- a transaction

    def send_add(self, topic: str, *indexes: int, version: int = 3) -> Asked:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(indexes or (0,)))],
        )
        return self.broker.send(request, version)

    def add(self, topic: str, *indexes: int, version: int = 3) -> ErrorCode:
        sent = self.send_add(topic, *indexes, version=version)
        self.broker.time.settle()
        return added(sent)

    def send(self, topic: str, *values: bytes, index: int = 0, acks: int = -1, version: int | None = None) -> Asked:
        """Begin to produce one batch."""
        first = self._sequences.get((topic, index), 0)
        self._sequences[topic, index] = first + len(values)
        return self.send_from(first, topic, *values, index=index, acks=acks, version=version)

    def send_from(
        self, first: int, topic: str, *values: bytes, index: int = 0, acks: int = -1, version: int | None = None
    ) -> Asked:
        """The same with this first sequence number: again, or out of order."""
        now_ms = self.broker.clock.now_ms()
        records: list[tuple[int, bytes | None, bytes | None]] = [(now_ms, b"k", value) for value in values]
        batch = bytes(encode(records, producer=(self.producer_id, self.epoch, first), transactional=True))
        request = produce_request({(topic, index): batch}, acks=acks, transactional_id=self.name)
        return self.broker.send(request, version or (12 if self.moves_on else 11))

    def produce(self, topic: str, *values: bytes, index: int = 0, acks: int = -1) -> ErrorCode:
        """One batch of an open transaction, added to it before when this producer has to do that itself."""
        if not self.moves_on:
            assert self.add(topic, index) is OK
        sent = self.send(topic, *values, index=index, acks=acks)
        self.broker.time.settle()
        return ErrorCode(placed(sent).error_code)

    def commit_offset(self, group: str, offset: int, topic: str = "t", version: int | None = None) -> ErrorCode:
        if not self.moves_on:
            request = AddOffsetsToTxnRequest(
                transactional_id=self.name, producer_id=self.producer_id, producer_epoch=self.epoch, group_id=group
            )
            assert self.broker.ask(request).error_code == OK
        sent = self.send_offset(group, offset, topic, version)
        self.broker.time.settle()
        return ErrorCode(sent.response.topics[0].partitions[0].error_code)

    def send_offset(self, group: str, offset: int, topic: str = "t", version: int | None = None) -> Asked:
        part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[part])],
        )
        return self.broker.send(request, version or (5 if self.moves_on else 4))

    # -- its end

    def send_end(self, *, commit: bool, version: int | None = None) -> Asked:
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        return self.broker.send(request, version or (5 if self.moves_on else 4))

    def end(self, *, commit: bool, version: int | None = None) -> ErrorCode:
        sent = self.send_end(commit=commit, version=version)
        self.broker.time.settle()
        answer = sent.response
        if not answer.error_code and self.moves_on:
            self._became(answer)
        return ErrorCode(answer.error_code)


def added(sent: Asked) -> ErrorCode:
    [topic] = sent.response.results_by_topic_v3_and_below
    codes = {ErrorCode(one.partition_error_code) for one in topic.results_by_partition}
    assert len(codes) == 1, codes
    return codes.pop()


# -- looking


def batches(broker: VirtualBroker, topic: str, index: int = 0, **fields: Any) -> tuple[list[Batch], Any]:
    """What a Fetch of the whole partition gives, and its answer."""
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=MUCH,
        topics=[FetchTopic(topic=topic, partitions=[want(index)])],
        **fields,
    )
    [data] = broker.ask(request, FETCH_BY_NAME).responses[0].partitions
    assert data.error_code == 0, data
    return list(decode_all(bytes(data.records or b""))), data


def committed_values(broker: VirtualBroker, topic: str, index: int = 0) -> list[bytes | None]:
    """What a consumer with read_committed sees: up to the last stable offset, without what was aborted."""
    found, data = batches(broker, topic, index, isolation_level=READ_COMMITTED)
    waiting = sorted((one.first_offset, one.producer_id) for one in data.aborted_transactions or ())
    aborted: set[int] = set()
    values: list[bytes | None] = []
    for batch in found:
        while waiting and waiting[0][0] <= batch.last_offset:
            aborted.add(waiting.pop(0)[1])
        if batch.is_control:
            aborted.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in aborted):
            values += [record.value for record in batch.records]
    return values


def markers(broker: VirtualBroker, topic: str, index: int = 0) -> list[tuple[int, int, bool]]:
    """(producer id, epoch, whether it commits) of every end of a transaction in the log."""
    found, _ = batches(broker, topic, index)
    return [(one.producer_id, one.producer_epoch, one.records[0].key == b"\0\0\0\1") for one in found if one.is_control]


def last_stable(broker: VirtualBroker, topic: str, index: int = 0) -> int:
    return partition_of(broker, topic, index).log.last_stable


def states(broker: VirtualBroker, **filters: Any) -> dict[str, str]:
    """Transactional id -> state."""
    answer = broker.ask(ListTransactionsRequest(state_filters=[], producer_id_filters=[], **filters))
    assert answer.error_code == 0
    return {one.transactional_id: one.transaction_state for one in answer.transaction_states}


def describe(broker: VirtualBroker, name: str = "x") -> Any:
    [state] = broker.ask(DescribeTransactionsRequest(transactional_ids=[name])).transaction_states
    return state
