"""The broker: topics and their logs behind the router, with the housekeeping that keeps them in shape."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from lowwater.broker.durability import GroupCommit
from lowwater.broker.fetch_sessions import FetchSessions
from lowwater.broker.housekeeping import Housekeeping
from lowwater.broker.log_starts import LogStarts
from lowwater.broker.partition import Partition
from lowwater.broker.topic import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Topic
from lowwater.broker.topics import Topics
from lowwater.config import BrokerConfig
from lowwater.errors import ApiError, ErrorCode
from lowwater.groups.metrics import GroupMetrics
from lowwater.log.files import FILES_MAX
from lowwater.log.store import LogStore
from lowwater.pending import Pending
from lowwater.ports import Clock, Disk, Ids, Offload, Scheduler
from lowwater.transactions.metrics import TransactionMetrics

if TYPE_CHECKING:
    from lowwater.broker.group_coordinator import GroupCoordinator
    from lowwater.broker.transactions import TransactionCoordinator

logger = logging.getLogger(__name__)

A = TypeVar("A")
T = TypeVar("T")

EVERYTHING = 2**63


@dataclass(frozen=True, slots=True)
class Endpoint:
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Everything the broker needs from outside; the simulated ones are in `testing`."""

    disk: Disk
    clock: Clock
    ids: Ids
    scheduler: Scheduler
    offload: Offload
    files_max: int = FILES_MAX


