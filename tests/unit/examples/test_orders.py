"""The sample of orders, what should become of it, and that the check notices when something else did."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest
from examples.orders.check import GROUP, Found, differences, reconciled
from examples.orders.expected import HOUR_MS, Batch, Hour, Record, Sums, decoded, expected
from examples.orders.reading import read_batches
from examples.orders.sample import PARTITIONS, TOPICS, day_begins_ms, messages_of

NOON_MS = day_begins_ms(0) + 12 * HOUR_MS


# ---- the sample


@pytest.fixture(scope="module")
def three_days():
    return messages_of(range(3), 400)


def test_the_sample_is_the_same_every_time(three_days):
    assert messages_of(range(3), 400) == three_days


def test_days_that_are_loaded_one_by_one_are_the_same_days(three_days):
    assert [message for day in range(3) for message in messages_of(range(day, day + 1), 400)] == three_days


def test_the_sample_has_what_real_data_have(three_days):
    orders = [message for message in three_days if message.topic == "orders"]
    by_partition = Counter(message.partition for message in orders)
    assert by_partition[0] > 5 * by_partition[3] > 0
    times = [message.timestamp_ms for message in orders if message.partition == 0]
    assert times != sorted(times)
    assert any(message.arrives_ms - message.timestamp_ms > 2 * HOUR_MS for message in three_days)
    assert any(message.value is None for message in orders)
    assert any(message.value is not None and decoded("orders", message.value) is None for message in orders)
    assert set(Counter((message.key, message.value) for message in orders if message.key != b"?").values()) == {1, 2}
    assert {message.topic for message in three_days} == set(TOPICS)
    assert all(message.partition < PARTITIONS[message.topic] for message in three_days)


# ---- what should come out


def order(order_id, at_ms, cents=1000, country="DE"):
    fields = {"order_id": order_id, "customer": "c1", "country": country, "items": 1, "amount_cents": cents}
    return Record(at_ms, json.dumps(fields).encode())


def payment(order_id, at_ms, cents=1000):
    return Record(at_ms, json.dumps({"order_id": order_id, "method": "card", "amount_cents": cents}).encode())


def shipment(order_id, at_ms):
    return Record(at_ms, json.dumps({"order_id": order_id, "carrier": "north"}).encode())


def logs_of(**records):
    return {(topic, 0): dict(enumerate(log)) for topic, log in records.items()}


def one_batch(logs, watermark_ms=0):
    return Batch({one: (0, len(log)) for one, log in logs.items()}, watermark_ms)


def test_an_order_is_joined_with_what_followed_in_time():
    minute = 60_000
    logs = logs_of(
        orders=[order(1, NOON_MS), order(2, NOON_MS + minute), order(3, NOON_MS + HOUR_MS)],
        payments=[payment(1, NOON_MS + HOUR_MS), payment(2, NOON_MS + minute + HOUR_MS + 1)],
        shipments=[shipment(1, NOON_MS + 12 * HOUR_MS), shipment(3, NOON_MS)],
    )
    should = expected(logs, [one_batch(logs)])
    assert should.closed == {}
    assert should.open == {
        Hour(NOON_MS, "DE"): Sums(orders=2, ordered_cents=2000, paid=1, paid_cents=1000, shipped=1),
        Hour(NOON_MS + HOUR_MS, "DE"): Sums(orders=1, ordered_cents=1000),
    }


def test_an_hour_is_closed_when_the_watermark_is_thirteen_hours_behind_its_end():
    logs = logs_of(orders=[order(1, NOON_MS)])
    until_ms = NOON_MS + HOUR_MS + 13 * HOUR_MS
    assert not expected(logs, [one_batch(logs, until_ms - 1)]).closed
    assert expected(logs, [one_batch(logs, until_ms)]).closed


def test_a_row_is_late_by_the_watermark_of_the_batch_before():
    logs = logs_of(orders=[order(1, NOON_MS), order(2, NOON_MS), order(3, NOON_MS + 1), order(4, NOON_MS)])
    batches = [
        Batch({("orders", 0): (0, 1)}, 0),
        Batch({("orders", 0): (1, 2)}, NOON_MS),  # its own watermark does not count yet
        Batch({("orders", 0): (2, 4)}, NOON_MS),
    ]
    topic = expected(logs, batches).topics["orders"]
    assert topic.fates == {"taken": 3, "late": 1}
    assert (4, NOON_MS) not in topic.taken


def test_what_comes_again_is_taken_once():
    logs = logs_of(orders=[order(1, NOON_MS), order(1, NOON_MS), order(1, NOON_MS + 1)])
    assert expected(logs, [one_batch(logs)]).topics["orders"].fates == {"taken": 2, "again": 1}


def test_tombstones_and_broken_values_are_neither_orders_nor_late():
    logs = logs_of(orders=[Record(1, None), Record(1, b""), Record(1, b'{"order_id": "x"}'), Record(1, b"[]")])
    batches = [Batch({}, NOON_MS), one_batch(logs, NOON_MS)]
    topic = expected(logs, batches).topics["orders"]
    assert topic.fates == {"forgotten": 1, "broken": 3}
    assert topic.broken == [(0, 1), (0, 2), (0, 3)]


# ---- the check


@pytest.fixture
def right():
    """Topics of which one hour is written, and everything is as it should be."""
    logs = logs_of(
        orders=[order(1, NOON_MS), order(1, NOON_MS), Record(NOON_MS, b"?"), order(2, NOON_MS + 40 * HOUR_MS)],
        payments=[payment(1, NOON_MS + 1), payment(7, NOON_MS)],
        shipments=[shipment(1, NOON_MS + 2)],
    )
    batches = [one_batch(logs, 0), Batch({}, NOON_MS + 38 * HOUR_MS)]
    letters = [(("orders", 0), 2, b"?")]
    hours = {Hour(NOON_MS, "DE"): Sums(1, 1000, 1, 1000, 1)}
    return Found(logs, batches, hours, letters, {one: len(log) for one, log in logs.items()})


def problems(found):
    return list(differences(found, expected(found.logs, found.batches)))


def test_a_right_result_has_no_differences(right):
    assert problems(right) == []


def test_every_record_is_accounted_for(right):
    lines = reconciled(right, expected(right.logs, right.batches))
    table = {line[3:31].strip(): line[31:].split() for line in lines[1:]}
    assert table == {
        "records read": ["4", "2", "1"],
        "in hours that are written": ["1", "1", "1"],
        "in hours still open": ["1", "0", "0"],
        "without an order in reach": ["0", "1", "0"],
        "behind the watermark": ["0", "0", "0"],
        "sent twice": ["1", "0", "0"],
        "tombstones": ["0", "0", "0"],
        "dead letters": ["1", "0", "0"],
        "unaccounted for": ["0", "0", "0"],
    }


WRONG = {
    "a sum": lambda found: replace(found, hours={Hour(NOON_MS, "DE"): Sums(1, 1001, 1, 1000, 1)}),
    "a row is missing": lambda found: replace(found, hours={}),
    "a row too many": lambda found: replace(found, hours={**found.hours, Hour(0, "DE"): Sums(1)}),
    "a dead letter is missing": lambda found: replace(found, dead_letters=[]),
    "a dead letter too many": lambda found: replace(
        found, dead_letters=[*found.dead_letters, (("orders", 0), 0, found.logs["orders", 0][0].value)]
    ),
    "a dead letter has another value": lambda found: replace(found, dead_letters=[(("orders", 0), 2, b"!")]),
    "the group is behind": lambda found: replace(found, committed={**found.committed, ("orders", 0): 3}),
    "the group has nothing": lambda found: replace(found, committed={}),
    "a record is not read": lambda found: replace(
        found, logs={**found.logs, ("orders", 0): {**found.logs["orders", 0], 4: order(9, NOON_MS)}}
    ),
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG.keys())
def test_the_check_notices(change, right):
    assert problems(change(right))


def test_what_differs_is_named(right):
    (problem,) = problems(WRONG["the group is behind"](right))
    assert problem == f"{GROUP} has committed 3 of orders-0, which was read up to 4"


# ---- Spark's checkpoint


def test_batches_are_read_from_a_checkpoint(tmp_path):
    (tmp_path / "commits").mkdir()
    (tmp_path / "offsets").mkdir()
    batches = [(5, {"0": 2}, 0), (5, {"0": 2}, 70), (9, {}, 80), (12, {}, 90)]
    for number, (at, begin, watermark_ms) in enumerate(batches):
        told = {"lowwater": 1, "lineage": "5f2c9a1e", "topics": {"orders": {"at": {"0": at}, "begin": begin}}}
        text = "\n".join(["v1", json.dumps({"batchWatermarkMs": watermark_ms}), json.dumps(told), "-"])
        (tmp_path / "offsets" / str(number)).write_text(text)
        if number < 3:
            (tmp_path / "commits" / str(number)).write_text("v1\n{}")
    assert read_batches(tmp_path) == [
        Batch({("orders", 0): (2, 5)}, 0),
        Batch({("orders", 0): (5, 5)}, 70),
        Batch({("orders", 0): (5, 9)}, 80),
    ]
