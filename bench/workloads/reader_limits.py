"""What a reader costs at its edges: memory with large rows and a slow partition, and the time to its first batch."""

from __future__ import annotations

import tempfile

from bench import layouts, readers
from bench.layouts import DISJOINT, Layout
from bench.plan import Run
from bench.readers import LOWWATER, Task
from bench.report import number
from bench.rounds import Sample, interleave
from bench.subjects import Subject

TEXT = "peak memory with 1-MB rows, and the time to the first batch, cold and warm"
ROW_BYTES = 1_000_000
BOUND_BYTES = 128 * 1024 * 1024
SMALL = Layout(records=100_000)
MEMORY_HEADER = ("partitions", "rows", "bound MB", "idle MB", "peak MB", "beyond idle MB", "times the bound")
LATENCY_HEADER = ("start", "ms from the import to the first batch", "ms from the reader's creation")
# What is held, and a batch of at most an eighth of it that the caller has in hand while the next one is made.
MEMORY_TARGET = 1.25


def run(plan: Run) -> None:
    broker = plan.fleet.lowwater()
    idle_mb = _idle(plan, broker)
    rows = []
    for partitions in (4, 64):
        layout = Layout(plan.size.large_row_megabytes, ROW_BYTES, partitions, DISJOINT)
        with broker.topic(partitions) as topic:
            layouts.fill(broker, topic, layout)
            sample = _read(broker, topic, layout, held_bytes_max=BOUND_BYTES)
        plan.report.keep(f"1-MB rows, {partitions} partitions", {LOWWATER: [sample]})
        beyond, bound = sample["peak_mb"] - idle_mb, BOUND_BYTES / 1e6
        figures = (layout.records, bound, idle_mb, sample["peak_mb"], beyond, beyond / bound)
        rows.append((f"{partitions}, {DISJOINT}", *map(number, figures)))
        what = f"1-MB rows, {partitions} partitions that follow each other: peak beyond idle / bound"
        plan.report.target(what, beyond / bound, MEMORY_TARGET, at_least=False)
    plan.report.table("memory", MEMORY_HEADER, rows)
    _first_batches(plan, broker)


def _read(broker: Subject, topic: str, layout: Layout, **options: int) -> Sample:
    task = Task(
        reader=LOWWATER,
        bootstrap=broker.bootstrap,
        topic=topic,
        partitions=layout.partitions,
        records=layout.records,
        seconds_max=60.0,
        is_order_checked=True,
        options=options,
    )
    sample = readers.run(task)
    if sample["rows"] != layout.records or sample["out_of_order"]:
        raise RuntimeError(f"{sample['rows']} of {layout.records} rows, {sample['out_of_order']} out of order")
    return sample


def _idle(plan: Run, broker: Subject) -> float:
    """A process that has read a little: with all its modules."""
    layout = Layout(records=1_000)
    with broker.topic() as topic:
        layouts.fill(broker, topic, layout)
        return _read(broker, topic, layout)["peak_mb"]


def _first_batches(plan: Run, broker: Subject) -> None:
    """Cold: no kernel has ever been compiled here. Warm: as every later process."""
    with broker.topic() as topic, tempfile.TemporaryDirectory() as nowhere:
        layouts.fill(broker, topic, SMALL)
        cold = _start(broker, topic, {"NUMBA_CACHE_DIR": nowhere})
        warm = interleave({"warm": lambda: _start(broker, topic, {})}, plan.size.start_rounds)
        plan.report.keep("first batch", {"cold": [cold], "warm": warm.samples["warm"]})
    shown = {"cold, kernels are compiled": cold, "warm": {name: warm.median("warm", name) for name in cold}}
    rows = [
        (title, number(1000 * sample["whole_s"]), number(1000 * sample["first_batch_s"]))
        for title, sample in shown.items()
    ]
    plan.report.table("first batch", LATENCY_HEADER, rows)


def _start(broker: Subject, topic: str, environment: dict[str, str]) -> Sample:
    return readers.first_batch(broker.bootstrap, topic, environment)
