"""DescribeLogDirs v1-5: the one data directory, and how much each partition takes of it.

Null asks for all partitions; those that do not exist are left out. v3 adds an error code for the whole, v4 the size of
the file system, v5 whether the directory is closed to new partitions, which it never is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lowwater.broker.router import RequestContext, handles
from lowwater.broker.topic import Topic
from lowwater.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker


@handles(DescribeLogDirsRequest)
def describe_log_dirs(
    broker: Broker, request: DescribeLogDirsRequest, context: RequestContext
) -> DescribeLogDirsResponse:
    directory = DescribeLogDirsResult(
        log_dir=broker.data_dir,
        topics=[_sizes(topic, indexes) for topic, indexes in _asked(broker, request) if indexes],
        total_bytes=broker.disk.total_bytes(broker.data_dir),
        usable_bytes=broker.disk.free_bytes(broker.data_dir),
    )
    return DescribeLogDirsResponse(results=[directory])


def _asked(broker: Broker, request: DescribeLogDirsRequest) -> Iterable[tuple[Topic, list[int]]]:
    if request.topics is None:
        return [(topic, list(range(topic.partition_count))) for topic in broker.topics]
    found = ((broker.topics.get(asked.topic), asked.partitions) for asked in request.topics)
    return [
        (topic, [index for index in dict.fromkeys(indexes) if 0 <= index < topic.partition_count])
        for topic, indexes in found
        if topic is not None
    ]


def _sizes(topic: Topic, indexes: list[int]) -> DescribeLogDirsTopic:
    return DescribeLogDirsTopic(
        name=topic.name,
        partitions=[
            DescribeLogDirsPartition(
                partition_index=index,
                partition_size=topic.partition(index).log.size_bytes,
                offset_lag=0,
                is_future_key=False,
            )
            for index in indexes
        ],
    )
