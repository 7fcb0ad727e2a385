"""Fetch throughput from the page cache: by the replay client that drops the bytes, and by the C client that counts."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass
from functools import partial

from bench import frames, rdkafka, replay
from bench.plan import Run
from bench.subjects import KAFKA, MOCK, Subject
from bench.throughput import Bout, Moved, Scenario, Work, with_cpu
from bench.workloads.produce import KAFKA_TARGET, present

TEXT = "MB/s out of 4 partitions, pages cached"
PARTITIONS = 4
REPLY_BYTES = 1_000_000
# The mock forgets beyond 5 MiB a partition: it serves the same few megabytes again and again.
MOCK_BATCHES = 4


@dataclass(frozen=True, slots=True)
class Filled:
    """A topic with `batches` equal batches in every partition."""

    topic: str
    batch_bytes: int
    batch_records: int
    record_bytes: int
    batches: int

    @property
    def records(self) -> int:
        return PARTITIONS * self.batches * self.batch_records


def run(plan: Run) -> None:
    with contextlib.ExitStack() as topics:
        bout = Bout(plan.report, plan.size.rounds)
        bout.run("fetch by replay client, 1 MB a request", replay_scenarios(plan, topics))
        bout.run("consume by librdkafka", client_scenarios(plan, topics))


def replay_scenarios(plan: Run, topics: contextlib.ExitStack) -> list[Scenario]:
    fleet, megabytes = plan.fleet, plan.size.raw_megabytes
    scenarios = []
    for title, batch_bytes in (("1-MB batches", REPLY_BYTES), ("16-KB batches", 16_000)):
        single = batch_bytes == REPLY_BYTES
        # Of small batches the mock returns one a request, which compares nothing.
        subjects = present(fleet.lowwater(), fleet.mock() if single else None, fleet.kafka())
        filled = {one.name: fill(topics, one, 1000, batch_bytes, megabytes) for one in subjects}
        work = by_replay(filled, megabytes)
        scenarios.append(Scenario(f"1 KB records, {title}", subjects, work, {KAFKA: KAFKA_TARGET}))
    return scenarios


def client_scenarios(plan: Run, topics: contextlib.ExitStack) -> list[Scenario]:
    subjects = present(plan.fleet.lowwater(), plan.fleet.kafka())
    scenarios = []
    for size in (100, 1000):
        megabytes = plan.size.client_megabytes // (2 if size == 100 else 1)
        filled = {one.name: fill(topics, one, size, 100_000, megabytes) for one in subjects}
        scenarios.append(Scenario(f"{size} B", subjects, by_rdkafka(filled), {KAFKA: KAFKA_TARGET}))
    return scenarios


def fill(topics: contextlib.ExitStack, subject: Subject, record_bytes: int, batch_bytes: int, megabytes: int) -> Filled:
    topic = topics.enter_context(subject.topic(PARTITIONS))
    batch, count = frames.batch_of(record_bytes, batch_bytes)
    batches = MOCK_BATCHES if subject.name == MOCK else megabytes * 1_000_000 // len(batch) // PARTITIONS
    prebuilt = [frames.produce(topic, p, batch, count, 1) for p in range(PARTITIONS)]
    replay.produce(subject.port, prebuilt, batches * PARTITIONS)
    return Filled(topic, len(batch), count, record_bytes, batches)


def by_replay(filled: dict[str, Filled], megabytes: int) -> Work:
    def work(subject: Subject) -> Moved:
        topic = filled[subject.name]
        requests, sizes, batches = plan_requests(topic, megabytes)
        error_at = frames.fetch_error_at(topic.topic)
        load, cpu_seconds = with_cpu(subject, lambda: replay.fetch(subject.port, requests, sizes, error_at))
        return Moved(batches * topic.batch_records, topic.record_bytes, load.seconds, cpu_seconds)

    return work


def plan_requests(topic: Filled, megabytes: int) -> tuple[list[bytes], list[int], int]:
    """Requests that read every partition from the beginning, again if need be; their reply sizes; batches in all."""
    per_reply = max(1, REPLY_BYTES // topic.batch_bytes)
    requests: list[bytes] = []
    for first in itertools.cycle(range(0, topic.batches - per_reply + 1, per_reply)):
        for partition in range(PARTITIONS):
            position = {partition: first * topic.batch_records}
            requests.append(frames.fetch(topic.topic, position, per_reply * topic.batch_bytes))
        if len(requests) * per_reply * topic.batch_bytes >= megabytes * 1_000_000:
            break
    size = frames.fetch_reply_size(topic.topic, per_reply * topic.batch_bytes)
    return requests, [size] * len(requests), len(requests) * per_reply


def by_rdkafka(filled: dict[str, Filled]) -> Work:
    def work(subject: Subject) -> Moved:
        topic = filled[subject.name]
        what = {"topic": topic.topic, "partitions": PARTITIONS, "records": topic.records}
        receive = partial(rdkafka.run, "consume", bootstrap=subject.bootstrap, **what)
        done, cpu_seconds = with_cpu(subject, receive)
        return Moved(done["records"], topic.record_bytes, done["seconds"], cpu_seconds)

    return work
