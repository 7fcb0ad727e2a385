"""One topic: its durable facts, and its partitions as far as they have been touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from lowwater.broker.partition import Partition
from lowwater.config import TopicConfig
from lowwater.log.config import LogConfig

OpenPartition: TypeAlias = Callable[["Topic", int], Partition]

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, "__share_group_state"})


class Topic:
    """`config` and `log_config` are shared by all topics with the same settings of their own."""

    __slots__ = ("_boots", "_open", "_slots", "config", "id", "log_config", "name")

    def __init__(
        self, name: str, topic_id: bytes, config: TopicConfig, log_config: LogConfig, open_partition: OpenPartition
    ) -> None:
        self.name = name
        self.id = topic_id
        self.config = config
        self.log_config = log_config
        self._open = open_partition
        self._slots: list[Partition | None] = []
        self._boots: list[tuple[int, int]] = []  # (first partition, boot count when it and its followers were added)

    @property
    def partition_count(self) -> int:
        return len(self._slots)

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS

    def partition(self, index: int) -> Partition:
        """Opened on first use. IndexError when there is none."""
        partition = self._slots[index]
        if partition is None:
            partition = self._slots[index] = self._open(self, index)
        return partition

    def opened(self) -> Iterator[Partition]:
        """The partitions that are in use."""
        return (partition for partition in self._slots if partition is not None)

    def created_boot(self, index: int) -> int:
        """The boot count at which the partition came to be; its leader epoch is the number of boots since."""
        return next(boot for first, boot in reversed(self._boots) if first <= index)

    def growth(self) -> Iterator[tuple[int, int]]:
        """(partition count, boot) of the creation and of every time partitions were added."""
        ends = [first for first, _ in self._boots[1:]] + [self.partition_count]
        return zip(ends, (boot for _, boot in self._boots), strict=True)

    def grow(self, partitions: int, boot: int) -> None:
        assert partitions > self.partition_count, "a topic never shrinks"
        self._boots.append((self.partition_count, boot))
        self._slots += [None] * (partitions - self.partition_count)

    def configure(self, config: TopicConfig, log_config: LogConfig) -> None:
        self.config = config
        if log_config == self.log_config:
            return
        self.log_config = log_config
        for partition in self.opened():
            partition.log.update_config(log_config)
