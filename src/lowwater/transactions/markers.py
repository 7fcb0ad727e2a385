"""What a decided transaction still needs: its markers, in every partition that it wrote to."""

from __future__ import annotations

from typing import NamedTuple

from lowwater.types import TopicPartition


class Markers(NamedTuple):
    """To be written when the decision is durable, and again after a restart, until `MarkersWritten` says they are.

    `partitions` is sorted and never empty. A partition whose topic is gone needs none. `epoch_bumped`: each transaction
    of this producer has an epoch of its own, and so has its end. `reason` says in words why it ended so.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    commit: bool
    coordinator_epoch: int
    partitions: tuple[TopicPartition, ...]
    epoch_bumped: bool = False
    reason: str = ""
