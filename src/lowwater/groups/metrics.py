"""What the coordinator counts. Plain numbers, cheap enough for every heartbeat."""

from __future__ import annotations

from bisect import bisect_left

REBALANCE_BUCKETS_MS = (10, 50, 100, 500, 1_000, 5_000, 10_000, 30_000, 60_000, 300_000)


class GroupMetrics:
    """Of one shard, or of all together. Groups and members go up and down, everything else only up."""

    __slots__ = (
        "active_groups",
        "heartbeats_total",
        "member_timeouts",
        "offset_commits_total",
        "rebalance_duration_buckets",
        "rebalance_duration_ms_sum",
        "rebalances_total",
        "total_members",
    )

    def __init__(self) -> None:
        self.active_groups = 0
        self.total_members = 0
        self.rebalances_total = 0
        self.rebalance_duration_ms_sum = 0.0
        # How many rebalances took at most as long as each of REBALANCE_BUCKETS_MS, not cumulated; the last is "longer".
        self.rebalance_duration_buckets = [0] * (len(REBALANCE_BUCKETS_MS) + 1)
        self.offset_commits_total = 0
        self.heartbeats_total = 0
        self.member_timeouts = 0

    def rebalanced(self, duration_ms: float) -> None:
        """A rebalance that began `duration_ms` ago is over."""
        self.rebalances_total += 1
        self.rebalance_duration_ms_sum += duration_ms
        self.rebalance_duration_buckets[bisect_left(REBALANCE_BUCKETS_MS, duration_ms)] += 1

    def add_totals(self, other: GroupMetrics) -> None:
        """Everything that only goes up."""
        self.rebalances_total += other.rebalances_total
        self.rebalance_duration_ms_sum += other.rebalance_duration_ms_sum
        self.offset_commits_total += other.offset_commits_total
        self.heartbeats_total += other.heartbeats_total
        self.member_timeouts += other.member_timeouts
        for place, count in enumerate(other.rebalance_duration_buckets):
            self.rebalance_duration_buckets[place] += count
