"""A seeded world of groups: members, onlookers, a failing network, a coordinator that crashes, topics that change."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.sim.groups.classic_member import ClassicMember, Habits
from tests.sim.groups.client import SimClient, TopicFacts
from tests.sim.groups.consumer_member import ConsumerMember
from tests.sim.groups.events import Events
from tests.sim.groups.judge import CLASSIC, CONSUMER, MIXED, Judge
from tests.sim.groups.network import LATE_MS, Network
from tests.sim.groups.onlookers import Operator, Reader, SimpleCommitter
from tests.sim.groups.shadow import judge_reload
from tests.sim.groups.shard_node import ShardNode
from tests.sim.groups.topics import SimTopics

from lowwater.groups.config import GroupConfig
from lowwater.testing.simdisk import SimClock

FAULTS_MS = 45_000
HEAL_MS = 60_000
DAY_MS = 24 * 3_600_000
TEN_YEARS_MS = 3650 * DAY_MS
TOPICS = ("red", "green", "blue")
CONSUMER_SESSION_MS = 10_000
IN_TRANSACTIONS = 0.35
SIMPLE = "simple-0"
Member = ClassicMember | ConsumerMember


@dataclass(slots=True)
class Report:
    seed: int
    crashes: int = 0
    power_cuts: int = 0
    appends: int = 0
    appends_at_risk: int = 0  # while things go wrong
    reloads: int = 0
    answered: int = 0
    acked: int = 0
    fetched: int = 0
    generations: int = 0
    assignments: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        head = (
            f"seed {self.seed}: {self.crashes} kills, {self.power_cuts} power cuts, {self.appends} appends, "
            f"{self.answered} answers, {self.acked} offsets acked, {self.fetched} fetched, "
            f"{self.generations} generations, {self.assignments} assignments"
        )
        return "\n".join([head, *self.problems])


class World:
    """Built by its seed. `crash_at`: crash at that append and at no other, so that every append can be tried.

    `shadowed`: at every append see what a start would find, without one.
    """

    def __init__(
        self, seed: int, *, crash_at: int | None = None, power_cut: bool = False, shadowed: bool = False
    ) -> None:
        self.draw = random.Random(seed)
        self.report = Report(seed)
        self._make_node()
        self.events = Events(self.node)
        self.network = Network(self.events, self.draw)
        self.network.deliver = self.node.deliver
        self.node.connect(self.events, self.network)
        self._crash_at, self._power_cut, self._shadowed = crash_at, power_cut, shadowed
        self._offsets = 0
        self.members: list[Member] = []
        self.groups: list[str] = []
        self.judge.commits.simple_groups = frozenset([SIMPLE])
        self.judge.commits.wall_low_ms = self.node.clock.wall_ms
        self._people()

    def _make_node(self) -> None:
        self.judge = Judge(CONSUMER_SESSION_MS)
        self._topics = SimTopics()
        for name in TOPICS:
            self._topics.create(name, self.draw.randint(1, 4))
        self.node: Any = ShardNode(self._config(), SimClock(), self._topics, self.judge, self.draw)

    def _config(self) -> GroupConfig:
        return GroupConfig(
            initial_rebalance_delay_ms=self.draw.choice((0, 500, 3_000)),
            consumer_session_timeout_ms=CONSUMER_SESSION_MS,
            consumer_heartbeat_interval_ms=2_000,
            assignments_inline_max=self.draw.choice((0, 4, 10_000)),
            offsets_retention_ms=self.draw.choice((20_000, DAY_MS)),
        )

    # -- who lives here

    def _people(self) -> None:
        kinds = self.draw.choice(
            ((CLASSIC,), (CONSUMER,), (CLASSIC, CONSUMER), (CLASSIC, CLASSIC), (MIXED,), (MIXED, CLASSIC))
        )
        for number, kind in enumerate(kinds):
            group = f"{kind}-{number}"
            self.groups.append(group)
            for place in range(self.draw.randint(2 if kind == MIXED else 1, 4)):
                instance = f"{group}-i{place}" if self.draw.random() < 0.35 else None
                protocol = self.draw.choice((CLASSIC, CONSUMER)) if kind == MIXED else kind
                self._add_member(group, protocol, f"{group}-m{place}", instance)
        instances = [(one.group, one.instance_id) for one in self.members if one.instance_id is not None]
        groups = [*self.groups, SIMPLE]
        self._operator = Operator("operator", groups, instances, self)
        self.onlookers: list[SimClient] = [
            SimpleCommitter("committer", SIMPLE, self, self.groups),
            Reader("reader", groups, self),
            self._operator,
        ]

    def _add_member(self, group: str, protocol: str, name: str, instance: str | None) -> Member:
        topics = set(self.draw.sample(TOPICS, self.draw.randint(1, len(TOPICS))))
        member: Member
        if protocol == CLASSIC:
            member = ClassicMember(name, group, self, self._habits(instance), topics, instance)
        else:
            regex = "red|gre.*" if self.draw.random() < 0.2 else None
            assignor = self.draw.choice((None, None, "range", "uniform"))
            member = ConsumerMember(
                name,
                group,
                self,
                topics,
                instance_id=instance,
                regex=regex,
                assignor=assignor,
                commit_version=self.draw.choice((9, 10)),
                in_transactions=self.draw.random() < IN_TRANSACTIONS,
            )
        self.members.append(member)
        return member

    def _habits(self, instance: str | None) -> Habits:
        return Habits(
            join_version=self.draw.randint(5, 9) if instance else self.draw.choice((2, 3, 4, 5, 7, 8, 9, 9)),
            commit_version=self.draw.randint(7, 10) if instance else self.draw.randint(2, 10),
            session_timeout_ms=self.draw.choice((6_000, 10_000)),
            rebalance_timeout_ms=self.draw.choice((8_000, 12_000)),
            # After a restart a group knows the protocol it had chosen and no other, so all know the same ones.
            protocols=self.draw.choice((("range", "roundrobin"), ("roundrobin", "range"))),
            in_transactions=self.draw.random() < IN_TRANSACTIONS,
            txn_commit_version=self.draw.randint(3, 5) if instance else self.draw.randint(0, 5),
        )

    @property
    def topics(self) -> Mapping[str, TopicFacts]:
        return self._topics.facts

    def new_offset(self) -> int:
        self._offsets += 1
        return self._offsets

    # -- a run

    def run(self) -> Report:
        self._begin()
        self.node.on_append = self._appended
        for client in [*self.members, *self.onlookers]:
            self.events.after(self.draw.random() * 4_000, client.start)
        self.node.expire_regularly()
        self._again(2_500, self._meddle)
        self._again(15_000, self._change_topics)
        self._again(20_000, self._jump)
        if self._crash_at is None:
            self._again(12_000, self._strike)
        self.events.run_until(FAULTS_MS)
        self.heal()
        return self._finish()

    def _begin(self) -> None:
        self.node.start()

    def _finish(self) -> Report:
        report = self.report
        report.answered = self.judge.answered
        report.acked, report.fetched = self.judge.commits.acked, self.judge.commits.fetched
        report.generations, report.assignments = self.judge.classic.generations, self.judge.consumer.assignments
        report.problems = self.judge.problems
        return report

    def _again(self, about_ms: float, call: Callable[[], None]) -> None:
        """Again and again, at random moments, as long as things go wrong."""

        def happen() -> None:
            if self.network.is_faulty:
                call()
                self._again(about_ms, call)

        self.events.after(self.draw.expovariate(1 / about_ms), happen)

    # -- what goes wrong

    def _meddle(self) -> None:
        member = self.draw.choice(self.members)
        if not member.is_alive:
            member.start()
            return
        action = self.draw.choice(("die", "leave", "sleep", "subscribe", "clone", "rest", "rest"))
        if action == "die":
            member.die()
        elif action == "leave":
            member.leave()
        elif action == "sleep":
            member.asleep_until_ms = self.events.now_ms + self.draw.random() * 20_000
        elif action == "subscribe":
            member.subscribe(set(self.draw.sample(TOPICS, self.draw.randint(1, len(TOPICS)))))
        elif action == "clone" and member.instance_id is not None:
            protocol = CLASSIC if isinstance(member, ClassicMember) else CONSUMER
            name = f"{member.name}-again{len(self.members)}"
            self._add_member(member.group, protocol, name, member.instance_id).start()

    def _change_topics(self) -> None:
        name = self.draw.choice(TOPICS)
        if name not in self.topics:
            self._topics.create(name, self.draw.randint(1, 4))
        elif self.draw.random() < 0.5:
            self._topics.grow(name, 1)
        elif len(self.topics) > 1:
            self._topics.delete(name)
            self.judge.commits.topic_deleted(name, self.node.clock.now_ms(), surely=True)
            self.node.topic_deleted(name)

    def _jump(self) -> None:
        """The wall clock is set: by an hour, or by ten years."""
        by_ms = self.draw.choice((3_600_000, -3_600_000, TEN_YEARS_MS, -TEN_YEARS_MS))
        self.node.clock.wall_ms = max(DAY_MS, self.node.clock.wall_ms + by_ms)
        self.judge.commits.wall_low_ms = min(self.judge.commits.wall_low_ms, self.node.clock.wall_ms)

    def _strike(self) -> None:
        if not self.node.is_up:
            return
        if self.draw.random() < 0.15:
            self.node.fail_append()
        else:
            self._crash(power_cut=self.draw.random() < 0.5)

    def _appended(self) -> None:
        self.report.appends += 1
        if self._shadowed:
            self.report.reloads += judge_reload(self.node, self.judge)
        if not self.network.is_faulty:
            return
        self.report.appends_at_risk += 1
        often = self._crash_at is None and self.draw.random() < 0.015
        if often or self.report.appends == self._crash_at:
            self._crash(power_cut=self._power_cut if self._crash_at else self.draw.random() < 0.5)

    def _crash(self, *, power_cut: bool) -> None:
        self.report.power_cuts += power_cut
        self.report.crashes += not power_cut
        self.node.crash(power_cut=power_cut)
        self.events.after(self.draw.choice((0, 100, 3_000)), self._restart)

    def _restart(self) -> None:
        if not self.node.is_up:
            self.node.start()

    # -- in the end

    def heal(self) -> None:
        """Nothing goes wrong any more: whoever lives must get to work."""
        self.network.is_faulty = False
        self._restart()
        self._operator.die()
        seen: set[str] = set()
        for member in sorted(self.members, key=lambda one: not one.is_alive):
            member.asleep_until_ms = 0
            if member.instance_id is None:
                continue
            if member.instance_id in seen:
                member.die()
            elif not member.is_alive:
                member.start()
            seen.add(member.instance_id)
        self.events.run_until(FAULTS_MS + LATE_MS)
        # An assignment may have been told to a heartbeat that came too late for its client to listen.
        for member in self.members:
            if isinstance(member, ConsumerMember):
                member.reconnect()
        self.events.run_until(FAULTS_MS + HEAL_MS)
