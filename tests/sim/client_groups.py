"""Readers in groups, seeded: our members and commits over a simulated network, against our broker on virtual time.

Readers come, leave, die, dawdle and lose their connections. Whatever happens, what a group has committed was given to
somebody before, and when it is quiet again every partition is read by exactly one. When readers only come and leave,
each record is given once.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any

from tests.unit.client.virtual import LATER, Asked, Line, VirtualDriver, network_of

from lowwater.client.cluster import Cluster
from lowwater.client.coordinator import Coordinator
from lowwater.client.driver import sleep
from lowwater.client.errors import ClientError
from lowwater.client.flow import Flow
from lowwater.client.group import Member, State
from lowwater.client.group_commits import Committer
from lowwater.testing.virtual_time import Asked as Served
from lowwater.testing.virtual_time import VirtualBroker
from lowwater.types import TopicPartition
from lowwater.wire.messages import CreatePartitionsRequest, CreateTopicsRequest
from lowwater.wire.messages.create_partitions import CreatePartitionsTopic
from lowwater.wire.messages.create_topics import CreatableTopic

TOPIC = "t"
SESSION_MS = 6_000
MAX_POLL_MS = 15_000
QUIET_MS = 60_000
STYLES = ("range", "sticky", "cooperative-sticky", "consumer")
_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.session.timeout.ms": str(SESSION_MS),
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
}


class World:
    """One broker, one group, and what its readers were given of each partition."""

    def __init__(self, seed: int, style: str, *, is_calm: bool = False) -> None:
        """`is_calm`: nothing breaks, nobody dies, nobody dawdles."""
        self.random = random.Random(f"{seed} {style}")
        self.style = style
        self.is_calm = is_calm
        self.broker = VirtualBroker(_SETTINGS, seed=seed)
        self.partitions = self.random.randint(1, 6)
        topic = CreatableTopic(name=TOPIC, num_partitions=self.partitions, replication_factor=1)
        self.broker.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1_000))
        self.given: dict[TopicPartition, set[int]] = {}
        self.committed: dict[TopicPartition, int] = {}
        self.readers: list[Reader] = []
        self.made = 0
        self.is_quiet = False
        self.story: list[str] = []
        self.problem = ""

    def tell(self, what: str) -> None:
        self.story.append(f"{self.broker.clock.elapsed_ms:>8} {what}")

    def fail(self, what: str) -> None:
        """The first problem is the one that is told: a hook that raises ends its member, which is the next."""
        self.problem = self.problem or "\n".join([what, *self.story[-60:]])
        raise AssertionError(self.problem)

    def advance(self, ms: int) -> None:
        self.broker.time.advance(ms)

    # ---- what happens

    def run(self, steps: int) -> None:
        self.come()
        happens = [self.come, self.come, self.leave, self.grow, self.wait]
        if not self.is_calm:
            happens += [self.die, self.cut, self.cut, self.cut]
        for _ in range(steps):
            self.random.choice(happens)()
            self.advance(self.random.choice([0, 10, 100, 1_000, 5_000]))
        self.is_quiet = True
        if not self.readers:
            self.come()
        self.advance(QUIET_MS)

    def come(self) -> None:
        if len(self.readers) < 4:
            self.made += 1
            self.readers.append(Reader(self, f"r{self.made}"))

    def leave(self) -> None:
        if self.readers:
            reader = self.readers.pop(self.random.randrange(len(self.readers)))
            self.tell(f"{reader.name} leaves")
            reader.close()

    def die(self) -> None:
        if self.readers:
            reader = self.readers.pop(self.random.randrange(len(self.readers)))
            self.tell(f"{reader.name} dies")
            reader.driver.die()

    def grow(self) -> None:
        if self.partitions < 8:
            self.partitions += 1
            self.tell(f"{self.partitions} partitions")
            wanted = CreatePartitionsTopic(name=TOPIC, count=self.partitions, assignments=None)
            self.broker.ask(CreatePartitionsRequest(topics=[wanted], timeout_ms=1_000))

    def cut(self) -> None:
        lines = [line for reader in self.readers for line in reader.driver.open_lines]
        if lines:
            self.random.choice(lines).drop()

    def wait(self) -> None:
        self.advance(20_000)

    # ---- what must hold

    def give(self, one: TopicPartition, offset: int) -> None:
        given = self.given.setdefault(one, set())
        if self.is_calm and offset in given:
            self.fail(f"{one} at {offset} is given twice")
        given.add(offset)

    def was_committed(self, one: TopicPartition, offset: int | None) -> None:
        """Everything before a committed offset was given to somebody, and it never goes back."""
        before, self.committed[one] = self.committed.get(one, 0), offset or 0
        if self.committed[one] < before:
            self.fail(f"{one} was committed at {offset}, after {before}")
        missing = set(range(offset or 0)) - self.given.get(one, set())
        if missing:
            self.fail(f"{one} was committed at {offset}, but nobody was given {sorted(missing)[:5]}")

    def check_the_end(self) -> None:
        assert not self.problem, self.problem
        wanted = [TopicPartition(TOPIC, number) for number in range(self.partitions)]
        owned = sorted(one for reader in self.readers for one in reader.member.assignment)
        if owned != wanted:
            self.fail(f"{owned} is read instead of {wanted}")
        for reader in self.readers:
            if reader.member.state is not State.STABLE or reader.failure is not None:
                self.fail(f"{reader.name} is {reader.member.state}: {reader.failure} {reader.member.trouble}")
            if set(reader.positions) != reader.member.assignment:
                self.fail(
                    f"{reader.name} was told of {sorted(reader.positions)}, has {sorted(reader.member.assignment)}"
                )
        sizes = [len(reader.member.assignment) for reader in self.readers]
        if max(sizes) - min(sizes) > 1:
            self.fail(f"the shares are {sizes}")
        self.check_progress()

    def check_progress(self) -> None:
        """Everybody reads on, and what they read is committed."""
        reader = self.readers[0]
        before = reader.committed()
        self.advance(QUIET_MS)
        for one, offset in reader.committed().items():
            self.was_committed(one, offset)
            if offset is None or offset <= (before[one] or 0):
                self.fail(f"{one} stands at {offset}")


class Wires(VirtualDriver):
    """A client's connections to the simulated broker, which serves one request of each at a time."""

    def __init__(self, world: World, seed: int) -> None:
        super().__init__(self._ask, seed)
        self.time = world.broker.time
        self._world = world
        self._queues: dict[Line, deque[Asked]] = {}
        self._served: dict[Line, Served] = {}
        self.is_dead = False

    def call_soon(self, callback: Callable[[], None]) -> None:
        super().call_soon(lambda: None if self.is_dead else callback())

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Any:
        return super().call_later(delay_ms, lambda: None if self.is_dead else callback())

    def die(self) -> None:
        """As a process that is killed: connections end, nothing runs any more."""
        self.is_dead = True
        for line in self.open_lines:
            line.abort()
        for served in self._served.values():
            served.disconnect()

    def _ask(self, asked: Asked) -> Any:
        queue = self._queues.setdefault(asked.line, deque())
        queue.append(asked)
        if len(queue) == 1:
            self._serve(queue)
        return LATER

    def _serve(self, queue: deque[Asked]) -> None:
        asked = queue[0]
        served = self._world.broker.send(asked.request, asked.version)
        self._served[asked.line] = served
        delay_ms = self._world.random.choice([0, 0, 1, 30])
        served.when_answered(lambda: self.call_later(delay_ms, lambda: self._answer(queue, served)))

    def _answer(self, queue: deque[Asked], served: Served) -> None:
        asked = queue.popleft()
        asked.answer(served.response)
        if queue and asked.line.is_open:
            self._serve(queue)


