"""Writing the ends of transactions into the partitions they wrote to, until they are durable in every one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from lowwater.broker.partition import Partition
from lowwater.broker.topic import OFFSETS_TOPIC
from lowwater.errors import ApiError, ErrorCode, StorageError
from lowwater.log.partition_log import PartitionLog
from lowwater.pending import Pending
from lowwater.ports import Timer
from lowwater.types import TopicPartition

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

logger = logging.getLogger(__name__)

RETRY_AFTER_MS = 50
RETRY_AFTER_MAX_MS = 30_000
# The log knows of a newer producer or coordinator than the marker: whatever it would end has ended.
OVERTAKEN = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)


class Ending(NamedTuple):
    """What a marker says. `epoch_bumped`: each transaction of this producer has an epoch of its own."""

    producer_id: int
    producer_epoch: int
    commit: bool
    coordinator_epoch: int
    epoch_bumped: bool = False


def write_ending(
    broker: Broker, ending: Ending, partitions: Iterable[TopicPartition]
) -> Pending[dict[TopicPartition, ApiError]]:
    """Append to each partition in this turn; settled when all are durable, with those that failed and why."""
    return _Writing(broker, ending, partitions).outcome


class _Writing:
    """One attempt. Logs share the group commit; `__consumer_offsets` is written by its coordinator."""

    def __init__(self, broker: Broker, ending: Ending, partitions: Iterable[TopicPartition]) -> None:
        self._broker = broker
        self._ending = ending
        self._failed: dict[TopicPartition, ApiError] = {}
        self._unflushed: dict[PartitionLog, tuple[TopicPartition, int]] = {}
        self._left = 1
        self.outcome: Pending[dict[TopicPartition, ApiError]] = Pending()
        for one in partitions:
            self._write(one)
        broker.appended()
        self._flush()
        self._one_done()

    def _write(self, one: TopicPartition) -> None:
        try:
            if one.topic == OFFSETS_TOPIC:
                self._write_behind_offsets(one)
                return
            partition = self._broker.partition(*one)
            self._unflushed[partition.log] = one, self._append(partition)
        except ApiError as error:
            self._failed[one] = error
        except StorageError as error:
            self._failed[one] = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))

    def _append(self, partition: Partition) -> int:
        ending = self._ending
        appended = partition.append_marker(
            ending.producer_id,
            ending.producer_epoch,
            ending.commit,
            ending.coordinator_epoch,
            self._broker.clock.now_ms(),
            epoch_bumped=ending.epoch_bumped,
        )
        return appended.last_offset + 1

    def _write_behind_offsets(self, one: TopicPartition) -> None:
        driver = self._broker.groups.driver(one.partition)
        written = driver.end_transaction(self._ending.producer_id, self._ending.commit, self._append)
        self._left += 1
        written.on_done(lambda done: self._group_done(one, done))

    def _group_done(self, one: TopicPartition, done: Pending[None]) -> None:
        try:
            done.result()
        except ApiError as error:
            self._failed[one] = error
        self._one_done()

    def _flush(self) -> None:
        if self._unflushed and self._broker.waits_for_flush(-1):
            self._left += 1
            wanted = [(log, end) for log, (_, end) in self._unflushed.items()]
            self._broker.commits.flushed(wanted).on_done(lambda done: self._flushed(done.result()))

    def _flushed(self, failures: dict[PartitionLog, BaseException]) -> None:
        for log, error in failures.items():
            one, _ = self._unflushed[log]
            self._failed[one] = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        self._one_done()

    def _one_done(self) -> None:
        self._left -= 1
        if not self._left:
            self.outcome.resolve(self._failed)


class MarkerJob:
    """The markers of one decided transaction: tried again where they fail, until all are durable or it is cancelled."""

    def __init__(
        self,
        broker: Broker,
        ending: Ending,
        partitions: Iterable[TopicPartition],
        done: Callable[[], None],
    ) -> None:
        self._broker = broker
        self._ending = ending
        self._left = list(partitions)
        self._done = done
        self._retry_after_ms = RETRY_AFTER_MS
        self._timer: Timer | None = None
        self._cancelled = False

    def start(self) -> None:
        self._timer = None
        write_ending(self._broker, self._ending, self._left).on_done(lambda done: self._attempted(done.result()))

    def cancel(self) -> None:
        """No marker is written any more: the next transaction may have the same producer and epoch."""
        self._cancelled = True
        if self._timer is not None:
            self._timer.cancel()

    def _attempted(self, failed: dict[TopicPartition, ApiError]) -> None:
        if self._cancelled:
            return
        self._left = [one for one, error in failed.items() if not self._is_settled(one, error)]
        if not self._left:
            self._done()
            return
        reason = failed[self._left[0]]
        logger.warning("the end of a transaction is not in %s yet: %s", ", ".join(map(str, self._left)), reason)
        self._timer = self._broker.scheduler.call_later(self._retry_after_ms, self.start)
        self._retry_after_ms = min(2 * self._retry_after_ms, RETRY_AFTER_MAX_MS)

    def _is_settled(self, one: TopicPartition, error: ApiError) -> bool:
        """A partition that is gone needs no marker, nor does one that has moved on."""
        if error.code in OVERTAKEN:
            logger.warning("%s needs no end of a transaction of producer %d: %s", one, self._ending.producer_id, error)
        return error.code in OVERTAKEN or error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or self._is_gone(one)

    def _is_gone(self, one: TopicPartition) -> bool:
        """Its topic was deleted while the marker was being made durable. Of that of the offsets the groups tell."""
        return one.topic != OFFSETS_TOPIC and self._broker.topics.get(one.topic) is None
