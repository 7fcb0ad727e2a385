"""AddPartitionsToTxn v0-5: partitions become part of a transaction, or are only looked for in it.

v2 knows PRODUCER_FENCED. v4 is the form in which Kafka's brokers ask each other, for many transactions at once; its
producers have a new epoch for each transaction, and their Produce adds partitions without this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lowwater.broker.router import RequestContext, handles
from lowwater.broker.writers import fenced_since
from lowwater.errors import ApiError, ErrorCode
from lowwater.pending import Pending, run
from lowwater.transactions.commands import AddPartitions, VerifyPartitions
from lowwater.types import TopicPartition
from lowwater.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

FENCED_SINCE = 2
MANY_SINCE = 4

Codes = Mapping[TopicPartition, ErrorCode]


@handles(AddPartitionsToTxnRequest)
async def add_partitions_to_txn(
    broker: Broker, request: AddPartitionsToTxnRequest, context: RequestContext
) -> AddPartitionsToTxnResponse:
    version = context.api_version
    if version < MANY_SINCE:
        one = _as_transaction(request)
        results = _by_topic(one.topics, await _codes(broker, one, version))
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)
    asked = [run(_codes(broker, one, version)) for one in request.transactions]
    answers = Pending.gather(asked, lambda codes: codes)
    codes_of_each = await answers if isinstance(answers, Pending) else answers
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(transactional_id=one.transactional_id, topic_results=_by_topic(one.topics, codes))
            for one, codes in zip(request.transactions, codes_of_each, strict=True)
        ]
    )


def _as_transaction(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


async def _codes(broker: Broker, one: AddPartitionsToTxnTransaction, version: int) -> Codes:
    """For every partition of the request. Nothing is added when there is one that cannot be."""
    wanted = frozenset(TopicPartition(topic.name, index) for topic in one.topics for index in topic.partitions)
    wrong = {place: code for place in wanted if (code := _problem(broker, place, version)) is not None}
    if wrong:
        return dict.fromkeys(wanted, ErrorCode.OPERATION_NOT_ATTEMPTED) | wrong
    try:
        return await _asked(broker, one, wanted, version)
    except ApiError as error:
        return dict.fromkeys(wanted, fenced_since(FENCED_SINCE, version, error.code))


async def _asked(
    broker: Broker, one: AddPartitionsToTxnTransaction, wanted: frozenset[TopicPartition], version: int
) -> Codes:
    if not one.transactional_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "a transactional id cannot be empty")
    who = one.transactional_id, one.producer_id, one.producer_epoch
    if one.verify_only:
        codes: Codes = await broker.transactions.answer(one.transactional_id, VerifyPartitions(*who, wanted))
        return codes
    await broker.transactions.add(AddPartitions(*who, wanted, 2 if version >= MANY_SINCE else 0))
    return dict.fromkeys(wanted, ErrorCode.NONE)


def _problem(broker: Broker, place: TopicPartition, version: int) -> ErrorCode | None:
    """Clients do not write to internal topics; brokers, who ask in the newer versions, do."""
    topic = broker.topics.get(place.topic)
    if topic is not None and topic.is_internal and version < MANY_SINCE:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if topic is None or not 0 <= place.partition < topic.partition_count:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return None


def _by_topic(topics: list[AddPartitionsToTxnTopic], codes: Codes) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=codes[TopicPartition(topic.name, index)]
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]
