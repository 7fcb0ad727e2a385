"""Runs by seed, and what they add up to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.sim.groups import coverage
from tests.sim.groups.liveness import judge_end
from tests.sim.groups.world import Report, World

# Looking at every append costs more than the run itself.
SHADOWED_EACH = 10


@dataclass(slots=True)
class Totals:
    runs: int = 0
    crashes: int = 0
    power_cuts: int = 0
    appends: int = 0
    reloads: int = 0
    answered: int = 0
    acked: int = 0
    fetched: int = 0
    generations: int = 0
    assignments: int = 0
    cells: set[str] = field(default_factory=set)
    violations: list[str] = field(default_factory=list)

    def count(self, report: Report) -> None:
        self.runs += 1
        self.crashes += report.crashes
        self.power_cuts += report.power_cuts
        self.appends += report.appends
        self.reloads += report.reloads
        self.answered += report.answered
        self.acked += report.acked
        self.fetched += report.fetched
        self.generations += report.generations
        self.assignments += report.assignments
        self.violations += [f"seed {report.seed}: {problem}" for problem in report.problems]

    def add(self, other: Totals) -> None:
        for name in ("runs", "crashes", "power_cuts", "appends", "reloads", "answered", "acked", "fetched"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.generations += other.generations
        self.assignments += other.assignments
        self.cells |= other.cells
        self.violations += other.violations

    def __str__(self) -> str:
        return (
            f"runs {self.runs}, kills {self.crashes}, power cuts {self.power_cuts}, appends {self.appends}, "
            f"reloads in the shadow {self.reloads}, "
            f"answers {self.answered}, offsets acked {self.acked}, fetched {self.fetched}, "
            f"generations {self.generations}, assignments {self.assignments}, violations {len(self.violations)}"
        )


def run(seed: int, *, crash_at: int | None = None, power_cut: bool = False) -> Report:
    """One world from its beginning to its end."""
    world = World(seed, crash_at=crash_at, power_cut=power_cut, shadowed=seed % SHADOWED_EACH == 0 and crash_at is None)
    try:
        world.run()
        judge_end(world)
    except Exception as error:
        world.judge.report(f"{type(error).__name__}: {error}")
        world.report.problems = world.judge.problems
    return world.report


def run_seeds(seeds: Iterable[int]) -> Totals:
    totals = _totals()
    for seed in seeds:
        totals.count(run(seed))
    totals.cells |= coverage.met
    return totals


def run_every_append(seeds: Iterable[int]) -> Totals:
    """Each seed once without any crash, then with a crash at each of its appends, of both kinds in turns."""
    totals = _totals()
    for seed in seeds:
        appends = run(seed, crash_at=0).appends_at_risk
        for at in range(1, appends + 1):
            report = run(seed, crash_at=at, power_cut=(seed + at) % 2 == 0)
            report.problems = [f"crash at append {at}: {problem}" for problem in report.problems]
            totals.count(report)
    totals.cells |= coverage.met
    return totals


def _totals() -> Totals:
    coverage.watch()
    return Totals()
