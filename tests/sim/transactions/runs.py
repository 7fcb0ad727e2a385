"""Runs by seed, and what they add up to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields

from tests.sim.transactions.world import Report, World


@dataclass(slots=True)
class Totals:
    runs: int = 0
    crashes: int = 0
    power_cuts: int = 0
    appends: int = 0
    answered: int = 0
    transactions: int = 0
    committed: int = 0
    read: int = 0
    fenced: int = 0
    violations: list[str] = field(default_factory=list)

    def count(self, report: Report) -> None:
        self.runs += 1
        for name in _COUNTED:
            setattr(self, name, getattr(self, name) + getattr(report, name))
        self.violations += [f"seed {report.seed}: {problem}" for problem in report.problems]

    def add(self, other: Totals) -> None:
        for name in ("runs", *_COUNTED):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.violations += other.violations

    def __str__(self) -> str:
        return (
            f"runs {self.runs}, kills {self.crashes}, power cuts {self.power_cuts}, appends {self.appends}, "
            f"answers {self.answered}, transactions {self.transactions}, committed {self.committed}, "
            f"records read {self.read}, fenced {self.fenced}, violations {len(self.violations)}"
        )


_COUNTED = [one.name for one in fields(Totals) if one.name not in ("runs", "violations")]


def run(
    seed: int, *, crash_at: int | None = None, power_cut: bool = False, kind: Callable[..., World] = World
) -> Report:
    """One world from its beginning to its end."""
    world = kind(seed, crash_at=crash_at, power_cut=power_cut)
    try:
        world.run()
    except Exception as error:
        world.judge.report(f"{type(error).__name__}: {error}")
        world.report.problems = world.judge.problems
    return world.report


def run_seeds(seeds: Iterable[int]) -> Totals:
    totals = Totals()
    for seed in seeds:
        totals.count(run(seed))
    return totals


def run_every_append(seeds: Iterable[int]) -> Totals:
    """Each seed once without any crash, then with a crash at each of its appends, of both kinds in turns."""
    totals = Totals()
    for seed in seeds:
        appends = run(seed, crash_at=0).appends_at_risk
        for at in range(1, appends + 1):
            report = run(seed, crash_at=at, power_cut=(seed + at) % 2 == 0)
            report.problems = [f"crash at append {at}: {problem}" for problem in report.problems]
            totals.count(report)
    return totals
