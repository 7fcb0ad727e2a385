"""The peak of Spark's Python workers, with what is hard on them: large rows, many partitions, a long backlog."""

from __future__ import annotations

import time

from bench import frames, layouts, procfs, replay
from bench.layouts import DISJOINT, Layout
from bench.plan import Run
from bench.report import number
from bench.spark_session import Sessions, session
from bench.subjects import Subject
from bench.workloads.spark import LOWWATER

TEXT = "peak memory of the Python workers: 1-MB rows, 1,000 partitions, a backlog of 10 GB"
HEADER = ("read", "rows", "s", "workers", "MB idle", "peak MB", "beyond idle")
LARGE_ROW_BYTES = 1_000_000
MANY = 1_000
BACKLOG_BATCH_BYTES = 900_000
BACKLOG_PARTITIONS = 4
# What a task holds (64 MiB), and batches on their way to Spark.
BEYOND_MB_MAX = 100


def run(plan: Run) -> None:
    broker = plan.fleet.lowwater("never")
    with session() as spark:
        rows = [
            _large_rows(plan, spark, broker),
            _many_partitions(plan, spark, broker),
            _backlog(plan, spark, broker),
        ]
    plan.report.table("Python workers", HEADER, rows)


def _large_rows(plan: Run, spark: Sessions, broker: Subject) -> tuple[str, ...]:
    layout = Layout(plan.size.large_row_megabytes, LARGE_ROW_BYTES, 4, DISJOINT)
    with broker.topic(4) as topic:
        layouts.fill(broker, topic, layout)
        return _measure(plan, spark, broker, topic, "1-MB rows, 4 partitions", layout.records)


def _many_partitions(plan: Run, spark: Sessions, broker: Subject) -> tuple[str, ...]:
    layout = Layout(plan.size.spark_records // 2, 100, MANY)
    with broker.topic(MANY) as topic:
        layouts.fill(broker, topic, layout)
        return _measure(plan, spark, broker, topic, f"{MANY:,} partitions, 2 tasks", layout.records, maxPartitions="2")


def _backlog(plan: Run, spark: Sessions, broker: Subject) -> tuple[str, ...]:
    """One batch, again and again."""
    batch, count = frames.batch_of(1000, BACKLOG_BATCH_BYTES)
    batches = plan.size.backlog_gigabytes * 1_000_000_000 // len(batch)
    with broker.topic(BACKLOG_PARTITIONS) as topic:
        requests = [frames.produce(topic, index, batch, count, 1) for index in range(BACKLOG_PARTITIONS)]
        replay.produce(broker.port, requests, batches)
        title = f"a backlog of {plan.size.backlog_gigabytes} GB, 1 KB, {BACKLOG_PARTITIONS} partitions"
        return _measure(plan, spark, broker, topic, title, batches * count)


def _measure(
    plan: Run, spark: Sessions, broker: Subject, topic: str, title: str, records: int, **more: str
) -> tuple[str, ...]:
    idle = _settled(spark, broker)
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "startingOffsets": "earliest", **more}
    began = time.perf_counter()
    progress = spark.stream_all(LOWWATER, options)
    seconds = time.perf_counter() - began
    if (found := sum(one["rows"] for one in progress)) != records:
        raise RuntimeError(f"{title}: {found} of {records} rows")
    peaks = [procfs.memory(pid).peak_rss for pid in spark.workers()]
    plan.report.keep(title, {"idle_mb": idle, "peak_mb": peaks, "seconds": seconds, "rows": records})
    beyond = max(peaks) - idle
    plan.report.target(f"{title}: MB beyond idle", beyond, BEYOND_MB_MAX, at_least=False)
    return (title, *map(number, (records, seconds, len(peaks), idle, max(peaks), beyond)))


def _settled(spark: Sessions, broker: Subject) -> float:
    """Workers that have read a little, so that all their modules are loaded; their peaks count from here."""
    layout = Layout(10_000)
    with broker.topic() as topic:
        layouts.fill(broker, topic, layout)
        options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
        spark.stream_all(LOWWATER, options)
    for pid in spark.workers():
        procfs.forget_peak(pid)
    return max(procfs.memory(pid).rss for pid in spark.workers())
