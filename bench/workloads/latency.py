"""How long one small record takes: until its reply, and until a consumer has it."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Sequence

from bench import frames, rdkafka
from bench.connection import BrokerError, connect
from bench.plan import Run
from bench.report import Row, number, times
from bench.rounds import Measured, Sample, interleave
from bench.subjects import LOWWATER, Subject
from bench.workloads.produce import ACKS, present

TEXT = "p50 and p99 in milliseconds, one record at a time"
HEADER = ("subject", "flush", "p50 ms", "p99 ms", "p50 lowwater/peer", "p99 lowwater/peer")
RECORD_BYTES = 100
PER_SECOND = 100


def run(plan: Run) -> None:
    fleet, count = plan.fleet, plan.size.latency_records
    lines = {
        "produce acks=1": ("1", present(fleet.lowwater(flush="none for acks=1"), fleet.mock(), fleet.kafka())),
        "produce acks=all, not fsynced": ("all", present(fleet.lowwater("never"), fleet.mock(), fleet.kafka())),
        "produce acks=all, fsynced": ("all", present(fleet.lowwater("acks"), fleet.kafka(flush_each=True))),
    }
    rows: list[Row] = []
    for title, (acks, subjects) in lines.items():
        measured = interleave({one.name: _reply_time(one, acks, count) for one in subjects}, plan.size.rounds)
        plan.report.keep(title, measured)
        rows += _rows(title, subjects, measured)
    title = f"produce → consume by librdkafka, {PER_SECOND}/s, acks=1"
    subjects = present(fleet.lowwater(flush="none for acks=1"), fleet.mock(), fleet.kafka())
    arrivals = {one.name: _arrival_time(one, max(100, count // 5)) for one in subjects}
    measured = interleave(arrivals, 1 if plan.quick else 3)
    plan.report.keep(title, measured)
    rows += _rows(title, subjects, measured)
    plan.report.table("latency (lower is better)", HEADER, rows[1:])


def _reply_time(subject: Subject, acks: str, count: int) -> Callable[[], Sample]:
    def measure() -> Sample:
        with subject.topic() as topic, contextlib.closing(connect(subject.port)) as connection:
            request = frames.produce(topic, 0, frames.record_batch([b"x" * RECORD_BYTES]), 1, ACKS[acks])
            taken = []
            for _ in range(count):
                started = time.perf_counter()
                connection.sendall(request.data)
                reply = connection.recv(4096)
                taken.append(1000 * (time.perf_counter() - started))
                if reply[request.error_at : request.error_at + 2] != b"\0\0":
                    raise BrokerError(f"{subject.name} answered Produce with an error: {reply.hex()}")
        # The first requests of a connection and a topic open files and compile codecs.
        return _percentiles(taken[count // 10 :])

    return measure


def _arrival_time(subject: Subject, count: int) -> Callable[[], Sample]:
    def measure() -> Sample:
        with subject.topic() as topic:
            done = rdkafka.run(
                "latency", bootstrap=subject.bootstrap, topic=topic, records=count, per_second=PER_SECOND
            )
        return _percentiles(done["milliseconds"][count // 10 :])

    return measure


def _percentiles(taken: Sequence[float]) -> Sample:
    cuts = statistics.quantiles(taken, n=100)
    return {"p50_ms": cuts[49], "p99_ms": cuts[98]}


def _rows(title: str, subjects: Sequence[Subject], measured: Measured) -> list[Row]:
    rows: list[Row] = [None, (title, *[""] * (len(HEADER) - 1))]
    for subject in subjects:
        ours = subject.name == LOWWATER
        ratios = ["" if ours else times(measured.ratios(LOWWATER, subject.name, f"{p}_ms")) for p in ("p50", "p99")]
        medians = [number(measured.median(subject.name, f"{p}_ms")) for p in ("p50", "p99")]
        rows.append((f"  {subject.name}", subject.flush, *medians, *ratios))
    return rows
