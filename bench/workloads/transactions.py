"""Transactions: how many a second, beside the same records without them, and what read_committed costs a reader."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bench import procfs, replay
from bench.members import Crowd, Script
from bench.plan import Run
from bench.report import Row, number, times
from bench.rounds import Measured, Sample, interleave
from bench.subjects import KAFKA, LOWWATER, Subject
from bench.transactional import READ_COMMITTED, READ_UNCOMMITTED, Producer, Reader, await_transactions
from bench.txn_frames import Values
from bench.workloads.group_requests import FLUSH_EACH, FLUSH_NEVER, flushing
from bench.workloads.produce import present

TEXT = "transactions of 10 records per second, by 1 and 50 producers; read_committed beside read_uncommitted"
STATE_TOPIC = "__transaction_state"
PARTITIONS = 4
RECORDS, RECORD_BYTES = 10, 100
PRODUCERS = (1, 50)
READ_RECORD_BYTES = 1000
READ_BYTES_MAX = 250_000
ABORTED_EACH = 10  # of so many transactions that are read, one was aborted

WRITE_HEADER = (
    "subject",
    "flush",
    "transactions/s",
    "CPU µs each",
    "retries each",
    "without: batches/s",
    "rate with/without",
    "lowwater/peer",
    "CPU/peer's",
)
READ_HEADER = ("subject", "isolation", "MB/s", "broker CPU ms/MB", "committed/uncommitted", "lowwater/peer")
PLAIN = "without"

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Path:
    """A way to write a batch of records with acks=all."""

    title: str
    script: Callable[[Producer, Callable[[], bool]], Script]


PATHS = (
    Path("AddPartitionsToTxn v2, Produce v7, EndTxn v2", Producer.old_path),
    Path("Produce v12, EndTxn v5", Producer.new_path),
)
WITHOUT = Path(PLAIN, Producer.plain)


def run(plan: Run) -> None:
    for subjects in _pairs(plan):
        for subject in subjects:
            await_transactions(subject.port)
    _write(plan)
    _read(plan)


def _pairs(plan: Run) -> list[Sequence[Subject]]:
    """Equal durability with equal durability."""
    each, kafka = plan.fleet.kafka(flush_each=True), plan.fleet.kafka()
    return [
        present(plan.fleet.lowwater(flush="fsync"), replace(each, flush=FLUSH_EACH) if each else None),
        present(plan.fleet.lowwater("never", flush=FLUSH_NEVER), kafka),
    ]


# -- writing


def _write(plan: Run) -> None:
    rows: list[Row] = []
    for path in PATHS:
        for producers in PRODUCERS:
            for subjects in _pairs(plan):
                measured = _written(plan, path, producers, subjects)
                title = f"{path.title}; {producers} producer{'s' if producers > 1 else ''}"
                plan.report.keep(f"{title}, {subjects[0].flush}", measured)
                rows += [None, (title, *[""] * (len(WRITE_HEADER) - 1))]
                rows += [_write_row(subject, measured) for subject in subjects]
    title = f"transactions of {RECORDS} records of {RECORD_BYTES} B, each of one partition of {PARTITIONS}"
    plan.report.table(title, WRITE_HEADER, rows[1:])


def _written(plan: Run, path: Path, producers: int, subjects: Sequence[Subject]) -> Measured:
    """Each subject with transactions and, under a name of its own, without."""
    seconds = plan.size.transaction_seconds
    bouts = {subject.name: _bout(subject, path, producers, seconds) for subject in subjects}
    bouts |= {_without(subject.name): _bout(subject, WITHOUT, producers, seconds) for subject in subjects}
    for measure in bouts.values():
        measure()  # Warm-up.
    return interleave(bouts, plan.size.request_rounds)


def _without(name: str) -> str:
    return f"{name}, {PLAIN}"


def _bout(subject: Subject, path: Path, producers: int, seconds: float) -> Callable[[], Sample]:
    values = Values([bytes([33 + number]) * RECORD_BYTES for number in range(RECORDS)])

    def measure() -> Sample:
        with contextlib.ExitStack() as stack:
            topic = stack.enter_context(subject.topic(PARTITIONS))
            stack.enter_context(flushing(subject, STATE_TOPIC))
            crowd = Crowd(stack.enter_context(replay.connections(subject.port, producers)))
            crew = _crew(topic, producers, values)
            if path is not WITHOUT:
                crowd.play([one.begin() for one in crew])
            cpu, end = procfs.cpu_seconds(subject.pid), time.perf_counter() + seconds
            took = crowd.play([path.script(one, lambda: time.perf_counter() < end) for one in crew])
            cpu = procfs.cpu_seconds(subject.pid) - cpu
        done = sum(one.transactions for one in crew)
        retries = sum(one.retries for one in crew)
        return {"per_s": done / took, "cpu_us": 1e6 * cpu / done, "retries": retries / done}

    return measure


def _crew(topic: str, producers: int, values: Values) -> list[Producer]:
    name = f"bench-{next(_numbers)}"
    return [Producer(f"{name}-{number}", topic, number % PARTITIONS, values) for number in range(producers)]


def _write_row(subject: Subject, measured: Measured) -> Row:
    ours, name = subject.name == LOWWATER, subject.name
    return (
        f"  {name}",
        subject.flush,
        number(measured.median(name, "per_s")),
        number(measured.median(name, "cpu_us")),
        number(measured.median(name, "retries")),
        number(measured.median(_without(name), "per_s")),
        times(measured.ratios(name, _without(name), "per_s")),
        "" if ours else times(measured.ratios(LOWWATER, name, "per_s")),
        "" if ours else f"{number(measured.ratio(LOWWATER, name, 'cpu_us'))}×",
    )


# -- reading


def _read(plan: Run) -> None:
    subjects = present(plan.fleet.lowwater("never"), plan.fleet.kafka())
    with contextlib.ExitStack() as topics:
        filled = {one.name: _fill(topics, one, plan.size.read_transactions) for one in subjects}
        bouts = {}
        for subject in subjects:
            for isolation in (READ_UNCOMMITTED, READ_COMMITTED):
                bout = _reading(subject, filled[subject.name], isolation, plan.size.transaction_seconds)
                bouts[_reader(subject.name, isolation)] = bout
        for measure in bouts.values():
            measure()  # Warm-up.
        measured = interleave(bouts, plan.size.request_rounds)
    plan.report.keep("reading", measured)
    rows = [_read_row(subject.name, isolation, measured) for subject in subjects for isolation in (0, 1)]
    title = (
        f"{plan.size.read_transactions:,} transactions of {RECORDS} records of {READ_RECORD_BYTES} B, "
        f"one of {ABORTED_EACH} aborted; {PARTITIONS} readers, up to {READ_BYTES_MAX // 1000} KB a request"
    )
    plan.report.table(title, READ_HEADER, rows)


def _fill(topics: contextlib.ExitStack, subject: Subject, transactions: int) -> str:
    topic = topics.enter_context(subject.topic(PARTITIONS))
    producers = PRODUCERS[-1]
    crew = _crew(topic, producers, Values([bytes([33 + each]) * READ_RECORD_BYTES for each in range(RECORDS)]))
    with replay.connections(subject.port, producers) as opened:
        crowd = Crowd(opened)
        crowd.play([one.begin() for one in crew])
        crowd.play([_fills(one, transactions // producers) for one in crew])
        # A transaction that is still being ended would hold up who reads what is committed.
        crowd.play([one.begin() for one in crew])
    return topic


def _fills(producer: Producer, transactions: int) -> Script:
    return producer.old_path(
        lambda: producer.transactions < transactions, lambda number: number % ABORTED_EACH != ABORTED_EACH - 1
    )


def _reading(subject: Subject, topic: str, isolation: int, seconds: float) -> Callable[[], Sample]:
    def measure() -> Sample:
        readers = [Reader(topic, partition, isolation, READ_BYTES_MAX) for partition in range(PARTITIONS)]
        with replay.connections(subject.port, PARTITIONS) as opened:
            cpu, end = procfs.cpu_seconds(subject.pid), time.perf_counter() + seconds
            took = Crowd(opened).play([one.script(lambda: time.perf_counter() < end) for one in readers])
            cpu = procfs.cpu_seconds(subject.pid) - cpu
        megabytes = sum(one.read_bytes for one in readers) / 1e6
        return {"mb_per_s": megabytes / took, "cpu_ms_per_mb": 1000 * cpu / megabytes}

    return measure


def _reader(name: str, isolation: int) -> str:
    return f"{name}, {'read_committed' if isolation == READ_COMMITTED else 'read_uncommitted'}"


def _read_row(name: str, isolation: int, measured: Measured) -> Row:
    own, other = _reader(name, isolation), _reader(name, READ_UNCOMMITTED)
    return (
        name,
        own.rpartition(" ")[2],
        number(measured.median(own, "mb_per_s")),
        number(measured.median(own, "cpu_ms_per_mb")),
        times(measured.ratios(own, other, "mb_per_s")) if isolation == READ_COMMITTED else "",
        times(measured.ratios(_reader(LOWWATER, isolation), own, "mb_per_s")) if name == KAFKA else "",
    )
