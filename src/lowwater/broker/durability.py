"""Group commit: many waiting requests share one fsync, which runs off the event loop."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from lowwater.broker.metrics import Durations
from lowwater.errors import StorageError
from lowwater.log.flush import SHARED_FROM
from lowwater.log.partition_log import FlushTicket, PartitionLog, run_tickets
from lowwater.pending import Pending
from lowwater.ports import Clock, Disk, Offload, Scheduler

logger = logging.getLogger(__name__)

# File systems commit concurrent fsyncs together: side by side they take little longer than one.
SYNCS_MAX = 8


class _Waiting:
    """One request that waits for some logs; settled when the last of them is durable."""

    __slots__ = ("errors", "left", "pending")

    def __init__(self, left: int) -> None:
        self.left = left
        self.errors: dict[PartitionLog, BaseException] = {}
        self.pending: Pending[dict[PartitionLog, BaseException]] = Pending()

    def one_done(self, partition_log: PartitionLog, error: BaseException | None) -> None:
        if error is not None:
            self.errors[partition_log] = error
        self.left -= 1
        if self.left == 0:
            self.pending.resolve(self.errors)


class GroupCommit:
    """Each log has one fsync under way at most; what comes meanwhile shares its next one. No request waits on purpose.

    A few logs are synced side by side, many waiting ones in one go.
    """

    def __init__(self, disk: Disk, offload: Offload, scheduler: Scheduler, clock: Clock) -> None:
        self._disk = disk
        self._clock = clock
        self._offload = offload
        self._scheduler = scheduler
        self._waiting: dict[PartitionLog, list[tuple[int, _Waiting]]] = {}
        self._syncing: set[PartitionLog] = set()
        self._under_way = 0
        self._start_due = False
        self.rounds = 0
        self.syncs = Durations()

    def flushed(self, wanted: list[tuple[PartitionLog, int]]) -> Pending[dict[PartitionLog, BaseException]]:
        """Settled when every log is durable below its offset; holds the logs that failed, with the reason."""
        waiting = _Waiting(len(wanted))
        for partition_log, upto in wanted:
            self._waiting.setdefault(partition_log, []).append((upto, waiting))
        if not self._start_due and self._under_way < SYNCS_MAX:
            self._start_due = True
            # Not at once: the other requests of this turn join.
            self._scheduler.call_soon(self._start)
        return waiting.pending

    def _start(self) -> None:
        self._start_due = False
        ready = [one for one in self._waiting if one not in self._syncing]
        if len(ready) >= SHARED_FROM and self._under_way < SYNCS_MAX:
            self._sync(self._begin(ready))
            return
        for partition_log in ready:
            if self._under_way >= SYNCS_MAX:
                return
            self._sync(self._begin([partition_log]))

    def _begin(self, logs: Sequence[PartitionLog]) -> list[tuple[PartitionLog, FlushTicket]]:
        """Tickets for those that have something to sync; the others are settled."""
        tickets = []
        for partition_log in logs:
            ticket = None
            try:
                if partition_log.offline is None:
                    ticket = partition_log.begin_flush()
            except (OSError, StorageError) as error:
                partition_log.go_offline(f"it cannot be flushed: {error}")
            if ticket is None:
                self._settle(partition_log)
            else:
                tickets.append((partition_log, ticket))
        return tickets

    def _sync(self, tickets: list[tuple[PartitionLog, FlushTicket]]) -> None:
        if not tickets:
            return
        self.rounds += 1
        self._under_way += 1
        self._syncing.update(partition_log for partition_log, _ in tickets)
        disk, clock, began_ms = self._disk, self._clock, self._clock.monotonic_ms()

        def finished(errors: list[BaseException | None] | None, failure: BaseException | None) -> None:
            self.syncs.add(clock.monotonic_ms() - began_ms)
            self._finish(tickets, errors or [failure] * len(tickets))

        self._offload.submit(lambda: run_tickets(disk, [ticket for _, ticket in tickets]), finished)

    def _finish(self, tickets: list[tuple[PartitionLog, FlushTicket]], errors: list[BaseException | None]) -> None:
        self._under_way -= 1
        for (partition_log, ticket), error in zip(tickets, errors, strict=True):
            if error is not None:
                logger.error("fsync of %s failed, the partition is offline: %s", partition_log.topic_partition, error)
            self._syncing.discard(partition_log)
            partition_log.finish_flush(ticket, error)
        for partition_log, _ in tickets:
            self._settle(partition_log)
        if self._waiting:
            self._start()

    def _settle(self, partition_log: PartitionLog) -> None:
        """Answer those whose records are durable, or all of them when the log went offline."""
        waiting = self._waiting.pop(partition_log, [])
        failure = partition_log.failure()
        still = []
        for upto, one in waiting:
            if partition_log.flushed_end >= upto:
                one.one_done(partition_log, None)
            elif failure is not None:
                one.one_done(partition_log, failure)
            else:
                still.append((upto, one))
        if still:
            self._waiting[partition_log] = still
