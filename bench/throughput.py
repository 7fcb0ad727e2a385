"""Rounds and tables of the workloads that move records."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from bench import procfs
from bench.fsyncs import SyncCount, can_count
from bench.report import Report, Row, number, times
from bench.rounds import Measured, Sample, interleave
from bench.subjects import LOWWATER, Subject

HEADER = ("subject", "flush", "CRC", "MB/s", "k msg/s", "broker CPU ms/MB", "syncs", "lowwater/peer", "CPU/peer's")


@dataclass(frozen=True, slots=True)
class Moved:
    """What a client moved in a round, and what that cost the broker."""

    records: int
    record_bytes: int
    seconds: float
    cpu_seconds: float

    @property
    def megabytes(self) -> float:
        return self.records * self.record_bytes / 1e6


Work = Callable[[Subject], Moved]
R = TypeVar("R")


def with_cpu(subject: Subject, act: Callable[[], R]) -> tuple[R, float]:
    """What `act` returns, and the CPU seconds of the broker meanwhile: topics come and go outside."""
    before = procfs.cpu_seconds(subject.pid)
    result = act()
    return result, procfs.cpu_seconds(subject.pid) - before


@dataclass
class Scenario:
    """One line-up of subjects under one load, and the ratios it promises by peer."""

    title: str
    subjects: Sequence[Subject]
    work: Work
    targets: Mapping[str, float] = field(default_factory=dict)


def sample(subject: Subject, work: Work) -> Sample:
    moved = work(subject)
    return {
        "mb_per_s": moved.megabytes / moved.seconds,
        "records_per_s": moved.records / moved.seconds,
        "cpu_ms_per_mb": 1000 * moved.cpu_seconds / moved.megabytes,
        "seconds": moved.seconds,
        "megabytes": moved.megabytes,
    }


class Bout:
    """Runs scenarios one after the other and prints them as one table."""

    def __init__(self, report: Report, rounds: int) -> None:
        self._report = report
        self._rounds = rounds
        self._counts_syncs = can_count()

    def run(self, title: str, scenarios: Sequence[Scenario]) -> None:
        rows: list[Row] = []
        targets: list[tuple[str, float, float]] = []
        for scenario in scenarios:
            syncs = {subject.name: self._warm_up(subject, scenario.work) for subject in scenario.subjects}
            works = {subject.name: _bound(subject, scenario.work) for subject in scenario.subjects}
            measured = interleave(works, self._rounds)
            self._report.keep(f"{title} · {scenario.title}", measured)
            rows += [None] if rows else []
            rows += [(scenario.title, *[""] * (len(HEADER) - 1))]
            rows += [_row(subject, measured, syncs[subject.name]) for subject in scenario.subjects]
            for peer, bound in scenario.targets.items():
                if peer in measured.samples:
                    what = f"{title} · {scenario.title}, lowwater / {peer}"
                    targets.append((what, measured.ratio(LOWWATER, peer, "mb_per_s"), bound))
        self._report.table(title, HEADER, rows)
        for what, value, bound in targets:
            self._report.target(what, value, bound)

    def _warm_up(self, subject: Subject, work: Work) -> str:
        """A round that is not timed; its syncs are counted here, because counting slows system calls."""
        with contextlib.ExitStack() as stack:
            count = stack.enter_context(SyncCount(subject.pid, enabled=self._counts_syncs))
            moved = work(subject)
        return "?" if count.total is None else f"{count.total} in {moved.megabytes:.0f} MB"


def _bound(subject: Subject, work: Work) -> Callable[[], Sample]:
    return lambda: sample(subject, work)


def _row(subject: Subject, measured: Measured, syncs: str) -> Row:
    ours = subject.name == LOWWATER
    return (
        f"  {subject.name}",
        subject.flush,
        subject.crc,
        number(measured.median(subject.name, "mb_per_s")),
        number(measured.median(subject.name, "records_per_s") / 1000),
        number(measured.median(subject.name, "cpu_ms_per_mb")),
        syncs,
        "" if ours else times(measured.ratios(LOWWATER, subject.name, "mb_per_s")),
        "" if ours else f"{number(measured.ratio(LOWWATER, subject.name, 'cpu_ms_per_mb'))}×",
    )
