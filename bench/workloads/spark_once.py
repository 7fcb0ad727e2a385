"""What it costs to write each row once: streams into a topic, exactly once beside at least once."""

from __future__ import annotations

import itertools
import statistics
from functools import partial
from typing import Any

from bench.plan import Run
from bench.report import number
from bench.rounds import interleave
from bench.spark_session import STREAM_TIMEOUT_S, Sessions, session
from bench.subjects import Subject
from bench.workloads.spark import WARM_UPS, row

TEXT = "rows/s and the time of a micro-batch of streams into a topic, exactly once beside at least once"
HEADER = ("sink", "k rows/s", "CPU ns/row", "exactly once/it", "CPU/its")
LATENCY_HEADER = ("sink", "median ms", "p90 ms", "of it the rows")
ONCE, AT_LEAST = "exactly once", "at least once"
TARGET = 0.7
BATCHES, PARTITIONS, RECORD_BYTES = 4, 2, 100
SMALL_ROWS, SMALL_BATCHES, LEFT_OUT = 400, 25, 5
_numbers = itertools.count()


def run(plan: Run) -> None:
    broker = plan.fleet.lowwater("never")
    with session() as spark:
        _throughput(plan, spark, broker)
        _latency(plan, spark, broker)


def _throughput(plan: Run, spark: Sessions, broker: Subject) -> None:
    records = plan.size.spark_records
    works = {name: partial(_measure, spark, broker, name, records) for name in (ONCE, AT_LEAST)}
    for work in works.values():
        for _ in range(WARM_UPS):
            work()
    measured = interleave(works, 2 * plan.size.spark_rounds)
    title = f"{records:,} rows of {RECORD_BYTES} B in {BATCHES} micro-batches"
    plan.report.keep(title, measured)
    plan.report.table(title, HEADER, [row(name, measured, ONCE) for name in works])
    plan.report.target(f"{title}: {ONCE} / {AT_LEAST}", measured.ratio(ONCE, AT_LEAST, "rows_per_s"), TARGET)


def _measure(spark: Sessions, broker: Subject, name: str, records: int) -> dict[str, float]:
    return spark.measure(lambda: _write(spark, broker, name, records, records // BATCHES), records)


def _latency(plan: Run, spark: Sessions, broker: Subject) -> None:
    rows = []
    for name in (ONCE, AT_LEAST):
        told = _write(spark, broker, name, SMALL_ROWS * SMALL_BATCHES, SMALL_ROWS)[LEFT_OUT:]
        plan.report.keep(f"micro-batches, {name}", {name: told})
        whole = sorted(one["triggerExecution"] for one in told)
        written = statistics.median(one.get("addBatch", 0) for one in told)
        rows.append((name, *map(number, (statistics.median(whole), whole[len(whole) * 9 // 10], written))))
    plan.report.table(f"micro-batches of {SMALL_ROWS} rows, {PARTITIONS} tasks", LATENCY_HEADER, rows)


def _write(spark: Sessions, broker: Subject, name: str, records: int, limit: int) -> list[dict[str, Any]]:
    """What Spark tells of each micro-batch."""
    given = {"records": records, "recordBytes": RECORD_BYTES, "partitions": PARTITIONS, "maxOffsetsPerTrigger": limit}
    frame = spark.spark.readStream.format("ready").options(**given).load().select("key", "value")
    with broker.topic(4) as topic:
        options = {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic}
        if name == ONCE:
            options |= {"exactlyOnce": "true", "sinkId": f"bench-{next(_numbers)}"}
        writer = frame.writeStream.format("lowwater").options(**options).trigger(availableNow=True)
        query = writer.option("checkpointLocation", spark.checkpoint()).start()
        if not query.awaitTermination(STREAM_TIMEOUT_S):
            raise TimeoutError(f"{name}: the query did not end within {STREAM_TIMEOUT_S} s")
    return [dict(progress.durationMs) | {"rows": progress.numInputRows} for progress in query.recentProgress]
