"""What a run does while it runs, and what it did, as figures: shown by the command line, and kept as JSON."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from lowwater.spark.ages import Ages, Aging, Looks
from lowwater.spark.course import Course, prometheus
from lowwater.spark.options import SourceOptions
from lowwater.spark.pipeline.model import Model, Sink
from lowwater.spark.pipeline.queries import Query, queries
from lowwater.spark.pipeline.source_options import reading_options
from lowwater.spark.pipeline.summary import QuerySummary, Summary
from lowwater.spark.progress import Progress

Changed = Callable[[Course], None]


class Reporting:
    """An observer of a run: keeps the figures of each query, by its label, and says when one has changed."""

    def __init__(
        self,
        changed: Changed,
        looks: Callable[[str], Looks | None] = lambda query: None,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self.courses: dict[str, Course] = {}
        self._changed = changed
        self._aging = Aging(looks, now_s)

    def started(self, query: str) -> None:
        self.courses[query] = Course(query)
        self._changed(self.courses[query])

    def progressed(self, query: str, event: Mapping[str, Any]) -> None:
        course = self.courses[query]
        course.add(Progress.of(event))
        self._aging.note(course)
        self._changed(course)

    def ended(self, query: str, error: str | None) -> None:
        pass

    def close(self) -> None:
        self._aging.close()

    def prometheus(self) -> str:
        return prometheus(self.courses.values())


def looks_of(model: Model) -> Callable[[str], Looks | None]:
    """Ages for a query whose sources are all in one cluster, by the same settings."""

    def made(label: str) -> Looks | None:
        query = next(each for each in queries(model) if each.label == label)
        sources = [source for source in model.sources if source.name in query.reads]
        options = [SourceOptions.parse(reading_options(model, source), streaming=True) for source in sources]
        settings = [each.client.settings for each in options]
        return Ages(settings[0]) if settings and all(each == settings[0] for each in settings) else None

    return made


# ---- at the end


def report(model: Model, summary: Summary, courses: Mapping[str, Course]) -> dict[str, Any]:
    """Everything that is known of a run, for programs."""
    of_label = {query.label: query for query in queries(model)}
    return {
        "pipeline": summary.name,
        "outcome": summary.outcome.value,
        "exit_code": int(summary.exit_code),
        "seconds": round(summary.seconds, 3),
        "queries": [
            _query(model, of_label[each.name], each, courses.get(each.name) or Course(each.name))
            for each in summary.queries
        ],
    }


def _query(model: Model, query: Query, summary: QuerySummary, course: Course) -> dict[str, Any]:
    behind = course.behind
    return {
        "name": query.label,
        "kind": query.kind,
        "rows": summary.rows,
        "batches": summary.batches,
        "rows_per_second": _rounded(course.rows_s),
        "rows_written": course.rows_written,
        "late_rows": course.late_rows,
        "bad_rows": dict(summary.bad_rows),
        "event_time": time_text(course.event_time_max_ms),
        "watermark": time_text(course.watermark_ms),
        "records_behind": None
        if behind is None
        else {"all": behind.records, "min": behind.least, "max": behind.most, "avg": behind.mean},
        "seconds_behind": _rounded(course.behind_s),
        "groups": groups_of(model, query),
        "output": output_of(model, query),
        "error": summary.failure.what if summary.failure else None,
    }


def output_of(model: Model, query: Query) -> str | None:
    """Where the rows of a query go: a folder, or a topic."""
    if query.kind == "dead letters":
        source = model.source(query.of)
        return None if source is None else source.bad_rows.topic
    sink = _sink(model, query.of)
    return model.location(sink.path) if sink.path else sink.topic


def groups_of(model: Model, query: Query) -> list[str]:
    """The groups that a query commits to."""
    return sorted({source.group for source in model.sources if source.name in query.commits and source.group})


def _sink(model: Model, name: str) -> Sink:
    return next(sink for sink in model.sinks if sink.name == name)


def time_text(time_ms: int | None) -> str | None:
    if time_ms is None:
        return None
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
