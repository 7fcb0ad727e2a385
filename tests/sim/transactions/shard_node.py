"""A coordinator of one shard with partitions in memory, and the crashes of both."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.sim import batches
from tests.sim.groups.events import Events
from tests.sim.groups.network import Exchange, Network
from tests.sim.transactions.judge import Judge
from tests.sim.transactions.partition import DATA, SimPartition
from tests.sim.transactions.requests import NEW, NOBODY, TOPIC, Identity, answer, group_of

from lowwater.errors import ApiError, ErrorCode
from lowwater.outcome import Now, Outcome, StateRecord
from lowwater.testing.simdisk import SimClock
from lowwater.transactions.commands import AddPartitions, EndTransaction, InitProducer, MarkersWritten
from lowwater.transactions.config import TransactionConfig
from lowwater.transactions.markers import Markers
from lowwater.transactions.shard import TransactionShard
from lowwater.transactions.state import State, Transaction
from lowwater.transactions.stored import to_record
from lowwater.types import TopicPartition
from lowwater.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from lowwater.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from lowwater.wire.messages.end_txn import EndTxnRequest
from lowwater.wire.messages.init_producer_id import InitProducerIdRequest
from lowwater.wire.messages.produce import ProduceRequest
from lowwater.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

SYNC_MS = 15
SLOW_SYNC = 0.05
SLOW_SYNC_MS = 1_500
MARKER_MS = 30
OFFSETS_TOPIC = "__consumer_offsets"
OFFSETS = -1
"""Where the offsets of groups are, beside the partitions by number."""


class ShardNode:
    """Does what the broker does: append, replay, sync, answer, tick, write markers, load."""

    def __init__(
        self, config: TransactionConfig, clock: SimClock, judge: Judge, draw: random.Random, partitions: int
    ) -> None:
        self.config = config
        self.clock = clock
        self.events: Events
        self.network: Network
        self._judge = judge
        self._draw = draw
        self.log: list[StateRecord] = []
        self.synced = 0
        self.partitions = {index: SimPartition() for index in (*range(partitions), OFFSETS)}
        self.life = 0
        self.is_up = False
        self.coordinator_epoch = 0
        self._next_producer_id = 1000
        self._batch_ends: list[int] = []
        # Until the log is synced up to there.
        self._waiting: list[tuple[int, Callable[[], None]]] = []
        self._open: dict[Exchange, None] = {}
        # Called after every append, before anybody is answered. It may crash this node.
        self.on_append: Callable[[], None] = lambda: None
        self._serve: dict[type, Callable[[Exchange], None]] = {
            AddOffsetsToTxnRequest: self._add_offsets,
            AddPartitionsToTxnRequest: self._add_partitions,
            EndTxnRequest: self._end,
            InitProducerIdRequest: self._init,
            ProduceRequest: self._produce,
            TxnOffsetCommitRequest: self._commit_offsets,
        }

    @property
    def now(self) -> Now:
        return Now(self.clock.now_ms(), self.clock.monotonic_ms())

    @property
    def elapsed_ms(self) -> float:
        return self.clock.elapsed_ms

    @property
    def ends(self) -> dict[int, int]:
        return {index: partition.end for index, partition in self.partitions.items()}

    # -- requests

    def deliver(self, exchange: Exchange) -> None:
        if not self.is_up:
            self.network.lose(exchange)
            return
        self._open[exchange] = None
        self._serve[type(exchange.request)](exchange)

    def _issue(self, exchange: Exchange, code: ErrorCode, identity: Identity = NOBODY, base_offset: int = -1) -> None:
        del self._open[exchange]
        exchange.response = answer(exchange.request, code, identity, base_offset)
        self._judge.issued(exchange, self.ends)
        self.network.answer(exchange)

    def _init(self, exchange: Exchange) -> None:
        request = exchange.request
        command = InitProducer(
            request.transactional_id, request.transaction_timeout_ms, request.producer_id, request.producer_epoch
        )
        self._ask_for_identity(exchange, command)

    def _end(self, exchange: Exchange) -> None:
        request = exchange.request
        who = request.transactional_id, request.producer_id, request.producer_epoch
        self._ask_for_identity(
            exchange, EndTransaction(*who, request.committed, 2 if exchange.version >= NEW.end else 0)
        )

    def _ask_for_identity(self, exchange: Exchange, command: InitProducer | EndTransaction) -> None:
        if self.shard.needs_producer_id(command.transactional_id):
            command = command._replace(spare_producer_id=self.new_producer_id())
        self._ask(command, lambda reply: self._issue(exchange, *_code_and_identity(reply)))

    def new_producer_id(self) -> int:
        """Never the same twice, whatever crashes."""
        self._next_producer_id += 1
        return self._next_producer_id

    def _add_partitions(self, exchange: Exchange) -> None:
        request = exchange.request
        indexes = request.v3_and_below_topics[0].partitions
        who = (
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
        )
        self._add(exchange, who, indexes, 0, lambda: self._issue(exchange, ErrorCode.NONE))

    def _add_offsets(self, exchange: Exchange) -> None:
        self._add(exchange, _who(exchange.request), [OFFSETS], 0, lambda: self._issue(exchange, ErrorCode.NONE))

    def _add(
        self,
        exchange: Exchange,
        who: tuple[str, int, int],
        indexes: list[int],
        version: int,
        then: Callable[[], None],
    ) -> None:
        def added(reply: Any) -> None:
            if isinstance(reply, ApiError):
                self._issue(exchange, reply.code)
            else:
                then()

        self._ask(AddPartitions(*who, frozenset(map(_place, indexes)), version), added)

    # -- writing to partitions

    def _produce(self, exchange: Exchange) -> None:
        data = exchange.request.topic_data[0].partition_data[0]
        [batch] = batches.decode_all(data.records)
        who = exchange.request.transactional_id, batch.producer_id, batch.producer_epoch
        values = tuple(str(record.value, "ascii") for record in batch.records if record.value is not None)
        self._write(exchange, who, data.index, batch.sequence, values, exchange.version >= NEW.produce)

    def _commit_offsets(self, exchange: Exchange) -> None:
        request = exchange.request
        offset = request.topics[0].partitions[0].committed_offset
        values = (f"{request.group_id}={offset}",)
        self._write(exchange, _who(request), OFFSETS, -1, values, exchange.version >= NEW.commit_offsets)

    def _write(
        self,
        exchange: Exchange,
        who: tuple[str, int, int],
        index: int,
        sequence: int,
        values: tuple[str, ...],
        adds: bool,
    ) -> None:
        """Whoever adds the partition by writing to it writes only when that is durable."""

        def append() -> None:
            self._append(exchange, who, index, sequence, values)

        if adds:
            self._add(exchange, who, [index], 2, append)
        else:
            append()

    def _append(
        self, exchange: Exchange, who: tuple[str, int, int], index: int, sequence: int, values: tuple[str, ...]
    ) -> None:
        partition = self.partitions[index]
        refusal = self.shard.holds(*who, *_place(index))
        if refusal is not None and (index == OFFSETS or not partition.has_transaction(*who[1:])):
            self._issue(exchange, refusal)
            return
        code, base = partition.append(*who[1:], sequence, values, in_transaction=refusal is None)
        if code is not ErrorCode.NONE:
            self._issue(exchange, code)
            return
        self._when_partition_synced(partition, lambda: self._issue(exchange, ErrorCode.NONE, base_offset=base))
        self.on_append()

    def _when_partition_synced(self, partition: SimPartition, then: Callable[[], None]) -> None:
        life, end = self.life, len(partition.entries)

        def synced() -> None:
            if life == self.life:
                partition.synced = max(partition.synced, end)
                then()

        self.events.after(self._sync_ms(), synced)

    # -- decisions

    def _ask(self, command: Any, answered: Callable[[Any], None]) -> None:
        self._carry_out(self.shard.decide(command, answered, self.now))

    def _carry_out(self, out: Outcome) -> None:
        """Write and replay; replies and markers wait until that is durable."""
        life = self.life
        if out.records:
            self._append_state(out.records)
        for answered, reply in out.replies:
            self._when_durable(lambda answered=answered, reply=reply: answered(reply))
        for markers in out.effects:
            self._when_durable(lambda markers=markers: self._write_markers(markers))
        if out.records:
            self.on_append()
        if life == self.life:
            self._release()

    def _append_state(self, records: list[StateRecord]) -> None:
        self.log += records
        self._batch_ends.append(len(self.log))
        for record in records:
            self.shard.replay(record)
        life, end = self.life, len(self.log)
        self.events.after(self._sync_ms(), lambda: self._synced(life, end))

    def _sync_ms(self) -> float:
        slow = self.network.is_faulty and self._draw.random() < SLOW_SYNC
        return self._draw.random() * (SLOW_SYNC_MS if slow else SYNC_MS)

    def _synced(self, life: int, end: int) -> None:
        if life == self.life:
            self.synced = max(self.synced, end)
            self._release()

    def _when_durable(self, call: Callable[[], None]) -> None:
        self._waiting.append((len(self.log), call))

    def _release(self) -> None:
        life = self.life
        while life == self.life and self._waiting and self._waiting[0][0] <= self.synced:
            self._waiting.pop(0)[1]()

    # -- markers

    def _write_markers(self, markers: Markers) -> None:
        """Into each partition at its own time; the last one to be durable completes the transaction."""
        left = set(markers.partitions)
        for place in markers.partitions:
            life = self.life

            def write(place: TopicPartition = place, life: int = life) -> None:
                if life == self.life:
                    self._write_marker(markers, place, left)

            self.events.after(self._draw.random() * MARKER_MS, write)

    def _write_marker(self, markers: Markers, place: TopicPartition, left: set[TopicPartition]) -> None:
        partition = self.partitions[OFFSETS if place.topic == OFFSETS_TOPIC else place.partition]
        partition.append_marker(markers.producer_id, markers.producer_epoch, markers.commit)

        def synced() -> None:
            left.discard(place)
            if not left:
                self._carry_out(self.shard.decide(MarkersWritten(*markers[:3]), None, self.now))

        self._when_partition_synced(partition, synced)
        self.on_append()

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

    # -- the process

    def start(self) -> None:
        self.is_up = True
        self.coordinator_epoch += 1
        for partition in self.partitions.values():
            partition.reopen()
        readable = {index: one.last_stable if one.is_cut else one.end for index, one in self.partitions.items()}
        self._judge.restarted(self.ends, readable)
        for partition in self.partitions.values():
            partition.is_cut = False
        self._load()

    def _load(self) -> None:
        self.life += 1
        self.shard = TransactionShard(self.config, self.coordinator_epoch)
        for record in self.surviving():
            self.shard.replay(record)
        self._carry_out(self.shard.loaded(self.now))

    def surviving(self) -> list[StateRecord]:
        """The log as a start finds it: whole, or with what was overwritten cleaned away."""
        return compacted(self.log) if self._draw.random() < 0.5 else self.log

    def crash(self, *, power_cut: bool) -> None:
        """Nobody is answered. A power cut takes from the end of each log some of what was not synced."""
        self.is_up = False
        self.life += 1
        if power_cut:
            ends = [end for end in self._batch_ends if end >= self.synced]
            kept = self._draw.choice([self.synced, *ends])
            del self.log[kept:]
            self._batch_ends = [end for end in self._batch_ends if end <= kept]
            for partition in self.partitions.values():
                partition.lose_power(self._draw)
        self.synced = len(self.log)
        self._waiting.clear()
        for exchange in self._open:
            self.network.lose(exchange)
        self._open.clear()

    def fail_append(self) -> None:
        """The coordinator's log refuses a write: everyone who waits is told so, and the shard starts again."""
        self._waiting.clear()
        for exchange in list(self._open):
            self._issue(exchange, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self.synced = len(self.log)
        for partition in self.partitions.values():
            partition.synced = len(partition.entries)
        self._load()

    # -- looking

    def put_near_the_end(self, transactional_id: str, epoch: int) -> None:
        """An id whose producer has few epochs left, as if many transactions had been."""
        producer_id = self.new_producer_id()
        known = Transaction(
            transactional_id, producer_id, epoch, 60_000, State.EMPTY, frozenset(), -1, self.clock.now_ms(), producer_id
        )
        self.log.append(to_record(known, self.config.transaction_version))
        self._batch_ends.append(len(self.log))
        self.synced = len(self.log)

    def read_all(self) -> None:
        """A reader of every partition goes on as far as it may."""
        for index, partition in self.partitions.items():
            if index != OFFSETS:
                self._judge.read(index, partition.committed(self._judge.position(index)), partition.last_stable)

    def visible(self) -> dict[int, list[tuple[int, str]]]:
        return {index: one.committed() for index, one in self.partitions.items() if index != OFFSETS}

    def committed_offset(self, transactional_id: str) -> int | None:
        found = [value.split("=") for _, value in self.partitions[OFFSETS].committed()]
        mine = [int(offset) for group, offset in found if group == group_of(transactional_id)]
        return mine[-1] if mine else None

    def batches(self) -> list[tuple[int, int, Identity]]:
        return [
            (index, entry.offset, Identity(entry.producer_id, entry.producer_epoch))
            for index, partition in self.partitions.items()
            for entry in partition.entries
            if entry.kind == DATA
        ]

    def unfinished(self) -> list[str]:
        """What still waits for an end: ids in a transaction, partitions whose readers are held up."""
        busy = (State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT)
        ids = [f"{name} is {one.state.label}" for name, one in self.shard.transactions.items() if one.state in busy]
        logs = [
            f"readers of {index} are held up at {one.last_stable} of {one.end}"
            for index, one in self.partitions.items()
            if one.last_stable != one.end
        ]
        return ids + logs


def _who(request: Any) -> tuple[str, int, int]:
    return request.transactional_id, request.producer_id, request.producer_epoch


def _place(index: int) -> TopicPartition:
    return TopicPartition(OFFSETS_TOPIC, 0) if index == OFFSETS else TopicPartition(TOPIC, index)


def _code_and_identity(reply: Any) -> tuple[ErrorCode, Identity]:
    if isinstance(reply, ApiError):
        return reply.code, NOBODY
    return ErrorCode.NONE, Identity(*reply)


def compacted(log: list[StateRecord]) -> list[StateRecord]:
    """The last record of each key; tombstones stay."""
    last = {record.key: place for place, record in enumerate(log)}
    return [record for place, record in enumerate(log) if last[record.key] == place]
