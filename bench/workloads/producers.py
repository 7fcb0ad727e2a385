"""Rows from an Arrow table into a topic: Lowwater's producer beside the loop over confluent-kafka's produce()."""

from __future__ import annotations

from functools import partial

from bench import producers
from bench.plan import Run
from bench.producers import CONFLUENT, FROM_ARROW, LOWWATER, Task
from bench.report import Row, number, times
from bench.rounds import Measured, Sample, interleave
from bench.subjects import Subject

TEXT = "rows/s from an Arrow table, keyed, acks=all, idempotent, beside confluent-kafka's produce() loop"
HEADER = ("producer", "k rows/s", "CPU ns/row", "broker's cores", "peak MB", "lowwater/peer", "CPU/peer's")
DEFAULTS = ", defaults"
TARGET = 5.0
BYTES_SHARE = 2  # of large records there are fewer

# Record bytes, partitions, codec.
LOADS = ((100, 4, "none"), (1000, 4, "none"), (100, 64, "none"), (100, 4, "lz4"))


def run(plan: Run) -> None:
    # Nobody waits for the disk: what is compared are the clients.
    broker = plan.fleet.lowwater("never")
    rows: list[Row] = []
    for record_bytes, partitions, codec in LOADS[:1] if plan.quick else LOADS:
        title = f"{record_bytes} B, {partitions} partitions, {codec}"
        peers = [CONFLUENT, FROM_ARROW, CONFLUENT + DEFAULTS]
        names = [LOWWATER, *(peers if (record_bytes, partitions, codec) == LOADS[0] else peers[:2])]
        works = {name: partial(_send, plan, broker, name, record_bytes, partitions, codec) for name in names}
        measured = interleave(works, plan.size.reader_rounds)
        plan.report.keep(title, measured)
        rows += [None] if rows else []
        rows += [(title, *[""] * (len(HEADER) - 1)), *(_row(name, measured) for name in names)]
        ratio = measured.ratio(LOWWATER, CONFLUENT, "rows_per_s")
        plan.report.target(f"{title}: lowwater / {CONFLUENT}", ratio, TARGET)
    plan.report.table("producers", HEADER, rows)


def _send(plan: Run, broker: Subject, name: str, record_bytes: int, partitions: int, codec: str) -> Sample:
    records = plan.size.producer_records // (1 if record_bytes == 100 else BYTES_SHARE)
    with broker.topic(partitions) as topic:
        task = Task(
            producer=name.removesuffix(DEFAULTS),
            bootstrap=broker.bootstrap,
            topic=topic,
            records=records,
            record_bytes=record_bytes,
            broker_pid=broker.pid,
            codec=codec,
            tuned=not name.endswith(DEFAULTS),
        )
        return producers.run(task)


def _row(name: str, measured: Measured) -> Row:
    ours = name == LOWWATER
    return (
        f"  {name}",
        number(measured.median(name, "rows_per_s") / 1000),
        number(measured.median(name, "cpu_ns_per_row")),
        number(measured.median(name, "broker_cores")),
        number(measured.median(name, "peak_mb")),
        "" if ours else times(measured.ratios(LOWWATER, name, "rows_per_s")),
        "" if ours else f"{number(measured.ratio(LOWWATER, name, 'cpu_ns_per_row'))}×",
    )
