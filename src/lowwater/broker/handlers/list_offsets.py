"""ListOffsets v0-11: where a partition begins and ends, and which offset belongs to a time.

v0 is the old simple consumer's form and answers segment base offsets; v4 adds leader epochs; v7 the offset of the
maximum timestamp (-3); v8 the earliest local offset (-4); v9 the last tiered offset (-5); v11 the earliest offset not
yet tiered (-6). Nothing is tiered here, so -4 is the log start and -5 and -6 have no answer.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from lowwater.broker.router import RequestContext, handles
from lowwater.errors import ApiError, ErrorCode, StorageError
from lowwater.log.cold import ColdReadError, Warmed
from lowwater.log.partition_log import PartitionLog
from lowwater.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
SINCE = {LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
NEVER = 1 << 15
LEADER_EPOCHS_SINCE = 4
READ_COMMITTED = 1


@handles(ListOffsetsRequest)
async def list_offsets(broker: Broker, request: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse:
    asked = Counter((topic.name, one.partition_index) for topic in request.topics for one in topic.partitions)
    topics = []
    for topic in request.topics:
        # A partition asked twice is answered once, as refused.
        once = {one.partition_index: one for one in topic.partitions}
        answers = [
            await _answer(
                broker, topic.name, one, request, context, repeated=asked[topic.name, one.partition_index] > 1
            )
            for one in once.values()
        ]
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return ListOffsetsResponse(topics=topics)


async def _answer(
    broker: Broker,
    topic: str,
    asked: ListOffsetsPartition,
    request: ListOffsetsRequest,
    context: RequestContext,
    *,
    repeated: bool,
) -> ListOffsetsPartitionResponse:
    try:
        if repeated:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"partition {topic}-{asked.partition_index} is asked twice")
        _check_special_time(asked.timestamp, context.api_version)
        partition = broker.partition(topic, asked.partition_index)
        if context.api_version == 0:
            return _answer_old_style(partition.log, asked, broker.clock.now_ms())
        partition.check_leader_epoch(asked.current_leader_epoch)
        return await _answer_one(broker, partition.log, asked, request.isolation_level, context.api_version)
    except ApiError as error:
        code = error.code
    except StorageError:
        code = ErrorCode.KAFKA_STORAGE_ERROR
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index, error_code=code, timestamp=-1, offset=-1, leader_epoch=-1
    )


def _answer_old_style(log: PartitionLog, asked: ListOffsetsPartition, now_ms: int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        old_style_offsets=log.segment_offsets(asked.timestamp, asked.max_num_offsets, now_ms),
    )


async def _answer_one(
    broker: Broker, log: PartitionLog, asked: ListOffsetsPartition, isolation_level: int, version: int
) -> ListOffsetsPartitionResponse:
    warmed: Warmed = set()
    while True:
        try:
            offset, timestamp, epoch = _find(log, asked.timestamp, isolation_level, warmed)
            break
        except ColdReadError as cold:
            # Pages come from disk elsewhere: here everyone would wait for them.
            await broker.offload_read(cold.bring_in)
            warmed.add(cold.place)
    answer = ListOffsetsPartitionResponse(partition_index=asked.partition_index, timestamp=timestamp, offset=offset)
    if version >= LEADER_EPOCHS_SINCE:
        answer.leader_epoch = epoch
    return answer


def _check_special_time(timestamp: int, version: int) -> None:
    """v0 looks only at the two ends; any other negative time is before everything there."""
    if timestamp < 0 and 0 < version < SINCE.get(timestamp, NEVER):
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp} has no meaning in ListOffsets v{version}")


def _find(log: PartitionLog, timestamp: int, isolation_level: int, warmed: Warmed) -> tuple[int, int, int]:
    """(offset, timestamp, leader epoch), -1 where there is none; ColdReadError when that has to be read from disk."""
    end = log.last_stable if isolation_level == READ_COMMITTED else log.log_end
    if timestamp == LATEST:
        return end, -1, log.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        is_empty = log.log_start == log.log_end
        return log.log_start, -1, log.leader_epoch if is_empty else log.epoch_at(log.log_start)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return -1, -1, -1
    if timestamp == MAX_TIMESTAMP:
        # Of the whole log, as in Kafka: nothing is told while that record is part of an open transaction.
        found = log.offset_of_max_timestamp(upto=log.log_end, warmed=warmed)
    else:
        found = log.offset_for_time(timestamp, upto=end, warmed=warmed)
    if found is None or found.offset >= end:
        return -1, -1, -1
    return found.offset, found.timestamp, found.leader_epoch
