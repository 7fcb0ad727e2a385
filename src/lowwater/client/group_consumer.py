"""The consumer protocol (KIP-848): the broker shares partitions out, and everything is said in heartbeats."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable, Iterable

from lowwater.client.bell import Bell
from lowwater.client.coordinator import Coordinator, Identity
from lowwater.client.driver import sleep
from lowwater.client.errors import ClientError, GroupError, NotMemberError, UnsupportedError, broker_error
from lowwater.client.flow import Flow
from lowwater.client.group_share import Share, State
from lowwater.client.group_topics import Topics
from lowwater.client.network import COORDINATING
from lowwater.errors import ConfigError, ErrorCode
from lowwater.types import TopicPartition
from lowwater.wire.messages import ConsumerGroupHeartbeatRequest
from lowwater.wire.messages.consumer_group_heartbeat import TopicPartitions
from lowwater.wire.schema import ZERO_UUID

JOINS, LEAVES, LEAVES_FOR_A_WHILE = 0, -1, -2
"""Epochs that say something else than an epoch."""
OWN_IDS_SINCE = 1
"""Before, the coordinator makes up the member's id."""
_OF_CLASSIC = ("partition.assignment.strategy", "session.timeout.ms", "heartbeat.interval.ms")
_TOO_OLD = "use group.protocol=classic"
_ADVICE: dict[int, str] = {
    ErrorCode.UNSUPPORTED_VERSION: _TOO_OLD,
    ErrorCode.UNRELEASED_INSTANCE_ID: "give every client a group.instance.id of its own",
    ErrorCode.UNSUPPORTED_ASSIGNOR: "the broker does not have that group.remote.assignor",
}