class Reader:
    """Reads endless partitions one record at a poll, and commits what it is done with."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.driver = Wires(world, world.random.randrange(1 << 30))
        self.positions: dict[TopicPartition, int] = {}
        self.failure: ClientError | None = None
        self.coordinator = Coordinator(Cluster(network_of(self.driver, **self._settings())), "g")
        self.member = Member(self.coordinator, self, topics=[TOPIC])
        self.committer = Committer(self.member.commit, self.driver, interval_ms=2_000)
        self.is_closed = False
        world.tell(f"{name} comes")
        self.member.start()
        Flow(self._poll_on())

    def _settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "bootstrap_servers": "127.0.0.1:9092",
            "max_poll_interval_ms": MAX_POLL_MS,
            "metadata_max_age_ms": 10_000,
        }
        if self.world.style == "consumer":
            return {**settings, "group_protocol": "consumer"}
        settings |= {"session_timeout_ms": SESSION_MS, "heartbeat_interval_ms": 1_000}
        return {**settings, "partition_assignment_strategy": self.world.style}

    async def assigned(self, partitions: list[TopicPartition]) -> None:
        if known := set(partitions) & self.positions.keys():
            self.world.fail(f"{self.name} is given {known}, which it has")
        offsets = await self.coordinator.committed(partitions)
        for one, offset in offsets.items():
            self.world.was_committed(one, offset)
            self.positions[one] = offset or 0
        self.world.tell(f"{self.name} is given {offsets}")

    async def revoked(self, partitions: list[TopicPartition]) -> None:
        self._drop("gives up", partitions)  # first: a poll that is under way must not give what is going
        await self.committer.give_up(partitions)

    async def lost(self, partitions: list[TopicPartition]) -> None:
        self.committer.forget(partitions)
        self._drop("loses", partitions)

    def _drop(self, what: str, partitions: list[TopicPartition]) -> None:
        self.world.tell(f"{self.name} {what} {[one.partition for one in partitions]}")
        for one in partitions:
            self.positions.pop(one, None)  # it may be lost before its start was known

    def failed(self, error: ClientError) -> None:
        self.failure = error
        self.world.tell(f"{self.name} has failed: {error}")

    async def _poll_on(self) -> None:
        while not self.is_closed:
            self.committer.done(self.positions)
            await self.member.enter_poll()
            await sleep(self.driver, 10)
            for one, offset in self.positions.items():
                self.world.give(one, offset)
                self.positions[one] = offset + 1
            self.member.exit_poll()
            dawdles = [100, 1_000, 1_000] + ([] if self.world.is_calm else [8_000, MAX_POLL_MS + 5_000])
            await sleep(self.driver, 2_000 if self.world.is_quiet else self.world.random.choice(dawdles))

    def committed(self) -> dict[TopicPartition, int | None]:
        wanted = [TopicPartition(TOPIC, number) for number in range(self.world.partitions)]
        flow = Flow(self.coordinator.committed(wanted))
        self.world.advance(1_000)
        return flow.result()

    def close(self) -> None:
        self.is_closed = True
        Flow(self._close())

    async def _close(self) -> None:
        self.committer.done(self.positions)
        await self.member.close()
        self.coordinator.cluster.network.close()
