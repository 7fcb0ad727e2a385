"""Who leads a partition, when that is not known, or not any more."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lowwater.client.cluster import NO_LEADER, Cluster
from lowwater.client.errors import (
    BrokerError,
    ClientError,
    UnknownTopicError,
    broker_error,
)
from lowwater.client.fetching.events import Failed
from lowwater.client.fetching.partition import PartitionFetch
from lowwater.client.fetching.stored import NO_EPOCH
from lowwater.client.flow import Flow
from lowwater.client.topic_ids import is_another, recreated
from lowwater.errors import ErrorCode
from lowwater.pending import Pending
from lowwater.ports import Timer
from lowwater.types import TopicPartition

_MARGIN_MS = 10_000


class Homes:
    """Partitions wait here until their leader is known, or until it is time to try again what went wrong."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        found: Callable[[PartitionFetch], None],
        failed: Callable[[PartitionFetch, Failed], None],
        ended: Callable[[Pending[Any]], None],
    ) -> None:
        self._cluster = cluster
        self._driver = cluster.network.driver
        config = cluster.network.config
        self._patience_ms = config.int("default.api.timeout.ms")
        # So long one try may take: whatever failed before that is another matter.
        self._memory_ms = config.int("request.timeout.ms") + config.int("fetch.wait.max.ms") + _MARGIN_MS
        self._propagation_ms = config.int("topic.metadata.propagation.max.ms")
        self._found = found
        self._failed = failed
        self._notify = ended
        self._homeless: dict[TopicPartition, tuple[float, PartitionFetch]] = {}
        self._timer: Timer | None = None
        self._due_ms = 0.0  # when the timer is over
        self._looking: Flow[None] | None = None

    # ---- who waits

    def find(self, partition: PartitionFetch, error: ClientError | None = None) -> None:
        """Give it to `found` as soon as its leader is known; after an error, not at once."""
        if error is None and self._cluster.leader(partition.one) != NO_LEADER:
            self._homeless.pop(partition.one, None)
            self._assess(partition, None)
            return
        self._keep(partition, error)

    def forget(self, one: TopicPartition) -> None:
        self._homeless.pop(one, None)

    def close(self) -> None:
        self._homeless.clear()
        if self._timer is not None:
            self._timer.cancel()
        if self._looking is not None:
            self._looking.cancel()

    def _keep(self, partition: PartitionFetch, error: ClientError | None) -> None:
        now_ms = self._driver.monotonic_ms()
        due_ms = now_ms
        if error is not None:
            if now_ms - partition.failed_ms > self._memory_ms:
                partition.went_well()  # brokers do not name those of which there is nothing to say
            partition.went_wrong(now_ms)
            due_ms += self._cluster.retry.wait_ms(partition.tries)
            self._complain(partition, error, now_ms)
        self._homeless[partition.one] = (due_ms, partition)
        self._schedule(due_ms)

    def _complain(self, partition: PartitionFetch, error: ClientError, now_ms: float) -> None:
        """That it fails for so long is worth telling; from time to time."""
        if now_ms - partition.told_ms >= self._patience_ms:
            partition.told_ms = now_ms
            self._failed(partition, Failed(partition.one, error.after(partition.tries, _since(partition, now_ms))))

    # ---- looking

    def _schedule(self, due_ms: float) -> None:
        if self._looking is not None or (self._timer is not None and self._due_ms <= due_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due_ms = due_ms
        self._timer = self._driver.call_later(max(0.0, due_ms - self._driver.monotonic_ms()), self._begin)

    def _begin(self) -> None:
        self._timer = None
        self._looking = looking = Flow(self._look())
        looking.on_done(self._ended)

    def _ended(self, looking: Pending[Any]) -> None:
        self._looking = None
        self._notify(looking)
        if self._homeless:
            self._schedule(min(due_ms for due_ms, _ in self._homeless.values()))

    async def _look(self) -> None:
        now_ms = self._driver.monotonic_ms()
        due = [partition for due_ms, partition in self._homeless.values() if due_ms <= now_ms]
        error: ClientError | None = None
        problems: dict[str, BrokerError] = {}
        try:
            problems = await self._ask(due)
        except ClientError as trouble:
            error = trouble
        for partition in due:
            waiting = self._homeless.get(partition.one)
            if waiting is not None and waiting[1] is partition:
                del self._homeless[partition.one]
                self._assess(partition, problems.get(partition.one.topic, error))

    async def _ask(self, due: Iterable[PartitionFetch]) -> dict[str, BrokerError]:
        names = {partition.one.topic for partition in due if self._cluster.leader(partition.one) == NO_LEADER}
        return await self._cluster.refresh(names) if names else {}

    def _assess(self, partition: PartitionFetch, error: ClientError | None) -> None:
        """What is known now decides; `error` is why nothing is."""
        one = partition.one
        topic = self._cluster.known(one.topic)
        if topic is None:
            self._miss(partition, error or broker_error(ErrorCode.LEADER_NOT_AVAILABLE, topic=one.topic))
        elif is_another(partition.topic_id, topic.id):
            self._give_up(partition, recreated(one.topic, partition.topic_id, topic.id, one.partition))
        elif one.partition not in topic.partitions:
            advice = f"the topic has {len(topic.partitions)} partitions"
            self._give_up(partition, _unknown(one, advice))
        elif topic.partitions[one.partition].leader == NO_LEADER:
            self._miss(partition, _missed(one))
        elif NO_EPOCH < topic.partitions[one.partition].epoch < partition.fetched_epoch:
            # Whoever said so has not heard of the leader yet that we were served by.
            self._cluster.outdate([one.topic])
            self._keep(partition, _missed(one))
        else:
            partition.topic_id = topic.id
            self._found(partition)

    def _miss(self, partition: PartitionFetch, error: ClientError) -> None:
        now_ms = self._driver.monotonic_ms()
        waited_ms = _since(partition, now_ms)
        if isinstance(error, UnknownTopicError) and waited_ms >= self._propagation_ms:
            self._give_up(partition, _unknown(partition.one, "was it deleted?").after(partition.tries, waited_ms))
        elif error.retriable:
            self._keep(partition, error)
        else:
            self._give_up(partition, error)

    def _give_up(self, partition: PartitionFetch, error: ClientError) -> None:
        error.retriable = False
        self._failed(partition, Failed(partition.one, error))


def _missed(one: TopicPartition) -> BrokerError:
    return broker_error(ErrorCode.LEADER_NOT_AVAILABLE, topic=one.topic, partition=one.partition)


def _unknown(one: TopicPartition, advice: str) -> UnknownTopicError:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return UnknownTopicError(code, topic=one.topic, partition=one.partition, advice=advice)


def _since(partition: PartitionFetch, now_ms: float) -> float:
    return 0.0 if partition.failing_since_ms is None else now_ms - partition.failing_since_ms
