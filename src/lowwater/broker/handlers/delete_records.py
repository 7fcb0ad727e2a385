"""DeleteRecords v0-2: move the start of partitions up. Durable when answered.

Offset -1 stands for the end. A topic that is only compacted keeps its records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.broker.router import RequestContext, handles
from lowwater.broker.topic import INTERNAL_TOPICS
from lowwater.errors import ApiError, ErrorCode, StorageError
from lowwater.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker


@handles(DeleteRecordsRequest)
def delete_records(broker: Broker, request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
    topics = []
    for topic in request.topics:
        # Of several offsets for one partition the last one counts.
        offsets = {one.partition_index: one.offset for one in topic.partitions}
        results = [_delete(broker, topic.name, index, offset) for index, offset in offsets.items()]
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=results))
    return DeleteRecordsResponse(topics=topics)


def _delete(broker: Broker, topic: str, index: int, offset: int) -> DeleteRecordsPartitionResult:
    try:
        log = broker.partition(topic, index).log
        if topic in INTERNAL_TOPICS:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"records of {topic} are the broker's own")
        if not log.config.delete:
            raise ApiError(ErrorCode.POLICY_VIOLATION, f"the cleanup policy of {topic} does not delete")
        start = log.delete_before(offset)
    except ApiError as error:
        return _refused(index, error.code)
    except StorageError:
        return _refused(index, ErrorCode.KAFKA_STORAGE_ERROR)
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=start)


def _refused(index: int, code: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=-1, error_code=code)
