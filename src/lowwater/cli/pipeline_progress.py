"""How a run of a pipeline looks: a table that lives in a terminal, a line for each micro-batch elsewhere."""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from lowwater.cli.printing import UNKNOWN, counted, duration, number, printable, tell

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

    from lowwater.spark.course import Course
    from lowwater.spark.pipeline.model import Model
    from lowwater.spark.pipeline.summary import QuerySummary, Summary

TITLES = ("query", "rows", "rows/s", "event time", "behind", "left")


class Lines:
    """For pipes and files: each micro-batch is a line on stderr."""

    def changed(self, course: Course) -> None:
        if course.last is None:
            click.echo(f"{printable(course.query)}: started", err=True)
            return
        facts = [(title, cell) for title, cell in zip(TITLES, cells(course), strict=True) if cell != UNKNOWN]
        told = ", ".join(f"{cell} {title}" if title in _AFTER else f"{title} {cell}" for title, cell in facts[1:])
        # Spark makes one without rows at the end, to write what only waited for the event time to pass.
        found = "" if course.last.rows else "nothing new, "
        click.echo(f"{printable(course.query)}: batch {course.last.batch_id}: {found}{told}", err=True)

    def close(self) -> None:
        pass


_AFTER = ("rows", "rows/s", "behind", "left")


class Screen:
    """For terminals: a row for each query, drawn anew whenever something changes."""

    def __init__(self) -> None:
        self._courses: dict[str, Course] = {}
        self._live: Live | None = None

    def changed(self, course: Course) -> None:
        self._courses[course.query] = course
        if self._live is None:
            from rich.console import Console
            from rich.live import Live

            console = Console(stderr=True, width=shutil.get_terminal_size().columns, highlight=False, markup=False)
            self._live = Live(console=console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(self._table(), refresh=True)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()

    def _table(self) -> Table:
        from rich.table import Table

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for title in TITLES:
            table.add_column(title, justify="left" if title == "query" else "right", no_wrap=True)
        for course in self._courses.values():
            table.add_row(*cells(course))
        return table


def screen_or_lines() -> Screen | Lines:
    return Screen() if sys.stderr.isatty() else Lines()


def cells(course: Course) -> tuple[str, ...]:
    """By the titles."""
    return (
        printable(course.query),
        number(course.rows),
        UNKNOWN if course.rows_s is None else number(round(course.rows_s)),
        moment(course.event_time_max_ms),
        behind(course),
        duration(math.ceil(course.time_left_s) * 1000) if course.time_left_s else UNKNOWN,
    )


def moment(time_ms: int | None) -> str:
    """To the minute, in UTC."""
    return UNKNOWN if time_ms is None else f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M}"


def behind(course: Course) -> str:
    """Records, and how old the oldest of them is."""
    if course.behind is None:
        return UNKNOWN
    records = counted(course.behind.records, "record")
    if not course.behind.records or course.behind_s is None:
        return records
    return f"{records} ({duration(round(course.behind_s) * 1000)})"


# ---- at the end


def tell_summary(model: Model, summary: Summary, courses: dict[str, Course], *, verbose: bool) -> None:
    click.echo(f"{summary.name}: {summary.outcome.value} after {duration(_tenths_ms(summary.seconds))}")
    for query in summary.queries:
        for line in _query_lines(model, query, courses.get(query.name)):
            click.echo(f"  {line}")
        if query.failure is not None:
            tell(f"{query.name}: {query.failure.detail if verbose else query.failure.what}")


def _query_lines(model: Model, summary: QuerySummary, course: Course | None) -> list[str]:
    from lowwater.spark.pipeline.queries import queries
    from lowwater.spark.pipeline.reporting import groups_of, output_of

    query = next(each for each in queries(model) if each.label == summary.name)
    parts = [f"{counted(summary.rows, 'row')} in {counted(summary.batches, 'micro-batch', 'micro-batches')}"]
    if course is not None:
        parts += _facts(course)
    bad = sum(summary.bad_rows.values())
    if bad:
        parts.append(f"{counted(bad, 'row')} could not be decoded")
    lines = [f"{printable(summary.name)}: {', '.join(parts)}"]
    if not summary.batches:
        return lines
    if (output := output_of(model, query)) is not None:
        lines.append(f"  written to {printable(output)}")
    if groups := groups_of(model, query):
        lines.append(f"  committed to the group {', '.join(map(printable, groups))}")
    return lines


def _facts(course: Course) -> list[str]:
    facts = []
    if course.rows and course.busy_ms:
        facts.append(f"{number(round(course.rows * 1000 / course.busy_ms))} rows/s")
    if course.event_time_max_ms is not None:
        facts.append(f"event time up to {moment(course.event_time_max_ms)}")
    if course.late_rows:
        facts.append(f"{counted(course.late_rows, 'row')} too late for the watermark")
    if course.behind is not None:
        facts.append("all read" if not course.behind.records else f"{behind(course)} behind")
    return facts


def _tenths_ms(seconds: float) -> int:
    return round(seconds * 10) * 100


# ---- for Prometheus


class MetricsFile:
    """Written anew when something changes, but not more often than once a second; whole at every moment."""

    def __init__(self, path: str, text: Callable[[], str]) -> None:
        self._path = path
        self._text = text
        self._written_s = float("-inf")

    def changed(self) -> None:
        if time.monotonic() - self._written_s >= 1:
            self.write()

    def write(self) -> None:
        import os

        self._written_s = time.monotonic()
        with open(f"{self._path}.tmp", "w", encoding="utf-8") as file:
            file.write(self._text())
        os.replace(f"{self._path}.tmp", self._path)
