"""A consumer group with clients that come, go, crash and lose answers, and a coordinator that is killed at any write.

At no time has a partition two owners or two readers, no epoch ever goes back, and when all is quiet every partition
that somebody subscribes to is read by one of those who do.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.unit.groups.consumer_world import HEARTBEAT_MS, SESSION_MS, World

from lowwater.errors import ApiError, ErrorCode
from lowwater.groups.commands import ConsumerHeartbeat
from lowwater.outcome import Outcome
from lowwater.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions

NAMES = ("t", "u")
REJOIN = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)
Partition = tuple[bytes, int]
REVOCATION_MS = 20_000
# Of the clients, those who do not do yet what they are told: everything that happens happens while they still read.
SLOW = st.sets(st.integers(0, 3))


@dataclass
class Client:
    """Follows the protocol: reads what it was told to, says everything after an answer it did not get."""

    member_id: str
    instance_id: str | None
    topics: list[str]
    epoch: int = 0
    reads: set[Partition] = field(default_factory=set)
    told: set[Partition] | None = None
    reported: bool = True
    sure: bool = False
    heard_ms: float = 0.0

    def request(self) -> ConsumerGroupHeartbeatRequest:
        full = not self.sure or self.epoch == 0
        says_owned = full or (self.told is None and not self.reported)
        return ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance_id if full else None,
            rebalance_timeout_ms=REVOCATION_MS if full else -1,
            subscribed_topic_names=list(self.topics) if full else None,
            topic_partitions=self._owned() if says_owned else None,
        )

    def _owned(self) -> list[TopicPartitions]:
        topics = {topic_id for topic_id, _ in self.reads}
        return [
            TopicPartitions(topic_id=topic_id, partitions=sorted(p for t, p in self.reads if t == topic_id))
            for topic_id in sorted(topics)
        ]

    def answered(self, request: Any, response: Any, now_ms: float) -> None:
        self.epoch, self.sure, self.heard_ms = response.member_epoch, True, now_ms
        self.reported = self.reported or request.topic_partitions is not None
        if response.assignment is not None:
            topics = response.assignment.topic_partitions
            self.told = {(topic.topic_id, partition) for topic in topics for partition in topic.partitions}

    def apply(self) -> None:
        if self.told is not None:
            self.reads, self.told, self.reported = self.told, None, False

    def start_over(self) -> None:
        self.epoch, self.sure, self.told = 0, False, None
        self.reads.clear()


class ConsumerGroupMachine(RuleBasedStateMachine):
    @initialize(offloads=st.booleans(), clients=st.integers(1, 3))
    def begin(self, offloads: bool, clients: int) -> None:
        """With some clients that have read for a while: what is hard is to take partitions from those who read."""
        self.world = World({"t": 3, "u": 2}, assignments_inline_max=0 if offloads else 10_000)
        self.clients: list[Client] = []
        self.count = 0
        self.group_epoch = 0
        self.member_epochs: dict[str, int] = {}
        for _ in range(clients):
            self.arrives(["t", "u"], None, set())
        for _ in range(4):
            self.computes(set())

    # -- what happens

    @rule(topics=st.sampled_from([["t"], ["t", "u"]]), instance=st.sampled_from([None, None, "i1", "i2"]), slow=SLOW)
    def arrives(self, topics: list[str], instance: str | None, slow: set[int]) -> None:
        if len(self.clients) < 4 and instance not in {client.instance_id for client in self.clients} - {None}:
            self.clients.append(Client(self._new_id(), instance, topics, heard_ms=self.world.now_ms))
        self.everybody_beats(slow)

    def _new_id(self) -> str:
        self.count += 1
        return f"m{self.count}"

    @rule(pick=st.integers(0, 3), fate=st.sampled_from(["lost", "twice", "killed", "undone"]), slow=SLOW)
    def a_heartbeat_fails(self, pick: int, fate: str, slow: set[int]) -> None:
        if self.clients:
            self.beat(self.clients[pick % len(self.clients)], fate)
        self.everybody_beats(slow)

    @rule(slow=SLOW)
    def everybody_beats(self, slow: set[int]) -> None:
        for number, client in enumerate(self.clients):
            self.beat(client)
            if number not in slow:
                client.apply()

    @rule(pick=st.integers(0, 3), topics=st.sampled_from([["t"], ["u"], ["t", "u"], []]), slow=SLOW)
    def subscribes(self, pick: int, topics: list[str], slow: set[int]) -> None:
        if self.clients:
            client = self.clients[pick % len(self.clients)]
            client.topics, client.sure = topics, False
        self.everybody_beats(slow)

    @rule(pick=st.integers(0, 3), epoch=st.sampled_from([-1, -2, None]), slow=SLOW)
    def goes(self, pick: int, epoch: int | None, slow: set[int]) -> None:
        """Without a word: it crashed."""
        if len(self.clients) < 2:
            return
        client = self.clients.pop(pick % len(self.clients))
        if epoch is not None:
            request = ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id=client.member_id,
                member_epoch=epoch if client.instance_id else -1,
                instance_id=client.instance_id,
            )
            self.send(request)
        self.everybody_beats(slow)

    @rule(ms=st.sampled_from([100, HEARTBEAT_MS, 3 * HEARTBEAT_MS]), slow=SLOW)
    def time_passes(self, ms: int, slow: set[int]) -> None:
        self.world.wait(ms)
        for client in self.clients:
            if self.world.now_ms - client.heard_ms >= REVOCATION_MS:
                client.start_over()
        self.everybody_beats(slow)

    @rule(name=st.sampled_from(NAMES), what=st.sampled_from(["grow", "delete", "create"]), slow=SLOW)
    def topics_change(self, name: str, what: str, slow: set[int]) -> None:
        count = self.world.topics.partition_count(name)
        if what == "grow" and count is not None and count < 5:
            self.world.topics.grow(name, count + 1)
        elif what == "delete" and count is not None:
            self.world.topics.delete(name)
        elif what == "create" and count is None:
            self.world.topics.create(name, 2)
        self.everybody_beats(slow)

    @rule(slow=SLOW)
    def computes(self, slow: set[int]) -> None:
        if self.world.computations:
            self.world.compute()
        self.everybody_beats(slow)

    # -- how

    def beat(self, client: Client, fate: str = "ok") -> None:
        request = client.request()
        try:
            response = self.send(request, fate)
            if fate == "twice":
                # A copy that comes late; nobody listens to its answer.
                with contextlib.suppress(ApiError):
                    self.send(request)
        except ApiError as refusal:
            if refusal.code in REJOIN:
                client.start_over()
            elif refusal.code is ErrorCode.UNRELEASED_INSTANCE_ID:
                client.sure = False
            elif refusal.code is ErrorCode.FENCED_INSTANCE_ID:
                client.start_over()
                client.member_id = self._new_id()
            else:
                raise
            return
        if fate in ("ok", "twice"):
            client.answered(request, response, self.world.now_ms)
        else:
            client.sure = False

    def send(self, request: ConsumerGroupHeartbeatRequest, fate: str = "ok") -> Any:
        out = Outcome()
        try:
            command = ConsumerHeartbeat(request, "client", "/1.2.3.4", False)
            self.world.group.heartbeat(command, 0, self.world.now, out)
        except ApiError:
            if request.member_epoch >= 0:
                raise
            return None
        if fate != "undone":
            self.world.carry_out(out)
        if fate in ("undone", "killed"):
            self.world.reload()
        ((_, response),) = out.replies
        return response

    # -- what holds

    @invariant()
    def a_partition_has_one_owner_and_one_reader(self) -> None:
        if not hasattr(self, "world"):
            return
        owners: dict[Partition, str] = {}
        for member in self.world.group._durable.members.values():
            for held in (member.current.assigned, member.current.revoking):
                for one in ((topic_id, p) for topic_id, partitions in held.items() for p in partitions):
                    assert one not in owners, f"{one} has two owners"
                    owners[one] = member.member_id
        readers: dict[Partition, str] = {}
        for client in self.clients:
            for one in client.reads:
                assert one not in readers, f"{one} has two readers"
                readers[one] = client.member_id
        kept = {(t, p): owner for t, found in self.world.group._durable.owners.items() for p, owner in found.items()}
        assert kept == owners

    @invariant()
    def epochs_never_go_back(self) -> None:
        if not hasattr(self, "world"):
            return
        durable = self.world.group._durable
        assert durable.target_epoch <= durable.epoch
        assert durable.epoch >= self.group_epoch
        self.group_epoch = durable.epoch
        epochs = {member_id: member.current.epoch for member_id, member in durable.members.items()}
        for member_id, epoch in epochs.items():
            assert epoch == -2 or epoch >= self.member_epochs.get(member_id, 0)
            assert epoch <= durable.epoch
        self.member_epochs = epochs

    @invariant()
    def what_is_counted_is_what_is_there(self) -> None:
        if not hasattr(self, "world"):
            return
        durable = self.world.group._durable
        members = durable.members.values()
        behind = {one.member_id for one in members if not one.current.is_reconciled_to(durable.target_epoch)}
        assert durable.behind == behind
        assert set(durable.subscribers) == {name for one in members for name in one.metadata.topics}
        assert self.world.metrics.total_members == len(members)
        assert set(durable.targets) <= set(durable.members)

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        self.settle()
        if self.clients:
            assert self.world.group.state == "Stable"
        wanted = {name for client in self.clients for name in client.topics}
        for name in wanted:
            topic_id = self.world.topics.topic_id(name)
            for partition in range(self.world.topics.partition_count(name) or 0):
                (reader,) = [client for client in self.clients if (topic_id, partition) in client.reads]
                assert name in reader.topics
        existing = {self.world.topics.topic_id(name) for name in NAMES}
        assert all(topic_id in existing for client in self.clients for topic_id, _ in client.reads)

    def settle(self) -> None:
        """Nothing more happens: everybody calls in time and does what it is told."""
        for _ in range(2 * SESSION_MS // HEARTBEAT_MS):
            for client in self.clients:
                for _ in range(2):
                    self.beat(client)
                    client.apply()
            while self.world.computations:
                self.world.compute()
            self.world.wait(HEARTBEAT_MS)


TestConsumerGroupMachine = ConsumerGroupMachine.TestCase
TestConsumerGroupMachine.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
