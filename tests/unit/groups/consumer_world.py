"""A consumer group on a clock of its own, with its log, its topics and its clients' answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.unit.groups.classic_world import WALL_MS, CountedIds

from lowwater.errors import ApiError, ErrorCode
from lowwater.groups.commands import ConsumerHeartbeat
from lowwater.groups.config import GroupConfig
from lowwater.groups.consumer import ConsumerGroup
from lowwater.groups.metrics import GroupMetrics
from lowwater.groups.records import decode
from lowwater.groups.timers import Timers
from lowwater.outcome import Computation, Now, Outcome, StateRecord
from lowwater.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

SESSION_MS = 45_000
REBALANCE_MS = 60_000
HEARTBEAT_MS = 5_000


class FakeTopics:
    """Topics by name; one made anew has another id."""

    def __init__(self, **counts: int) -> None:
        self.version = 1
        self._made = 0
        self._topics: dict[str, tuple[bytes, int]] = {}
        for name, count in counts.items():
            self.create(name, count)

    def create(self, name: str, count: int) -> None:
        self.version += 1
        self._made += 1
        self._topics[name] = (self._made.to_bytes(16, "big"), count)

    def grow(self, name: str, count: int) -> None:
        self.version += 1
        self._topics[name] = (self._topics[name][0], count)

    def delete(self, name: str) -> None:
        self.version += 1
        del self._topics[name]

    def names(self) -> Iterable[str]:
        return list(self._topics)

    def partition_count(self, name: str) -> int | None:
        return self._topics[name][1] if name in self._topics else None

    def topic_id(self, name: str) -> bytes | None:
        return self._topics[name][0] if name in self._topics else None

    def topic_name(self, topic_id: bytes) -> str | None:
        return next((name for name, (one, _) in self._topics.items() if one == topic_id), None)


class World:
    """Heartbeats are answered at once; what they write is replayed at once."""

    def __init__(self, topics: Mapping[str, int] | None = None, **config: Any) -> None:
        self.topics = FakeTopics(**({"t": 4} if topics is None else topics))
        self.config = GroupConfig(**config)
        self.ids = CountedIds()
        self.now_ms = 0.0
        self.wall_ms = WALL_MS
        self.log: list[StateRecord] = []
        self.written: list[StateRecord] = []
        self.computations: list[Computation] = []
        self._start()

    def _start(self) -> None:
        self.timers = Timers()
        self.metrics = GroupMetrics()
        self.group = ConsumerGroup("g", self.config, self.ids, self.timers, self.metrics, self.topics)

    @property
    def now(self) -> Now:
        return Now(self.wall_ms, self.now_ms)

    # -- what clients do

    def beat(self, member_id: str, epoch: int, **said: Any) -> ConsumerGroupHeartbeatResponse:
        """`owned={topic: partitions}` and `topics=` are short for the fields of the request; the rest is as there."""
        generates_member_id = said.pop("generates_member_id", False)
        client_id = said.pop("client_id", "client")
        if "topics" in said:
            said["subscribed_topic_names"] = said.pop("topics")
        if "pattern" in said:
            said["subscribed_topic_regex"] = said.pop("pattern")
        if "owned" in said:
            said["topic_partitions"] = self.owned(said.pop("owned"))
        request = ConsumerGroupHeartbeatRequest(group_id="g", member_id=member_id, member_epoch=epoch, **said)
        out = Outcome()
        self.group.heartbeat(ConsumerHeartbeat(request, client_id, "/1.2.3.4", generates_member_id), 0, self.now, out)
        self.carry_out(out)
        ((_, response),) = out.replies
        return response

    def owned(self, partitions: Mapping[str, Iterable[int]] | None) -> list[TopicPartitions] | None:
        if partitions is None:
            return None
        return [
            TopicPartitions(topic_id=self.topics.topic_id(name) or name.encode().ljust(16), partitions=list(held))
            for name, held in partitions.items()
        ]

    def join(self, member_id: str, **said: Any) -> ConsumerGroupHeartbeatResponse:
        if "pattern" not in said:
            said.setdefault("topics", ["t"])
        return self.beat(member_id, 0, **{"rebalance_timeout_ms": REBALANCE_MS, "owned": {}, **said})

    def refused(self, member_id: str, epoch: int, **said: Any) -> ErrorCode:
        """The code that a heartbeat is refused with."""
        before = len(self.log)
        try:
            self.beat(member_id, epoch, **said)
        except ApiError as refusal:
            assert len(self.log) == before
            return refusal.code
        return ErrorCode.NONE

    # -- what the driver does

    def carry_out(self, out: Outcome) -> None:
        self.written = out.records
        self.log += out.records
        self.computations += out.computations
        for record in out.records:
            decoded = decode(record)
            assert decoded is not None
            self.group.replay(*decoded)

    def compute(self) -> None:
        """Finish the oldest computation."""
        computation = self.computations.pop(0)
        try:
            result = computation.work(computation.argument)
        except Exception as failure:
            result = failure
        self.come_back(computation, result)

    def come_back(self, computation: Computation, result: Any) -> None:
        out = Outcome()
        self.group.assignment_computed(computation.then(result), self.now, out)
        self.carry_out(out)

    def wait(self, ms: float) -> None:
        """Let time pass, with everything that becomes due in it, in order."""
        end_ms = self.now_ms + ms
        while (deadline_ms := self.timers.next_deadline_ms) is not None and deadline_ms <= end_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            self.tick()
        self.now_ms = end_ms

    def tick(self) -> None:
        out = Outcome()
        while not out.records and (timer := self.timers.take_due(self.now_ms)) is not None:
            timer.group.due(timer, self.now, out)
        self.carry_out(out)

    def reload(self) -> None:
        """The broker was killed: all there is is in the log."""
        self.computations.clear()
        self._start()
        for record in self.log:
            decoded = decode(record)
            assert decoded is not None
            self.group.replay(*decoded)
        out = Outcome()
        self.group.loaded(self.now, out)
        self.carry_out(out)

    # -- what is to be seen

    def assignment(self, response: ConsumerGroupHeartbeatResponse) -> dict[str, list[int]] | None:
        if response.assignment is None:
            return None
        named = {self.topics.topic_name(one.topic_id): one.partitions for one in response.assignment.topic_partitions}
        return {name: list(partitions) for name, partitions in named.items() if name is not None}

    def epochs(self) -> tuple[int, int]:
        """Of the group, and of its target."""
        described = self.group.describe()
        return described.group_epoch, described.assignment_epoch

    def members(self) -> dict[str, Any]:
        return {member.member_id: member for member in self.group.describe().members}

    def held(self) -> dict[str, dict[str, list[int]]]:
        """What every member may be reading."""
        return {
            member_id: {one.topic_name: list(one.partitions) for one in member.assignment.topic_partitions}
            for member_id, member in self.members().items()
        }

    def target(self) -> dict[str, dict[str, list[int]]]:
        return {
            member_id: {one.topic_name: list(one.partitions) for one in member.target_assignment.topic_partitions}
            for member_id, member in self.members().items()
        }
