"""Group commit: many waiting requests share one fsync, which runs off the event loop."""

from __future__ import annotations

import logging

from lowwater.broker.pending import Pending
from lowwater.log.partition_log import FlushTicket, PartitionLog, run_tickets
from lowwater.ports import Disk, Offload, Scheduler

logger = logging.getLogger(__name__)


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
    """Rounds of fsync: while one runs, later requests gather for the next. No request waits on purpose."""

    def __init__(self, disk: Disk, offload: Offload, scheduler: Scheduler) -> None:
        self._disk = disk
        self._offload = offload
        self._scheduler = scheduler
        self._waiting: dict[PartitionLog, list[tuple[int, _Waiting]]] = {}
        self._busy = False
        self.rounds = 0

    def flushed(self, wanted: list[tuple[PartitionLog, int]]) -> Pending[dict[PartitionLog, BaseException]]:
        """Settled when every log is durable below its offset; holds the logs that failed, with the reason."""
        waiting = _Waiting(len(wanted))
        for partition_log, upto in wanted:
            self._waiting.setdefault(partition_log, []).append((upto, waiting))
        if not self._busy:
            self._busy = True
            # Not at once: the other requests of this turn join the round.
            self._scheduler.call_soon(self._start_round)
        return waiting.pending

    def _start_round(self) -> None:
        tickets: list[tuple[PartitionLog, FlushTicket]] = []
        for partition_log in list(self._waiting):
            if partition_log.offline is None and (ticket := partition_log.begin_flush()) is not None:
                tickets.append((partition_log, ticket))
            else:
                self._settle(partition_log)
        if not tickets:
            self._busy = False
            return
        self.rounds += 1
        disk = self._disk
        self._offload.submit(
            lambda: run_tickets(disk, [ticket for _, ticket in tickets]),
            lambda errors, failure: self._finish_round(tickets, errors or [failure] * len(tickets)),
        )

    def _finish_round(
        self, tickets: list[tuple[PartitionLog, FlushTicket]], errors: list[BaseException | None]
    ) -> None:
        for (partition_log, ticket), error in zip(tickets, errors, strict=True):
            if error is not None:
                logger.error("fsync of %s failed, the partition is offline: %s", partition_log.topic_partition, error)
            partition_log.finish_flush(ticket, error)
            self._settle(partition_log)
        if self._waiting:
            self._start_round()
        else:
            self._busy = False

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
