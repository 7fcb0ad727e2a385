"""A producer without its face: takes rows as they come, finds their partitions, and hands them to the sender."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from lowwater.client.cluster import Cluster
from lowwater.client.coordinator import Identity as MemberIdentity
from lowwater.client.errors import ClientError, ClosedError, TransactionError, UnknownTopicError
from lowwater.client.flow import Flow, surface
from lowwater.client.loading import WRITING, load
from lowwater.client.producing.calls import Batch, Call
from lowwater.client.producing.ending import Prepared
from lowwater.client.producing.piles import Pile
from lowwater.client.producing.reports import FAILURES_KEPT, Failure, Report, Summary
from lowwater.client.producing.rules import Rules
from lowwater.client.producing.sender import Sender, Standing, overdue
from lowwater.client.producing.standing import Anonymous, Idempotent
from lowwater.client.producing.transaction_requests import Offset
from lowwater.client.producing.transactions import State, Transactions
from lowwater.errors import ErrorCode
from lowwater.pending import Pending
from lowwater.ports import Timer
from lowwater.types import TopicPartition


class Producing:
    """Everything happens in the driver's thread. `used_bytes` is what was taken and is not settled."""

    def __init__(self, cluster: Cluster, rules: Rules) -> None:
        self.cluster = cluster
        self.rules = rules
        self.used_bytes = 0
        self._driver = cluster.network.driver
        self._loading: Pending[ModuleType] | None = None
        self._partitioner: Any = None
        self._slabs: Any = None
        self.transactions = Transactions(cluster, rules, self._changed) if rules.transactional_id else None
        self.sender = Sender(cluster, rules, self.transactions or self._standing())
        self._numbers = itertools.count()
        self._arriving: dict[str, deque[tuple[Call, Any]]] = {}  # by topic, in order; while its partitions are asked
        self._placing: set[str] = set()
        self._calls: dict[Call, None] = {}  # in the order of their deadlines
        self._room: deque[Pending[None]] = deque()
        self._reports: dict[Report, None] = {}
        self._summary = Summary()
        self._failures: list[Report] = []  # those with rows that failed, since the last flush
        self._expiry: Timer | None = None
        self._is_closed = False

    def _standing(self) -> Standing:
        return Idempotent(self.cluster, self.rules, self._identified) if self.rules.is_idempotent else Anonymous()

    # ---- taking rows

    def require_open(self) -> None:
        """ClosedError or TransactionError when rows cannot be taken now."""
        if self._is_closed:
            raise ClosedError("the producer was closed")
        if self.transactions is not None:
            self.transactions.require("send")

    async def accept(self, topic: str | None, batch: Any, report: Report) -> None:
        """Take these rows, as soon as there is room for them. BadRowsError when they cannot be records."""
        tables = await self._tables()
        tables.require_columns(batch)
        known = None if topic is None else self.cluster.known(topic)
        for piece in tables.pieces(batch, 1 if known is None else len(known.partitions)):
            while self.used_bytes >= self.rules.buffer_bytes and not self._is_closed:
                await self.room()
            self.require_open()
            self._take_piece(tables, topic, piece, report)

    def _take_piece(self, tables: ModuleType, topic: str | None, piece: Any, report: Report) -> None:
        first, now_ms = report.rows, self._driver.now_ms()
        parts = [
            (name, part, tables.outgoing(part, now_ms, self._slabs), tables.named_partitions(part), numbers)
            for name, part, numbers in tables.by_topic(topic, piece)
        ]
        for name, part, rows, named, numbers in parts:
            self._take(Call(name, part, rows, numbers + first, part.nbytes, report, self._deadline_ms()), named)

    def take_pile(self, pile: Pile) -> None:
        """Plain records are taken at once: there was room for them when they came."""
        self.expect(pile.report)
        Flow(self._accept_pile(pile)).on_done(lambda done: self._pile_taken(pile, done))

    async def _accept_pile(self, pile: Pile) -> None:
        tables = await self._tables()
        self.require_open()
        batch = pile.record_batch(tables)
        rows, named = tables.outgoing(batch, 0), tables.named_partitions(batch)
        call = Call(pile.topic, batch, rows, tables.numbers(rows.count), pile.size, pile.report, self._deadline_ms())
        self._take(call, named)

    def _pile_taken(self, pile: Pile, done: Pending[None]) -> None:
        try:
            done.result()
        except ClientError as error:
            self._failed(error)
            pile.report.expect(len(pile))
            pile.report.refused(Failure(pile.topic, None, range(len(pile)), error))
        pile.report.complete()

    def expect(self, report: Report) -> None:
        """A flush waits for it, and tells what became of it."""
        self._reports[report] = None
        report.settled.on_done(lambda _: self._reported(report))

    def _reported(self, report: Report) -> None:
        del self._reports[report]
        self._summary.add(report)
        if report.failed and len(self._failures) < FAILURES_KEPT:
            self._failures.append(report)

    async def _tables(self) -> ModuleType:
        """One for all who wait: they go on in the order they came."""
        if self._loading is None:
            self._loading = self._driver.elsewhere(lambda: load(WRITING))
        try:
            tables = await self._loading
        except ClientError:
            self._loading = None
            raise
        if self._partitioner is None:
            ids, rules = self._driver.ids, self.rules
            self._partitioner = tables.Partitioner(rules.partitioner, rules.batch_bytes, ids)
            self._slabs = tables.Slabs()
        return tables

    def _deadline_ms(self) -> float:
        return self._driver.monotonic_ms() + self.rules.delivery_ms

    def _take(self, call: Call, named: Any) -> None:
        call.number = next(self._numbers)
        call.on_end, call.on_failure = self._ended, self._failed
        call.report.expect(call.left)
        self._calls[call] = None
        self.used_bytes += call.size
        self._watch_deadlines()
        self._arriving.setdefault(call.topic, deque()).append((call, named))
        if call.topic not in self._placing:
            self._placing.add(call.topic)
            Flow(self._place(call.topic)).on_done(surface)

    def _failed(self, error: ClientError) -> None:
        if self.transactions is not None:
            self.transactions.failed(error)

    def _ended(self, call: Call) -> None:
        """All its rows are settled."""
        del self._calls[call]
        self.used_bytes -= call.size
        if self.used_bytes < self.rules.buffer_bytes:
            waiting, self._room = self._room, deque()
            for room in waiting:
                room.resolve(None)

    def room(self) -> Pending[None]:
        """Settled when some of what waits has left."""
        room: Pending[None] = Pending()
        if self.used_bytes < self.rules.buffer_bytes or self._is_closed:
            room.resolve(None)
        else:
            self._room.append(room)
        return room

    # ---- finding partitions

    async def _place(self, topic: str) -> None:
        """Calls for one topic, one after the other: their rows must not overtake each other."""
        arriving = self._arriving[topic]
        while arriving:
            call, named = arriving[0]
            left_ms = max(1.0, call.deadline_ms - self._driver.monotonic_ms())
            try:
                partitions = len((await self.cluster.topics([topic], left_ms))[topic].partitions)
            except ClientError as error:
                if arriving:
                    arriving.popleft()
                    call.failed(None, call.everything, overdue(self.rules, error) if error.retriable else error)
            else:
                if arriving:
                    arriving.popleft()
                    self._spread(call, named, partitions)
        self._placing.discard(topic)

    def _spread(self, call: Call, named: Any, partitions: int) -> None:
        spread, wrong = self._partitioner.spread(call.rows, named, partitions)
        for partition, chosen, data, base_timestamp, newest in spread:
            self.sender.put(TopicPartition(call.topic, partition), Batch(call, chosen, data, base_timestamp, newest))
        if len(wrong):
            error = UnknownTopicError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                topic=call.topic,
                partition=int(named[wrong[0]]),
                advice=f"the topic has {partitions} partitions",
            )
            error.retriable = False
            call.failed(None, wrong, error)

    def _identified(self, error: ClientError | None) -> None:
        """There is a producer id, or why there is none: then nothing that waits can be written."""
        if error is not None:
            self.sender.drop(error)
        self.sender.look()

    def _changed(self, error: ClientError | None) -> None:
        """More of the transaction may be sent, or nothing of it any more."""
        if error is not None:
            self.sender.give_up(error)
        self.sender.look()

    # ---- transactions

    async def init_transactions(self, timeout_ms: float | None = None) -> None:
        await self._transactional().init(timeout_ms)

    async def send_offsets(
        self,
        offsets: Mapping[TopicPartition, Offset],
        group: str,
        by: MemberIdentity,
        timeout_ms: float | None = None,
    ) -> None:
        await self._transactional().send_offsets(offsets, group, by, timeout_ms)

    async def begin_transaction(self, timeout_ms: float | None = None) -> None:
        transactions = self._transactional()
        if transactions.state is State.UNREADY:
            await transactions.init(timeout_ms)
        transactions.begin()
        self.sender.resume()

    async def commit_transaction(self, timeout_ms: float | None = None) -> None:
        """AbortableError, and nothing is committed, when a row of it was not written."""
        await self._settled_in_transaction()
        await self._transactional().commit(timeout_ms)

    async def abort_transaction(self, timeout_ms: float | None = None) -> None:
        transactions = self._transactional()
        transactions.require("abort_transaction")
        if self._reports:
            transactions.leave_gaps()
        self.sender.give_up(TransactionError("the transaction was aborted before this was written"))
        await self._settled_in_transaction()
        await transactions.abort(timeout_ms)

    async def prepare_transaction(self) -> Prepared:
        await self._settled_in_transaction()
        return self._transactional().prepare()

    async def _settled_in_transaction(self) -> None:
        """What failed is told by the end of the transaction, not by the next flush."""
        await self._settled()
        self._failures.clear()

    def _transactional(self) -> Transactions:
        if self.transactions is None:
            raise TransactionError("this producer has no transactional.id")
        return self.transactions

    # ---- deadlines

    def _watch_deadlines(self) -> None:
        now_ms = self._driver.monotonic_ms()
        if self._expiry is None:
            due_ms = next((call.deadline_ms for call in self._calls if call.deadline_ms > now_ms), None)
            if due_ms is not None:
                self._expiry = self._driver.call_later(due_ms - now_ms, self._expire)

    def _expire(self) -> None:
        self._expiry = None
        now_ms = self._driver.monotonic_ms()
        for call in [call for call in self._calls if call.deadline_ms <= now_ms]:
            self.sender.expire(call)
        self._watch_deadlines()

    # ---- the end

    async def flush(self, *, raise_failures: bool = False) -> Summary:
        """Wait for all that was taken until now; what became of everything since the last flush."""
        await self._settled()
        summary, self._summary = self._summary, Summary()
        failed, self._failures = self._failures, []
        if raise_failures and not all(report.is_asked for report in failed):
            summary.raise_failures()
        return summary

    @property
    def is_done(self) -> bool:
        """Whether everything that was taken is settled, and somebody knows of what failed."""
        return not self._reports and all(report.is_asked for report in self._failures)

    async def _settled(self) -> None:
        for report in list(self._reports):
            # Not itself: one who gives up waiting must not take it from the others.
            await report.settled.then(lambda _: None)

    def close(self) -> None:
        """What waits fails; what is in flight does when its network is closed, which is its owner's."""
        self._is_closed = True
        if self._expiry is not None:
            self._expiry.cancel()
        error = ClosedError("the producer was closed before this was written")
        for arriving in self._arriving.values():
            while arriving:
                call, _ = arriving.popleft()
                call.failed(None, call.everything, error)
        self.sender.close(error)
        waiting, self._room = self._room, deque()
        for room in waiting:
            room.resolve(None)
