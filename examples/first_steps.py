"""`make run`: start a broker, produce a day of orders, read on from six hours ago in order of time; then as a group.

Orders are produced, and read by the group, with confluent-kafka, an ordinary Kafka client; `lowwater.read` finds the
moment and reads on from there. What is read back is compared with what was sent; the exit code says whether they agree.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import lowwater
from lowwater.testing import Broker

TOPIC = "orders"
GROUP = "billing"
PARTITIONS = 4
ORDERS = 50_000
HOUR_MS = 3_600_000
BAR_WIDTH = 40
PATIENCE_S = 90


def main() -> int:
    started = time.perf_counter()
    with Broker(subprocess=True) as broker:
        print(f"1. A broker is up on {broker.bootstrap} after {seconds_since(started)}.")
        end_ms = int(time.time() * 1000)
        sent = produce_a_day(broker.bootstrap, end_ms)
        since_ms = end_ms - 6 * HOUR_MS
        received = read_from(broker.bootstrap, since_ms)
        by_group = read_as_group(broker)
    show(received, since_ms)
    expected = {order: at_ms for order, at_ms in sent.items() if at_ms >= since_ms}
    if received != expected:
        print(f"\nThey differ: {len(expected):,} orders were expected, {len(received):,} came back.")
        return 1
    print(f"\nEvery one of the {len(expected):,} orders since then came back, each once, in order of time.")
    if by_group != Counter(sent.keys()):
        print(f"But the group read {by_group.total():,} orders, {len(by_group):,} of them different, of {len(sent):,}.")
        return 1
    print(f"The group read all {len(sent):,} orders, none twice, although its broker was killed half-way.")
    print("Run a broker of your own: .venv/bin/lowwater broker   (--help says more)")
    return 0


def produce_a_day(bootstrap: str, end_ms: int) -> dict[int, int]:
    """Orders over 24 hours, busier towards the evening; returns order number -> timestamp."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "compression.type": "lz4"})
    failures: list[str] = []
    started = time.perf_counter()
    sent = {}
    for number in range(ORDERS):
        at_ms = end_ms - 24 * HOUR_MS + int(24 * HOUR_MS * (number / ORDERS) ** 0.7)
        value = json.dumps({"order": number, "amount": number % 97}).encode()
        producer.produce(
            TOPIC,
            value,
            key=str(number % 1000),
            timestamp=at_ms,
            on_delivery=lambda error, _: failures.append(str(error)) if error else None,
        )
        producer.poll(0)
        sent[number] = at_ms
    producer.flush()
    if failures:
        raise SystemExit(f"{len(failures)} orders were not taken: {failures[0]}")
    print(f"2. {ORDERS:,} orders of the last 24 hours are in {PARTITIONS} partitions, in {seconds_since(started)}.")
    return sent


def read_from(bootstrap: str, since_ms: int) -> dict[int, int]:
    """Read every partition from that moment to its end, in the order of time; returns order number -> timestamp."""
    moment = datetime.fromtimestamp(since_ms / 1000, UTC)
    with lowwater.read(TOPIC, bootstrap=bootstrap, start=moment, stop="latest") as reader:
        offsets = ", ".join(f"{offset:,}" for _, offset in sorted(reader.starts.items()))
        print(f"3. {moment:%Y-%m-%d %H:%M} UTC begins at offsets {offsets} of partitions 0 to {PARTITIONS - 1}.")
        started = time.perf_counter()
        table = reader.to_table()
    print(f"4. Read {table.num_rows:,} orders from there to the end, in order of time, in {seconds_since(started)}.")
    times = table["timestamp"].cast("int64").to_pylist()
    if times != sorted(times):
        raise SystemExit("the orders are not in the order of time")
    return {json.loads(value)["order"]: at_ms for value, at_ms in zip(table["value"].to_pylist(), times, strict=True)}


def read_as_group(broker: Broker) -> Counter[int]:
    """Two consumers share the partitions; the broker dies half-way; others go on from what was committed."""
    read: Counter[int] = Counter()
    started = time.perf_counter()
    members = [group_member(broker.bootstrap) for _ in range(2)]
    while read.total() < ORDERS // 2 or min(len(member.assignment()) for member in members) == 0:
        read_on(members, read, started)
    shares = " and ".join(str(sorted(tp.partition for tp in member.assignment())) for member in members)
    print(f"5. Two members of group {GROUP} share partitions {shares}: {read.total():,} orders read and committed.")
    started = time.perf_counter()
    broker.kill()
    broker.start()
    print(f"6. The broker was killed (-9) and is back after {seconds_since(started)}.")
    while read.total() < ORDERS:
        read_on(members, read, started)
    for member in members:
        member.close()
    committed = sum(tp.offset for tp in committed_offsets(broker.bootstrap))
    print(f"7. The same members went on where they stood; {committed:,} orders are committed.")
    return read


def group_member(bootstrap: str) -> Consumer:
    settings = {"group.id": GROUP, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    member = Consumer({"bootstrap.servers": bootstrap, "log_level": 0, **settings})
    member.subscribe([TOPIC])
    return member


def read_on(members: list[Consumer], read: Counter[int], started: float) -> None:
    if time.perf_counter() - started > PATIENCE_S:
        raise SystemExit(f"the group stands still after {read.total():,} orders")
    for member in members:
        read.update(read_and_commit(member))


def read_and_commit(member: Consumer) -> list[int]:
    """Up to 2,000 orders, none of which is ever read again by the group."""
    messages = [message for message in member.consume(2000, timeout=0.2) if not message.error()]
    if messages:
        try:
            member.commit(asynchronous=False)
        except KafkaException:
            # The group is rebalancing: whoever gets these partitions reads from the last commit again.
            return []
    return [json.loads(message.value())["order"] for message in messages]


def committed_offsets(bootstrap: str) -> list[TopicPartition]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    asked = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
    found = consumer.committed(asked, timeout=10)
    consumer.close()
    return list(found)


def show(received: dict[int, int], since_ms: int) -> None:
    """Orders by hour, as bars."""
    by_hour = Counter((at_ms - since_ms) // HOUR_MS for at_ms in received.values())
    most = max(by_hour.values(), default=1)
    print("\n   hour (UTC)   orders")
    for hour, count in sorted(by_hour.items()):
        begins = datetime.fromtimestamp(since_ms / 1000, UTC) + timedelta(hours=hour)
        print(f"   {begins:%H:%M}       {count:>7,}  {'█' * round(BAR_WIDTH * count / most)}")


def seconds_since(started: float) -> str:
    return f"{time.perf_counter() - started:.2f} s"


if __name__ == "__main__":
    sys.exit(main())
