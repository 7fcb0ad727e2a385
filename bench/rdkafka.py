"""librdkafka, the C client, each run in a process of its own: `python -m bench.rdkafka ACTION JSON` prints JSON."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import confluent_kafka
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.subjects import ROOT

MESSAGES_PER_CALL = 5_000
RUN_TIMEOUT_S = 300


def run(action: str, **arguments: Any) -> dict[str, Any]:
    """Run one of ACTIONS in a new process; return what it measured."""
    command = [sys.executable, "-m", "bench.rdkafka", action, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=RUN_TIMEOUT_S)
    if done.returncode != 0:
        raise RuntimeError(f"librdkafka's {action} failed:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _producer(bootstrap: str, acks: str, **more: Any) -> confluent_kafka.Producer:
    return confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": acks,
            "linger.ms": 20,
            "batch.size": 1_000_000,
            "batch.num.messages": 1_000_000,
            "message.max.bytes": 1_000_000,
            "queue.buffering.max.messages": 2_000_000,
            "queue.buffering.max.kbytes": 1_000_000,
            **more,
        }
    )


def produce(bootstrap: str, topic: str, partitions: int, acks: str, record_bytes: int, records: int) -> dict[str, Any]:
    """As fast as it goes: batches up to 1 MB, linger 20 ms, the partitions in turn."""
    producer = _producer(bootstrap, acks)
    for partition in range(partitions):
        producer.produce(topic, b"first", partition=partition)
    _flush(producer)
    messages = [{"value": b"x" * record_bytes}] * MESSAGES_PER_CALL
    calls = max(1, records // MESSAGES_PER_CALL)
    started, cpu_started = time.perf_counter(), time.process_time()
    for call in range(calls):
        producer.produce_batch(topic, messages, partition=call % partitions)
        producer.poll(0)
    _flush(producer)
    elapsed = {"seconds": time.perf_counter() - started, "client_cpu_seconds": time.process_time() - cpu_started}
    return {"records": calls * MESSAGES_PER_CALL, **elapsed}


def _flush(producer: confluent_kafka.Producer) -> None:
    if left := producer.flush(120):
        raise TimeoutError(f"{left} messages were not acknowledged within 120 s")


def _consumer(bootstrap: str, **more: Any) -> confluent_kafka.Consumer:
    return confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "fetch.queue.backoff.ms": 1,
            "queued.min.messages": 1_000_000,
            "queued.max.messages.kbytes": 256 * 1024,
            **more,
        }
    )


def _assign(consumer: confluent_kafka.Consumer, topic: str, partitions: int, offset: int) -> None:
    consumer.assign([confluent_kafka.TopicPartition(topic, index, offset) for index in range(partitions)])


def consume(bootstrap: str, topic: str, partitions: int, records: int) -> dict[str, Any]:
    """Read `records` records of an assigned topic from its beginning, and only count them."""
    consumer = _consumer(bootstrap)
    _assign(consumer, topic, partitions, 0)
    got, started = 0, 0.0
    while got < records:
        messages = consumer.consume(min(10_000, records - got), 60)
        if not messages:
            raise TimeoutError(f"{got} of {records} records within 60 s")
        if not started:
            # The clock starts with the first records: connecting and the first metadata are not what is measured.
            started, counted_from = time.perf_counter(), len(messages)
        if (error := messages[0].error()) is not None:
            raise RuntimeError(str(error))
        got += len(messages)
    seconds = time.perf_counter() - started
    consumer.close()
    return {"records": got - counted_from, "seconds": seconds}


def latency(bootstrap: str, topic: str, records: int, per_second: int) -> dict[str, Any]:
    """From produce() to the record's arrival at a consumer, in milliseconds, at a steady rate."""
    arrived: list[float] = []
    consumer = _consumer(bootstrap)
    producer = _producer(bootstrap, "1", **{"linger.ms": 0})
    producer.produce(topic, struct.pack(">q", 0), partition=0)
    _flush(producer)
    _assign(consumer, topic, 1, 0)
    if consumer.poll(30) is None:
        raise TimeoutError("the first record did not arrive")

    def receive() -> None:
        while len(arrived) < records and (message := consumer.poll(30)) is not None:
            (sent_ns,) = struct.unpack(">q", message.value() or b"")
            arrived.append((time.monotonic_ns() - sent_ns) / 1e6)

    receiver = threading.Thread(target=receive)
    receiver.start()
    due = time.monotonic()
    for _ in range(records):
        producer.produce(topic, struct.pack(">q", time.monotonic_ns()), partition=0)
        producer.poll(0)
        due += 1 / per_second
        time.sleep(max(0.0, due - time.monotonic()))
    receiver.join()
    consumer.close()
    return {"milliseconds": arrived}


def create(bootstrap: str, topic: str, partitions: int) -> dict[str, Any]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    (created,) = admin.create_topics([NewTopic(topic, partitions, 1)], request_timeout=60).values()
    created.result()
    return {"records": 0}


def spread(bootstrap: str, topic: str, partitions: int, acks: str, per_partition: int) -> dict[str, Any]:
    """`per_partition` records into each partition."""
    producer = _producer(bootstrap, acks)
    messages = [{"value": b"x" * 100}] * per_partition
    for partition in range(partitions):
        producer.produce_batch(topic, messages, partition=partition)
    _flush(producer)
    return {"records": partitions * per_partition}


def gather(bootstrap: str, topic: str, partitions: int, per_partition: int) -> dict[str, Any]:
    """Read until every partition has given `per_partition` records; more or fewer is an error."""
    consumer = _consumer(bootstrap)
    _assign(consumer, topic, partitions, 0)
    wanted = partitions * per_partition
    got: Counter[int] = Counter()
    while sum(got.values()) < wanted:
        messages = consumer.consume(min(10_000, wanted - sum(got.values())), 60)
        if not messages:
            raise TimeoutError(f"{sum(got.values())} of {wanted} records within 60 s")
        got.update(message.partition() or 0 for message in messages if message.error() is None)
    consumer.close()
    if len(got) != partitions or set(got.values()) != {per_partition}:
        raise RuntimeError(f"{len(got)} partitions gave {sorted(set(got.values()))} records each")
    return {"records": wanted}


ACTIONS: dict[str, Callable[..., dict[str, Any]]] = {
    "produce": produce,
    "consume": consume,
    "latency": latency,
    "create": create,
    "spread": spread,
    "gather": gather,
}


def main() -> None:
    action, arguments = sys.argv[1:]
    print(json.dumps(ACTIONS[action](**json.loads(arguments))))


if __name__ == "__main__":
    main()
