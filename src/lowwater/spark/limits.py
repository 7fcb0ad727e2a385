"""Where a batch ends: the heads, or less by the limits that were given; and what is gone that it was to read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, Protocol, TypeAlias

from lowwater.errors import LowwaterError
from lowwater.spark.offsets import OFFSET_MAX, Offset, Range
from lowwater.spark.snapshot import Snapshot
from lowwater.types import TopicPartition

Ends: TypeAlias = Mapping[TopicPartition, int]


class Wait(Enum):
    """No batch yet: fewer records than `minOffsetsPerTrigger`, and `maxTriggerDelay` is not over."""

    WAIT = "wait"


WAIT: Final = Wait.WAIT


class Limits(Protocol):
    """What of the options decides how much a batch reads."""

    @property
    def offsets_max(self) -> int | None: ...
    @property
    def offsets_min(self) -> int | None: ...
    @property
    def delay_max_ms(self) -> int: ...
    @property
    def cut_ms(self) -> int | None: ...


class RangeError(LowwaterError, ValueError):
    """A batch read that would end before it starts."""


@dataclass(frozen=True, slots=True)
class BatchEnd:
    """`ends` of all partitions that are there; `introduced`: where those start that are new."""

    ends: Ends
    introduced: Ends


class Why(Enum):
    EXPIRED = "removed before it was read"
    REMOVED = "the partition is not there any more"
    TRUNCATED = "the log ends before what was read already"
    ADDED_LATE = "a new partition has lost its beginning"


class Gap(NamedTuple):
    """[first, behind) cannot be read. `behind` None: nobody knows how much there was."""

    partition: TopicPartition
    first: int
    behind: int | None
    why: Why


def default_limit(limits: Limits) -> int | None:
    """What Spark is told as the usual limit of a batch; None: all that is there.

    With any limit it is a number, so that Spark asks for "all" only when `once` means to leave the limits out.
    """
    if limits.offsets_max is not None:
        return limits.offsets_max
    return OFFSET_MAX if limits.offsets_min is not None or limits.cut_ms is not None else None


@dataclass(frozen=True, slots=True)
class Readable:
    """What there is from an offset on: where each partition begins and ends. `introduced`: those that are new."""

    begins: Ends
    heads: Ends
    introduced: Ends

    @property
    def count(self) -> int:
        return sum(max(head - self.begins[one], 0) for one, head in self.heads.items())


def readable(start: Offset, snapshot: Snapshot, target: Ends | None = None) -> Readable:
    """`target`: the heads that an available-now query is to reach; partitions that came later are left out."""
    heads = _heads(start, snapshot, target)
    introduced = {one: snapshot.partitions[one].log_start for one in heads if one not in start.at}
    return Readable({one: _begin(one, start, snapshot) for one in heads}, heads, introduced)


def batch_end(
    start: Offset,
    snapshot: Snapshot,
    limits: Limits,
    *,
    now_ms: int,
    last_ms: int | None,
    limit: int | None,
    target: Ends | None = None,
) -> BatchEnd | Wait:
    """Where the batch from `start` ends, or WAIT.

    `limit` None: all there is. `last_ms`: when the answer was last not WAIT. `target`: the heads that an available-now
    query is to reach; what is behind them, and partitions that came later, are left to the next run.
    """
    found = readable(start, snapshot, target)
    if limit is None:
        return BatchEnd(found.heads, found.introduced)
    total = found.count
    if target is None and is_too_early(total, limits, now_ms, last_ms):
        return WAIT
    ends = {one: _limited(found.begins[one], head, limit, total) for one, head in found.heads.items()}
    return BatchEnd(ends, found.introduced)


def _heads(start: Offset, snapshot: Snapshot, target: Ends | None) -> dict[TopicPartition, int]:
    """Never before `start`: a log that ends earlier has lost something, and is not read again from there."""
    heads = {}
    for one, head in snapshot.partitions.items():
        end = head.end if target is None else min(head.end, target.get(one, -1))
        if end >= 0:
            heads[one] = max(end, start.at.get(one, head.log_start))
    return heads


def _begin(one: TopicPartition, start: Offset, snapshot: Snapshot) -> int:
    """Where there is something to read. What is gone before it does not count against a limit."""
    log_start = snapshot.partitions[one].log_start
    return max(start.at.get(one, log_start), log_start)


def is_too_early(count: int, limits: Limits, now_ms: int, last_ms: int | None) -> bool:
    """Whether `minOffsetsPerTrigger` wants to wait for more."""
    if limits.offsets_min is None or count >= limits.offsets_min:
        return False
    return last_ms is not None and now_ms - last_ms < limits.delay_max_ms


def _limited(begin: int, head: int, limit: int, total: int) -> int:
    """Each partition gets its share of the limit by what it has left, and at least one record: so it never stands.

    In floating point and rounded as the Kafka connector does it, so that both end at the same offsets.
    """
    if head <= begin:
        return head
    share = limit * (float(head - begin) / float(total))
    count = math.ceil(share) if share < 1 else math.floor(share)
    return min(begin + count, head)


def gaps(start: Offset, snapshot: Snapshot) -> list[Gap]:
    """What was to be read from `start` on and is not there, as far as the snapshot shows it."""
    found = []
    for one, at in sorted(start.at.items()):
        head = snapshot.partitions.get(one)
        if head is None:
            found.append(Gap(one, at, None, Why.REMOVED))
        elif head.log_start > at:
            found.append(Gap(one, at, head.log_start, Why.EXPIRED))
        elif head.end < at:
            found.append(Gap(one, head.end, at, Why.TRUNCATED))
    for one, head in sorted(snapshot.partitions.items()):
        if one not in start.at and head.log_start > 0:
            found.append(Gap(one, 0, head.log_start, Why.ADDED_LATE))
    return found


def batch_ranges(starts: Ends, stops: Ends) -> dict[TopicPartition, Range]:
    """What a batch query reads; RangeError when a start is behind its stop."""
    found = {}
    for one, start in sorted(starts.items()):
        stop = stops[one]
        if start > stop:
            raise RangeError(
                f"The resolved start offset {start} is greater than the resolved end offset {stop} for topic "
                f"{one.topic} partition {one.partition}: the start lies behind the end of the log or behind what was "
                "given as the end, or the topic was deleted and made anew"
            )
        found[one] = Range(start, stop)
    return found
