"""What there is in a cluster: topics, their ids and partitions, and who leads them."""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lowwater.client.config import Address
from lowwater.client.errors import BrokerError, ClientError, UnknownTopicError, broker_error
from lowwater.client.flow import Flow
from lowwater.client.network import Network
from lowwater.client.retry import Retry
from lowwater.errors import ErrorCode
from lowwater.pending import Pending
from lowwater.types import OUR_OWN, TopicPartition
from lowwater.wire.messages import MetadataRequest
from lowwater.wire.messages.metadata import MetadataRequestTopic, MetadataResponsePartition, MetadataResponseTopic
from lowwater.wire.schema import ZERO_UUID

# Errors of other requests that say: what was known of leaders and topics is out of date.
OUTDATED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LISTENER_NOT_FOUND,
    }
)
NO_LEADER = -1
_NAMES_MS = 2_000
"""How long an error waits for the names of other topics."""


@dataclass(frozen=True, slots=True)
class Partition:
    """`leader` is NO_LEADER while there is none; `epoch` is -1 where the broker does not tell."""

    leader: int
    epoch: int = -1
    replicas: tuple[int, ...] = ()
    in_sync: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Topic:
    """`id` is all zero where the broker does not tell."""

    name: str
    id: bytes = ZERO_UUID
    is_internal: bool = False
    partitions: Mapping[int, Partition] = field(default_factory=dict)
    asked_ms: float = 0.0


