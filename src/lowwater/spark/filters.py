"""What the filters of a query say about where its rows can be: less is read then. Spark applies them all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from lowwater.spark.offsets import OFFSET_MAX, Range
from lowwater.types import TopicPartition

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_ANYWHERE = Range(0, OFFSET_MAX)


@dataclass(frozen=True, slots=True)
class Bounds:
    """No row outside them passes the filters; None: any. `from_ms`: none is stamped before it.

    There is no bound behind which all rows are too late: one stamped early may stand anywhere in its partition.
    """

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    offsets: Range = _ANYWHERE
    from_ms: int | None = None

    def has(self, one: TopicPartition) -> bool:
        is_wanted = self.topics is None or one.topic in self.topics
        return is_wanted and (self.partitions is None or one.partition in self.partitions)

    def narrowed(
        self, ranges: Mapping[TopicPartition, Range], first: Mapping[TopicPartition, int] | None = None
    ) -> dict[TopicPartition, Range]:
        """What of the ranges is to be read. `first`: of each partition, the first offset stamped at `from_ms` or after.

        A partition that has none so late is not in `first`, and is not read.
        """
        found = {}
        for one, (start, end) in ranges.items():
            if not self.has(one) or (first is not None and one not in first):
                continue
            start = max(start, self.offsets.start, 0 if first is None else first[one])
            end = min(end, self.offsets.end)
            if start < end:
                found[one] = Range(start, end)
        return found


def bounds(filters: Iterable[Any]) -> Bounds:
    """From Spark's filters, all of which have to hold. One that is not understood bounds nothing."""
    found = Bounds()
    for one in filters:
        path: tuple[str, ...] = getattr(one, "attribute", ())
        narrow = _COLUMNS.get(path[0]) if len(path) == 1 else None
        if narrow is not None:
            found = narrow(found, type(one).__name__, getattr(one, "value", None))
    return found


def _topic(found: Bounds, kind: str, value: Any) -> Bounds:
    chosen = _chosen(kind, value, str)
    return found if chosen is None else replace(found, topics=_both(found.topics, chosen))


def _partition(found: Bounds, kind: str, value: Any) -> Bounds:
    chosen = _chosen(kind, value, int)
    return found if chosen is None else replace(found, partitions=_both(found.partitions, chosen))


def _offset(found: Bounds, kind: str, value: Any) -> Bounds:
    chosen = _chosen(kind, value, int)
    if chosen is not None:
        span = Range(min(chosen), max(chosen) + 1) if chosen else Range(0, 0)
    elif not _is(value, int):
        return found
    else:
        span = _span(kind, value)
    return replace(found, offsets=Range(max(found.offsets.start, span.start), min(found.offsets.end, span.end)))


def _span(kind: str, value: int) -> Range:
    match kind:
        case "GreaterThan":
            return Range(value + 1, OFFSET_MAX)
        case "GreaterThanOrEqual":
            return Range(value, OFFSET_MAX)
        case "LessThan":
            return Range(0, value)
        case "LessThanOrEqual":
            return Range(0, value + 1)
    return _ANYWHERE


def _timestamp(found: Bounds, kind: str, value: Any) -> Bounds:
    chosen = _chosen(kind, value, datetime)
    if chosen is not None:
        kind, value = "GreaterThanOrEqual", min(chosen, default=None)
    if not _is(value, datetime) or kind not in ("GreaterThan", "GreaterThanOrEqual"):
        return found
    since = value - _EPOCH
    # Records are stamped in whole milliseconds, filters may be finer.
    from_ms = since // _MILLISECOND + 1 if kind == "GreaterThan" else -(-since // _MILLISECOND)
    return replace(found, from_ms=from_ms if found.from_ms is None else max(found.from_ms, from_ms))


def _chosen(kind: str, value: Any, of: type) -> frozenset[Any] | None:
    """The values that are possible, where a filter lists them."""
    listed = value if kind == "In" else (value,) if kind in ("EqualTo", "EqualNullSafe") else None
    if listed is None or not all(_is(one, of) for one in listed):
        return None
    return frozenset(listed)


def _is(value: Any, of: type) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, datetime):
        return of is datetime and value.tzinfo is not None
    return isinstance(value, of)


def _both(before: frozenset[Any] | None, chosen: frozenset[Any]) -> frozenset[Any]:
    return chosen if before is None else before & chosen


_COLUMNS: Mapping[str, Callable[[Bounds, str, Any], Bounds]] = {
    "topic": _topic,
    "partition": _partition,
    "offset": _offset,
    "timestamp": _timestamp,
}
