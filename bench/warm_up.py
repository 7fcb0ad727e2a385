"""Bring a JVM to speed before it is measured: it compiles what it has run often, and that takes many requests."""

from __future__ import annotations

import time

from bench import frames, replay
from bench.subjects import Subject

BATCH_SIZES = (1_000, 16_000, 100_000, 1_000_000)
BATCHES = 200
PARTITIONS = 4


def warm_up(subject: Subject, seconds: float) -> None:
    """Produce and fetch batches of all sizes, and ask for metadata, for that long."""
    print(f"  warming {subject.name} up for {seconds:.0f} s", flush=True)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for batch_bytes in BATCH_SIZES:
            _produce_and_fetch(subject, batch_bytes)


def _produce_and_fetch(subject: Subject, batch_bytes: int) -> None:
    batch, count = frames.batch_of(100, batch_bytes)
    batches = min(BATCHES, 40_000_000 // len(batch))
    with subject.topic(PARTITIONS) as topic:
        for acks in (1, -1):
            requests = [frames.produce(topic, index, batch, count, acks) for index in range(PARTITIONS)]
            replay.produce(subject.port, requests, PARTITIONS * batches)
        fetches = [frames.fetch(topic, {i % PARTITIONS: i // PARTITIONS * count}, len(batch)) for i in range(batches)]
        sizes = [frames.fetch_reply_size(topic, len(batch))] * len(fetches)
        replay.fetch(subject.port, fetches, sizes, frames.fetch_error_at(topic))
        ask = frames.metadata([topic])
        with replay.connections(subject.port, 1) as (connection,):
            pipeline = replay.Pipeline(connection, [ask], replay.reply_size(subject.port, ask))
            replay.drive([pipeline], 16, replay.total(BATCHES))
