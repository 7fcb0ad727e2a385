"""A whole broker on a simulated disk in the place of a single shard: real batches, fsyncs and loads."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import ceil
from typing import Any

from tests.sim.groups.client import TopicFacts
from tests.sim.groups.events import Events
from tests.sim.groups.judge import Judge
from tests.sim.groups.network import Exchange, Network

from lowwater.errors import WireError
from lowwater.testing.disk_image import pending_operations
from lowwater.testing.simdisk import CrashState, SimClock, SimDisk
from lowwater.testing.virtual_time import Asked, VirtualBroker
from lowwater.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from lowwater.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from lowwater.wire.messages.delete_topics import DeleteTopicsRequest

WORK_MS = 10
TIMEOUT_MS = 1000


class BrokerNode:
    """What the world asks of a coordinator, by requests to a broker."""

    def __init__(self, settings: dict[str, str], judge: Judge, draw: random.Random) -> None:
        self.events: Events
        self.network: Network
        self._settings = settings
        self._judge = judge
        self._draw = draw
        self._disk = SimDisk()
        self._known_groups: dict[str, Any] = {}
        self._works = False
        self.groups: list[str] = []
        self.is_up = False
        self.life = 0
        self.on_append: Callable[[], None] = lambda: None

    def connect(self, events: Events, network: Network) -> None:
        self.events, self.network = events, network

    @property
    def clock(self) -> SimClock:
        return self._disk.clock

    @property
    def elapsed_ms(self) -> float:
        return self.clock.elapsed_ms

    @property
    def topic_facts(self) -> dict[str, TopicFacts]:
        topics = self.broker.broker.topics
        return {one.name: TopicFacts(one.id, one.partition_count) for one in topics if not one.name.startswith("__")}

    # -- requests

    def deliver(self, exchange: Exchange) -> None:
        if not self.is_up:
            self.network.lose(exchange)
            return
        self._may_expire()
        self._judge.delivered(exchange, self.elapsed_ms, self.clock.now_ms())
        life = self.life
        asked = self.broker.send(exchange.request, exchange.version, client_id=exchange.name)
        asked.when_answered(lambda: self._answered(exchange, asked, life))
        self._pump()

    def _answered(self, exchange: Exchange, asked: Asked, life: int) -> None:
        if life != self.life:
            return
        try:
            exchange.response = asked.response
        except WireError as error:
            self._judge.report(f"{exchange} ended its connection: {error}")
            return
        self._judge.issued(exchange, self.elapsed_ms, self.topic_facts)
        self.network.answer(exchange)

    def _pump(self) -> None:
        """Turns of the event loop until nothing is left to do at this moment; threads take their time."""
        self.broker.time.settle()
        self._note_ends_of_groups()
        if self.broker.offload.waiting and not self._works:
            self._works = True
            life = self.life
            self.events.after(1 + self._draw.random() * WORK_MS, lambda: self._work(life))

    def _work(self, life: int) -> None:
        """A thread finishes something."""
        if life != self.life:
            return
        self._works = False
        self.broker.offload.do(self._draw.randrange(self.broker.offload.waiting))
        self._pump()
        self.on_append()

    def _note_ends_of_groups(self) -> None:
        if not all(driver.is_active for driver in self.broker.broker.groups._drivers):
            return  # what is loaded will be compared with what was before
        drivers = self.broker.broker.groups._drivers
        groups = {name: group for driver in drivers for name, group in driver.groups.items()}
        for name, before in self._known_groups.items():
            # An empty group that is asked for by the other protocol is replaced by a new one.
            if name not in groups or (type(groups[name]) is not type(before) and before.is_empty):
                self._judge.group_gone(name)
        self._known_groups = groups

    # -- time

    def move_to(self, when_ms: float) -> None:
        by_ms = max(0, ceil(when_ms - self.elapsed_ms))
        if not self.is_up:
            self.clock.advance(by_ms)
            return
        self.broker.time.advance(by_ms)
        self._pump()

    def expire_regularly(self) -> None:
        """The broker does it by itself. Time passes in small steps, so that its threads work meanwhile."""
        self.events.after(1_000, self.expire_regularly)

    def _may_expire(self) -> None:
        """It may have done so by now."""
        self._judge.commits.may_expire(self.clock.now_ms(), int(self._settings["offsets.retention.minutes"]) * 60_000)

    # -- topics

    def create_topic(self, name: str, partitions: int) -> None:
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        self._ask(CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS), 7, lambda _: None)

    def grow_topic(self, name: str) -> None:
        wanted = CreatePartitionsTopic(name=name, count=self.topic_facts[name].partitions + 1, assignments=None)
        self._ask(CreatePartitionsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS), 3, lambda _: None)

    def delete_topic(self, name: str) -> None:
        self._judge.commits.topic_deleted(name, self.clock.now_ms(), surely=False)

        def deleted(response: Any) -> None:
            if response.responses[0].error_code == 0:
                self._judge.commits.topic_deleted(name, self.clock.now_ms(), surely=True)

        self._ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=TIMEOUT_MS), 4, deleted)

    def _ask(self, request: Any, version: int, answered: Callable[[Any], None]) -> None:
        life = self.life
        asked = self.broker.send(request, version)
        asked.when_answered(lambda: answered(asked.response) if life == self.life else None)
        self._pump()

    # -- the process

    def start(self) -> None:
        self.life += 1
        self.is_up = True
        self._works = False
        self.broker = VirtualBroker(self._settings, disk=self._disk, seed=self._draw.getrandbits(32))
        self.broker.offload.held = True
        self._judge.reloaded(self.elapsed_ms)
        for name in self.groups:
            self._judge.mixed.lost_assignments(name)  # perhaps
        if hasattr(self, "events"):
            self._pump()

    def crash(self, *, power_cut: bool) -> None:
        self.is_up = False
        self.life += 1
        if power_cut:
            pending = pending_operations(self._disk.journal)
            lost = frozenset(index for index in pending if self._draw.random() < self._draw.choice((0.1, 0.5, 1.0)))
            state = CrashState(self._disk.operations, lost)
        else:
            state = self._draw.choice(list(self._disk.kill_states()))
        before, self._disk = self._disk.clock, self._disk.after(state)
        self._disk.clock.wall_ms, self._disk.clock.elapsed_ms = before.wall_ms, before.elapsed_ms
        waiting = self._judge.waiting
        self._judge.crashed(self.elapsed_ms)
        for exchange in waiting:
            self.network.lose(exchange)

    def fail_append(self) -> None:
        """A clean restart instead: the disk of this node does not fail."""
        self.broker.offload.release()
        self.broker.time.settle()
        self.broker.stop()
        self._disk.drop_process()
        waiting = self._judge.waiting
        self._judge.crashed(self.elapsed_ms)
        for exchange in waiting:
            self.network.lose(exchange)
        self.start()
