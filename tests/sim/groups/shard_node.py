"""A coordinator of one shard over a log in memory: what is synced survives a power cut, what is written a kill."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.sim.groups.commands_of import commands_of, refusal, response_of
from tests.sim.groups.events import Events
from tests.sim.groups.judge import MIXED, Judge, kind_of
from tests.sim.groups.network import Exchange, Network
from tests.sim.groups.topics import SimTopics
from tests.sim.groups.txn_coordinator import Producer, SimTransactions
from tests.unit.groups.shard_log import Ended, Logged, compacted, logged, replay

from lowwater.errors import ErrorCode
from lowwater.groups.classic import PREPARING
from lowwater.groups.config import GroupConfig
from lowwater.groups.record_schemas import ConsumerGroupMetadataKey, GroupMetadataKey
from lowwater.groups.records import decode
from lowwater.groups.shard import GroupShard
from lowwater.outcome import Computation, Now, Outcome, StateRecord
from lowwater.testing.simdisk import SimClock
from lowwater.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from lowwater.wire.messages.end_txn import EndTxnRequest
from lowwater.wire.messages.init_producer_id import InitProducerIdRequest
from lowwater.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

SYNC_MS = 15
SLOW_SYNC = 0.05
SLOW_SYNC_MS = 2_000
COMPUTATION_MS = 40
EXPIRY_MS = 10_000
MARKER_MS = 50
SLOW_MARKER = 0.2
SLOW_MARKER_MS = 5_000


@dataclass(slots=True, eq=False)
class Ticket:
    """A request at the broker; it is answered when each of its commands is."""

    exchange: Exchange
    life: int
    replies: list[Any] = field(default_factory=list)
    missing: int = 0


Token = tuple[Ticket, int]


class SeededIds:
    def __init__(self, draw: random.Random) -> None:
        self._draw = draw

    def uuid(self) -> bytes:
        return self._draw.randbytes(15) + b"\x01"

    def boot_id(self) -> str:
        return "simulated"


class ShardNode:
    """Does for one shard what the broker does: append, replay, sync, answer, tick, load."""

    def __init__(
        self, config: GroupConfig, clock: SimClock, topics: SimTopics, judge: Judge, draw: random.Random
    ) -> None:
        self.config = config
        self.clock = clock
        self.topics = topics
        self.events: Events
        self.network: Network
        self._judge = judge
        self._draw = draw
        self.ids = SeededIds(random.Random(draw.getrandbits(32)))
        self.transactions = SimTransactions(self._write_marker_soon)
        self.log: list[Logged] = []
        self.batch_ends: list[int] = []
        self.synced = 0
        self.life = 0
        self.is_up = False
        self._waiting: list[tuple[int, Token, Any]] = []
        self._groups_before: dict[str, Any] = {}  # as the decision before left them
        self._durable: list[tuple[int, Callable[[], None]]] = []
        self._tickets: dict[Ticket, None] = {}
        # Called after every append, before anybody is answered. It may crash this node.
        self.on_append: Callable[[], None] = lambda: None

    def connect(self, events: Events, network: Network) -> None:
        self.events = self.transactions.events = events
        self.network = network

    @property
    def now(self) -> Now:
        return Now(self.clock.now_ms(), self.clock.monotonic_ms())

    @property
    def elapsed_ms(self) -> float:
        return self.clock.elapsed_ms

    # -- requests

    def deliver(self, exchange: Exchange) -> None:
        if not self.is_up:
            self.network.lose(exchange)
            return
        self._judge.delivered(exchange, self.elapsed_ms, self.clock.now_ms())
        if (response := self._of_transactions(exchange.request)) is not None:
            self._answer(exchange, response)
            return
        commands = list(commands_of(exchange.request, exchange.version, exchange.name))
        ticket = Ticket(exchange, self.life, [None] * len(commands), len(commands))
        self._tickets[ticket] = None
        for place, command in enumerate(commands):
            if ticket.life != self.life:
                return  # the command before was the last one
            self._carry_out(self.shard.decide(command, (ticket, place), self.now))

    def _of_transactions(self, request: Any) -> Any:
        """What their coordinator answers; None when the request is for the shard."""
        match request:
            case InitProducerIdRequest():
                return self.transactions.init(request)
            case EndTxnRequest():
                return self.transactions.end(request)
            case AddOffsetsToTxnRequest():
                return AddOffsetsToTxnResponse(error_code=self.transactions.admit(request))
            case TxnOffsetCommitRequest():
                code = self.transactions.admit(request)
                return refusal(request, code) if code else None
        return None

    def _carry_out(self, out: Outcome) -> None:
        """Write, replay, then answer when it is durable."""
        life = self.life
        if out.records:
            self._append(logged(out))
        for token, reply in out.replies:
            token[0].exchange.decided_ms = self.elapsed_ms
            self._waiting.append((len(self.log), token, reply))
        for computation in out.computations:
            self._compute(computation, self.life)
        if out.records:
            self.on_append()
        if life == self.life:
            self._groups_before = dict(self.shard.groups)
            self._release()

    def _append(self, entries: list[Logged], durable: Callable[[], None] = lambda: None) -> None:
        self.log += entries
        self.batch_ends.append(len(self.log))
        for entry in entries:
            replay(self.shard, [entry])
            self._note_end_of_group(entry)
        life, end = self.life, len(self.log)
        self.events.after(self._sync_ms(), lambda: self._synced(life, end))
        self._durable.append((end, durable))

    def _note_end_of_group(self, entry: Logged) -> None:
        record = entry if isinstance(entry, StateRecord) else None
        if record is not None and record.value is None and (decoded := decode(record)) is not None:
            key = decoded[0]
            if isinstance(key, GroupMetadataKey):
                self._may_be_gone(key.group)
            elif isinstance(key, ConsumerGroupMetadataKey):
                self._may_be_gone(key.group_id)

    def _may_be_gone(self, name: str) -> None:
        """A group with members that changes its protocol lives on; one without is replaced, as in Kafka."""
        group, before = self.shard.groups.get(name), self._groups_before.get(name)
        if group is None or group.is_empty or before is None or before.is_empty or kind_of(name) != MIXED:
            self._judge.group_gone(name)

    def _sync_ms(self) -> float:
        slow = self.network.is_faulty and self._draw.random() < SLOW_SYNC
        return self._draw.random() * (SLOW_SYNC_MS if slow else SYNC_MS)

    def _synced(self, life: int, end: int) -> None:
        if life == self.life:
            self.synced = max(self.synced, end)
            self._release()

    def _release(self) -> None:
        ready = list(itertools.takewhile(lambda one: one[0] <= self.synced, self._waiting))
        del self._waiting[: len(ready)]
        for _, (ticket, place), reply in ready:
            self._reply(ticket, place, reply)
        while self._durable and self._durable[0][0] <= self.synced:
            self._durable.pop(0)[1]()

    def _reply(self, ticket: Ticket, place: int, reply: Any) -> None:
        if ticket.replies[place] is not None:
            self._judge.report(f"{ticket.exchange} was answered twice")
            return
        ticket.replies[place] = reply
        ticket.missing -= 1
        if not ticket.missing:
            self._issue(ticket, response_of(ticket.exchange.request, ticket.replies))

    def _issue(self, ticket: Ticket, response: Any) -> None:
        del self._tickets[ticket]
        self._answer(ticket.exchange, response)

    def _answer(self, exchange: Exchange, response: Any) -> None:
        exchange.response = response
        self._judge.issued(exchange, self.elapsed_ms, self.topics.facts)
        self.network.answer(exchange)

    # -- transactions that end

    def _write_marker_soon(self, producer: Producer) -> None:
        life = self.life
        slow = self.network.is_faulty and self._draw.random() < SLOW_MARKER
        delay_ms = self._draw.random() * (SLOW_MARKER_MS if slow else MARKER_MS)
        self.events.after(delay_ms, lambda: self._write_marker(producer, life))

    def _write_marker(self, producer: Producer, life: int) -> None:
        """Behind all that was written before. A marker that is not durable is written once more after a start."""
        if life != self.life or not self.is_up:
            return
        transaction = producer.producer_id, producer.epoch
        self._append([Ended(producer.producer_id, producer.commit)], lambda: self._ended(producer, transaction))
        self.on_append()

    def _ended(self, producer: Producer, transaction: tuple[int, int]) -> None:
        self._judge.commits.transaction_ended(transaction, producer.commit)
        self.transactions.complete(producer)

    def _compute(self, computation: Computation, life: int) -> None:
        def done() -> None:
            if life == self.life and self.is_up:
                result = computation.work(computation.argument)
                self._carry_out(self.shard.decide(computation.then(result), None, self.now))

        self.events.after(self._draw.random() * COMPUTATION_MS, done)

    # -- time

    def move_to(self, when_ms: float) -> None:
        while self.is_up and (due := self.shard.next_deadline_ms) is not None and due <= when_ms:
            self._pass(due)
            self._carry_out(self.shard.tick(self.now))
        self._pass(when_ms)

    def _pass(self, when_ms: float) -> None:
        by_ms = max(0.0, when_ms - self.clock.elapsed_ms)
        self.clock.elapsed_ms += by_ms
        self.clock.wall_ms += int(by_ms)

    def expire_regularly(self) -> None:
        self.events.after(EXPIRY_MS, self.expire_regularly)
        if self.is_up:
            self._judge.commits.may_expire(self.clock.now_ms(), self.config.offsets_retention_ms)
            self._carry_out(self.shard.expire_offsets(self.now, list(self.shard.groups)))

    # -- topics

    def topic_deleted(self, name: str) -> None:
        """A broker that is down learns of it when it starts."""
        if self.is_up:
            self._carry_out(self.shard.topic_deleted(name, self.shard.offsets.groups_of(name)))

    # -- the process

    def start(self) -> None:
        self.life += 1
        self.is_up = True
        self.shard = GroupShard(self.config, self.ids, self.topics)
        replay(self.shard, self.surviving())
        self._groups_before = dict(self.shard.groups)
        self._judge.reloaded(self.elapsed_ms)
        self._carry_out(self.shard.loaded(self.now))
        for name, group in self.shard.groups.items():
            if kind_of(name) == MIXED and group.state == PREPARING:
                self._judge.mixed.lost_assignments(name)
        for producer in self.transactions.decided:
            self._write_marker_soon(producer)

    def surviving(self) -> list[Logged]:
        """The log as a start finds it: whole, or with what was overwritten cleaned away."""
        return compacted(self.log) if self._draw.random() < 0.5 else self.log

    def crash(self, *, power_cut: bool) -> None:
        """Nobody is answered. A power cut takes batches from the end, as many as were not synced at most."""
        self.is_up = False
        self.life += 1
        if power_cut:
            ends = [end for end in self.batch_ends if end >= self.synced]
            kept = self._draw.choice([self.synced, *ends])
            del self.log[kept:]
            self.batch_ends = [end for end in self.batch_ends if end <= kept]
        self.synced = len(self.log)
        self._waiting.clear()
        self._durable.clear()
        self._judge.crashed(self.elapsed_ms)
        for ticket in self._tickets:
            self.network.lose(ticket.exchange)
        self._tickets.clear()

    def fail_append(self) -> None:
        """The log refuses a write: everyone who waits is told so, and the shard starts again."""
        tickets, self._tickets = list(self._tickets), {}
        self._waiting.clear()
        self._durable.clear()
        for ticket in tickets:
            request = ticket.exchange.request
            self._answer(ticket.exchange, refusal(request, ErrorCode.COORDINATOR_NOT_AVAILABLE))
        self._judge.crashed(self.elapsed_ms)
        self.synced = len(self.log)
        self.start()
