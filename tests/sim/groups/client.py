"""What every simulated client has: a process that may die, requests that time out, alarms that die with it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from tests.sim.groups.events import Events
from tests.sim.groups.network import Exchange, Network

from lowwater.errors import ErrorCode
from lowwater.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from lowwater.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from lowwater.wire.schema import ZERO_UUID

REQUEST_TIMEOUT_MS = 6_000
RETRY_MS = 150
FETCH_VERSION = 9
UNKNOWN_TOPIC = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)

Place = tuple[str, int]


class TopicFacts(NamedTuple):
    id: bytes
    partitions: int


class Shore(Protocol):
    """The world as its clients see it."""

    draw: random.Random
    events: Events
    network: Network

    @property
    def topics(self) -> Mapping[str, TopicFacts]: ...

    def new_offset(self) -> int:
        """No two commits of a world store the same offset."""


class SimClient:
    """One process. `start` begins a new one under the same name; nothing of the one before reaches it."""

    def __init__(self, name: str, group: str, shore: Shore) -> None:
        self.name = name
        self.group = group
        self.shore = shore
        self.is_alive = False
        self.asleep_until_ms = 0.0
        self._open: list[Exchange] = []
        self._life = 0

    @property
    def now_ms(self) -> float:
        return self.shore.events.now_ms

    def start(self) -> None:
        self.die()
        self.is_alive = True

    def die(self) -> None:
        """As a killed process does: nobody is told."""
        self.is_alive = False
        self._life += 1
        for exchange in self._open:
            exchange.is_open = False
        self._open.clear()

    def after(self, delay_ms: float, call: Callable[[], None]) -> None:
        life = self._life

        def ring() -> None:
            if not self.is_alive or self._life != life:
                return
            if self.asleep_until_ms > self.now_ms:
                self.shore.events.after(self.asleep_until_ms - self.now_ms, ring)
            else:
                call()

        self.shore.events.after(delay_ms, ring)

    def post(self, request: Any, version: int, timeout_ms: float = REQUEST_TIMEOUT_MS) -> Exchange:
        exchange = self.shore.network.send(self, request, version)
        self._open = [one for one in self._open if one.is_open]
        self._open.append(exchange)
        self.after(timeout_ms, lambda: self.shore.network.break_now(exchange))
        return exchange

    def answered(self, exchange: Exchange) -> None:
        raise AssertionError(f"{self.name} has no use for {exchange}")

    def broken(self, exchange: Exchange) -> None:
        """Most requests are simply not repeated."""

    # -- committed offsets

    def commit_request(
        self, places: list[Place], epoch: int = -1, member_id: str = "", instance_id: str | None = None
    ) -> OffsetCommitRequest:
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for topic, partition in places:
            offset = self.shore.new_offset()
            topics.setdefault(topic, []).append(
                OffsetCommitRequestPartition(
                    partition_index=partition, committed_offset=offset, committed_metadata=self.name
                )
            )
        ids = {name: facts.id for name, facts in self.shore.topics.items()}
        return OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=epoch,
            member_id=member_id,
            group_instance_id=instance_id,
            topics=[
                OffsetCommitRequestTopic(name=name, topic_id=ids.get(name, ZERO_UUID), partitions=found)
                for name, found in topics.items()
            ],
        )

    def fetch_request(self, places: list[Place] | None, group: str | None = None) -> OffsetFetchRequest:
        asked: list[OffsetFetchRequestTopics] | None = None
        if places is not None:
            names = sorted({topic for topic, _ in places})
            ids = {name: facts.id for name, facts in self.shore.topics.items()}
            asked = [
                OffsetFetchRequestTopics(
                    name=name,
                    topic_id=ids.get(name, ZERO_UUID),
                    partition_indexes=[at for topic, at in places if topic == name],
                )
                for name in names
            ]
        return OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group or self.group, topics=asked)], require_stable=True
        )

    def all_places(self) -> list[Place]:
        return [(name, at) for name, facts in self.shore.topics.items() for at in range(facts.partitions)]


def commit_error(exchange: Exchange) -> ErrorCode:
    """The worst that happened to a partition of a commit. A topic that is gone says nothing of the member."""
    codes = {one.error_code for topic in exchange.response.topics for one in topic.partitions}
    of_member = codes - {ErrorCode.NONE, *UNKNOWN_TOPIC}
    return ErrorCode(max(of_member or codes, default=0))
