"""What the coordinator is told by the settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

INT_MAX = 2**31 - 1


class ConsumerTimes(NamedTuple):
    """How often the members of one consumer group call, and how long they may be silent."""

    session_timeout_ms: int
    heartbeat_interval_ms: int


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """Made anew when a setting is altered; `consumer_times_of` holds the groups with times of their own."""

    session_timeout_min_ms: int = 6_000
    session_timeout_max_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    group_size_max: int = INT_MAX
    # A new member's Join that waits longer is given up: its client is gone. Kafka's own number, not a setting there.
    new_member_join_timeout_ms: int = 300_000
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_group_size_max: int = INT_MAX
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    consumer_migration_policy: str = "bidirectional"
    # More members times partitions than this are assigned off the event loop.
    assignments_inline_max: int = 10_000
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    offset_metadata_bytes_max: int = 4096
    consumer_times_of: Mapping[str, ConsumerTimes] = field(default_factory=dict)

    def consumer_times(self, group_id: str) -> ConsumerTimes:
        """Those of the group itself, or those of all."""
        own = self.consumer_times_of.get(group_id)
        return own or ConsumerTimes(self.consumer_session_timeout_ms, self.consumer_heartbeat_interval_ms)
