"""What is asked of a cluster about topics, for everything that shows them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from lowwater.client import topic_ids
from lowwater.client.admin.offsets import Bounds, bounds, newest
from lowwater.client.admin.outcomes import Outcomes
from lowwater.client.admin.records import sizes
from lowwater.client.admin.topics import DescribedTopic
from lowwater.client.cluster import Cluster
from lowwater.client.errors import ClientError
from lowwater.types import TopicPartition
from lowwater.wire.schema import ZERO_UUID


@dataclass(frozen=True, slots=True)
class Facts:
    """By partition; what a broker did not tell is missing, and `failed` says why."""

    bounds: Mapping[TopicPartition, Bounds] = field(default_factory=dict)
    sizes: Mapping[TopicPartition, int] = field(default_factory=dict)
    newest: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    failed: tuple[ClientError, ...] = ()

    def count(self, partitions: Collection[TopicPartition]) -> int | None:
        """Of offsets that are taken, in all of these; None unless every one of them is known."""
        found = [self.bounds[one].count for one in partitions if one in self.bounds]
        return sum(found) if len(found) == len(partitions) else None

    def size(self, partitions: Collection[TopicPartition]) -> int | None:
        found = [self.sizes[one] for one in partitions if one in self.sizes]
        return sum(found) if len(found) == len(partitions) else None

    def newest_of(self, partitions: Iterable[TopicPartition]) -> int | None:
        """None when all are empty, or nothing is known."""
        found = (self.newest.get(one) for one in partitions)
        return max((each for each in found if each is not None), default=None)


async def facts_of(cluster: Cluster, topics: Mapping[str, DescribedTopic], *, ages: bool = False) -> Facts:
    """Two requests per broker, three with `ages`, however many topics there are."""
    partitions = [one for topic in topics.values() for one in partitions_of(topic)]
    found = await bounds(cluster, partitions)
    latest = await newest(cluster, found) if ages else Outcomes[TopicPartition, int | None]({}, {})
    try:
        bytes_of = await sizes(cluster, topics)
    except ClientError:  # often not allowed, never needed
        bytes_of = {}
    return Facts(dict(found), bytes_of, dict(latest), tuple(found.failed.values()))


def partitions_of(topic: DescribedTopic) -> list[TopicPartition]:
    return [TopicPartition(topic.name, one.partition) for one in topic.partitions]


def id_text(topic_id: bytes) -> str | None:
    """As Kafka's tools write it; None where brokers gave none."""
    return None if topic_id == ZERO_UUID else topic_ids.id_text(topic_id)


def troubles(topic: DescribedTopic) -> str:
    """What is wrong with a topic, in a few words; empty when nothing is."""
    parts = []
    if topic.without_leader:
        parts.append(f"{topic.without_leader} without leader")
    if topic.short_of_replicas:
        parts.append(f"{topic.short_of_replicas} short of replicas")
    return ", ".join(parts)