class Broker:
    """State of one node. Handlers receive it with each request."""

    def __init__(self, config: BrokerConfig, data_dir: str, surroundings: Surroundings) -> None:
        self._start_config = config
        self.data_dir = data_dir
        self.disk = surroundings.disk
        self.clock = surroundings.clock
        self.ids = surroundings.ids
        self.scheduler = surroundings.scheduler
        self._offload = surroundings.offload
        self._files_max = surroundings.files_max
        self.node_id = config.int("node.id")
        self.advertised = Endpoint("127.0.0.1", 0)
        self.fetch_bytes_max = config.int("fetch.max.bytes")
        self.fetch_sessions = FetchSessions(config.int("max.incremental.fetch.session.cache.slots"), self.ids)
        self.commits = GroupCommit(self.disk, self._offload, self.scheduler, self.clock)
        self.log_starts = LogStarts(self)
        self._flush_policy = config.str("log.flush.policy")
        self.store: LogStore
        self.topics: Topics
        self._housekeeping: Housekeeping
        self._groups: GroupCoordinator | None = None
        self._transactions: TransactionCoordinator | None = None

    def open(self) -> None:
        """Take the data directory, bring it into order, begin the housekeeping. Blocking."""
        self.store = LogStore.open(
            self.disk, self.data_dir, now_ms=self.clock.now_ms(), ids=self.ids, files_max=self._files_max
        )
        try:
            self.topics = Topics.open(
                self.disk,
                self.data_dir,
                self._start_config,
                self.ids,
                self._offload,
                self._open_partition,
                was_clean=self.store.was_clean,
            )
            self.store.remove_leftovers(lambda topic_id: not self.topics.is_deleted(topic_id))
            self.topics.rewrite_if_long()
            if not self.store.was_clean:
                self._recover_all()
        except BaseException:
            self.store.abandon()
            raise
        self.topics.on_deleted.append(self._drop)
        self._housekeeping = Housekeeping(self)
        self._housekeeping.start()
        if self.topics.get(OFFSETS_TOPIC) is not None:
            self.groups  # noqa: B018  begins to load
        if self.topics.get(TRANSACTIONS_TOPIC) is not None:
            self.transactions  # noqa: B018

    def close(self) -> None:
        """Flush everything and leave the clean marker. Blocking."""
        self.stop_housekeeping()
        self.topics.close()
        self.store.close(self.clock.now_ms(), clean=self.topics.is_durable)

    def abandon(self) -> None:
        """Let go of the data directory as a killed process would."""
        self.stop_housekeeping()
        self.topics.close()
        self.store.abandon()

    def stop_housekeeping(self) -> None:
        self._housekeeping.stop()
        for coordinator in (self._groups, self._transactions):
            if coordinator is not None:
                coordinator.stop()

    @property
    def groups(self) -> GroupCoordinator:
        """Imported on first use: many a broker never sees a group."""
        if self._groups is None:
            from lowwater.broker.group_coordinator import GroupCoordinator

            self._groups = GroupCoordinator(self)
        return self._groups

    @property
    def transactions(self) -> TransactionCoordinator:
        """Likewise."""
        if self._transactions is None:
            from lowwater.broker.transactions import TransactionCoordinator

            self._transactions = TransactionCoordinator(self)
        return self._transactions

    def group_metrics(self) -> GroupMetrics:
        """Zeros while nobody has used groups."""
        return GroupMetrics() if self._groups is None else self._groups.metrics

    def transaction_metrics(self) -> TransactionMetrics:
        """Likewise."""
        return TransactionMetrics() if self._transactions is None else self._transactions.metrics

    @property
    def config(self) -> BrokerConfig:
        """What holds now: settings can be altered while the broker runs."""
        return self.topics.config

    @property
    def cluster_id(self) -> str:
        return self.topics.cluster_id

    def _open_partition(self, topic: Topic, index: int) -> Partition:
        log = self.store.partition(topic.name, topic.id, index, topic.log_config, topic.created_boot(index))
        return Partition(index, log, is_internal=topic.is_internal)

    def _recover_all(self) -> None:
        partitions = [(topic, index) for topic in self.topics for index in range(topic.partition_count)]
        if not partitions:
            return
        logger.info("the last stop was not clean: checking %d partitions", len(partitions))
        for topic, index in partitions:
            topic.partition(index)
        # What a killed process wrote is still only in the page cache. Were it lost while newer records are kept, a
        # producer could never close the gap between them.
        self.store.flush()
        logger.info("all partitions are checked")

    def _drop(self, topic: Topic) -> None:
        """The topic is gone from the metadata; its files follow, off the loop."""
        waiting = {fetch for partition in topic.opened() for fetch in partition.waiting_fetches}
        remove_files = self.store.begin_delete_topic(topic.id)
        self._offload.submit(remove_files, lambda _, error: _report_leftover(topic.name, error))
        for fetch in waiting:
            fetch.grew(EVERYTHING)

    def partition(self, topic: str | bytes, index: int) -> Partition:
        """By name or by topic id."""
        if isinstance(topic, str):
            found = self.topics.get(topic)
            if found is None:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {topic!r}")
        else:
            found = self.topics.by_id(topic)
            if found is None:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic with id {topic.hex()}")
        if not 0 <= index < found.partition_count:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {found.name} has no partition {index}")
        return found.partition(index)

    def waits_for_flush(self, acks: int) -> bool:
        """Whether a Produce is answered only when its records are fsynced."""
        if self._flush_policy == "acks":
            return acks == -1
        return self._flush_policy == "always" and acks != 0

    def offload(self, work: Callable[[], T]) -> Pending[T]:
        """Run blocking `work` off the loop."""
        pending: Pending[T] = Pending()
        self._offload.submit(work, _settling(pending))
        return pending

    def offload_read(self, work: Callable[[], T]) -> Pending[T]:
        """The same for a cold read, which does not wait behind fsyncs."""
        pending: Pending[T] = Pending()
        self._offload.submit_read(work, _settling(pending))
        return pending

    def submit(self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        """Run blocking `work` off the loop, then `done` on it."""
        self._offload.submit(work, done)

    def submit_heavy(
        self, work: Callable[[A], T], argument: A, done: Callable[[T | None, BaseException | None], None]
    ) -> None:
        """The same for much Python work, which may go to another process."""
        self._offload.submit_heavy(work, argument, done)

    def appended(self) -> None:
        """After appends: logs that came near their ceilings get higher ones before they need them."""
        if self.store.wants_ceilings:
            self._housekeeping.raise_ceilings()


def _settling(pending: Pending[T]) -> Callable[[T | None, BaseException | None], None]:
    def done(result: T | None, error: BaseException | None) -> None:
        if error is not None:
            pending.fail(error)
        else:
            pending.resolve(result)  # type: ignore[arg-type]

    return done


def _report_leftover(name: str, error: BaseException | None) -> None:
    if error is not None:
        logger.warning("files of the deleted topic %s are left, the next start removes them: %s", name, error)
