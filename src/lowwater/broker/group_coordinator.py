"""The group coordinator: groups and committed offsets in `__consumer_offsets`, and what befalls all of them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from lowwater.broker.coordinator import Coordinator, InternalTopic
from lowwater.broker.coordinator_config import GroupTopics, group_config
from lowwater.broker.group_driver import GroupDriver
from lowwater.broker.topic import OFFSETS_TOPIC, Topic
from lowwater.errors import ApiError, ErrorCode
from lowwater.groups.metrics import GroupMetrics
from lowwater.groups.shard import GroupShard

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

logger = logging.getLogger(__name__)

GROUPS_WARN = 5_000
MEMBERS_WARN = 50_000
LOOK_AT_SIZE_EVERY_MS = 10_000


class GroupCoordinator(Coordinator[GroupShard]):
    subject = "groups"

    def __init__(self, broker: Broker) -> None:
        config = broker.config
        topic = InternalTopic(
            OFFSETS_TOPIC,
            config.int("offsets.topic.num.partitions"),
            config.int("offsets.topic.segment.bytes"),
            config.int("offsets.topic.compression.codec"),
        )
        super().__init__(broker, topic)
        self.config = group_config(broker)
        self._topics = GroupTopics(broker.topics)
        self._retired = GroupMetrics()
        self._warned: set[str] = set()
        self._shards = self._drivers = [GroupDriver(self, index) for index in range(self._partition_count())]
        self._start()
        broker.topics.on_deleted.append(self._topic_deleted)
        self._repeat("expiry", self._expiry_interval_ms, self._expire_offsets)
        self._repeat("size", lambda: LOOK_AT_SIZE_EVERY_MS, self._look_at_size)

    def driver(self, index: int) -> GroupDriver:
        if not 0 <= index < len(self._drivers):
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no {OFFSETS_TOPIC}-{index}")
        return self._drivers[index]

    def new_shard(self, index: int) -> GroupShard:
        return GroupShard(self.config, self.broker.ids, self._topics)

    def retire(self, shard: GroupShard) -> None:
        self._retired.add_totals(shard.metrics)

    # -- topics

    def _topic_deleted(self, topic: Topic) -> None:
        if topic.name == OFFSETS_TOPIC:
            logger.warning("%s was deleted, and with it all groups and committed offsets", OFFSETS_TOPIC)
            for driver in self._drivers:
                driver.reset()
            return
        for driver in self._drivers:
            driver.topic_deleted(topic.name)

    # -- now and then

    def _expiry_interval_ms(self) -> int:
        return self.broker.config.int("offsets.retention.check.interval.ms")

    def _expire_offsets(self) -> None:
        for driver in self._drivers:
            driver.expire_offsets()

    @property
    def metrics(self) -> GroupMetrics:
        """Of all shards together."""
        total = GroupMetrics()
        total.add_totals(self._retired)
        for driver in self._drivers:
            if not driver.is_active:
                continue
            counted = driver.shard.metrics
            total.add_totals(counted)
            total.active_groups += counted.active_groups
            total.total_members += counted.total_members
        return total

    def _look_at_size(self) -> None:
        metrics = self.metrics
        self._warn_once("groups", metrics.active_groups, GROUPS_WARN)
        self._warn_once("members", metrics.total_members, MEMBERS_WARN)

    def _warn_once(self, what: str, count: int, limit: int) -> None:
        if count <= limit:
            self._warned.discard(what)
        elif what not in self._warned:
            self._warned.add(what)
            logger.warning("%d %s are coordinated by one broker; up to %d are known to go well", count, what, limit)
