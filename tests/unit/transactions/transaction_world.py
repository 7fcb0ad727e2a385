"""A shard with its log, a clock that moves when told to, and markers that are written when told to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lowwater.errors import ApiError
from lowwater.outcome import Now, Outcome, StateRecord
from lowwater.transactions.commands import (
    AddPartitions,
    DescribeTransaction,
    EndTransaction,
    InitProducer,
    ListTransactions,
    MarkersWritten,
    ProducerIdentity,
    TransactionList,
    VerifyPartitions,
)
from lowwater.transactions.config import TransactionConfig
from lowwater.transactions.markers import Markers
from lowwater.transactions.shard import TransactionShard
from lowwater.transactions.state import PRODUCER_EPOCH_MAX, State, Transaction
from lowwater.transactions.stored import to_record
from lowwater.types import TopicPartition

WALL_MS = 1_700_000_000_000
TIMEOUT_MS = 60_000
SCAN_MS = 10_000
HOUR_MS = 3_600_000
WEEK_MS = 7 * 24 * HOUR_MS
COORDINATOR_EPOCH = 3
OLD, NEW = 0, 2
"""Clients whose transactions keep the producer's epoch, and those whose every end moves it on."""
LAST_EPOCH = PRODUCER_EPOCH_MAX - 1
"""The last one that a producer is given."""
FIRST_ID = 1000


def partitions(*names: str) -> frozenset[TopicPartition]:
    """`orders-0` …"""
    split = (name.rsplit("-", 1) for name in names)
    return frozenset(TopicPartition(topic, int(index)) for topic, index in split)


class World:
    """What is decided is logged and replayed at once; `restart` makes a new shard of the log."""

    def __init__(self, **config: int) -> None:
        self.config = TransactionConfig(**config)
        self.wall_ms = WALL_MS
        self.elapsed_ms = 5_000.0
        self.log: list[StateRecord] = []
        self.markers: list[Markers] = []
        self.ids_given = 0
        self.shard = TransactionShard(self.config, COORDINATOR_EPOCH)

    @property
    def now(self) -> Now:
        return Now(self.wall_ms, self.elapsed_ms)

    # -- driving

    def do(self, out: Outcome) -> Outcome:
        self.log += out.records
        for record in out.records:
            self.shard.replay(record)
        self.markers += out.effects
        return out

    def ask(self, command: Any) -> Any:
        """The reply, or the code of the refusal."""
        out = self.do(self.shard.decide(command, "token", self.now))
        assert [token for token, _ in out.replies] == ["token"]
        [(_, reply)] = out.replies
        return reply.code if isinstance(reply, ApiError) else reply

    def pass_time(self, by_ms: int) -> None:
        self.wall_ms += by_ms
        self.elapsed_ms += by_ms
        self.tick()

    def tick(self) -> None:
        while (due_ms := self.shard.next_deadline_ms) is not None and due_ms <= self.elapsed_ms:
            self.do(self.shard.tick(self.now))

    def restart(self, log: Iterable[StateRecord] | None = None) -> None:
        """The markers that were under way are forgotten; what the new life asks for is in `markers`."""
        self.shard = TransactionShard(self.config, COORDINATOR_EPOCH)
        self.markers.clear()
        for record in list(self.log) if log is None else log:
            self.shard.replay(record)
        self.do(self.shard.loaded(self.now))

    def finish(self) -> None:
        """All markers asked for are written."""
        while self.markers:
            done = self.markers.pop(0)
            self.do(self.shard.decide(MarkersWritten(*done[:3]), None, self.now))

    # -- asking

    def new_producer_id(self) -> int:
        self.ids_given += 1
        return FIRST_ID + self.ids_given - 1

    def init(self, name: str = "a", *, identity: tuple[int, int] = (-1, -1), timeout_ms: int = TIMEOUT_MS) -> Any:
        spare = self.new_producer_id() if self.shard.needs_producer_id(name) else None
        return self.ask(InitProducer(name, timeout_ms, *identity, spare_producer_id=spare))

    def add(self, identity: tuple[int, int], *names: str, name: str = "a", version: int = NEW) -> Any:
        return self.ask(AddPartitions(name, *identity, partitions(*(names or ("orders-0",))), version))

    def verify(self, identity: tuple[int, int], *names: str, name: str = "a") -> Any:
        return self.ask(VerifyPartitions(name, *identity, partitions(*names)))

    def commit(self, identity: tuple[int, int], *, name: str = "a", version: int = NEW) -> Any:
        return self._end(identity, True, name, version)

    def abort(self, identity: tuple[int, int], *, name: str = "a", version: int = NEW) -> Any:
        return self._end(identity, False, name, version)

    def _end(self, identity: tuple[int, int], commit: bool, name: str, version: int) -> Any:
        spare = self.new_producer_id() if self.shard.needs_producer_id(name) else None
        return self.ask(EndTransaction(name, *identity, commit, version, spare_producer_id=spare))

    def listed(self, **filters: Any) -> TransactionList:
        answer = self.ask(ListTransactions(**filters))
        assert isinstance(answer, TransactionList)
        return answer

    def describe(self, name: str = "a") -> Any:
        return self.ask(DescribeTransaction(name))

    # -- looking

    def state(self, name: str = "a") -> State:
        return self.shard.transactions[name].state

    def identity(self, name: str = "a") -> ProducerIdentity:
        known = self.shard.transactions[name]
        return ProducerIdentity(known.producer_id, known.producer_epoch)

    # -- a state to start from

    def begun(self, name: str = "a") -> ProducerIdentity:
        identity = self.init(name)
        assert isinstance(identity, ProducerIdentity)
        return identity

    def in_state(self, state: State, *, version: int = NEW, epoch: int = 0) -> ProducerIdentity:
        """The id `a` in this state; returns what its producer used for its last transaction."""
        self.at_epoch(epoch)
        identity = self.identity()
        if state is State.EMPTY:
            return identity
        self.add(identity, version=version)
        if state in (State.PREPARE_COMMIT, State.COMPLETE_COMMIT):
            self.commit(identity, version=version)
        elif state in (State.PREPARE_ABORT, State.COMPLETE_ABORT):
            self.abort(identity, version=version)
        if state in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT):
            self.finish()
        assert self.state() is state
        return identity

    def at_epoch(self, epoch: int) -> None:
        """The id `a` as after many transactions."""
        producer_id = self.new_producer_id()
        known = Transaction(
            "a", producer_id, epoch, TIMEOUT_MS, State.EMPTY, frozenset(), -1, self.wall_ms, producer_id
        )
        out = Outcome()
        out.records.append(to_record(known, NEW))
        self.do(out)
