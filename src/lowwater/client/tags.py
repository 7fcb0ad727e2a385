"""Partitions by small numbers, so that kernels can speak of them."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np

from lowwater.client.arrow import texts
from lowwater.merge.mark import END_MS
from lowwater.types import TopicPartition
from lowwater.wire.kernels.ordering import NO_CLOCK

_ROOM_MIN = 16
_BY_TAG = ("topic_of", "partition_of", "clocks", "ends", "stops", "stop_times", "left_out")


class Tags:
    """A partition keeps its number for ever, also when it goes and comes again."""

    def __init__(self) -> None:
        self._tags: dict[TopicPartition, int] = {}
        self.partitions: list[TopicPartition] = []
        """By tag."""
        self._topics: dict[str, int] = {}
        self._sorted: list[TopicPartition] | None = None
        self._ranks = np.empty(0, np.int64)
        self.topics = texts([])
        self.topic_of = np.empty(_ROOM_MIN, np.int32)
        self.partition_of = np.empty(_ROOM_MIN, np.int32)
        self.clocks = np.empty(_ROOM_MIN, np.int64)
        self.ends = np.empty(_ROOM_MIN, np.int64)
        self.stops = np.empty(_ROOM_MIN, np.int64)
        self.stop_times = np.empty(_ROOM_MIN, np.int64)
        self.left_out = np.empty(_ROOM_MIN, np.int64)

    def add(self, one: TopicPartition, end: int, stop: int, stop_ms: int) -> None:
        """Its clock begins anew; `end` is where it ended at the beginning; rows behind the stops are left out."""
        tag = self._tags.get(one)
        if tag is None:
            tag = self._new(one)
        self.clocks[tag] = NO_CLOCK
        self.ends[tag] = end
        self.stops[tag], self.stop_times[tag] = stop, stop_ms
        self.left_out[tag] = END_MS

    def _new(self, one: TopicPartition) -> int:
        tag = len(self.partitions)
        if tag == len(self.clocks):
            for name in _BY_TAG:
                setattr(self, name, np.resize(getattr(self, name), 2 * tag))
        if one.topic not in self._topics:
            self._topics[one.topic] = len(self._topics)
            self.topics = texts(list(self._topics))
        self.topic_of[tag] = self._topics[one.topic]
        self.partition_of[tag] = one.partition
        self._tags[one] = tag
        self.partitions.append(one)
        self._sorted = None
        return tag

    def __getitem__(self, one: TopicPartition) -> int:
        return self._tags[one]

    def __len__(self) -> int:
        return len(self.partitions)

    def clock_ms(self, tag: int) -> int | None:
        """The largest timestamp that came of it; None when nothing came."""
        clock = int(self.clocks[tag])
        return None if clock == NO_CLOCK else clock

    # -- by topic and partition

    def _in_order(self) -> list[TopicPartition]:
        if self._sorted is None:
            self._sorted = sorted(self.partitions)
            self._ranks = np.empty(len(self), np.int64)
            self._ranks[[self._tags[one] for one in self._sorted]] = np.arange(len(self))
        return self._sorted

    @property
    def ranks(self) -> Any:
        """By tag, the place in the order of topics and partitions."""
        self._in_order()
        return self._ranks

    def rank_of(self, topic: str, partition: int) -> int:
        """The rank of the last partition up to this one."""
        return bisect_right(self._in_order(), TopicPartition(topic, partition)) - 1
