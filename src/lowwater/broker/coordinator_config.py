"""From settings and topics to what the group cores are told of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from lowwater.broker.topics import Topics
from lowwater.config import ConsumerGroupConfig
from lowwater.groups.config import ConsumerTimes, GroupConfig

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

MINUTE_MS = 60_000


def group_config(broker: Broker) -> GroupConfig:
    config = broker.config
    return GroupConfig(
        session_timeout_min_ms=config.int("group.min.session.timeout.ms"),
        session_timeout_max_ms=config.int("group.max.session.timeout.ms"),
        initial_rebalance_delay_ms=config.int("group.initial.rebalance.delay.ms"),
        group_size_max=config.int("group.max.size"),
        consumer_session_timeout_ms=config.int("group.consumer.session.timeout.ms"),
        consumer_heartbeat_interval_ms=config.int("group.consumer.heartbeat.interval.ms"),
        consumer_group_size_max=config.int("group.consumer.max.size"),
        consumer_assignors=config.list("group.consumer.assignors"),
        consumer_migration_policy=config.str("group.consumer.migration.policy"),
        offsets_retention_ms=config.int("offsets.retention.minutes") * MINUTE_MS,
        offset_metadata_bytes_max=config.int("offset.metadata.max.bytes"),
        consumer_times_of=GroupTimes(broker.topics),
    )


class GroupTimes(Mapping[str, ConsumerTimes]):
    """The consumer groups with settings of their own, as these are at the moment."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics

    def __getitem__(self, group_id: str) -> ConsumerTimes:
        config = ConsumerGroupConfig(self._topics.config, self._topics.group_configs[group_id])
        return ConsumerTimes(config.int("consumer.session.timeout.ms"), config.int("consumer.heartbeat.interval.ms"))

    def __iter__(self) -> Iterator[str]:
        return iter(self._topics.group_configs)

    def __len__(self) -> int:
        return len(self._topics.group_configs)


class GroupTopics:
    """The topics, as `groups.topics.TopicsView` describes them."""

    __slots__ = ("_topics",)

    def __init__(self, topics: Topics) -> None:
        self._topics = topics

    @property
    def version(self) -> int:
        return self._topics.version

    def names(self) -> Iterable[str]:
        return self._topics.names()

    def partition_count(self, name: str) -> int | None:
        topic = self._topics.get(name)
        return topic.partition_count if topic is not None else None

    def topic_id(self, name: str) -> bytes | None:
        topic = self._topics.get(name)
        return topic.id if topic is not None else None

    def topic_name(self, topic_id: bytes) -> str | None:
        topic = self._topics.by_id(topic_id)
        return topic.name if topic is not None else None
