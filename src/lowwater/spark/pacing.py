"""How far apart looks for what is new keep: the longer nothing came, the further."""

from __future__ import annotations

from collections.abc import Mapping

from lowwater.spark.snapshot import Head
from lowwater.types import TopicPartition

TIMES_MAX = 8


class Pace:
    """The pause doubles with every look that finds the partitions where they were, up to eight times the first one."""

    def __init__(self) -> None:
        self._seen: Mapping[TopicPartition, Head] = {}
        self._times = 1

    def pause_ms(self, pace_ms: float) -> float:
        return pace_ms * self._times

    def saw(self, heads: Mapping[TopicPartition, Head]) -> None:
        self._times = min(self._times * 2, TIMES_MAX) if heads == self._seen else 1
        self._seen = heads