class Cluster:
    """Asks brokers for metadata when it is missing, old, or was found to be wrong, and keeps it."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.retry = Retry(network.config, network.driver)
        self.cluster_id: str | None = None
        self.controller = NO_LEADER
        self._max_age_ms = network.config.int("metadata.max.age.ms")
        self._propagation_ms = network.config.int("topic.metadata.propagation.max.ms")
        self._topics: dict[str, Topic] = {}
        self._names: dict[bytes, str] = {}
        self._asking: dict[frozenset[str] | None, Flow[dict[str, Topic]]] = {}

    # ---- what is known

    def known(self, name: str) -> Topic | None:
        return self._topics.get(name)

    def name_of(self, topic_id: bytes) -> str | None:
        return self._names.get(topic_id)

    def leader(self, one: TopicPartition) -> int:
        """NO_LEADER when there is none, or none is known."""
        topic = self._topics.get(one.topic)
        partition = topic.partitions.get(one.partition) if topic is not None else None
        return NO_LEADER if partition is None else partition.leader

    def epoch(self, one: TopicPartition) -> int:
        topic = self._topics.get(one.topic)
        partition = topic.partitions.get(one.partition) if topic is not None else None
        return -1 if partition is None else partition.epoch

    def outdate(self, names: Iterable[str]) -> None:
        """Something showed that this is not so any more: ask again before it is used."""
        for name in names:
            topic = self._topics.pop(name, None)
            if topic is not None:
                self._names.pop(topic.id, None)

    def moved(self, one: TopicPartition, leader: int, epoch: int) -> bool:
        """A broker names the new leader itself; true when that is news and the leader can be reached."""
        topic = self._topics.get(one.topic)
        old = topic.partitions.get(one.partition) if topic is not None else None
        if topic is None or old is None or epoch <= old.epoch or leader not in self.network.nodes:
            return False
        partitions = {**topic.partitions, one.partition: Partition(leader, epoch, old.replicas, old.in_sync)}
        self._topics[one.topic] = Topic(topic.name, topic.id, topic.is_internal, partitions, topic.asked_ms)
        return True

    # ---- asking

    async def topics(self, names: Iterable[str], timeout_ms: float | None = None) -> dict[str, Topic]:
        """These topics, asked for unless known and not old. UnknownTopicError when one does not appear in time."""
        wanted = frozenset(names)
        began_ms = self.network.driver.monotonic_ms()

        async def attempt(left_ms: float) -> dict[str, Topic]:
            missing = frozenset(name for name in wanted if not self._is_fresh(name))
            if missing:
                try:
                    await self._ask(missing, left_ms)
                except UnknownTopicError as error:
                    waited_ms = self.network.driver.monotonic_ms() - began_ms
                    error.retriable = error.retriable and waited_ms < self._propagation_ms
                    raise
            return {name: self._topics[name] for name in wanted}

        return await self.retry.run(attempt, timeout_ms)

    async def all_topics(self, timeout_ms: float | None = None) -> dict[str, Topic]:
        """Every topic there is, asked for now."""
        return await self.retry.run(lambda left_ms: self._ask(None, left_ms), timeout_ms)

    async def brokers(self, timeout_ms: float | None = None) -> dict[int, Address]:
        """Every broker, asked for now; the controller and the cluster's id are known then as well."""
        await self.retry.run(lambda left_ms: self._ask(frozenset(), left_ms), timeout_ms)
        return self.network.nodes

    async def present(self, names: Iterable[str], timeout_ms: float | None = None) -> dict[str, Topic]:
        """Those of these topics that are there, asked for now; one that is not is left out."""
        wanted = frozenset(names)

        async def attempt(left_ms: float) -> dict[str, Topic]:
            with contextlib.suppress(UnknownTopicError):
                await self._ask(wanted, left_ms)
            return {name: self._topics[name] for name in wanted if name in self._topics}

        return await self.retry.run(attempt, timeout_ms) if wanted else {}

    async def refresh(self, names: Iterable[str], timeout_ms: float | None = None) -> dict[str, BrokerError]:
        """Ask for these topics now, once. What there is is known then; what is wrong with the others is returned."""
        response = await self._ask_brokers(frozenset(names), timeout_ms)
        return self._learn(response)[1]

    async def name_alike(self, error: UnknownTopicError) -> None:
        """Its advice names the topics that are called about the same, if there are any and brokers tell them soon."""
        with contextlib.suppress(ClientError):
            there = await self.all_topics(_NAMES_MS)
            names = [name for name, topic in there.items() if not topic.is_internal]
            if alike := difflib.get_close_matches(error.topic or "", names, n=2, cutoff=0.75):
                error.advice = f"did you mean {' or '.join(alike)}? Otherwise {error.advice}"

    async def matching(self, pattern: str, timeout_ms: float | None = None) -> dict[str, Topic]:
        """Topics whose whole name matches a regular expression, asked for now; internal ones never do, and those that
        these tools write to while others are read only where the expression begins as they do."""
        expression = re.compile(pattern)
        with_ours = pattern.removeprefix("^").startswith(OUR_OWN)
        found = await self.all_topics(timeout_ms)
        visible = {
            name: topic
            for name, topic in found.items()
            if not topic.is_internal and (with_ours or not name.startswith(OUR_OWN))
        }
        return {name: topic for name, topic in visible.items() if expression.fullmatch(name)}

    async def leaders(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[int, list[TopicPartition]]:
        """The partitions by the broker that leads them, once each has one."""
        wanted = list(partitions)

        async def attempt(left_ms: float) -> dict[int, list[TopicPartition]]:
            await self.topics({one.topic for one in wanted}, left_ms)
            by_leader: dict[int, list[TopicPartition]] = {}
            for one in wanted:
                by_leader.setdefault(self._required_leader(one), []).append(one)
            return by_leader

        return await self.retry.run(attempt, timeout_ms)

    def _required_leader(self, one: TopicPartition) -> int:
        leader = self.leader(one)
        if leader != NO_LEADER:
            return leader
        topic = self._topics.get(one.topic)
        self.outdate([one.topic])
        if topic is not None and one.partition not in topic.partitions:
            count = len(topic.partitions)
            raise _for_good(UnknownTopicError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                topic=one.topic,
                partition=one.partition,
                advice=f"the topic has {count} partitions",
            ))  # fmt: skip
        raise broker_error(ErrorCode.LEADER_NOT_AVAILABLE, topic=one.topic, partition=one.partition)

    def _is_fresh(self, name: str) -> bool:
        topic = self._topics.get(name)
        return topic is not None and self.network.driver.monotonic_ms() - topic.asked_ms < self._max_age_ms

    async def _ask(self, names: frozenset[str] | None, timeout_ms: float) -> dict[str, Topic]:
        """One request for all who ask the same at the same time."""
        asking = self._asking.get(names)
        if asking is None:
            asking = self._asking[names] = Flow(self._request(names, timeout_ms))
            asking.on_done(lambda _: self._asked(names))
        # Not the flow itself: one who gives up must not take the answer from the others.
        return await asking.then(lambda done: done.result())

    def _asked(self, names: frozenset[str] | None) -> None:
        self._asking.pop(names, None)

    async def _request(self, names: frozenset[str] | None, timeout_ms: float) -> dict[str, Topic]:
        found, problems = self._learn(await self._ask_brokers(names, timeout_ms))
        if problems:
            raise next((one for one in problems.values() if not one.retriable), next(iter(problems.values())))
        return found

    def _ask_brokers(self, names: frozenset[str] | None, timeout_ms: float | None) -> Pending[Any]:
        config = self.network.config
        request = MetadataRequest(
            topics=None if names is None else [MetadataRequestTopic(name=name) for name in sorted(names)],
            allow_auto_topic_creation=config.bool("allow.auto.create.topics"),
        )
        most_ms = config.int("request.timeout.ms")
        return self.network.ask_any(request, timeout_ms=most_ms if timeout_ms is None else min(timeout_ms, most_ms))

    def _learn(self, response: Any) -> tuple[dict[str, Topic], dict[str, BrokerError]]:
        if response.error_code:
            if response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
                self.network.learn({})
            raise broker_error(response.error_code, "metadata cannot be had")
        self.network.learn({each.node_id: Address(each.host, each.port) for each in response.brokers})
        self.cluster_id, self.controller = response.cluster_id, response.controller_id
        found: dict[str, Topic] = {}
        problems: dict[str, BrokerError] = {}
        now_ms = self.network.driver.monotonic_ms()
        for each in response.topics:
            if each.error_code:
                self.outdate([each.name])
                problems[each.name] = broker_error(each.error_code, topic=each.name, advice=_advice(each))
            else:
                found[each.name] = _topic(each, now_ms)
        self._topics.update(found)
        self._names.update({topic.id: topic.name for topic in found.values() if topic.id != ZERO_UUID})
        return found, problems


def _advice(each: MetadataResponseTopic) -> str:
    if each.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return ""
    return f"see which there are with `lowwater topics list`, or create it: `lowwater topics create {each.name}`"


def _topic(each: MetadataResponseTopic, now_ms: float) -> Topic:
    partitions = {one.partition_index: _partition(one) for one in each.partitions}
    return Topic(each.name or "", each.topic_id, each.is_internal, dict(sorted(partitions.items())), now_ms)


def _partition(one: MetadataResponsePartition) -> Partition:
    return Partition(one.leader_id, one.leader_epoch, tuple(one.replica_nodes), tuple(one.isr_nodes))


def _for_good(error: UnknownTopicError) -> UnknownTopicError:
    """Partitions come with their topic: one that is not there will not be there soon."""
    error.retriable = False
    return error
