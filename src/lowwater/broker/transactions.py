"""The transaction coordinator: transactional ids in `__transaction_state`, and what is asked of it before a write."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lowwater.broker.coordinator import Coordinator, InternalTopic, shard_of
from lowwater.broker.topic import TRANSACTIONS_TOPIC, Topic
from lowwater.broker.transaction_driver import TransactionDriver
from lowwater.broker.turns import Turns
from lowwater.broker.writers import Refusals, Writer
from lowwater.errors import ApiError, ErrorCode
from lowwater.pending import Pending
from lowwater.transactions.commands import (
    AddPartitions,
    EndTransaction,
    InitProducer,
    ProducerIdentity,
    VerifyPartitions,
)
from lowwater.transactions.config import TransactionConfig
from lowwater.transactions.metrics import TransactionMetrics
from lowwater.transactions.shard import TransactionShard
from lowwater.types import TopicPartition

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

logger = logging.getLogger(__name__)

UNCOMPRESSED = 0
EPOCH_PER_TRANSACTION = 2  # transaction.version


class TransactionCoordinator(Coordinator[TransactionShard]):
    subject = "transactions"

    def __init__(self, broker: Broker) -> None:
        config = broker.config
        topic = InternalTopic(
            TRANSACTIONS_TOPIC,
            config.int("transaction.state.log.num.partitions"),
            config.int("transaction.state.log.segment.bytes"),
            UNCOMPRESSED,
        )
        super().__init__(broker, topic)
        self._retired = TransactionMetrics()
        self.turns: Turns[int] = Turns(broker.scheduler)
        self._shards = self._drivers = [TransactionDriver(self, index) for index in range(self._partition_count())]
        self._start()
        broker.topics.on_deleted.append(self._topic_deleted)

    def _driver_of(self, transactional_id: str) -> TransactionDriver:
        return self._drivers[shard_of(transactional_id, len(self._drivers))]

    # -- for the shards

    def new_shard(self, index: int) -> TransactionShard:
        # Grows with each start, whether or not the topic is there: the logs refuse markers of an older coordinator.
        return TransactionShard(self._config(), self.broker.store.boot_count)

    def retire(self, shard: TransactionShard) -> None:
        self._retired.add_totals(shard.metrics)

    def _config(self) -> TransactionConfig:
        config = self.broker.config
        return TransactionConfig(
            timeout_max_ms=config.int("transaction.max.timeout.ms"),
            id_expiration_ms=config.int("transactional.id.expiration.ms"),
            abort_scan_interval_ms=config.int("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
            expiry_scan_interval_ms=config.int("transaction.remove.expired.transaction.cleanup.interval.ms"),
            transaction_version=self.broker.topics.features.transaction_version,
        )

    def _topic_deleted(self, topic: Topic) -> None:
        if topic.name == TRANSACTIONS_TOPIC:
            logger.warning("%s was deleted, and with it all transactional ids", TRANSACTIONS_TOPIC)
            for driver in self._drivers:
                driver.reset()

    # -- asking

    async def answer(self, transactional_id: str, command: Any) -> Any:
        """What the shard replies, when it is durable; ApiError when it refuses."""
        answer = self.ask(transactional_id, command)
        return await answer if isinstance(answer, Pending) else answer

    async def identity(self, command: InitProducer | EndTransaction) -> ProducerIdentity:
        """With what the producer goes on after this command."""
        driver = self._driver_of(command.transactional_id)
        driver.check_active()
        if driver.shard.needs_producer_id(command.transactional_id):
            command = command._replace(spare_producer_id=await self.broker.topics.new_producer_id())
        identity: ProducerIdentity = await self.answer(command.transactional_id, command)
        return identity

    async def add(self, command: AddPartitions) -> None:
        """Partitions become part of the transaction, durably; waits for the end of the one before, but not for long."""
        clock = self.broker.clock
        until_ms = clock.monotonic_ms() + self.broker.config.int("add.partitions.to.txn.retry.backoff.max.ms")
        while True:
            try:
                await self.answer(command.transactional_id, command)
                return
            except ApiError as refusal:
                left_ms = until_ms - clock.monotonic_ms()
                if refusal.code is not ErrorCode.CONCURRENT_TRANSACTIONS or left_ms <= 0:
                    raise
            await self._driver_of(command.transactional_id).completed(command.transactional_id, left_ms)

    async def admit(self, writer: Writer, partitions: Iterable[TopicPartition], *, adds: bool) -> Refusals:
        """Those of the partitions that may not be written to, and why. Holds in the turn in which it is answered.

        `adds`: they become part of the transaction first. ApiError when none of them may be written to.
        """
        wanted = frozenset(partitions)
        if not writer.transactional_id:
            raise ApiError(ErrorCode.INVALID_REQUEST, "a transactional id cannot be empty")
        if adds:
            await self.add(AddPartitions(*writer, wanted, EPOCH_PER_TRANSACTION))
        elif not self.broker.config.bool("transaction.partition.verification.enable"):
            return {}
        else:
            await self.answer(writer.transactional_id, VerifyPartitions(*writer, wanted))
        # Once more: a newer instance may have taken over while this one waited.
        driver = self._driver_of(writer.transactional_id)
        driver.check_active()
        codes = {one: driver.shard.holds(*writer, *one) for one in wanted}
        return {one: code for one, code in codes.items() if code is not None}

    @property
    def metrics(self) -> TransactionMetrics:
        """Of all shards together."""
        total = TransactionMetrics()
        total.add_totals(self._retired)
        for driver in self._drivers:
            if driver.is_active:
                counted = driver.shard.metrics
                total.add_totals(counted)
                total.active_ids += counted.active_ids
                total.ongoing += counted.ongoing
        return total