class ConsumerProtocol:
    """Heartbeats go on by themselves; the target they bring is taken over in between.

    See `GroupProtocol` for what its methods are.
    """

    def __init__(self, coordinator: Coordinator, share: Share, topics: Iterable[str], pattern: str | None) -> None:
        network = coordinator.cluster.network
        self._coordinator = coordinator
        self._driver = network.driver
        self._share = share
        self._topics = Topics(coordinator.cluster, topics, pattern, lambda _: self._look_again())
        self._instance_id = network.config.maybe_str("group.instance.id")
        self._assignor = network.config.maybe_str("group.remote.assignor")
        self._rack = network.config.str("client.rack") or None
        for name in _OF_CLASSIC:
            if network.config.is_given(name):
                raise ConfigError(f"{name} has no meaning with group.protocol=consumer: the broker decides about it")
        self._member_id = _new_id(network.driver.ids.uuid())
        self._timeout_ms = network.config.int("request.timeout.ms")
        self._interval_ms = 0.0
        self._subscribed: frozenset[str] = frozenset()
        self._topic_ids: dict[str, bytes] = {}
        self._given: list[TopicPartitions] | None = None  # as it came, before topics have names
        self._target: frozenset[TopicPartition] | None = None
        self._told: frozenset[TopicPartition] | None = None  # what the coordinator knows that this member has
        self._is_full = True  # the next heartbeat says everything
        self._bell = Bell(network.driver)
        self._beating: Flow[None] | None = None
        self._failures = 0

    def subscribe(self, topics: Iterable[str], pattern: str | None) -> None:
        self._topics.change(topics, pattern)
        self._look_again()

    async def join(self) -> None:
        self.rest()
        await self._share.until(lambda: True)  # what was heard until now is not held against the next epoch
        self._share.state = State.JOINING
        self._subscribed = await self._topics.wanted()
        self._given = self._target = None
        self._is_full = True
        self._share.identity = Identity(self._member_id, JOINS, self._instance_id)
        await self._heartbeat()
        self._beating = Flow(self._beat())
        self._topics.watch()
        await self._share.until(lambda: self._target is not None)
        await self._take_over()

    async def stay(self) -> None:
        while True:
            await self._share.until(self._is_to_take_over)
            await self._take_over()

    def _is_to_take_over(self) -> bool:
        """Also when others were given meanwhile what could not be taken over: whoever waits for a share has none."""
        is_other = self._target != self._share.assignment or self._share.state is not State.STABLE
        return self._target is not None and is_other

    async def _take_over(self) -> None:
        """When brokers do not tell what is needed, later: to join anew everything would have to be given up."""
        target = self._target
        assert target is not None
        try:
            await self._topics.get_to_know(target)
            await self._share.take_over(target)
        except ClientError as error:
            if isinstance(error, GroupError) or not error.retriable:
                raise
            self._failures += 1
            await sleep(self._driver, self._coordinator.cluster.retry.wait_ms(self._failures))
            return
        self._failures = 0
        self._share.state = State.STABLE
        self._bell.ring()

    def identity_after(self, error: NotMemberError) -> Identity:
        return Identity(self._member_id, JOINS, self._instance_id)

    def rest(self) -> None:
        beating, self._beating = self._beating, None
        if beating is not None:
            beating.cancel()

    def stop(self) -> None:
        self._topics.stop()

    async def leave(self, identity: Identity, reason: str, timeout_ms: float) -> None:
        """A static member goes for a while: what it had is kept for it until its session ends."""
        if not identity.member_id:
            return
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._coordinator.group,
            member_id=identity.member_id,
            member_epoch=LEAVES if identity.instance_id is None else LEAVES_FOR_A_WHILE,
            instance_id=identity.instance_id,
        )
        await self._coordinator.insist(request, timeout_ms=timeout_ms)

    # ---- heartbeats

    async def _beat(self) -> None:
        failures = 0
        while True:
            if failures:
                await self._pause(self._coordinator.cluster.retry.wait_ms(failures))
            elif not self._is_full and self._told == self._share.assignment:
                await self._pause(self._interval_ms)
            try:
                await self._heartbeat()
                failures = 0
            except ClientError as error:
                self._is_full, failures = True, failures + 1
                if not error.retriable:
                    self._share.hear(error)
                    return

    async def _pause(self, ms: float) -> None:
        """Unless there is something to say before."""
        timer = self._driver.call_later(ms, self._bell.ring)
        try:
            await self._bell.heard()
        finally:
            timer.cancel()

    async def _heartbeat(self) -> None:
        """Say what has changed, or everything when it is not known what the last one did; hear what is to be had."""
        owned = self._share.assignment
        request = self._request(owned, self._is_full)
        self._is_full = False
        try:
            response = await self._coordinator.ask(
                request, api=ConsumerGroupHeartbeatRequest, lane=COORDINATING, timeout_ms=self._timeout_ms
            )
        except UnsupportedError as error:
            error.advice = _TOO_OLD
            raise
        if response.error_code:
            raise broker_error(
                response.error_code,
                f"group {self._coordinator.group!r}",
                advice=_ADVICE.get(response.error_code, response.error_message or ""),
            )
        self._told = owned
        self._member_id = response.member_id or self._member_id
        self._share.identity = Identity(self._member_id, response.member_epoch, self._instance_id)
        self._interval_ms = response.heartbeat_interval_ms
        if response.assignment is not None:
            self._given = response.assignment.topic_partitions
        await self._name_what_was_given()

    def _request(
        self, owned: frozenset[TopicPartition], is_full: bool
    ) -> Callable[[int], ConsumerGroupHeartbeatRequest]:
        identity = self._share.identity
        is_joining = identity.generation == JOINS

        def request(version: int) -> ConsumerGroupHeartbeatRequest:
            is_new = is_joining and version < OWN_IDS_SINCE
            return ConsumerGroupHeartbeatRequest(
                group_id=self._coordinator.group,
                member_id="" if is_new else identity.member_id,
                member_epoch=identity.generation,
                instance_id=self._instance_id,
                rack_id=self._rack if is_full else None,
                rebalance_timeout_ms=self._share.max_poll_ms if is_full else -1,
                subscribed_topic_names=sorted(self._subscribed) if is_full else None,
                server_assignor=self._assignor if is_full else None,
                topic_partitions=self._by_id(owned) if is_full or owned != self._told else None,
            )

        return request

    def _by_id(self, partitions: frozenset[TopicPartition]) -> list[TopicPartitions]:
        found: dict[bytes, list[int]] = {}
        for one in sorted(partitions):
            found.setdefault(self._topic_ids[one.topic], []).append(one.partition)
        return [TopicPartitions(topic_id=topic_id, partitions=numbers) for topic_id, numbers in found.items()]

    async def _name_what_was_given(self) -> None:
        """Topics come by their ids. One that is not known yet is looked up, and again with the next heartbeat."""
        if self._given is None:
            return
        cluster = self._coordinator.cluster
        if any(cluster.name_of(each.topic_id) is None for each in self._given):
            with contextlib.suppress(ClientError):
                await cluster.present(self._subscribed, self._interval_ms)
        target: set[TopicPartition] = set()
        is_complete = True
        for each in self._given:
            name = cluster.name_of(each.topic_id)
            is_complete = is_complete and name is not None
            if name is not None:
                self._topic_ids[name] = each.topic_id
                target |= {TopicPartition(name, number) for number in each.partitions}
        self._target = frozenset(target)
        self._given = None if is_complete else self._given
        self._share.look()

    def _look_again(self) -> None:
        Flow(self._resubscribe())

    async def _resubscribe(self) -> None:
        """What cannot be found out now is looked at again after metadata.max.age.ms."""
        with contextlib.suppress(ClientError):
            self._subscribed = await self._topics.wanted()
            self._is_full = True
            self._bell.ring()


def _new_id(uuid: bytes) -> str:
    assert uuid != ZERO_UUID
    return base64.urlsafe_b64encode(uuid).decode().rstrip("=")
