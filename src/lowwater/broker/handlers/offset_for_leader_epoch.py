"""OffsetForLeaderEpoch v2-4: where a leader epoch ends, so that a consumer can see whether its log went another way.

v2 adds the epoch the client knows, for fencing; v3 the replica id, which means nothing on one node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.broker.router import RequestContext, handles
from lowwater.errors import ApiError, ErrorCode, StorageError
from lowwater.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker


@handles(OffsetForLeaderEpochRequest)
def offset_for_leader_epoch(
    broker: Broker, request: OffsetForLeaderEpochRequest, context: RequestContext
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=[_answer(broker, topic.topic, asked) for asked in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _answer(broker: Broker, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        partition = broker.partition(topic, asked.partition)
        partition.check_leader_epoch(asked.current_leader_epoch)
        epoch, end_offset = partition.log.end_offset_for_epoch(asked.leader_epoch)
    except ApiError as error:
        return EpochEndOffset(error_code=error.code, partition=asked.partition)
    except StorageError:
        return EpochEndOffset(error_code=ErrorCode.KAFKA_STORAGE_ERROR, partition=asked.partition)
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)
