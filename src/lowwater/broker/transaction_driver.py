"""Drives a shard of transactional ids: decided ends become markers, and whoever waits for an end is told."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from lowwater.broker.coordinator_rounds import Ticket
from lowwater.broker.coordinator_shard import ShardDriver
from lowwater.broker.transaction_markers import Ending, MarkerJob
from lowwater.outcome import Now
from lowwater.pending import Pending
from lowwater.ports import Timer
from lowwater.transactions.commands import MarkersWritten
from lowwater.transactions.markers import Markers
from lowwater.transactions.shard import TransactionShard

logger = logging.getLogger(__name__)

LINGER_MS = 50


class TransactionDriver(ShardDriver[TransactionShard]):
    """One partition of `__transaction_state`."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._jobs: dict[str, MarkerJob] = {}
        self._waiting: dict[str, list[Pending[None]]] = {}
        self._lingering: Timer | None = None

    def _contents(self) -> str:
        return f"{len(self._shard.transactions)} transactional ids"

    def _begin_turn(self) -> Now:
        level = self._broker.topics.features.transaction_version
        if self._shard.config.transaction_version != level:
            self._shard.config = replace(self._shard.config, transaction_version=level)
        return super()._begin_turn()

    def _write_in_time(self) -> None:
        """That a transaction is complete can wait for the next request to share its write: nobody waits for that."""
        current = self._rounds.open
        if current is None or current.replies or current.effects:
            self._write()
        elif self._lingering is None:
            self._lingering = self._broker.scheduler.call_later(LINGER_MS, self._lingered)

    def _lingered(self) -> None:
        self._lingering = None
        if self.is_active and not self._stopped:
            self._write()

    # -- markers

    def _carry_out(self, effect: Markers) -> None:
        """Write the markers; a transactional id has one end under way at most."""
        if not self.is_active:
            return  # after a restart of the shard it is asked for again
        transactional_id = effect.transactional_id
        assert transactional_id not in self._jobs, "an end was decided while another one is written"
        logger.debug("the transaction of %r ends: %s", transactional_id, effect.reason)
        ending = Ending(
            effect.producer_id, effect.producer_epoch, effect.commit, effect.coordinator_epoch, effect.epoch_bumped
        )
        job = MarkerJob(self._broker, ending, effect.partitions, lambda: self._written(effect))
        self._jobs[transactional_id] = job
        job.start()

    def _written(self, markers: Markers) -> None:
        """They are durable everywhere: the transaction is complete, and the next one may begin."""
        shard, transactional_id = self._shard, markers.transactional_id
        del self._jobs[transactional_id]
        command = MarkersWritten(transactional_id, markers.producer_id, markers.producer_epoch)
        self._run(lambda now: shard.decide(command, Ticket(), now), transactional_id)
        for one in self._waiting.pop(transactional_id, ()):
            one.resolve(None)

    def completed(self, transactional_id: str, within_ms: float) -> Pending[None]:
        """Settled when the transaction that is ending now has ended, or the time is over."""
        waiting: Pending[None] = Pending()
        self._waiting.setdefault(transactional_id, []).append(waiting)

        def over() -> None:
            if waiting.done:
                return
            self._waiting[transactional_id].remove(waiting)
            if not self._waiting[transactional_id]:
                del self._waiting[transactional_id]
            waiting.resolve(None)

        timer = self._broker.scheduler.call_later(within_ms, over)
        waiting.on_done(lambda _: timer.cancel())
        return waiting

    def _abandon(self) -> list[Ticket]:
        self._cancel_jobs()
        return super()._abandon()

    def stop(self) -> None:
        super().stop()
        self._cancel_jobs()
        if self._lingering is not None:
            self._lingering.cancel()

    def _cancel_jobs(self) -> None:
        for job in self._jobs.values():
            job.cancel()
        self._jobs.clear()
