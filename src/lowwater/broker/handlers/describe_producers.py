"""DescribeProducers v0: the idempotent producers a partition remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.broker.router import RequestContext, handles
from lowwater.errors import ApiError, ErrorCode, StorageError
from lowwater.types import topic_name_problem
from lowwater.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker


@handles(DescribeProducersRequest)
def describe_producers(
    broker: Broker, request: DescribeProducersRequest, context: RequestContext
) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_answer(broker, topic.name, index) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def _answer(broker: Broker, topic: str, index: int) -> PartitionResponse:
    try:
        problem = topic_name_problem(topic)
        if problem is not None:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        producers = _producers(broker, topic, index)
    except ApiError as error:
        return _refused(index, error.code, error.detail)
    except StorageError as error:
        return _refused(index, ErrorCode.KAFKA_STORAGE_ERROR, str(error))
    return PartitionResponse(partition_index=index, active_producers=producers)


def _producers(broker: Broker, topic: str, index: int) -> list[ProducerState]:
    return [
        ProducerState(
            producer_id=producer_id,
            producer_epoch=producer.epoch,
            last_sequence=producer.last_sequence,
            last_timestamp=producer.last_timestamp,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=producer.txn_start_offset,
        )
        for producer_id, producer in broker.partition(topic, index).log.producers()
    ]


def _refused(index: int, code: ErrorCode, message: str) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=code, error_message=message, active_producers=[])
