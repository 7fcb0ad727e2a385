"""What a transactional producer sends, on the older path and on the newer one, and what it is told."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.sim import batches

from lowwater.errors import ErrorCode
from lowwater.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from lowwater.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
)
from lowwater.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from lowwater.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from lowwater.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from lowwater.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

TOPIC = "orders"
TIMESTAMP_MS = 1_000  # the wall clock is set back by years, and records must not come from the future


class Path(NamedTuple):
    """Versions of one way to do it. `moves_on`: every end of a transaction gives the producer its next epoch."""

    moves_on: bool
    produce: int
    end: int
    commit_offsets: int


OLD = Path(moves_on=False, produce=11, end=4, commit_offsets=4)
NEW = Path(moves_on=True, produce=12, end=5, commit_offsets=5)
INIT_VERSION, ADD_VERSION, ADD_OFFSETS_VERSION = 5, 3, 3


class Identity(NamedTuple):
    producer_id: int
    producer_epoch: int


NOBODY = Identity(-1, -1)


def init(transactional_id: str, timeout_ms: int, identity: Identity) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
    )


def add_partitions(transactional_id: str, identity: Identity, indexes: list[int]) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        transactions=[],
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=identity.producer_id,
        v3_and_below_producer_epoch=identity.producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=indexes)],
    )


def produce(transactional_id: str, identity: Identity, index: int, sequence: int, values: list[str]) -> ProduceRequest:
    batch = batches.encode(
        [(TIMESTAMP_MS, None, value.encode()) for value in values], producer=(*identity, sequence), transactional=True
    )
    data = PartitionProduceData(index=index, records=bytes(batch))
    topic = TopicProduceData(name=TOPIC, partition_data=[data])
    return ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=30_000, topic_data=[topic])


def add_offsets(transactional_id: str, identity: Identity) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        group_id=group_of(transactional_id),
    )


def commit_offsets(transactional_id: str, identity: Identity, offset: int) -> TxnOffsetCommitRequest:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    return TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group_of(transactional_id),
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        topics=[TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
    )


def end(transactional_id: str, identity: Identity, commit: bool) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        committed=commit,
    )


def group_of(transactional_id: str) -> str:
    """Each transactional id commits the offsets of a group of its own."""
    return f"group-of-{transactional_id}"


def transactional_id_of(request: Any) -> str:
    if isinstance(request, AddPartitionsToTxnRequest):
        return request.v3_and_below_transactional_id
    return str(request.transactional_id)


# -- answers


def code_of(response: Any) -> ErrorCode:
    """The one error of a response: every request here asks for one thing."""
    return ErrorCode(_code_of(response))


def _code_of(response: Any) -> int:
    if isinstance(response, ProduceResponse):
        return response.responses[0].partition_responses[0].error_code
    if isinstance(response, AddPartitionsToTxnResponse):
        codes = [
            one.partition_error_code
            for topic in response.results_by_topic_v3_and_below
            for one in topic.results_by_partition
        ]
        return max(codes)
    if isinstance(response, TxnOffsetCommitResponse):
        return response.topics[0].partitions[0].error_code
    return int(response.error_code)


def identity_in(response: InitProducerIdResponse | EndTxnResponse) -> Identity:
    return Identity(response.producer_id, response.producer_epoch)


def answer(request: Any, code: ErrorCode, identity: Identity = NOBODY, base_offset: int = -1) -> Any:
    """The response to any of these requests."""
    if isinstance(request, InitProducerIdRequest):
        return InitProducerIdResponse(
            error_code=code, producer_id=identity.producer_id, producer_epoch=identity.producer_epoch
        )
    if isinstance(request, EndTxnRequest):
        return EndTxnResponse(error_code=code, producer_id=identity.producer_id, producer_epoch=identity.producer_epoch)
    if isinstance(request, AddOffsetsToTxnRequest):
        return AddOffsetsToTxnResponse(error_code=code)
    if isinstance(request, AddPartitionsToTxnRequest):
        results = [
            AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
            for index in request.v3_and_below_topics[0].partitions
        ]
        topic = AddPartitionsToTxnTopicResult(name=TOPIC, results_by_partition=results)
        return AddPartitionsToTxnResponse(results_by_transaction=[], results_by_topic_v3_and_below=[topic])
    if isinstance(request, TxnOffsetCommitRequest):
        partition = TxnOffsetCommitResponsePartition(partition_index=0, error_code=code)
        return TxnOffsetCommitResponse(topics=[TxnOffsetCommitResponseTopic(name=TOPIC, partitions=[partition])])
    assert isinstance(request, ProduceRequest)
    index = request.topic_data[0].partition_data[0].index
    placed = PartitionProduceResponse(index=index, error_code=code, base_offset=base_offset, record_errors=[])
    topic_answer = TopicProduceResponse(name=TOPIC, partition_responses=[placed])
    return ProduceResponse(responses=[topic_answer], node_endpoints=[])
