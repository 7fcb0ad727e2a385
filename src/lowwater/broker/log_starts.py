"""Log starts that move up, by DeleteRecords and by retention: many logs share one sync, off the event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from lowwater.errors import StorageError
from lowwater.log.log_start import LogStart
from lowwater.log.partition_log import PartitionLog
from lowwater.pending import Pending, run

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

Failures: TypeAlias = dict[PartitionLog, Exception]
Waiting: TypeAlias = list[tuple[dict[PartitionLog, int], Pending[Failures]]]


class LogStarts:
    """One round at a time; what is asked for meanwhile shares the next one."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._waiting: Waiting = []
        self._busy = False

    def advance(self, wanted: dict[PartitionLog, int]) -> Pending[Failures]:
        """Settled when the logs start there, durably; holds those that do not, with the reason."""
        pending: Pending[Failures] = Pending()
        self._waiting.append((wanted, pending))
        if not self._busy:
            self._busy = True
            # Not at once: the other requests of this turn join.
            self._broker.scheduler.call_soon(lambda: run(self._work()).on_done(lambda done: done.result()))
        return pending

    async def _work(self) -> None:
        try:
            while self._waiting:
                waiting, self._waiting = self._waiting, []
                failures = await self._advance_all(_targets(waiting))
                for _, pending in waiting:
                    pending.resolve(failures)
        finally:
            # Also when an answer broke: those who come later must not wait for ever.
            self._busy = False

    async def _advance_all(self, targets: dict[PartitionLog, int]) -> Failures:
        failures: Failures = {}
        starts = _begin(targets, failures)
        await self._secure(starts, failures)
        marked = _mark(starts, failures)
        if not marked:
            return failures
        try:
            await self._broker.offload(self._broker.store.sync_marks)
        except StorageError as error:
            failures.update((log, log.go_offline(str(error))) for log in marked)
            return failures
        for log, start in marked.items():
            try:
                log.finish_log_start(start)
            except (OSError, StorageError) as error:
                failures[log] = error
        return failures

    async def _secure(self, starts: dict[PartitionLog, LogStart], failures: Failures) -> None:
        """Producer snapshots first: once the mark is durable, the next start removes what lies below."""
        needing = {log: start for log, start in starts.items() if start.needs_securing}
        if needing:
            errors = await self._broker.offload(lambda: [_error_of(start) for start in needing.values()])
            failures.update((log, error) for log, error in zip(needing, errors, strict=True) if error is not None)


def _targets(waiting: Waiting) -> dict[PartitionLog, int]:
    targets: dict[PartitionLog, int] = {}
    for wanted, _ in waiting:
        for log, offset in wanted.items():
            targets[log] = max(offset, targets.get(log, 0))
    return targets


def _begin(targets: dict[PartitionLog, int], failures: Failures) -> dict[PartitionLog, LogStart]:
    starts = {}
    for log, offset in targets.items():
        try:
            log.check_online()
            starts[log] = log.begin_log_start(offset)
        except (OSError, StorageError) as error:
            failures[log] = error
    return starts


def _mark(starts: dict[PartitionLog, LogStart], failures: Failures) -> dict[PartitionLog, LogStart]:
    """Those whose new start is written down."""
    marked = {}
    for log, start in starts.items():
        try:
            if log not in failures:
                log.check_online()
                log.mark_log_start(start)
                marked[log] = start
        except StorageError as error:
            failures[log] = error
    return marked


def _error_of(start: LogStart) -> StorageError | None:
    try:
        start.secure()
    except StorageError as error:
        return error
    return None
