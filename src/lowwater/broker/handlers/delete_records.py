"""DeleteRecords v0-2: move the start of partitions up. Durable when answered.

Offset -1 stands for the end. A topic that is only compacted keeps its records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lowwater.broker.log_starts import Failures
from lowwater.broker.router import RequestContext, handles
from lowwater.broker.topic import INTERNAL_TOPICS
from lowwater.errors import ApiError, ErrorCode, StorageError
from lowwater.log.partition_log import PartitionLog
from lowwater.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker


@handles(DeleteRecordsRequest)
async def delete_records(
    broker: Broker, request: DeleteRecordsRequest, context: RequestContext
) -> DeleteRecordsResponse:
    # Of several offsets for one partition the last one counts.
    asked = [(topic.name, {one.partition_index: one.offset for one in topic.partitions}) for topic in request.topics]
    wanted: dict[PartitionLog, int] = {}
    answers = [[_decide(broker, name, *one, wanted) for one in offsets.items()] for name, offsets in asked]
    failures = await broker.log_starts.advance(wanted) if wanted else {}
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(name=name, partitions=[_result(one, failures) for one in decided])
            for (name, _), decided in zip(asked, answers, strict=True)
        ]
    )


class Decided(NamedTuple):
    """A partition whose log is to start elsewhere, or why it is not."""

    partition: int
    log: PartitionLog | None
    refusal: ErrorCode = ErrorCode.NONE


def _decide(broker: Broker, topic: str, index: int, offset: int, wanted: dict[PartitionLog, int]) -> Decided:
    """Whether records may go; those that are to go are added to `wanted`."""
    try:
        log = broker.partition(topic, index).log
        if topic in INTERNAL_TOPICS:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"records of {topic} are the broker's own")
        if not log.config.delete:
            raise ApiError(ErrorCode.POLICY_VIOLATION, f"the cleanup policy of {topic} does not delete")
        start = log.start_after_deletion(offset)
    except ApiError as error:
        return Decided(index, None, error.code)
    except StorageError:
        return Decided(index, None, ErrorCode.KAFKA_STORAGE_ERROR)
    if start > log.log_start:
        wanted[log] = max(start, wanted.get(log, 0))
    return Decided(index, log)


def _result(decided: Decided, failures: Failures) -> DeleteRecordsPartitionResult:
    if decided.log is None or decided.log in failures:
        code = decided.refusal or ErrorCode.KAFKA_STORAGE_ERROR
        return DeleteRecordsPartitionResult(partition_index=decided.partition, low_watermark=-1, error_code=code)
    return DeleteRecordsPartitionResult(partition_index=decided.partition, low_watermark=decided.log.log_start)
