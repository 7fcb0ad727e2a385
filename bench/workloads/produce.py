"""Produce throughput at equal durability: by the C client, and by the replay client that shows the broker alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from bench import frames, rdkafka, replay
from bench.plan import Run
from bench.subjects import KAFKA, MOCK, Fleet, Subject
from bench.throughput import Bout, Moved, Scenario, Work, with_cpu

TEXT = "MB/s and messages/s into 4 partitions, batches up to 1 MB"
PARTITIONS = 4
BATCH_BYTES = 1_000_000
MOCK_TARGET, KAFKA_TARGET = 0.8, 1.0

ACKS = {"1": 1, "all": -1}


def run(plan: Run) -> None:
    bout = Bout(plan.report, plan.size.rounds)
    for size in plan.size.record_sizes:
        # The C client is what the promise against the mock is about; the replay client shows the broker alone.
        by_c_client = partial(by_rdkafka, size, plan.size.client_megabytes)
        bout.run(f"produce by librdkafka, {size} B", list(scenarios(plan.fleet, by_c_client, {MOCK: MOCK_TARGET})))
        by_frames = partial(by_replay, size, plan.size.raw_megabytes)
        bout.run(f"produce by replay client, {size} B", list(scenarios(plan.fleet, by_frames, {})))


def scenarios(fleet: Fleet, work: Callable[[str], Work], mock_target: dict[str, float]) -> Iterator[Scenario]:
    """Pairs of equal durability: written by both, or fsynced by both. The mock stores nothing."""
    written = present(fleet.lowwater(flush="none for acks=1"), fleet.mock(), fleet.kafka())
    yield Scenario("acks=1", written, work("1"), {**mock_target, KAFKA: KAFKA_TARGET})
    never = present(fleet.lowwater("never"), fleet.mock(), fleet.kafka())
    yield Scenario("acks=all, not fsynced", never, work("all"), {KAFKA: KAFKA_TARGET})
    fsynced = present(fleet.lowwater("acks"), fleet.kafka(flush_each=True))
    yield Scenario("acks=all, fsynced", fsynced, work("all"), {KAFKA: KAFKA_TARGET})


def present(*subjects: Subject | None) -> list[Subject]:
    return [subject for subject in subjects if subject is not None]


def by_replay(record_bytes: int, megabytes: int, acks: str) -> Work:
    batch, count = frames.batch_of(record_bytes, BATCH_BYTES)
    requests = megabytes * 1_000_000 // len(batch)

    def work(subject: Subject) -> Moved:
        with subject.topic(PARTITIONS) as topic:
            prebuilt = [frames.produce(topic, p, batch, count, ACKS[acks]) for p in range(PARTITIONS)]
            load, cpu_seconds = with_cpu(subject, lambda: replay.produce(subject.port, prebuilt, requests))
        return Moved(load.replies * count, record_bytes, load.seconds, cpu_seconds)

    return work


def by_rdkafka(record_bytes: int, megabytes: int, acks: str) -> Work:
    records = megabytes * 1_000_000 // record_bytes

    def work(subject: Subject) -> Moved:
        with subject.topic(PARTITIONS) as topic:
            what = {"topic": topic, "partitions": PARTITIONS, "record_bytes": record_bytes, "records": records}
            send = partial(rdkafka.run, "produce", bootstrap=subject.bootstrap, acks=acks, **what)
            done, cpu_seconds = with_cpu(subject, send)
        return Moved(done["records"], record_bytes, done["seconds"], cpu_seconds)

    return work
