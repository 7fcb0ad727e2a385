"""A query over all of its micro-batches in this run: sums, speed, and how long the rest will take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from lowwater.spark.progress import Behind, Progress

# So much the last micro-batch counts for the speed, against all before it.
_NEWEST_WEIGHT = 0.4


class Course:
    """Told every micro-batch once, in their order."""

    def __init__(self, query: str) -> None:
        self.query = query
        self.last: Progress | None = None
        self.batches = 0
        self.rows = 0
        self.rows_written: int | None = None
        self.late_rows = 0
        self.bad_rows: Counter[str] = Counter()
        self.busy_ms = 0
        self.event_time_max_ms: int | None = None
        self.behind: Behind | None = None
        self.behind_s: float | None = None
        """The age of the oldest record that is not read yet, where somebody has looked."""
        self._speed: float | None = None

    def add(self, progress: Progress) -> None:
        if self.last is None or progress.batch_id > self.last.batch_id:
            self.batches += 1
        self.last = progress
        self.rows += progress.rows
        self.late_rows += progress.late_rows
        self.busy_ms += progress.batch_ms
        self.bad_rows.update(progress.bad_rows)
        if progress.rows_written is not None:
            self.rows_written = (self.rows_written or 0) + progress.rows_written
        if progress.event_time_max_ms is not None:
            self.event_time_max_ms = max(progress.event_time_max_ms, self.event_time_max_ms or 0)
        self.behind = progress.behind or self.behind
        if self.behind is not None and not self.behind.records:
            self.behind_s = 0.0
        if progress.rows and progress.batch_ms:
            self._note_speed(progress.rows * 1000 / progress.batch_ms)

    def _note_speed(self, speed: float) -> None:
        before = speed if self._speed is None else self._speed
        self._speed = before + _NEWEST_WEIGHT * (speed - before)

    @property
    def watermark_ms(self) -> int | None:
        return None if self.last is None else self.last.watermark_ms

    @property
    def rows_s(self) -> float | None:
        """As of late."""
        return self._speed

    @property
    def time_left_s(self) -> float | None:
        """Until everything is read that was there after the last micro-batch; None while that cannot be said."""
        if self.behind is None or not self._speed:
            return None
        return self.behind.records / self._speed


METRICS = {
    "lowwater_spark_rows_total": ("counter", "Rows read."),
    "lowwater_spark_rows_per_second": ("gauge", "Speed as of late."),
    "lowwater_spark_batches_total": ("counter", "Finished micro-batches."),
    "lowwater_spark_late_rows_total": ("counter", "Rows that stateful operators refused as late."),
    "lowwater_spark_bad_rows_total": ("counter", "Rows that could not be decoded, by source."),
    "lowwater_spark_records_behind": ("gauge", "Records not read yet, of all partitions."),
    "lowwater_spark_records_behind_min": ("gauge", "The same, of the partition with the fewest."),
    "lowwater_spark_records_behind_max": ("gauge", "The same, of the partition with the most."),
    "lowwater_spark_records_behind_avg": ("gauge", "The same, of a partition on average."),
    "lowwater_spark_seconds_behind": ("gauge", "The age of the oldest record that is not read yet."),
    "lowwater_spark_event_time_seconds": ("gauge", "The latest event time met, in seconds since 1970."),
    "lowwater_spark_watermark_seconds": ("gauge", "The watermark, in seconds since 1970."),
    "lowwater_spark_time_left_seconds": ("gauge", "How long reading the rest will take at this speed."),
}


def prometheus(courses: Iterable[Course]) -> str:
    """In the text format of Prometheus. What is not known is left out."""
    samples: dict[str, list[str]] = {name: [] for name in METRICS}
    for course in courses:
        for name, value in _values(course).items():
            if value is not None:
                samples[name].append(f'{name}{{query="{_escaped(course.query)}"}} {value}')
        for source, count in sorted(course.bad_rows.items()):
            labels = f'query="{_escaped(course.query)}",source="{_escaped(source)}"'
            samples["lowwater_spark_bad_rows_total"].append(f"lowwater_spark_bad_rows_total{{{labels}}} {count}")
    lines = []
    for name, (kind, text) in METRICS.items():
        if samples[name]:
            lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}", *samples[name]]
    return "".join(f"{line}\n" for line in lines)


def _values(course: Course) -> dict[str, float | None]:
    values: dict[str, float | None] = {
        "lowwater_spark_rows_total": course.rows,
        "lowwater_spark_rows_per_second": course.rows_s,
        "lowwater_spark_batches_total": course.batches,
        "lowwater_spark_late_rows_total": course.late_rows,
        "lowwater_spark_seconds_behind": course.behind_s,
        "lowwater_spark_event_time_seconds": _seconds(course.event_time_max_ms),
        "lowwater_spark_watermark_seconds": _seconds(course.watermark_ms),
        "lowwater_spark_time_left_seconds": course.time_left_s,
    }
    if course.behind is not None:
        values |= {
            "lowwater_spark_records_behind": course.behind.records,
            "lowwater_spark_records_behind_min": course.behind.least,
            "lowwater_spark_records_behind_max": course.behind.most,
            "lowwater_spark_records_behind_avg": course.behind.mean,
        }
    return values


def _seconds(time_ms: int | None) -> float | None:
    return None if time_ms is None else time_ms / 1000


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
