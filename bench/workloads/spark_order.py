"""Rows in the order of their times: slices merged by the tasks, beside Spark's own sort, and beside no order at all."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from bench import layouts
from bench.layouts import Layout
from bench.plan import Run
from bench.report import number
from bench.rounds import interleave
from bench.spark_session import Sessions, session
from bench.subjects import Subject
from bench.workloads.spark import FEW, MANY, WARM_UPS, row
from lowwater.spark.options import SourceOptions
from lowwater.spark.stream_planner import StreamPlanner

TEXT = "rows/s in the order of their times: order=timestamp beside orderBy and beside no order; requests of planning"
HEADER = ("query", "k rows/s", "CPU ns/row", "ordered/it", "CPU/its")
REQUESTS_HEADER = ("partitions", "slices", "Fetch", "ListOffsets", "others")
ORDERED, SORTED, UNORDERED = "order=timestamp", "orderBy", "no order"
SORTED_TARGET, UNORDERED_TARGET = 2.5, 0.6
PARTITIONS = (FEW, 16, MANY)
RECORD_BYTES, SLICES, OUT_OF_ORDER = 100, 4, "10s"
IN_ORDER = {"order": "timestamp", "maxOutOfOrder": OUT_OF_ORDER, "minPartitions": SLICES}


def run(plan: Run, partitions: tuple[int, ...] = PARTITIONS) -> None:
    broker = plan.fleet.lowwater("never")
    with session() as spark:
        for count in partitions:
            layout = Layout(plan.size.spark_records, RECORD_BYTES, count)
            with broker.topic(count) as topic:
                layouts.fill(broker, topic, layout)
                _compare(plan, spark, broker, topic, layout)
                _count_requests(plan, broker, topic, layout)


def _compare(plan: Run, spark: Sessions, broker: Subject, topic: str, layout: Layout) -> None:
    works = {name: partial(_read, spark, name, broker, topic, layout) for name in (ORDERED, SORTED, UNORDERED)}
    for work in works.values():
        for _ in range(WARM_UPS):
            work()
    measured = interleave(works, plan.size.spark_rounds)
    title = f"{layout.records:,} rows, {layout}"
    plan.report.keep(title, measured)
    plan.report.table(title, HEADER, [row(name, measured, ORDERED) for name in works])
    for peer, bound in ((SORTED, SORTED_TARGET), (UNORDERED, UNORDERED_TARGET)):
        plan.report.target(f"{title}: {ORDERED} / {peer}", measured.ratio(ORDERED, peer, "rows_per_s"), bound)


def _read(spark: Sessions, name: str, broker: Subject, topic: str, layout: Layout) -> dict[str, float]:
    options: dict[str, Any] = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
    }
    if name == ORDERED:
        options |= IN_ORDER
    else:
        options |= {"maxPartitions": SLICES}  # as many tasks for all

    def query() -> None:
        frame = spark.spark.read.format("lowwater").options(**options).load()
        if name == SORTED:
            frame = frame.orderBy("timestamp", "topic", "partition", "offset")
        frame.write.format("noop").mode("overwrite").save()

    return spark.measure(query, layout.records)


def _count_requests(plan: Run, broker: Subject, topic: str, layout: Layout) -> None:
    """Of planning one micro-batch, but for where partitions end."""
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    planner = StreamPlanner(
        SourceOptions.parse({**options, **{name: str(each) for name, each in IN_ORDER.items()}}, streaming=True)
    )
    try:
        start = planner.initial_offset()
        asked = _counting(planner)
        end = planner.latest_offset(start, None)
        tasks = planner.tasks(start, end)
    finally:
        planner.close()
    others = sum(asked.values()) - asked["FetchRequest"] - asked["ListOffsetsRequest"]
    counts = (len(tasks), asked["FetchRequest"], asked["ListOffsetsRequest"], others)
    plan.report.keep(f"requests of planning, {layout.partitions} partitions", dict(asked))
    plan.report.table(
        "requests to plan one micro-batch, its heads included",
        REQUESTS_HEADER,
        [tuple(map(number, (layout.partitions, *counts)))],
    )


def _counting(planner: StreamPlanner) -> Counter[str]:
    asked: Counter[str] = Counter()
    network = planner.client.cluster.network
    ask = network.ask

    def count(node: int, request: Any, **more: Any) -> Any:
        asked[type(request).__name__] += 1
        return ask(node, request, **more)

    network.ask = count  # type: ignore[method-assign]
    return asked
