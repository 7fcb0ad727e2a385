"""The group coordinator: which shard a group belongs to, and the internal topic in which all of them are kept."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lowwater.broker.changes import Decision
from lowwater.broker.coordinator_config import GroupTopics, group_config
from lowwater.broker.coordinator_shard import ShardDriver
from lowwater.broker.metadata_records import Record
from lowwater.broker.partition import Partition
from lowwater.broker.pending import Pending
from lowwater.broker.topic import OFFSETS_TOPIC, Topic
from lowwater.errors import ApiError
from lowwater.groups.metrics import GroupMetrics
from lowwater.groups.shard import GroupShard
from lowwater.ports import Timer

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

logger = logging.getLogger(__name__)

GROUPS_WARN = 5_000
MEMBERS_WARN = 50_000
LOOK_AT_SIZE_EVERY_MS = 10_000
JAVA_INT_MIN = 1 << 31  # which has no positive counterpart


class GroupCoordinator:
    """Made on first use, or at the start when there are groups to load."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.config = group_config(broker)
        self.codec = broker.config.int("offsets.topic.compression.codec")
        self._topics = GroupTopics(broker.topics)
        self._retired = GroupMetrics()
        self._creating = False
        self._timers: dict[str, Timer] = {}
        self._warned: set[str] = set()
        topic = broker.topics.get(OFFSETS_TOPIC)
        count = topic.partition_count if topic is not None else broker.config.int("offsets.topic.num.partitions")
        self._drivers = [ShardDriver(self, index) for index in range(count)]
        for index, driver in enumerate(self._drivers):
            driver.start(self.partition(index))
        broker.topics.on_deleted.append(self._topic_deleted)
        self._repeat("expiry", self._expiry_interval_ms, self._expire_offsets)
        self._repeat("size", lambda: LOOK_AT_SIZE_EVERY_MS, self._look_at_size)

    def stop(self) -> None:
        """Nothing is decided any more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for driver in self._drivers:
            driver.stop()

    # -- asking

    def ask(self, group_id: str, command: Any) -> Any:
        """The response, or a Pending of it. ApiError when the group's shard cannot answer now."""
        drivers = self._drivers
        if len(drivers) == 1:
            return drivers[0].ask(group_id, command)
        return drivers[shard_of(group_id, len(drivers))].ask(group_id, command)

    def ask_or(self, group_id: str, command: Any, refused: Callable[[ApiError], Any]) -> Any:
        """The same, where a refusal is this group's alone: `refused` says it in the words of the API."""
        try:
            answer = self.ask(group_id, command)
        except ApiError as error:
            return refused(error)
        return answer.recover(refused) if isinstance(answer, Pending) else answer

    def ask_each(self, command: Any) -> list[Any]:
        """The same of all shards, about all groups."""
        for driver in self._drivers:
            driver.check_active()
        return [driver.ask(None, command) for driver in self._drivers]

    # -- for the shards

    def new_shard(self) -> GroupShard:
        return GroupShard(self.config, self.broker.ids, self._topics)

    def retire(self, shard: GroupShard) -> None:
        """What a shard that is thrown away has counted stays counted."""
        self._retired.add_totals(shard.metrics)

    def partition(self, index: int) -> Partition | None:
        topic = self.broker.topics.get(OFFSETS_TOPIC)
        return topic.partition(index) if topic is not None else None

    def create_topic(self) -> None:
        """Begin to create `__consumer_offsets`; the shards are told."""
        if self._creating:
            return
        self._creating = True
        self.broker.topics.change(self._decide_topic).on_done(self._topic_created)

    def _decide_topic(self) -> Decision[None]:
        broker = self.broker
        if broker.topics.get(OFFSETS_TOPIC) is not None:
            return Decision([], None)
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(broker.config.int("offsets.topic.segment.bytes")),
        }
        records: list[Record] = [
            broker.topics.create(OFFSETS_TOPIC, len(self._drivers), configs, broker.store.boot_count)
        ]
        return Decision(records, None)

    def _topic_created(self, created: Pending[None]) -> None:
        self._creating = False
        error: ApiError | None = None
        try:
            created.result()
        except ApiError as failure:
            error = failure
        for driver in self._drivers:
            driver.topic_created(error)

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

    def _repeat(self, name: str, every_ms: Callable[[], int], task: Callable[[], None]) -> None:
        def again() -> None:
            self._repeat(name, every_ms, task)
            task()

        self._timers[name] = self.broker.scheduler.call_later(every_ms(), again)

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


def shard_of(group_id: str, count: int) -> int:
    """As Kafka does it: Java's hash of the name without its sign, by the number of partitions."""
    value = 0
    for unit in memoryview(group_id.encode("utf-16-le")).cast("H"):
        value = (31 * value + unit) & 0xFFFFFFFF
    if value < JAVA_INT_MIN:
        return value % count
    return 0 if value == JAVA_INT_MIN else ((1 << 32) - value) % count
