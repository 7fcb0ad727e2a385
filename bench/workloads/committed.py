"""A million committed offsets: how fast they come in, what they hold, and how soon they are back after a restart."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from peers.kafka import BENCH_JVM, ApacheKafka

from bench import connection, group_frames, members, procfs, replay
from bench.plan import Run
from bench.report import Row, number
from bench.rounds import Sample, interleave
from bench.subjects import KAFKA, KAFKA_SETTINGS, LOWWATER, LOWWATER_SETTINGS, LowwaterBroker, Subject

TEXT = "1,000,000 committed offsets: commit rate, memory, restart"
HEADER = ("subject", "k offsets/s", "CPU µs/offset", "RSS MB", "more than before", "bytes/offset", "back after s")
PARTITIONS = 100
CONNECTIONS, IN_FLIGHT = 8, 8
RESTART_GOAL_S = 10

Broker = LowwaterBroker | ApacheKafka


def run(plan: Run) -> None:
    with contextlib.ExitStack() as stack:
        brokers: dict[str, Broker] = {LOWWATER: stack.enter_context(_lowwater())}
        if plan.fleet.kafka_missing is None:
            brokers[KAFKA] = stack.enter_context(ApacheKafka(KAFKA_SETTINGS, jvm=BENCH_JVM))
        measured = interleave(
            {name: _bind(name, broker, plan.size.committed_offsets) for name, broker in brokers.items()}, 1
        )
    plan.report.keep("committed offsets", measured)
    figures = ("k_offsets_per_s", "cpu_us", "rss", "grown", "bytes_per_offset", "back_s")
    rows: list[Row] = [(name, *(number(measured.median(name, one)) for one in figures)) for name in brokers]
    count = plan.size.committed_offsets
    title = f"{count:,} offsets, {PARTITIONS} a request, {CONNECTIONS} connections × {IN_FLIGHT} in flight"
    plan.report.table(title, HEADER, rows)
    plan.report.note("Lowwater answers after an fsync, Apache Kafka (its default) does not.")
    plan.report.target(
        "seconds until all are back", measured.median(LOWWATER, "back_s"), RESTART_GOAL_S, at_least=False
    )


@contextlib.contextmanager
def _lowwater() -> Iterator[LowwaterBroker]:
    broker = LowwaterBroker(LOWWATER_SETTINGS)
    try:
        broker.start()
        yield broker
    finally:
        broker.discard()


def _bind(name: str, broker: Broker, offsets: int) -> Callable[[], Sample]:
    return lambda: _measure(Subject(name, broker, "", ""), broker, offsets)


def _measure(subject: Subject, broker: Broker, offsets: int) -> Sample:
    members.await_coordinator(subject.port)
    groups = offsets // PARTITIONS
    with subject.topic(PARTITIONS) as topic:
        before, cpu = procfs.memory(subject.pid).rss, procfs.cpu_seconds(subject.pid)
        load = _commit_all(subject.port, topic, groups)
        cpu, rss = procfs.cpu_seconds(subject.pid) - cpu, procfs.memory(subject.pid).rss
        back_s = _restart(broker, topic, groups)
    return {
        "k_offsets_per_s": offsets / load.seconds / 1000,
        "cpu_us": 1e6 * cpu / offsets,
        "rss": rss,
        "grown": rss - before,
        "bytes_per_offset": 1e6 * (rss - before) / offsets,
        "back_s": back_s,
    }


def _group(number: int) -> str:
    return f"committed-{number:06d}"


def _commit_all(port: int, topic: str, groups: int) -> replay.Load:
    calls = [
        group_frames.commit(_group(number), -1, "", topic, dict.fromkeys(range(PARTITIONS), number + 1))
        for number in range(groups)
    ]
    requests = iter([call.data for call in calls])
    with replay.connections(port, CONNECTIONS) as opened:
        pipelines = [replay.Pipeline(one, requests, calls[0].reply_size, calls[0].error_at) for one in opened]
        return replay.drive(pipelines, IN_FLIGHT, replay.total(groups))


def _restart(broker: Broker, topic: str, groups: int) -> float:
    """Seconds from spawning the process until it knows the first and the last offset."""
    broker.terminate()
    started = time.perf_counter()
    if isinstance(broker, ApacheKafka):
        broker.launch()
    else:
        broker.start()
    members.await_coordinator(broker.port)
    for place in (0, groups - 1):
        _await_offset(broker.port, _group(place), topic, place + 1)
    return time.perf_counter() - started


def _await_offset(port: int, group: str, topic: str, offset: int) -> None:
    deadline = time.monotonic() + connection.ANSWER_TIMEOUT_S
    call = group_frames.fetch_offsets(group, topic, [0])
    with contextlib.closing(connection.connect(port)) as opened:
        while group_frames.fetched_offset(connection.exchange(opened, call.data), topic) != offset:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{group} has lost its offset")
            time.sleep(0.02)
