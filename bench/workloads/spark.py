"""Rows from topics into Spark: our source beside the JVM's connector, and beside a source that has its rows ready."""

from __future__ import annotations

from functools import partial
from typing import Any

from peers import places

from bench import layouts
from bench.layouts import Layout
from bench.plan import Run
from bench.report import Row, number, times
from bench.rounds import Measured, interleave
from bench.spark_session import Sessions, session
from bench.subjects import Subject

TEXT = (
    "rows/s and CPU per row from topics through Spark into nothing, beside the JVM's connector and ready-made batches"
)
HEADER = ("source", "k rows/s", "CPU ns/row", "lowwater/it", "CPU/its")
LOWWATER, FEW_TASKS, CONNECTOR, READY = "lowwater", "lowwater, maxPartitions=2", "kafka", "ready"
CONNECTOR_TARGET, READY_TARGET = 1.5, 0.7
BATCH, STREAM = "batch", "stream"
BYTES_SHARE = 4  # of large records there are fewer
FEW, MANY = 4, 64
RECORD_BYTES = (100, 1000)
MICRO_BATCHES = 4
WARM_UPS = 2


def run(plan: Run, partitions: int = FEW) -> None:
    broker = plan.fleet.lowwater("never")
    with session() as spark:
        for record_bytes in RECORD_BYTES:
            records = plan.size.spark_records // (1 if record_bytes == 100 else BYTES_SHARE)
            layout = Layout(records, record_bytes, partitions)
            with broker.topic(partitions) as topic:
                layouts.fill(broker, topic, layout)
                for mode in (BATCH, STREAM):
                    _compare(plan, spark, broker, topic, layout, mode)


def _compare(plan: Run, spark: Sessions, broker: Subject, topic: str, layout: Layout, mode: str) -> None:
    title = f"{mode}: {layout}"
    works = {name: partial(_read, spark, name, broker, topic, layout, mode) for name in _sources(layout)}
    for work in works.values():
        for _ in range(WARM_UPS):
            work()  # the JVM compiles for seconds what it then runs in milliseconds, workers start
    measured = interleave(works, plan.size.spark_rounds)
    plan.report.keep(title, measured)
    plan.report.table(title, HEADER, [row(name, measured, LOWWATER) for name in works])
    for peer, bound in ((CONNECTOR, CONNECTOR_TARGET), (READY, READY_TARGET)):
        if peer in works:
            plan.report.target(f"{title}: lowwater / {peer}", measured.ratio(LOWWATER, peer, "rows_per_s"), bound)


def _sources(layout: Layout) -> list[str]:
    few = [FEW_TASKS] if layout.partitions > FEW else []
    connector = [] if places.missing_connector() else [CONNECTOR]
    return [LOWWATER, *few, *connector, READY]


def _read(spark: Sessions, name: str, broker: Subject, topic: str, layout: Layout, mode: str) -> dict[str, float]:
    form = LOWWATER if name == FEW_TASKS else name
    options = options_of(name, broker, topic, layout)
    if mode == BATCH:
        return spark.measure(lambda: spark.read_all(form, options), layout.records)
    return _micro_batches(spark, form, options | {"maxOffsetsPerTrigger": layout.records // MICRO_BATCHES}, layout)


def _micro_batches(spark: Sessions, form: str, options: dict[str, Any], layout: Layout) -> dict[str, float]:
    """Rates of the micro-batches between the first and the last one.

    How long a query takes to start is another matter; and in the last one the connector waits at the end of the log for
    half a second and more, whatever the broker.
    """
    told: list[dict[str, Any]] = []
    whole = spark.measure(lambda: told.extend(spark.stream_all(form, options)), layout.records)
    counted = [one for one in told if one["rows"]][1:-1]
    seconds = sum(one["triggerExecution"] for one in counted) / 1000
    return {
        **whole,
        "rows_per_s": sum(one["rows"] for one in counted) / seconds,
        "whole_rows_per_s": whole["rows_per_s"],
    }


def options_of(name: str, broker: Subject, topic: str, layout: Layout) -> dict[str, Any]:
    if name == READY:
        return {"records": layout.records, "recordBytes": layout.record_bytes, "partitions": layout.partitions}
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    return options | ({"maxPartitions": "2"} if name == FEW_TASKS else {})


def row(name: str, measured: Measured, ours: str) -> Row:
    is_ours = name == ours
    return (
        name,
        number(measured.median(name, "rows_per_s") / 1000),
        number(measured.median(name, "cpu_ns_per_row")),
        "" if is_ours else times(measured.ratios(ours, name, "rows_per_s")),
        "" if is_ours else f"{number(measured.ratio(ours, name, 'cpu_ns_per_row'))}×",
    )
