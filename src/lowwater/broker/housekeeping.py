"""What a broker does without being asked: roll, retain, forget producers, compact, raise ceilings, checkpoint."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from lowwater.broker.log_starts import Failures
from lowwater.errors import StorageError
from lowwater.log.compaction import CompactionPlan, CompactionResult, execute
from lowwater.log.partition_log import PartitionLog
from lowwater.pending import Pending
from lowwater.ports import Timer

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

logger = logging.getLogger(__name__)

CHECKPOINT_EVERY_MS = 60_000
LOGS_PER_TURN = 50


class Housekeeping:
    """Each task runs again after its interval; a long one is cut into turns, so that requests are not held up."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._timers: dict[str, Timer] = {}
        self._stopped = False
        self._raising = False
        self._ceilings_fail = False
        self._sweeping = False
        self._compacting = False
        self._checkpointing = False

    def start(self) -> None:
        # Asked anew each time, since settings can be altered while the broker runs.
        self._repeat("retention", lambda: self._broker.config.int("log.retention.check.interval.ms"), self.sweep_logs)
        every = "producer.id.expiration.check.interval.ms"
        self._repeat("forgetting producers", lambda: self._broker.config.int(every), self.expire_producers)
        self._repeat("compaction", lambda: self._broker.config.int("log.cleaner.backoff.ms"), self.compact_logs)
        self._repeat("checkpoint", lambda: CHECKPOINT_EVERY_MS, self.checkpoint)

    def stop(self) -> None:
        self._stopped = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _repeat(self, name: str, every_ms: Callable[[], int], task: Callable[[], None]) -> None:
        def again() -> None:
            try:
                task()
            except (OSError, StorageError) as error:
                logger.error("%s failed and is tried again later: %s", name, error)
            if not self._stopped:
                self._repeat(name, every_ms, task)

        self._timers[name] = self._broker.scheduler.call_later(every_ms(), again)

    # ---- ceilings

    def raise_ceilings(self) -> None:
        """Logs came near their offset ceilings: write higher ones and sync them off the loop."""
        if self._raising or self._stopped:
            return
        store = self._broker.store
        try:
            ticket = store.begin_ceilings()
        except StorageError as error:
            # Nobody is harmed before a log reaches its ceiling; the next append tries again.
            self._report_ceilings(error)
            return
        if ticket is None:
            return
        self._raising = True
        self._ceilings_fail = False

        def done(_: None, error: BaseException | None) -> None:
            self._raising = False
            store.finish_ceilings(ticket, error)

        self._broker.submit(ticket.run, done)

    def _report_ceilings(self, error: StorageError) -> None:
        if not self._ceilings_fail:
            self._ceilings_fail = True
            logger.error("offset ceilings cannot be raised now: %s", error)

    # ---- rolling and retention

    def sweep_logs(self) -> None:
        if not self._sweeping:
            self._sweeping = True
            self._sweep_some(self._logs())

    def _logs(self) -> Iterator[PartitionLog]:
        for topic in list(self._broker.topics):
            for index in range(topic.partition_count):
                if self._broker.topics.by_id(topic.id) is None:
                    break  # deleted since the last turn: its logs must not come back
                yield topic.partition(index).log

    def _sweep_some(self, logs: Iterator[PartitionLog]) -> None:
        some = list(islice(logs, LOGS_PER_TURN))
        if not some or self._stopped:
            self._sweeping = False
            return
        starts = {log: start for log in some if (start := self._start_after_sweep(log)) is not None}
        if not starts:
            self._broker.scheduler.call_soon(lambda: self._sweep_some(logs))
            return

        def moved(done: Pending[Failures]) -> None:
            failures = done.result()
            for log, start in starts.items():
                if log in failures:
                    _report_retention(log, failures[log])
                else:
                    logger.info("retention: %s starts at %d", log.topic_partition, start)
            self._broker.scheduler.call_soon(lambda: self._sweep_some(logs))

        self._broker.log_starts.advance(starts).on_done(moved)

    def _start_after_sweep(self, log: PartitionLog) -> int | None:
        now_ms = self._broker.clock.now_ms()
        try:
            log.roll_if_due(now_ms)
            return log.start_after_retention(now_ms)
        except StorageError as error:
            _report_retention(log, error)
            return None

    # ---- producers

    def expire_producers(self) -> None:
        self._expire_some(iter(list(self._broker.store.logs())))

    def _expire_some(self, logs: Iterator[PartitionLog]) -> None:
        some = list(islice(logs, LOGS_PER_TURN))
        now_ms = self._broker.clock.now_ms()
        for log in some:
            log.expire_producers(now_ms)
        if some and not self._stopped:
            self._broker.scheduler.call_soon(lambda: self._expire_some(logs))

    # ---- compaction

    def compact_logs(self) -> None:
        """Look for compacted logs with enough to do; one at a time is compacted, off the loop."""
        if self._compacting or self._stopped or not self._broker.config.bool("log.cleaner.enable"):
            return
        now_ms = self._broker.clock.now_ms()
        for log in self._compacted_logs():
            plan = self._plan(log, now_ms)
            if plan is not None:
                self._compact(log, plan)
                return

    def _compacted_logs(self) -> Iterator[PartitionLog]:
        for topic in list(self._broker.topics):
            if topic.log_config.compact:
                for index in range(topic.partition_count):
                    yield topic.partition(index).log

    def _plan(self, log: PartitionLog, now_ms: int) -> CompactionPlan | None:
        """What to compact of this log, if anything; a log that cannot be read does not hold up the others."""
        if log.failure() is not None:
            return None
        try:
            log.roll_if_due(now_ms)
            if any(segment.is_sealed and segment.next_offset > log.flushed_end for segment in log.segments):
                # Only durable segments are compacted; the next look finds this one ready.
                self._broker.commits.flushed([(log, log.log_end)])
            return log.plan_compaction(now_ms)
        except StorageError as error:
            logger.error("%s is not compacted now: %s", log.topic_partition, error)
            return None

    def _compact(self, log: PartitionLog, plan: CompactionPlan) -> None:
        self._compacting = True

        def done(result: CompactionResult | None, error: BaseException | None) -> None:
            self._compacting = False
            outcome = result or CompactionResult(None, (), 0, str(error), retriable=True)
            log.finish_compaction(outcome)
            if not outcome.retriable:
                # The next one at once: many logs may be waiting. A full disk, though, wants time.
                self._broker.scheduler.call_soon(self.compact_logs)

        self._broker.submit_heavy(execute, plan, done)

    # ---- the checkpoint

    def checkpoint(self) -> None:
        """Write down what is durable, off the loop; nobody waits for it."""
        if not self._checkpointing:
            self._checkpointing = True
            self._encode_some(iter(list(self._broker.store.logs())))

    def _encode_some(self, logs: Iterator[PartitionLog]) -> None:
        """What thousands of logs have to say is put together in turns; they remember it until they change."""
        some = list(islice(logs, LOGS_PER_TURN))
        for log in some:
            log.entry()
        if some and not self._stopped:
            self._broker.scheduler.call_soon(lambda: self._encode_some(logs))
        elif not self._stopped:
            self._write_checkpoint()

    def _write_checkpoint(self) -> None:
        write = self._broker.store.begin_checkpoint()

        def done(_: None, error: BaseException | None) -> None:
            self._checkpointing = False
            if error is not None:
                logger.error("the checkpoint failed and is tried again later: %s", error)

        self._broker.submit(write, done)


def _report_retention(log: PartitionLog, error: Exception) -> None:
    logger.error("retention of %s failed and is tried again later: %s", log.topic_partition, error)
