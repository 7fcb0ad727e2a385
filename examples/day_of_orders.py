"""A broker with a day of orders in it, for the examples to read."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from lowwater import Admin, NewTopic, Producer
from lowwater.testing import Broker

TOPIC = "orders"
CUSTOMERS = 7
DAY_MS = 86_400_000


@contextmanager
def broker_with_orders(count: int = 2_400, partitions: int = 4) -> Iterator[str]:
    """Where it is, as host:port. To read from a broker of your own, give that instead."""
    with Broker() as broker:
        with Admin(broker.bootstrap) as admin:
            admin.create_topics([NewTopic(TOPIC, partitions)]).checked()
        with Producer(broker.bootstrap) as producer:
            producer.send_table(TOPIC, day_of_orders(count))
        yield broker.bootstrap


def day_of_orders(count: int) -> pa.Table:
    """Evenly over the last 24 hours; the oldest comes first."""
    begin_ms = time.time_ns() // 1_000_000 - DAY_MS
    times = [begin_ms + number * DAY_MS // count for number in range(count)]
    return pa.table(
        {
            "key": [customer(number).encode() for number in range(count)],
            "value": [json.dumps({"order": number, "amount": amount(number)}).encode() for number in range(count)],
            "timestamp": pa.array(times, pa.timestamp("ms", "UTC")),
        }
    )


def customer(number: int) -> str:
    return f"customer-{number % CUSTOMERS}"


def amount(number: int) -> int:
    return number % 97 + 1


def totals(count: int) -> dict[str, int]:
    """What every customer spent, for comparing."""
    found = dict.fromkeys(map(customer, range(min(count, CUSTOMERS))), 0)
    for number in range(count):
        found[customer(number)] += amount(number)
    return found
