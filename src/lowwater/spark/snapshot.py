"""What the driver knows of the partitions it follows, as of one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lowwater.types import TopicPartition


@dataclass(frozen=True, slots=True)
class Head:
    """A partition holds [log_start, end). For readers of committed records `end` is the last stable offset."""

    log_start: int
    end: int
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`ids` are as Kafka writes them, by topic; a topic whose id no broker tells is left out.

    `others` are partitions that are not read, but by which batches are aligned.
    """

    partitions: Mapping[TopicPartition, Head]
    ids: Mapping[str, str]
    asked_ms: int
    others: Mapping[TopicPartition, Head] = field(default_factory=dict)
