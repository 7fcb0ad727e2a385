"""One running query: its progress, each event once and in order; whether it may be stopped; how it ended."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from lowwater.spark.checkpoint import CheckpointError, read_checkpoint
from lowwater.spark.pipeline.decode_errors import METRIC_PREFIX
from lowwater.spark.pipeline.failures import Failure, failure_of
from lowwater.spark.pipeline.queries import Query
from lowwater.spark.pipeline.secrets import Secrets
from lowwater.spark.pipeline.summary import QuerySummary
from lowwater.spark.progress import rows_of

RESTARTS_MAX = 3
# What Spark says of a query once the offsets of its first batch are known, or there is nothing to read yet.
_BEGUN = ("Processing", "Waiting")


class Observer(Protocol):
    """Told what happens, by the query's label. An event is what Spark tells as progress, from its JSON."""

    def started(self, query: str) -> None: ...

    def progressed(self, query: str, event: Mapping[str, Any]) -> None: ...

    def ended(self, query: str, error: str | None) -> None: ...


class Progress(Protocol):
    @property
    def json(self) -> str: ...


class Running(Protocol):
    """What is used of Spark's StreamingQuery."""

    @property
    def isActive(self) -> bool: ...  # noqa: N802

    @property
    def status(self) -> Mapping[str, Any]: ...

    @property
    def lastProgress(self) -> Progress | None: ...  # noqa: N802

    @property
    def recentProgress(self) -> Sequence[Progress]: ...  # noqa: N802

    def exception(self) -> Exception | None: ...

    def stop(self) -> None: ...


class Watched:
    """Starts the query, and starts it again when Spark could not for want of time."""

    def __init__(self, query: Query, start: Callable[[Query], Running], observer: Observer, secrets: Secrets) -> None:
        self.query = query
        self.failure: Failure | None = None
        self.is_over = False
        self.last_event: Mapping[str, Any] | None = None
        self._start = start
        self._restarts_left = RESTARTS_MAX
        self._running = start(query)
        self._observer = observer
        self._secrets = secrets
        self._last = (-1, "")
        self._batches = 0
        self._rows = 0
        self._bad_rows: dict[str, int] = {}
        observer.started(query.label)

    @property
    def batch(self) -> int:
        """The last one that is finished."""
        return self._last[0]

    @property
    def has_begun(self) -> bool:
        """Whether it has settled where it starts."""
        if self.batch >= 0 or not self._running.isActive:
            return True
        return str(self._running.status["message"]).startswith(_BEGUN)

    @property
    def is_between_batches(self) -> bool:
        return not self._running.status["isTriggerActive"]

    @property
    def was_cut_off(self) -> bool:
        """Whether it was stopped within a batch, as far as its checkpoint can be looked into from here."""
        try:
            return read_checkpoint(self.query.checkpoint).is_cut_off
        except CheckpointError:
            return False

    def poll(self) -> None:
        """Tells what is new."""
        if self.is_over:
            return
        is_active = self._running.isActive  # first: what came before the end is told before the end
        for event in self._new_events():
            self._take(event)
        if not is_active:
            self._end()

    def stop(self) -> None:
        """At once: what runs is cut off, and run again at the next start."""
        self._restarts_left = 0
        if not self.is_over:
            self._running.stop()
            self.poll()

    def summary(self) -> QuerySummary:
        return QuerySummary(self.query.label, self._batches, self._rows, dict(self._bad_rows), self.failure)

    def _new_events(self) -> list[Mapping[str, Any]]:
        last = self._running.lastProgress
        if last is None:
            return []
        event = json.loads(last.json)
        if _mark(event) == self._last:
            return []
        if 0 <= self.batch >= event["batchId"] - 1:
            return [event]
        recent = [json.loads(progress.json) for progress in self._running.recentProgress]
        return [event for event in recent if _mark(event) > self._last]

    def _take(self, event: Mapping[str, Any]) -> None:
        self._batches += event["batchId"] > self.batch
        self._rows += rows_of(event)
        self._last, self.last_event = _mark(event), event
        for name, metric in (event.get("observedMetrics") or {}).items():
            if name.startswith(METRIC_PREFIX):
                source = name.removeprefix(METRIC_PREFIX)
                self._bad_rows[source] = self._bad_rows.get(source, 0) + int(metric.get("bad") or 0)
        self._observer.progressed(self.query.label, event)

    def _end(self) -> None:
        error = self._running.exception()
        failure = None if error is None else failure_of(str(error), self._secrets)
        if failure is not None and failure.may_start_again and self._restarts_left:
            self._restarts_left -= 1
            self._running = self._start(self.query)
            return
        self.is_over, self.failure = True, failure
        self._observer.ended(self.query.label, failure.what if failure else None)


def _mark(event: Mapping[str, Any]) -> tuple[int, str]:
    return int(event["batchId"]), str(event["timestamp"])
