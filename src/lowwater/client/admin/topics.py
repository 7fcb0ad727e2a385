"""Which topics there are, with their partitions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lowwater.client.admin.asking import Appearing
from lowwater.client.admin.outcomes import Outcomes, settle
from lowwater.client.cluster import Cluster
from lowwater.client.errors import ClientError, broker_error
from lowwater.wire.messages import MetadataRequest
from lowwater.wire.messages.metadata import MetadataRequestTopic, MetadataResponseTopic
from lowwater.wire.schema import ZERO_UUID


@dataclass(frozen=True, slots=True)
class DescribedPartition:
    """`leader` is -1 while there is none."""

    partition: int
    leader: int
    leader_epoch: int = -1
    replicas: tuple[int, ...] = ()
    in_sync: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DescribedTopic:
    name: str
    id: bytes = ZERO_UUID
    is_internal: bool = False
    partitions: tuple[DescribedPartition, ...] = ()

    @property
    def replication_factor(self) -> int:
        """Of the partition that has the most."""
        return max((len(one.replicas) for one in self.partitions), default=0)

    @property
    def short_of_replicas(self) -> int:
        """Partitions of which not every replica is in sync."""
        return sum(len(one.in_sync) < len(one.replicas) for one in self.partitions)

    @property
    def without_leader(self) -> int:
        return sum(one.leader < 0 for one in self.partitions)


async def list_topics(cluster: Cluster, *, internal: bool = False) -> dict[str, DescribedTopic]:
    """Every topic that may be seen, by name; those of the brokers' own only when asked for."""

    async def attempt(left_ms: float) -> dict[str, DescribedTopic]:
        found = await _metadata(cluster, None, left_ms)
        return {name: topic for name, topic in found.items() if isinstance(topic, DescribedTopic)}

    topics = await cluster.retry.run(attempt)
    return {name: topic for name, topic in sorted(topics.items()) if internal or not topic.is_internal}


async def describe_topics(cluster: Cluster, names: Iterable[str]) -> Outcomes[str, DescribedTopic]:
    appearing = Appearing(cluster)

    async def attempt(left: list[str], left_ms: float) -> dict[str, DescribedTopic | ClientError]:
        return appearing.judge(await _metadata(cluster, left, left_ms))

    return await settle(cluster, names, attempt)


async def _metadata(
    cluster: Cluster, names: list[str] | None, left_ms: float
) -> dict[str, DescribedTopic | ClientError]:
    network = cluster.network
    request = MetadataRequest(
        topics=None if names is None else [MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=False,
    )
    # Before v4 a question makes the topic.
    answer = await network.ask_any(
        request, versions=(4, 13), timeout_ms=min(left_ms, network.config.int("request.timeout.ms"))
    )
    if answer.error_code:
        raise broker_error(answer.error_code, "metadata cannot be had")
    return {
        each.name or "": broker_error(each.error_code, topic=each.name) if each.error_code else _described(each)
        for each in answer.topics
    }


def _described(each: MetadataResponseTopic) -> DescribedTopic:
    partitions = [
        DescribedPartition(
            one.partition_index,
            one.leader_id,
            one.leader_epoch,
            tuple(one.replica_nodes),
            tuple(one.isr_nodes),
            tuple(one.offline_replicas),
        )
        for one in sorted(each.partitions, key=lambda one: one.partition_index)
    ]
    return DescribedTopic(each.name or "", each.topic_id, each.is_internal, tuple(partitions))
