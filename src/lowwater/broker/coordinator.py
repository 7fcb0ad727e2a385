"""What the coordinators have in common: which shard a key belongs to, and the internal topic of all shards."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

from lowwater.broker.changes import Decision
from lowwater.broker.coordinator_shard import S, ShardDriver
from lowwater.broker.metadata_records import Record
from lowwater.broker.partition import Partition
from lowwater.errors import ApiError
from lowwater.pending import Pending
from lowwater.ports import Timer
from lowwater.types import TopicPartition

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

JAVA_INT_MIN = 1 << 31  # which has no positive counterpart


class InternalTopic(NamedTuple):
    """Where a coordinator keeps its records. The number of partitions counts until the topic is there."""

    name: str
    partition_count: int
    segment_bytes: int
    codec: int


class Coordinator(ABC, Generic[S]):
    """Made on first use, or at the start when there is something to load. `subject` names what it coordinates."""

    subject: str
    # One for each partition.
    _shards: Sequence[ShardDriver[S]]

    def __init__(self, broker: Broker, topic: InternalTopic) -> None:
        self.broker = broker
        self.topic = topic
        self._creating = False
        self._timers: dict[str, Timer] = {}

    def stop(self) -> None:
        """Nothing is decided any more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for driver in self._shards:
            driver.stop()

    def _start(self) -> None:
        for index, driver in enumerate(self._shards):
            driver.start(self.partition(index))

    def _partition_count(self) -> int:
        topic = self.broker.topics.get(self.topic.name)
        return topic.partition_count if topic is not None else self.topic.partition_count

    # -- asking

    def ask(self, key: str, command: Any) -> Any:
        """The response, or a Pending of it. ApiError when the key's shard cannot answer now."""
        drivers = self._shards
        if len(drivers) == 1:
            return drivers[0].ask(key, command)
        return drivers[shard_of(key, len(drivers))].ask(key, command)

    def ask_or(self, key: str, command: Any, refused: Callable[[ApiError], Any]) -> Any:
        """The same, where a refusal is this key's alone: `refused` says it in the words of the API."""
        try:
            answer = self.ask(key, command)
        except ApiError as error:
            return refused(error)
        return answer.recover(refused) if isinstance(answer, Pending) else answer

    def ask_each(self, command: Any) -> list[Any]:
        """The same of all shards, about everything."""
        for driver in self._shards:
            driver.check_active()
        return [driver.ask(None, command) for driver in self._shards]

    def place_of(self, key: str) -> TopicPartition:
        """The partition in which this key is kept."""
        return TopicPartition(self.topic.name, shard_of(key, len(self._shards)))

    # -- for the shards

    @abstractmethod
    def new_shard(self, index: int) -> S: ...

    @abstractmethod
    def retire(self, shard: S) -> None:
        """What a shard that is thrown away has counted stays counted."""

    def partition(self, index: int) -> Partition | None:
        topic = self.broker.topics.get(self.topic.name)
        return topic.partition(index) if topic is not None else None

    def create_topic(self) -> None:
        """Begin to create the internal topic; the shards are told."""
        if self._creating:
            return
        self._creating = True
        self.broker.topics.change(self._decide_topic).on_done(self._topic_created)

    def _decide_topic(self) -> Decision[None]:
        broker = self.broker
        if broker.topics.get(self.topic.name) is not None:
            return Decision([], None)
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(self.topic.segment_bytes),
        }
        records: list[Record] = [
            broker.topics.create(self.topic.name, len(self._shards), configs, broker.store.boot_count)
        ]
        return Decision(records, None)

    def _topic_created(self, created: Pending[None]) -> None:
        self._creating = False
        error: ApiError | None = None
        try:
            created.result()
        except ApiError as failure:
            error = failure
        for driver in self._shards:
            driver.topic_created(error)

    # -- now and then

    def _repeat(self, name: str, every_ms: Callable[[], int], task: Callable[[], None]) -> None:
        def again() -> None:
            self._repeat(name, every_ms, task)
            task()

        self._timers[name] = self.broker.scheduler.call_later(every_ms(), again)


def shard_of(key: str, count: int) -> int:
    """As Kafka does it: Java's hash of the name without its sign, by the number of partitions."""
    value = 0
    for unit in memoryview(key.encode("utf-16-le")).cast("H"):
        value = (31 * value + unit) & 0xFFFFFFFF
    if value < JAVA_INT_MIN:
        return value % count
    return 0 if value == JAVA_INT_MIN else ((1 << 32) - value) % count
