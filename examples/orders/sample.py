"""The sample: what a shop's systems would have sent on a given day, the same for the same seed.

Orders come out of order, some of them hours late; partitions are uneven; some records come twice, some orders are
forgotten (a record without a value), and a few orders are broken.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

FIRST_DAY = date(2026, 3, 2)
DAY_MS, HOUR_MS, MINUTE_MS = 86_400_000, 3_600_000, 60_000
PARTITIONS = {"orders": 4, "payments": 3, "shipments": 2}
TOPICS = tuple(PARTITIONS)
# How the orders of a day spread over its hours, from midnight on.
BY_HOUR = dict(enumerate((2, 1, 1, 1, 1, 2, 4, 7, 9, 10, 11, 13, 14, 12, 11, 11, 12, 14, 18, 22, 24, 20, 12, 5)))
COUNTRIES = {"DE": 40, "FR": 22, "NL": 14, "PL": 12, "IT": 9, "IS": 3}
ORDERS_BY_PARTITION = {0: 55, 1: 25, 2: 15, 3: 5}
ITEMS = {1: 60, 2: 25, 3: 10, 4: 5}
METHODS = {"card": 60, "transfer": 25, "invoice": 15}
CARRIERS = {"north": 50, "river": 30, "quick": 20}
BROKEN = (b"", b"not an order", b"\x00\x00\x00\x00\x07\x02", b'{"order_id": ', b'{"order_id": "none of them"}')
# A record is never later than this behind its own time.
LATEST_MS = 22 * HOUR_MS
_DAYS_BACK = 2


@dataclass(frozen=True, slots=True)
class Message:
    """A record on its way; `arrives_ms` puts it in its place in the partition."""

    topic: str
    partition: int
    key: bytes
    value: bytes | None
    timestamp_ms: int
    arrives_ms: int


def messages_of(days: range, orders: int, *, seed: int = 11) -> list[Message]:
    """What arrives on these days, in the order of arrival; orders of the days before are still paid and shipped."""
    begin_ms, end_ms = day_begins_ms(days.start), day_begins_ms(days.stop)
    told_of = range(max(0, days.start - _DAYS_BACK), days.stop)
    told = (message for day in told_of for message in _told_of(day, orders, seed))
    arriving = [message for message in told if begin_ms <= message.arrives_ms < end_ms]
    return sorted(arriving, key=lambda message: message.arrives_ms)


def day_begins_ms(day: int) -> int:
    moment = datetime.combine(FIRST_DAY + timedelta(days=day), datetime.min.time(), UTC)
    return int(moment.timestamp()) * 1000


def _told_of(day: int, orders: int, seed: int) -> Iterator[Message]:
    """Everything that is ever said about the orders of a day."""
    chance = random.Random(f"{seed}/{day}")
    for number in range(orders):
        for message in _story(day, number, chance):
            yield message
            if chance.random() < 0.005:
                yield _again(message, chance)
    yield from _broken(day, max(2, orders // 1500), chance)


def _story(day: int, number: int, chance: random.Random) -> Iterator[Message]:
    """An order, and what may follow from it."""
    order_id = (day + 1) * 1_000_000 + number
    ordered_ms = day_begins_ms(day) + _drawn(BY_HOUR, chance) * HOUR_MS + _below(HOUR_MS, chance)
    cents = int(chance.lognormvariate(8.3, 0.8)) + 99
    order = {"order_id": order_id, "customer": f"c{_below(4000, chance):04}", "country": _drawn(COUNTRIES, chance)}
    order |= {"items": _drawn(ITEMS, chance), "amount_cents": cents}
    partition = _drawn(ORDERS_BY_PARTITION, chance)
    yield _message("orders", partition, order_id, order, ordered_ms, chance)
    if chance.random() < 0.003:
        forgotten_ms = ordered_ms + _between(MINUTE_MS, 2 * HOUR_MS, chance)
        yield _message("orders", partition, order_id, None, forgotten_ms, chance)
    if chance.random() < 0.92:
        yield from _payment_and_shipment(order_id, cents, ordered_ms, chance)


def _payment_and_shipment(order_id: int, cents: int, ordered_ms: int, chance: random.Random) -> Iterator[Message]:
    """Most are paid within the hour and shipped within half a day; some take longer."""
    paid_ms = ordered_ms + min(int(chance.expovariate(1 / (8 * MINUTE_MS))), 55 * MINUTE_MS)
    if chance.random() < 0.02:
        paid_ms = ordered_ms + _between(61 * MINUTE_MS, 4 * HOUR_MS, chance)
    payment = {"order_id": order_id, "method": _drawn(METHODS, chance), "amount_cents": cents}
    yield _message("payments", order_id % PARTITIONS["payments"], order_id, payment, paid_ms, chance)
    if chance.random() < 0.85:
        shipped_ms = paid_ms + _between(30 * MINUTE_MS, 13 * HOUR_MS, chance)
        shipment = {"order_id": order_id, "carrier": _drawn(CARRIERS, chance)}
        yield _message("shipments", order_id % PARTITIONS["shipments"], order_id, shipment, shipped_ms, chance)


def _message(
    topic: str, partition: int, order_id: int, told: dict[str, object] | None, at_ms: int, chance: random.Random
) -> Message:
    value = None if told is None else json.dumps(told).encode()
    return Message(topic, partition, str(order_id).encode(), value, at_ms, at_ms + _delay_ms(chance))


def _delay_ms(chance: random.Random) -> int:
    """Seconds as a rule, minutes at times, and hours for a phone that was offline."""
    draw = chance.random()
    if draw < 0.002:
        return _between(4 * HOUR_MS, LATEST_MS, chance)
    return int(chance.expovariate(1 / ((4 * MINUTE_MS) if draw < 0.05 else 5_000)))


def _again(message: Message, chance: random.Random) -> Message:
    """The sender did not hear that it had arrived."""
    arrives_ms = message.arrives_ms + _between(1_000, 20 * MINUTE_MS, chance)
    return Message(message.topic, message.partition, message.key, message.value, message.timestamp_ms, arrives_ms)


def _broken(day: int, count: int, chance: random.Random) -> Iterator[Message]:
    for number in range(count):
        at_ms = day_begins_ms(day) + _below(DAY_MS // 2, chance)
        value = BROKEN[number % len(BROKEN)]
        yield Message("orders", _below(PARTITIONS["orders"], chance), b"?", value, at_ms, at_ms + 1000)


def _drawn(weights: dict[Any, int], chance: random.Random) -> Any:
    """One of them, as often as its weight says."""
    place = chance.random() * sum(weights.values())
    for one, weight in weights.items():
        place -= weight
        if place < 0:
            return one
    return one


def _below(end: int, chance: random.Random) -> int:
    return int(chance.random() * end)


def _between(begin: int, end: int, chance: random.Random) -> int:
    return begin + _below(end - begin, chance)
