"""Start-up time and memory: what a broker costs before and after it has worked."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from peers.kafka import BENCH_JVM, ApacheKafka

from bench import connection, procfs
from bench.plan import Run
from bench.report import Row, number
from bench.rounds import Measured, interleave
from bench.subjects import KAFKA, KAFKA_SETTINGS, LOWWATER, LowwaterBroker, Subject
from bench.workloads import fetch, produce

TEXT = "start-up (spawn until the first Metadata answer) and resident memory"
MEMORY_TARGET, START_TARGET = 1 / 5, 1 / 10
START_HEADER = ("subject", "ready after ms", "lowwater/peer")
FIGURES = ("rss", "peak_rss", "pss", "anonymous")
MEMORY_HEADER = ("subject", "RSS MB", "peak RSS", "PSS MB", "anonymous MB", "RSS lowwater/peer", "anonymous")

Broker = LowwaterBroker | ApacheKafka


def run(plan: Run) -> None:
    with contextlib.ExitStack() as stack:
        brokers: dict[str, Broker] = {LOWWATER: stack.enter_context(_lowwater())}
        if plan.fleet.kafka_missing is None:
            brokers[KAFKA] = stack.enter_context(ApacheKafka(KAFKA_SETTINGS, jvm=BENCH_JVM))
        _start_up(plan, brokers)
        _memory(plan, brokers)


@contextlib.contextmanager
def _lowwater() -> Iterator[LowwaterBroker]:
    broker = LowwaterBroker()
    try:
        broker.start()
        yield broker
    finally:
        broker.discard()


def _start_up(plan: Run, brokers: dict[str, Broker]) -> None:
    """Each on a small existing directory: Kafka's has been formatted before, which takes it seconds more."""
    measured = interleave({name: _restart(broker) for name, broker in brokers.items()}, plan.size.start_rounds)
    plan.report.keep("start-up", measured)
    rows: list[Row] = []
    for name in brokers:
        ratio = "" if name == LOWWATER else f"{measured.ratio(LOWWATER, name, 'ready_ms'):.3f}×"
        rows.append((name, number(measured.median(name, "ready_ms")), ratio))
    plan.report.table("start-up", START_HEADER, rows)
    if KAFKA in brokers:
        ratio_to_kafka = measured.ratio(LOWWATER, KAFKA, "ready_ms")
        plan.report.target("start-up, lowwater / Apache Kafka", ratio_to_kafka, START_TARGET, at_least=False)


def _restart(broker: Broker) -> Callable[[], dict[str, float]]:
    def measure() -> dict[str, float]:
        broker.terminate()
        started = time.perf_counter()
        if isinstance(broker, ApacheKafka):
            broker.launch()
        else:
            broker.start()
        wait_for_metadata(broker.port)
        return {"ready_ms": 1000 * (time.perf_counter() - started)}

    return measure


def wait_for_metadata(port: int) -> None:
    while True:
        with contextlib.suppress(OSError), contextlib.closing(connection.connect(port)) as opened:
            connection.topics(opened, [])
            return


def _memory(plan: Run, brokers: dict[str, Broker]) -> None:
    idle = Measured({name: [_resident(broker.pid)] for name, broker in brokers.items()})
    loaded = Measured({name: [_loaded(plan, Subject(name, broker, "", ""))] for name, broker in brokers.items()})
    rows: list[Row] = []
    for title, measured in (("idle, after start", idle), ("after the load", loaded)):
        plan.report.keep(f"memory {title}", measured)
        rows += [None] if rows else []
        rows += [(title, *[""] * (len(MEMORY_HEADER) - 1))]
        rows += [_memory_row(name, measured) for name in brokers]
    megabytes = plan.size.raw_megabytes
    plan.report.table(f"memory; the load: {megabytes} MB produced and fetched", MEMORY_HEADER, rows)
    plan.report.note("RSS counts mapped pages of the log, which the kernel takes back at will; anonymous does not.")
    if KAFKA in brokers:
        for title, measured in (("idle", idle), ("after the load", loaded)):
            for figure in ("rss", "anonymous"):
                what = f"memory {title}, {figure}, lowwater / Apache Kafka"
                plan.report.target(what, measured.ratio(LOWWATER, KAFKA, figure), MEMORY_TARGET, at_least=False)


def _resident(pid: int) -> dict[str, Any]:
    memory = procfs.memory(pid)
    return {figure: getattr(memory, figure) for figure in FIGURES}


def _loaded(plan: Run, subject: Subject) -> dict[str, Any]:
    """What it holds after it has served, its topic still there and mapped."""
    megabytes = plan.size.raw_megabytes
    produce.by_replay(1000, megabytes, "1")(subject)
    with contextlib.ExitStack() as topics:
        filled = fetch.fill(topics, subject, 1000, 16_000, megabytes)
        fetch.by_replay({subject.name: filled}, megabytes)(subject)
        return _resident(subject.pid)


def _memory_row(name: str, measured: Measured) -> Row:
    ours = name == LOWWATER
    return (
        f"  {name}",
        *(number(measured.median(name, figure)) for figure in FIGURES),
        *("" if ours else f"{measured.ratio(LOWWATER, name, figure):.3f}×" for figure in ("rss", "anonymous")),
    )
