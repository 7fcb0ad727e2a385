"""What the pipeline should have made of its topics, in plain Python: no Spark, and no client of Lowwater.

It is told which offsets each micro-batch read and where the watermark stood, and follows Spark's rules from there: a
row is late when it is not newer than the watermark of the batch before; an hour is written once the watermark, held
back by the joins that come before it, has passed its end.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

HOUR_MS = 3_600_000
WATERMARK_DELAY_MS = 2 * HOUR_MS
PAID_WITHIN_MS = HOUR_MS
SHIPPED_WITHIN_MS = 12 * HOUR_MS
FIELDS: dict[str, dict[str, type]] = {
    "orders": {"order_id": int, "customer": str, "country": str, "items": int, "amount_cents": int},
    "payments": {"order_id": int, "method": str, "amount_cents": int},
    "shipments": {"order_id": int, "carrier": str},
}

Partition: TypeAlias = tuple[str, int]


class Record(NamedTuple):
    timestamp_ms: int
    value: bytes | None


class Batch(NamedTuple):
    """A micro-batch: [start, end) of every partition, and the watermark it ran with."""

    ranges: Mapping[Partition, tuple[int, int]]
    watermark_ms: int


class Hour(NamedTuple):
    """A row of the result, without its numbers."""

    begins_ms: int
    country: str


class Sums(NamedTuple):
    orders: int = 0
    ordered_cents: int = 0
    paid: int = 0
    paid_cents: int = 0
    shipped: int = 0

    def plus(self, other: Sums) -> Sums:
        return Sums(*(a + b for a, b in zip(self, other, strict=True)))


@dataclass(slots=True)
class Topic:
    """What became of the records of a topic: `taken`, `late`, `again`, `forgotten` or `broken`."""

    fates: Counter[str] = field(default_factory=Counter)
    taken: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict)
    broken: list[tuple[int, int]] = field(default_factory=list)
    newest_ms: int = 0

    def times_by_order(self) -> dict[int, list[int]]:
        times: dict[int, list[int]] = {}
        for order_id, timestamp_ms in self.taken:
            times.setdefault(order_id, []).append(timestamp_ms)
        return times


@dataclass(frozen=True, slots=True)
class Expected:
    """`closed` is what must be in the output, `open` what is still waiting in Spark's state."""

    topics: Mapping[str, Topic]
    closed: Mapping[Hour, Sums]
    open: Mapping[Hour, Sums]


def expected(logs: Mapping[Partition, Mapping[int, Record]], batches: Sequence[Batch]) -> Expected:
    topics = {name: Topic() for name in FIELDS}
    late_ms = 0
    for batch in batches:
        for (name, partition), (start, end) in batch.ranges.items():
            for offset, record in _between(logs.get((name, partition), {}), start, end):
                topics[name].fates[_fate(topics[name], name, (partition, offset), record, late_ms)] += 1
        late_ms = batch.watermark_ms
    hours = _hours(topics)
    closed_ms = late_ms - PAID_WITHIN_MS - SHIPPED_WITHIN_MS
    closed = {hour: sums for hour, sums in hours.items() if hour.begins_ms + HOUR_MS <= closed_ms}
    return Expected(topics, closed, {hour: sums for hour, sums in hours.items() if hour not in closed})


def _between(log: Mapping[int, Record], start: int, end: int) -> Iterator[tuple[int, Record]]:
    return ((offset, log[offset]) for offset in range(start, end) if offset in log)


def _fate(topic: Topic, name: str, place: tuple[int, int], record: Record, late_ms: int) -> str:
    """What becomes of a record, which is noted."""
    fields = None if record.value is None else decoded(name, record.value)
    if record.value is not None and fields is None:
        topic.broken.append(place)
        return "broken"
    topic.newest_ms = max(topic.newest_ms, record.timestamp_ms)
    if fields is None:
        return "forgotten"
    if record.timestamp_ms <= late_ms:
        return "late"
    key = (fields["order_id"], record.timestamp_ms)
    if key in topic.taken:
        return "again"
    topic.taken[key] = fields
    return "taken"


def decoded(topic: str, value: bytes) -> dict[str, Any] | None:
    """None when it is not an object with fields of these types; a field that is missing is None."""
    try:
        found = json.loads(value)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    fields = {name: found.get(name) for name in FIELDS[topic]}
    fits = all(one is None or type(one) is FIELDS[topic][name] for name, one in fields.items())
    return fields if fits else None


def _hours(topics: Mapping[str, Topic]) -> dict[Hour, Sums]:
    payments = topics["payments"].times_by_order()
    shipments = topics["shipments"].times_by_order()
    hours: dict[Hour, Sums] = {}
    for (order_id, ordered_ms), order in topics["orders"].taken.items():
        paid_at = _within(payments.get(order_id, []), ordered_ms, PAID_WITHIN_MS)
        shipped_at = _within(shipments.get(order_id, []), ordered_ms, SHIPPED_WITHIN_MS)
        hour = Hour(ordered_ms // HOUR_MS * HOUR_MS, order["country"])
        # A left join: a row for every pair, and one for an order that has none.
        for at_ms in paid_at or [None]:
            cents = 0 if at_ms is None else topics["payments"].taken[order_id, at_ms]["amount_cents"]
            one = Sums(1, order["amount_cents"], int(at_ms is not None), cents, int(bool(shipped_at)))
            for _ in shipped_at or [None]:
                hours[hour] = hours.get(hour, Sums()).plus(one)
    return hours


def _within(times: Sequence[int], from_ms: int, span_ms: int) -> list[int]:
    return [time_ms for time_ms in times if from_ms <= time_ms <= from_ms + span_ms]
