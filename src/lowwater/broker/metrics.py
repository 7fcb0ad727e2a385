"""What a broker counts of itself: plain numbers, cheap enough for every request. Who shows them is not decided here."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lowwater.groups.metrics import REBALANCE_BUCKETS_MS, GroupMetrics
from lowwater.transactions.metrics import TransactionMetrics

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

BUCKETS_MS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 5_000.0, 30_000.0)


class Durations:
    """How long something took, how often. Buckets are not cumulated; the last one is "longer than all"."""

    __slots__ = ("buckets", "sum_ms")

    def __init__(self) -> None:
        self.sum_ms = 0.0
        self.buckets = [0] * (len(BUCKETS_MS) + 1)

    def add(self, took_ms: float) -> None:
        self.sum_ms += took_ms
        self.buckets[bisect_left(BUCKETS_MS, took_ms)] += 1

    def merge(self, other: Durations) -> None:
        self.sum_ms += other.sum_ms
        self.buckets = [one + another for one, another in zip(self.buckets, other.buckets, strict=True)]

    def as_json(self) -> dict[str, Any]:
        return {"le_ms": list(BUCKETS_MS), "counts": self.buckets, "sum_ms": self.sum_ms}


class Traffic:
    """Of one listener."""

    __slots__ = ("bytes_in", "bytes_out", "connections_refused", "connections_total")

    def __init__(self) -> None:
        self.bytes_in = 0
        self.bytes_out = 0
        self.connections_total = 0
        self.connections_refused = 0


def describe(broker: Broker) -> dict[str, Any]:
    """Of the logs and coordinators, as JSON. Partitions that nobody used yet have no open log and are left out."""
    return {
        "topics": sum(1 for _ in broker.topics),
        "partitions": sum(topic.partition_count for topic in broker.topics),
        "logs": list(_logs(broker)),
        "disk": _disk(broker),
        "fsyncs": broker.commits.syncs.as_json(),
        "groups": _groups(broker.group_metrics()),
        "transactions": _transactions(broker.transaction_metrics()),
    }


def _logs(broker: Broker) -> Iterable[dict[str, Any]]:
    for topic in broker.topics:
        for partition in topic.opened():
            log = partition.log
            yield {
                "topic": topic.name,
                "partition": partition.index,
                "bytes": log.size_bytes,
                "start": log.log_start,
                "end": log.log_end,
                "offline": log.offline,
            }


def _disk(broker: Broker) -> dict[str, int] | None:
    try:
        return {
            "free_bytes": broker.disk.free_bytes(broker.data_dir),
            "total_bytes": broker.disk.total_bytes(broker.data_dir),
        }
    except OSError:
        return None


def _groups(counted: GroupMetrics) -> dict[str, Any]:
    return {
        "active": counted.active_groups,
        "members": counted.total_members,
        "rebalances": {
            "le_ms": list(REBALANCE_BUCKETS_MS),
            "counts": counted.rebalance_duration_buckets,
            "sum_ms": counted.rebalance_duration_ms_sum,
        },
        "offset_commits": counted.offset_commits_total,
        "heartbeats": counted.heartbeats_total,
        "member_timeouts": counted.member_timeouts,
    }


def _transactions(counted: TransactionMetrics) -> dict[str, int]:
    return {name: getattr(counted, name) for name in TransactionMetrics.__slots__}
