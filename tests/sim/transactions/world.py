"""A seeded world of transactions: instances of a few transactional ids, a failing network, a broker that crashes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.sim.groups.events import Events
from tests.sim.groups.network import LATE_MS, Exchange, Network
from tests.sim.transactions.judge import Judge
from tests.sim.transactions.producer import SimProducer
from tests.sim.transactions.requests import NEW, OLD
from tests.sim.transactions.shard_node import ShardNode
from tests.sim.transactions.story import Library

from lowwater.errors import ErrorCode
from lowwater.testing.simdisk import SimClock
from lowwater.transactions.config import TransactionConfig
from lowwater.transactions.state import PRODUCER_EPOCH_MAX
from lowwater.wire.messages.end_txn import EndTxnRequest
from lowwater.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

FAULTS_MS = 25_000
TIMEOUTS_MS = (2_000, 4_000, 8_000)
SCAN_MS = 1_000
SETTLE_MS = LATE_MS + max(TIMEOUTS_MS) + SCAN_MS + 5_000
WORK_MS = 8_000
DAY_MS = 24 * 3_600_000
TEN_YEARS_MS = 3650 * DAY_MS


@dataclass(slots=True)
class Report:
    seed: int
    crashes: int = 0
    power_cuts: int = 0
    appends: int = 0
    appends_at_risk: int = 0
    answered: int = 0
    transactions: int = 0
    committed: int = 0
    read: int = 0
    fenced: int = 0
    problems: list[str] = field(default_factory=list)


class World:
    """Built by its seed. `crash_at`: crash at that append and at no other, so that every append can be tried."""

    def __init__(self, seed: int, *, crash_at: int | None = None, power_cut: bool = False) -> None:
        self.draw = random.Random(seed)
        self.report = Report(seed)
        self.library = Library()
        self.judge = Judge(self.library)
        self.partitions = self.draw.randint(2, 3)
        self.topics: dict[str, Any] = {}
        self._crash_at, self._power_cut = crash_at, power_cut
        self.ids = [f"id-{number}" for number in range(self.draw.randint(1, 3))]
        self._make_node()
        self.events = self.node.events = Events(self.node)
        self.network = self.node.network = Network(self.events, self.draw)
        self.network.deliver = self._deliver
        self.producers: list[SimProducer] = []
        for transactional_id in self.ids:
            for _ in range(self.draw.randint(1, 2)):
                self._add_producer(transactional_id)

    def _make_node(self) -> None:
        config = TransactionConfig(
            id_expiration_ms=self.draw.choice((6_000, DAY_MS, DAY_MS)),
            abort_scan_interval_ms=SCAN_MS,
            expiry_scan_interval_ms=3_000,
            transaction_version=self.draw.choice((1, 2, 2)),
        )
        self.node: Any = ShardNode(config, SimClock(), self.judge, self.draw, self.partitions)
        for transactional_id in self.ids:
            if self.draw.random() < 0.4:
                self.node.put_near_the_end(transactional_id, PRODUCER_EPOCH_MAX - self.draw.randint(1, 6))

    def _add_producer(self, transactional_id: str) -> SimProducer:
        name = f"{transactional_id}-p{len(self.producers)}"
        path = self.draw.choice((OLD, NEW, NEW))
        producer = SimProducer(name, transactional_id, path, self.draw.choice(TIMEOUTS_MS), self)
        self.producers.append(producer)
        return producer

    def new_offset(self) -> int:
        raise AssertionError("nobody here commits offsets outside a transaction")

    def _deliver(self, exchange: Exchange) -> None:
        """On the older path nobody can tell which of a producer's transactions a late request speaks of.

        Such a request ends another transaction than it meant, on Apache Kafka too: it is why there is a newer path.
        """
        late = isinstance(exchange.request, EndTxnRequest | TxnOffsetCommitRequest) and exchange.version < NEW.end
        if late and self.library.is_past(exchange.request):
            self.network.lose(exchange)
        else:
            self.node.deliver(exchange)

    def unknown_code(self, request: Any, code: ErrorCode) -> None:
        self.judge.report(f"{type(request).__name__} was answered {code.name}")

    # -- a run

    def run(self) -> Report:
        self._begin()
        self.node.on_append = self._appended
        for producer in self.producers:
            self.events.after(self.draw.random() * 2_000, producer.start)
        self._again(1_500, self._meddle)
        self._again(15_000, self._jump)
        self._read_now_and_then()
        if self._crash_at is None:
            self._again(8_000, self._strike)
        self.events.run_until(FAULTS_MS)
        self._heal()
        self._judge_end()
        return self.report

    def _begin(self) -> None:
        self.node.start()

    def _again(self, about_ms: float, call: Callable[[], None]) -> None:
        """Again and again, at random moments, as long as things go wrong."""

        def happen() -> None:
            if self.network.is_faulty:
                call()
                self._again(about_ms, call)

        self.events.after(self.draw.expovariate(1 / about_ms), happen)

    def _read_now_and_then(self) -> None:
        if self.node.is_up:
            self.node.read_all()
        self.events.after(self.draw.expovariate(1 / 800), self._read_now_and_then)

    # -- what goes wrong

    def _meddle(self) -> None:
        producer = self.draw.choice(self.producers)
        if not producer.is_alive:
            producer.start()
            return
        action = self.draw.choice(("die", "sleep", "rival", "rest", "rest"))
        if action == "die":
            producer.die()
        elif action == "sleep":
            producer.asleep_until_ms = self.events.now_ms + self.draw.random() * 12_000
        elif action == "rival" and len(self.producers) < 8:
            self._add_producer(producer.transactional_id).start()

    def _jump(self) -> None:
        """The wall clock is set: by an hour, or by ten years."""
        by_ms = self.draw.choice((3_600_000, -3_600_000, TEN_YEARS_MS, -TEN_YEARS_MS))
        self.node.clock.wall_ms = max(DAY_MS, self.node.clock.wall_ms + by_ms)

    def _strike(self) -> None:
        if not self.node.is_up:
            return
        if self.draw.random() < 0.2:
            self.node.fail_append()
        else:
            self._crash(power_cut=self.draw.random() < 0.5)

    def _appended(self) -> None:
        self.report.appends += 1
        if not self.network.is_faulty:
            return
        self.report.appends_at_risk += 1
        often = self._crash_at is None and self.draw.random() < 0.01
        if often or self.report.appends == self._crash_at:
            self._crash(power_cut=self._power_cut if self._crash_at else self.draw.random() < 0.5)

    def _crash(self, *, power_cut: bool) -> None:
        self.report.power_cuts += power_cut
        self.report.crashes += not power_cut
        self.node.crash(power_cut=power_cut)
        self.events.after(self.draw.choice((0, 100, 2_000)), self._restart)

    def _restart(self) -> None:
        if not self.node.is_up:
            self.node.start()

    # -- in the end

    def _heal(self) -> None:
        """Nothing goes wrong any more. One instance of each id lives on; the others may have left anything open."""
        self.network.is_faulty = False
        self._restart()
        for producer in self.producers:
            producer.asleep_until_ms = 0
            producer.die()
        self.events.run_until(FAULTS_MS + SETTLE_MS)
        for problem in self.node.unfinished():
            self.judge.report(f"liveness: with nobody there any more {problem}")
        last = [self._add_producer(transactional_id) for transactional_id in self.ids]
        for producer in last:
            producer.start()
        self.events.run_until(FAULTS_MS + SETTLE_MS + WORK_MS)
        for producer in last:
            producer.is_idle = True
            if producer.commits < 3:
                self.judge.report(f"liveness: {producer.name} committed {producer.commits} transactions")
        self.events.run_until(FAULTS_MS + SETTLE_MS + WORK_MS + max(TIMEOUTS_MS) + 2_000)
        for problem in self.node.unfinished():
            self.judge.report(f"liveness: when all is done {problem}")

    def _judge_end(self) -> None:
        self.node.read_all()
        visible = self.node.visible()
        self.judge.judge_logs(self.node.batches())
        offsets = {f"group-of-{one}": self.node.committed_offset(one) for one in self.ids}
        self.judge.judge_stories(visible, offsets)
        report = self.report
        report.answered = self.judge.answered
        report.transactions = len(self.library.stories)
        report.committed = sum(story.is_committed for story in self.library.stories)
        report.read = sum(len(found) for found in visible.values())
        report.fenced = self.judge.refused[ErrorCode.PRODUCER_FENCED]
        report.problems = self.judge.problems
