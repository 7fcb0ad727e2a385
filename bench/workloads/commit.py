"""acks=all with fsync over few and many partitions: how well waiting requests share an fsync."""

from __future__ import annotations

from bench import frames, replay
from bench.plan import Run
from bench.subjects import KAFKA, Subject
from bench.throughput import Bout, Moved, Scenario, Work
from bench.workloads.produce import KAFKA_TARGET, present

TEXT = "acks=all, every batch fsynced before its reply, over 1, 64 and 1,000 partitions"
PARTITIONS = (1, 64, 1000)
RECORD_BYTES = 1000
BATCH_BYTES = 16_000
CONNECTIONS = 8
IN_FLIGHT = 5


def run(plan: Run) -> None:
    megabytes = max(10, plan.size.raw_megabytes // 10)
    scenarios = []
    for partitions in PARTITIONS[:2] if plan.quick else PARTITIONS:
        fleet = plan.fleet
        subjects = present(fleet.lowwater("acks"), fleet.kafka(flush_each=True))
        title = f"{partitions:,} partition{'s' if partitions > 1 else ''}"
        scenarios.append(Scenario(title, subjects, by_replay(partitions, megabytes), {KAFKA: KAFKA_TARGET}))
    title = f"acks=all by replay client, 16-KB batches of 1 KB, {CONNECTIONS} connections × {IN_FLIGHT} in flight"
    Bout(plan.report, plan.size.rounds).run(title, scenarios)


def by_replay(partitions: int, megabytes: int) -> Work:
    batch, count = frames.batch_of(RECORD_BYTES, BATCH_BYTES)
    requests = megabytes * 1_000_000 // len(batch)

    def work(subject: Subject) -> Moved:
        with subject.topic(partitions) as topic:
            prebuilt = [frames.produce(topic, p, batch, count, -1) for p in range(partitions)]
            # Kafka makes a partition's files with the topic, Lowwater with its first record: before the clock starts.
            replay.produce(subject.port, prebuilt, partitions, connection_count=CONNECTIONS, depth=IN_FLIGHT)
            load = replay.produce(subject.port, prebuilt, requests, connection_count=CONNECTIONS, depth=IN_FLIGHT)
        return Moved(load.replies * count, RECORD_BYTES, load.seconds)

    return work
