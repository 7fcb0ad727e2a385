"""TxnOffsetCommit v0-5: a group's offsets as part of a transaction, seen by others when it commits.

v4 knows TRANSACTION_ABORTABLE; v5 adds the partition of `__consumer_offsets` to the transaction itself. Before v2
a client did not expect a group to be loading.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.broker.router import RequestContext, handles
from lowwater.broker.writers import Writer, told_to_writer
from lowwater.errors import ApiError, ErrorCode
from lowwater.pending import Pending
from lowwater.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

LOADING_SINCE = 2
ABORTABLE_SINCE = 4
ADDS_SINCE = 5


@handles(TxnOffsetCommitRequest)
async def txn_offset_commit(
    broker: Broker, request: TxnOffsetCommitRequest, context: RequestContext
) -> TxnOffsetCommitResponse:
    version = context.api_version
    if not any(
        _exists(broker, topic.name, one.partition_index) for topic in request.topics for one in topic.partitions
    ):
        return _refused(broker, request, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    try:
        if request.group_id:
            await _admit(broker, request, adds=version >= ADDS_SINCE)
        answer = broker.groups.ask(request.group_id, request)
        response: TxnOffsetCommitResponse = await answer if isinstance(answer, Pending) else answer
    except ApiError as error:
        return _refused(broker, request, _told(error.code, version))
    return response


async def _admit(broker: Broker, request: TxnOffsetCommitRequest, *, adds: bool) -> None:
    """Checked before the group is asked, as the answer holds in this turn only."""
    writer = Writer(request.transactional_id, request.producer_id, request.producer_epoch)
    place = broker.groups.place_of(request.group_id)
    refusals = await broker.transactions.admit(writer, [place], adds=adds)
    if refusals:
        raise ApiError(refusals[place], f"the offsets of {request.group_id!r} are not part of the transaction")
    partition = broker.groups.partition(place.partition)
    if partition is not None:
        partition.check_producer(request.producer_id, request.producer_epoch)


def _told(code: ErrorCode, version: int) -> ErrorCode:
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < LOADING_SINCE:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return told_to_writer(code, knows_abortable=version >= ABORTABLE_SINCE)


def _refused(broker: Broker, request: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
    """All of it, but of what does not exist only that is said."""
    topics = [
        TxnOffsetCommitResponseTopic(
            name=topic.name,
            partitions=[
                TxnOffsetCommitResponsePartition(
                    partition_index=one.partition_index,
                    error_code=code
                    if _exists(broker, topic.name, one.partition_index)
                    else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                )
                for one in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return TxnOffsetCommitResponse(topics=topics)


def _exists(broker: Broker, name: str, index: int) -> bool:
    topic = broker.topics.get(name)
    return topic is not None and 0 <= index < topic.partition_count
