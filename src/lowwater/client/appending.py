"""A few records appended to one partition, durably, without a producer and without Arrow."""

from __future__ import annotations

from collections.abc import Sequence

from lowwater.client.cluster import OUTDATED, Cluster
from lowwater.client.errors import ClientError, ConnectError, DisconnectedError, RequestTimeoutError, broker_error
from lowwater.types import TopicPartition
from lowwater.wire.compression import GZIP
from lowwater.wire.messages import ProduceRequest
from lowwater.wire.messages.produce import PartitionProduceData, TopicProduceData
from lowwater.wire.records import Record, build_batch

_VERSIONS = (3, 12)  # later ones go by topic id, which not every topic has
_ALL = -1


async def append(cluster: Cluster, one: TopicPartition, records: Sequence[tuple[bytes, bytes]], now_ms: int) -> int:
    """Write keys and values as one batch; gives its first offset, when all replicas in sync have it.

    When an answer is lost it is written again: whoever reads has to know records that come twice.
    """
    batch = build_batch([Record(place, now_ms, key, value) for place, (key, value) in enumerate(records)], codec=GZIP)

    async def attempt(left_ms: float) -> int:
        leaders = await cluster.leaders([one], left_ms)
        [node] = leaders
        timeout_ms = min(left_ms, cluster.network.config.int("request.timeout.ms"))
        data = PartitionProduceData(index=one.partition, records=memoryview(batch))
        request = ProduceRequest(
            acks=_ALL, timeout_ms=int(timeout_ms), topic_data=[TopicProduceData(name=one.topic, partition_data=[data])]
        )
        try:
            answer = await cluster.network.ask(node, request, versions=_VERSIONS, timeout_ms=timeout_ms)
        except (ConnectError, DisconnectedError, RequestTimeoutError):
            cluster.outdate([one.topic])
            raise
        [result] = answer.responses[0].partition_responses
        if result.error_code:
            raise _refused(cluster, one, result.error_code)
        return int(result.base_offset)

    return await cluster.retry.run(attempt)


def _refused(cluster: Cluster, one: TopicPartition, code: int) -> ClientError:
    error = broker_error(code, "the records were not written", topic=one.topic, partition=one.partition)
    if code in OUTDATED:
        cluster.outdate([one.topic])
        error.retriable = True
    return error
