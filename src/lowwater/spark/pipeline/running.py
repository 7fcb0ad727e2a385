"""Running the queries of a pipeline to their end, or until they are told to stop."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

from lowwater.spark.pipeline.model import Model
from lowwater.spark.pipeline.queries import Query, queries
from lowwater.spark.pipeline.summary import Outcome, Summary
from lowwater.spark.pipeline.watching import Observer, Running, Watched

POLL_S = 0.2
STOP_POLL_S = 0.02
BEGIN_WITHIN_S = 120.0
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Silent:
    """An observer that tells nobody."""

    def started(self, query: str) -> None:
        pass

    def progressed(self, query: str, event: Mapping[str, Any]) -> None:
        pass

    def ended(self, query: str, error: str | None) -> None:
        pass


def run(
    model: Model,
    start: Callable[[Query], Running],
    *,
    observer: Observer | None = None,
    stop: threading.Event | None = None,
    commit: Callable[[Query, Mapping[str, Any]], None] | None = None,
    hold: Callable[[], None] | None = None,
) -> Summary:
    """Starts every query and waits. When `stop` is set, or one fails, the others end after their running batch.

    `commit` is given each query's last event when all of them have ended. `hold` keeps them from beginning new batches.
    """
    summary, watched = _Run(model, start, observer or Silent(), stop or threading.Event(), hold).to_end()
    for each in watched:
        if commit is not None and each.last_event is not None:
            commit(each.query, each.last_event)
    return summary


class _Run:
    def __init__(
        self,
        model: Model,
        start: Callable[[Query], Running],
        observer: Observer,
        stop: threading.Event,
        hold: Callable[[], None] | None,
    ) -> None:
        self._model = model
        self._start = start
        self._observer = observer
        self._stop = stop
        self._hold = hold
        self._watched: list[Watched] = []

    def to_end(self) -> tuple[Summary, list[Watched]]:
        began_s = time.monotonic()
        planned = queries(self._model)
        try:
            for query in planned:
                self._wait_for_others()
                if self._stop.is_set() or self._has_failed:
                    break
                self._watched.append(Watched(query, self._start, self._observer, self._model.secrets))
            outcome = self._watch(planned)
        finally:
            for each in self._watched:
                each.stop()
        done = tuple(each.summary() for each in self._watched)
        return Summary(self._model.name, outcome, done, time.monotonic() - began_s), self._watched

    @property
    def _has_failed(self) -> bool:
        return any(each.failure for each in self._watched)

    def _wait_for_others(self) -> None:
        """One after the other: a query that starts from a group must do so before another moves the group on, and
        Spark gives up on Python processes that many others keep from starting."""
        until_s = time.monotonic() + BEGIN_WITHIN_S
        while True:
            for each in self._watched:
                each.poll()
            if self._has_failed or all(each.has_begun for each in self._watched) or time.monotonic() >= until_s:
                return
            if self._stop.wait(POLL_S):
                return

    def _watch(self, planned: Sequence[Query]) -> Outcome:
        while True:
            for each in self._watched:
                each.poll()
            if self._has_failed:
                self._stop_all()
                return Outcome.FAILED
            if all(each.is_over for each in self._watched):
                # A stop before the others were started leaves them undone.
                return Outcome.DONE if len(self._watched) == len(planned) else Outcome.STOPPED
            if self._stop.wait(POLL_S):
                return Outcome.STOPPED if self._stop_all() else Outcome.CUT_OFF

    def _stop_all(self) -> bool:
        """Each between two batches; False when some were cut off in one: the time was over, or one had just begun."""
        if self._hold is not None:
            self._hold()
        until_s = time.monotonic() + self._model.stop_within_ms / 1000
        stopped = {each: each.batch for each in self._watched if not each.is_over}
        running = dict(stopped)
        while True:  # at least once: who is idle has nothing to be cut off from
            for each, batch in list(running.items()):
                if self._may_stop(each, batch):
                    each.stop()
                    del running[each]
            if not running or time.monotonic() >= until_s:
                break
            time.sleep(STOP_POLL_S)
        for each in running:
            each.stop()
        return not running and not any(each.was_cut_off for each in stopped)

    def _may_stop(self, each: Watched, batch: int) -> bool:
        """An idle query that is held begins no batch. One that cannot be held may begin one at any moment."""
        is_idle = each.is_between_batches
        each.poll()
        return is_idle or each.is_over or (self._hold is None and each.batch > batch)


@contextlib.contextmanager
def stopping_on_signals(stop: threading.Event) -> Iterator[None]:
    """SIGTERM and Ctrl-C set `stop`; the second one ends at once. Has to be entered after a session was opened, since
    Spark then takes Ctrl-C for itself."""

    def asked(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, asked) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
