"""What a micro-batch costs, and rows/s of the sinks: ours beside the JVM's connector."""

from __future__ import annotations

import statistics
from functools import partial

from peers import places

from bench import layouts
from bench.layouts import Layout
from bench.plan import Run
from bench.report import number
from bench.rounds import interleave
from bench.spark_session import Sessions, session
from bench.subjects import Subject
from bench.workloads.spark import CONNECTOR, HEADER, LOWWATER, READY, options_of, row

TEXT = "the time of a micro-batch of 400 rows, and rows/s of the sinks, beside the JVM's connector"
BATCH_ROWS, BATCHES, LEFT_OUT = 400, 40, 10
LATENCY_HEADER = ("source", "median ms", "p90 ms", "of it planning", "of it the rows")
SINK_RECORDS = 1_000_000
ROWS_OF_SINK = """
SELECT CAST(id AS string) AS key, CAST(rpad(CAST(id AS string), 90, 'lowwater') AS binary) AS value
FROM range(0, {records}, 1, 2)
"""


def run(plan: Run) -> None:
    broker = plan.fleet.lowwater("never")
    sources = [LOWWATER, READY] if places.missing_connector() else [LOWWATER, CONNECTOR, READY]
    with session() as spark:
        _micro_batches(plan, spark, broker, sources)
        _sinks(plan, spark, broker, [name for name in sources if name != READY])


def _micro_batches(plan: Run, spark: Sessions, broker: Subject, sources: list[str]) -> None:
    layout = Layout(BATCH_ROWS * BATCHES)
    rows = []
    with broker.topic(layout.partitions) as topic:
        layouts.fill(broker, topic, layout)
        for name in sources:
            options = options_of(name, broker, topic, layout) | {"maxOffsetsPerTrigger": BATCH_ROWS}
            told = spark.stream_all(name, options)[LEFT_OUT:]
            plan.report.keep(f"micro-batches of {name}", {name: told})
            whole = sorted(one["triggerExecution"] for one in told)
            planning = [one.get("latestOffset", 0) + one.get("queryPlanning", 0) for one in told]
            reading = [one.get("addBatch", 0) for one in told]
            figures = (
                statistics.median(whole),
                whole[len(whole) * 9 // 10],
                *map(statistics.median, (planning, reading)),
            )
            rows.append((name, *map(number, figures)))
    plan.report.table(f"micro-batches of {BATCH_ROWS} rows, 4 partitions", LATENCY_HEADER, rows)


def _sinks(plan: Run, spark: Sessions, broker: Subject, sinks: list[str]) -> None:
    records = SINK_RECORDS // (4 if plan.quick else 1)
    with broker.topic(4) as topic:
        works = {name: partial(_write, spark, name, broker, topic, records) for name in sinks}
        for work in works.values():
            work()
        measured = interleave(works, plan.size.spark_rounds)
    plan.report.keep("sinks", measured)
    plan.report.table("sinks: 100 B, 4 partitions, keyed", HEADER, [row(name, measured, LOWWATER) for name in works])


def _write(spark: Sessions, name: str, broker: Subject, topic: str, records: int) -> dict[str, float]:
    writer = spark.spark.sql(ROWS_OF_SINK.format(records=records)).write.format(name).mode("append")
    given = writer.option("kafka.bootstrap.servers", broker.bootstrap).option("topic", topic)
    return spark.measure(given.save, records)
