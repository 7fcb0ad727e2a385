"""Tables for people, JSON for later, and which targets were reached."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.rounds import Measured

RESULTS = Path(__file__).parent / "results"
Row = Sequence[str] | None
"""Cells of a line; None draws a gap between groups."""


@dataclass(frozen=True, slots=True)
class Target:
    """A promise and what became of it: `value` has to be at least (or at most) `bound`."""

    what: str
    value: float
    bound: float
    at_least: bool = True

    @property
    def reached(self) -> bool:
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def __str__(self) -> str:
        sign = "≥" if self.at_least else "≤"
        verdict = "reached" if self.reached else "MISSED"
        return f"{verdict:<8} {self.what}: {number(self.value)}, target {sign} {number(self.bound)}"


class Report:
    """Prints as it goes; `write` leaves everything in bench/results/ as JSON."""

    def __init__(self) -> None:
        self.targets: list[Target] = []
        self._workloads: dict[str, dict[str, Any]] = {}
        self._workload = ""
        self._began = 0.0

    def begin(self, workload: str, text: str) -> None:
        self._workload = workload
        self._began = time.monotonic()
        self._workloads[workload] = {"text": text, "scenarios": {}, "targets": []}
        print(f"\n== {workload}: {text}", flush=True)

    def end(self) -> None:
        seconds = self._workloads[self._workload]["seconds"] = time.monotonic() - self._began
        self.note(f"({self._workload}: {seconds:.0f} s)")

    def table(self, title: str, header: Sequence[str], rows: Sequence[Row]) -> None:
        print(f"\n{title}")
        print(render(header, rows), flush=True)

    def note(self, text: str) -> None:
        print(f"  {text}", flush=True)

    def target(self, what: str, value: float, bound: float, *, at_least: bool = True) -> None:
        reached = Target(what, value, bound, at_least)
        self.targets.append(reached)
        self._workloads[self._workload]["targets"].append({**asdict(reached), "reached": reached.reached})
        self.note(str(reached))

    def keep(self, scenario: str, measured: Measured | dict[str, Any]) -> None:
        """Raw figures for the JSON."""
        values = measured.samples if isinstance(measured, Measured) else measured
        self._workloads[self._workload]["scenarios"][scenario] = values

    def summary(self) -> None:
        if not self.targets:
            return
        print(f"\n== targets: {sum(one.reached for one in self.targets)} of {len(self.targets)} reached")
        for one in self.targets:
            print(f"  {one}")

    def write(self) -> Path:
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{time.strftime('%Y%m%d-%H%M%S')}.json"
        content = {"machine": machine(), "workloads": self._workloads}
        path.write_text(json.dumps(content, indent=1, default=str))
        return path


def machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "kernel": platform.release(),
        "load": os.getloadavg(),
    }


def number(value: float) -> str:
    """Three figures that matter, as people write them."""
    if value != value:
        return "–"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def times(ratios: Sequence[float]) -> str:
    """A ratio as its median and range over the rounds."""
    if not ratios:
        return "–"
    return f"{number(statistics.median(ratios))}× ({number(min(ratios))}–{number(max(ratios))})"


def render(header: Sequence[str], rows: Sequence[Row]) -> str:
    """Columns aligned: the first to the left, figures to the right."""
    cells = [header, *(row for row in rows if row is not None)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        pairs = enumerate(zip(row, widths, strict=True))
        return "  ".join(cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in pairs).rstrip()

    ruled = [line(header), "  ".join("-" * width for width in widths)]
    return "\n".join([*ruled, *(line(row) if row is not None else "" for row in rows)])
