"""How far groups are behind, as values, and as the documents that programs get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from lowwater.lag.advice import NOTHING, Recommendation
from lowwater.lag.observation import Fault
from lowwater.lag.rules import Status
from lowwater.types import TopicPartition


class Problem(Enum):
    """What is the matter with a committed offset, apart from how far it is behind."""

    NEVER_COMMITTED = "never_committed"
    AGED_OUT = "aged_out"
    RECREATED = "recreated"
    BEYOND_END = "beyond_end"
    TOPIC_GONE = "topic_gone"
    UNREACHABLE = "unreachable"
    OPEN_TRANSACTION = "open_transaction"

    @property
    def is_wrong(self) -> bool:
        """Somebody has to look: records are lost, or a reader will not find its place."""
        return self in (Problem.AGED_OUT, Problem.RECREATED, Problem.BEYOND_END, Problem.UNREACHABLE)


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """`lag` counts offsets that are still there; `lost` those that were deleted before they were read."""

    topic: str
    partition: int
    committed: int | None = None
    end: int | None = None
    lag: int | None = None
    time_lag_ms: int | None = None
    status: Status = Status.UNKNOWN
    start: int | None = None
    rate_in: float | None = None
    rate_out: float | None = None
    catch_up_ms: int | None = None
    last_commit_ms: int | None = None
    member_id: str | None = None
    client_id: str | None = None
    host: str | None = None
    problem: Problem | None = None
    detail: str | None = None
    """What the problem is, in a sentence."""
    lost: int = 0

    @property
    def where(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def is_wrong(self) -> bool:
        return self.status.is_trouble or (self.problem is not None and self.problem.is_wrong)

    def document(self) -> dict[str, Any]:
        return {
            "topic": self.topic,
            "partition": self.partition,
            "committed": self.committed,
            "end": self.end,
            "lag": self.lag,
            "time_lag_ms": self.time_lag_ms,
            "status": self.status.value,
            "start": self.start,
            "rate_in": _rounded(self.rate_in),
            "rate_out": _rounded(self.rate_out),
            "catch_up_ms": self.catch_up_ms,
            "last_commit_ms": self.last_commit_ms,
            "member_id": self.member_id,
            "client_id": self.client_id,
            "host": self.host,
            "problem": None if self.problem is None else self.problem.value,
            "detail": self.detail,
            "lost": self.lost,
        }


@dataclass(frozen=True, slots=True)
class GroupLag:
    """`lag` is the sum of those partitions whose lag is known, None when there is none of them; `unknown` counts the
    others. `lineages` are those of Spark queries that commit to the group. `time_lag_ms` is the largest."""

    group: str
    state: str | None
    kind: str | None
    status: Status
    lag: int | None
    time_lag_ms: int | None
    partitions: tuple[PartitionLag, ...]
    rate_in: float | None = None
    rate_out: float | None = None
    catch_up_ms: int | None = None
    members: int | None = None
    unknown: int = 0
    lineages: tuple[str, ...] = ()
    recommendation: Recommendation = NOTHING
    fault: str | None = None

    @property
    def is_wrong(self) -> bool:
        return self.fault is not None or self.status.is_trouble or any(one.is_wrong for one in self.partitions)

    @property
    def topics(self) -> list[str]:
        return sorted({one.topic for one in self.partitions})

    def document(self) -> dict[str, Any]:
        """As `lowwater groups lag --json` prints it, and the HTTP API answers it."""
        return {
            "group": self.group,
            "state": self.state,
            "status": self.status.value,
            "lag": self.lag,
            "time_lag_ms": self.time_lag_ms,
            "kind": self.kind,
            "members": self.members,
            "rate_in": _rounded(self.rate_in),
            "rate_out": _rounded(self.rate_out),
            "catch_up_ms": self.catch_up_ms,
            "unknown_partitions": self.unknown,
            "spark_lineages": list(self.lineages),
            "recommendation": self.recommendation.document(),
            "error": self.fault,
            "partitions": [one.document() for one in self.partitions],
        }


@dataclass(frozen=True, slots=True)
class Report:
    """All groups that were asked for; `faults` names brokers and partitions that did not answer."""

    at_ms: int
    groups: Mapping[str, GroupLag]
    faults: tuple[Fault, ...] = ()

    @property
    def is_wrong(self) -> bool:
        return bool(self.faults) or any(group.is_wrong for group in self.groups.values())


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 3)
