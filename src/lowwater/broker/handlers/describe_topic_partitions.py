"""DescribeTopicPartitions v0: topics in the order of their names, page by page.

An empty list asks for all topics. A page ends after so many partitions; its cursor begins the next one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.broker.operations import NOT_ASKED, ON_TOPICS
from lowwater.broker.router import RequestContext, handles
from lowwater.broker.topic import INTERNAL_TOPICS, Topic
from lowwater.errors import ErrorCode
from lowwater.types import topic_name_problem
from lowwater.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker


@handles(DescribeTopicPartitionsRequest)
def describe_topic_partitions(
    broker: Broker, request: DescribeTopicPartitionsRequest, context: RequestContext
) -> DescribeTopicPartitionsResponse:
    asked = {topic.name for topic in request.topics}
    first = request.cursor or Cursor(topic_name="", partition_index=0)
    if first.partition_index < 0 or (request.cursor is not None and asked and first.topic_name not in asked):
        return DescribeTopicPartitionsResponse(
            topics=[_refused(name, ErrorCode.INVALID_REQUEST, NOT_ASKED) for name in sorted(asked)]
        )
    names = [name for name in sorted(asked or broker.topics.names()) if name >= first.topic_name]
    limit = min(request.response_partition_limit, broker.config.int("max.request.partition.size.limit"))
    return _page(broker, names, first, max(1, limit))


def _page(broker: Broker, names: list[str], first: Cursor, limit: int) -> DescribeTopicPartitionsResponse:
    described: list[DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        begin = first.partition_index if name == first.topic_name else 0
        topic = broker.topics.get(name)
        if limit == 0:
            cursor = Cursor(topic_name=name, partition_index=begin)
            return DescribeTopicPartitionsResponse(topics=described, next_cursor=cursor)
        if topic is None:
            described.append(_unknown(name))
            continue
        end = min(topic.partition_count, begin + limit)
        described.append(_described(broker, topic, begin, end))
        limit -= max(0, end - begin)
        if end < topic.partition_count:
            cursor = Cursor(topic_name=name, partition_index=end)
            return DescribeTopicPartitionsResponse(topics=described, next_cursor=cursor)
    return DescribeTopicPartitionsResponse(topics=described)


def _described(broker: Broker, topic: Topic, begin: int, end: int) -> DescribeTopicPartitionsResponseTopic:
    replicas = [broker.node_id]
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=[
            DescribeTopicPartitionsResponsePartition(
                partition_index=index,
                leader_id=broker.node_id,
                leader_epoch=broker.store.boot_count - topic.created_boot(index),
                replica_nodes=replicas,
                isr_nodes=replicas,
                eligible_leader_replicas=[],
                last_known_elr=[],
                offline_replicas=[],
            )
            for index in range(begin, end)
        ],
        topic_authorized_operations=ON_TOPICS,
    )


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    is_name = topic_name_problem(name) is None
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_name else ErrorCode.INVALID_TOPIC_EXCEPTION
    return _refused(name, code, ON_TOPICS)


def _refused(name: str, code: ErrorCode, operations: int) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=code,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        partitions=[],
        topic_authorized_operations=operations,
    )
