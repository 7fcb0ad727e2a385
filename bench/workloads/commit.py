"""acks=all with fsync over few and many partitions: how well waiting requests share an fsync."""

from __future__ import annotations

from functools import partial

from bench import frames, replay
from bench.plan import Run
from bench.subjects import KAFKA, LOWWATER, Subject
from bench.throughput import Bout, Moved, Scenario, Work, with_cpu
from bench.workloads.produce import KAFKA_TARGET, present

TEXT = "acks=all, every batch fsynced before its reply, over 1, 64 and 1,000 partitions"
PARTITIONS = (1, 64, 1000)
RECORD_BYTES = 1000
BATCH_BYTES = 16_000
CONNECTIONS = 8
IN_FLIGHT = 5
ROUNDS_MAX = 3


def run(plan: Run) -> None:
    scenarios = []
    for partitions in PARTITIONS[:2] if plan.quick else PARTITIONS:
        fleet = plan.fleet
        subjects = present(fleet.lowwater("acks"), fleet.kafka(flush_each=True))
        title = f"{partitions:,} partition{'s' if partitions > 1 else ''}"
        work = by_replay(partitions, plan.size.commit_seconds)
        scenarios.append(Scenario(title, subjects, work, {KAFKA: KAFKA_TARGET}))
    title = f"acks=all by replay client, 16-KB batches of 1 KB, {CONNECTIONS} connections × {IN_FLIGHT} in flight"
    Bout(plan.report, min(plan.size.rounds, ROUNDS_MAX)).run(title, scenarios)


def by_replay(partitions: int, seconds: float) -> Work:
    batch, count = frames.batch_of(RECORD_BYTES, BATCH_BYTES)

    def work(subject: Subject) -> Moved:
        with subject.topic(partitions) as topic:
            prebuilt = [frames.produce(topic, p, batch, count, -1) for p in range(partitions)]
            if subject.name == LOWWATER:
                # Kafka makes a partition's files with the topic, Lowwater with the first record: not on the clock.
                replay.produce(subject.port, prebuilt, partitions)
            send = partial(replay.produce, seconds=seconds, connection_count=CONNECTIONS, depth=IN_FLIGHT)
            load, cpu_seconds = with_cpu(subject, lambda: send(subject.port, prebuilt))
        return Moved(load.replies * count, RECORD_BYTES, load.seconds, cpu_seconds)

    return work
