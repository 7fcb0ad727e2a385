"""All transactional ids of one partition of `__transaction_state`.

`decide` reads what is durable and says what to write; `replay` alone writes it, in life as after a restart. What a
crash may take (deadlines, the epoch before the last) is the decisions' own. Between a decision and the replay of its
records nothing else is decided.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeAlias

from lowwater.errors import ApiError, ErrorCode
from lowwater.outcome import Now, Outcome, StateRecord, Token
from lowwater.transactions import transitions
from lowwater.transactions.beginning import check_producer, check_settled, next_identity, spare_producer_id
from lowwater.transactions.commands import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    AddPartitions,
    DescribeTransaction,
    EndTransaction,
    InitProducer,
    ListTransactions,
    MarkersWritten,
    ProducerIdentity,
    VerifyPartitions,
)
from lowwater.transactions.config import TransactionConfig
from lowwater.transactions.deadlines import FOREVER_MS, OpenTransactions, has_expired
from lowwater.transactions.ending import check_current, ends_now
from lowwater.transactions.listing import listed
from lowwater.transactions.markers import Markers
from lowwater.transactions.metrics import TransactionMetrics
from lowwater.transactions.state import PREPARED, State, Transaction
from lowwater.transactions.stored import TELLS_PRODUCER_IDS, forgetting, from_record, to_record
from lowwater.types import TopicPartition

logger = logging.getLogger(__name__)

Decide: TypeAlias = Callable[[Any, Token, Now, Outcome], None]

IDS_PER_TICK = 100
NOW_MS = 0.0


class TransactionShard:
    """A pure state machine; its driver is `broker.transactions`. A reply may be an ApiError: the request is refused."""

    def __init__(
        self, config: TransactionConfig, coordinator_epoch: int, metrics: TransactionMetrics | None = None
    ) -> None:
        self.config = config
        self.metrics = metrics or TransactionMetrics()
        self.transactions: dict[str, Transaction] = {}
        self._coordinator_epoch = coordinator_epoch
        # The epoch before the current one, when whoever had it may ask again for the answer that it did not get.
        self._last_epochs: dict[str, int] = {}
        self._open = OpenTransactions()
        # Records that are not replayed yet, and what they say: nobody has to read what was just written.
        self._just_written: dict[bytes, tuple[bytes | None, tuple[str, Transaction]]] = {}
        self._abort_scan_ms = self._expiry_scan_ms = NOW_MS
        # What the last scans found, as long as it was not dealt with.
        self._overdue: list[str] = []
        self._aging: list[str] = []
        self._decide: dict[type, Decide] = {
            AddPartitions: self._add,
            DescribeTransaction: self._describe,
            EndTransaction: self._end,
            InitProducer: self._init,
            ListTransactions: self._list,
            MarkersWritten: self._written,
            VerifyPartitions: self._verify,
        }

    # -- what the driver calls

    def decide(self, command: Any, token: Token, now: Now) -> Outcome:
        out = Outcome()
        try:
            self._decide[type(command)](command, token, now, out)
        except ApiError as refusal:
            assert not out.records, "who refuses has written nothing"
            out.reply(token, refusal)
        return out

    def holds(
        self, transactional_id: str, producer_id: int, producer_epoch: int, topic: str, partition: int
    ) -> ErrorCode | None:
        """None when this producer's transaction is open and writes to the partition, else why it may not."""
        known = self.transactions.get(transactional_id)
        if known is None or known.producer_id != producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if known.producer_epoch != producer_epoch:
            return ErrorCode.PRODUCER_FENCED
        if known.state in PREPARED:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if TopicPartition(topic, partition) not in known.partitions:
            return ErrorCode.TRANSACTION_ABORTABLE
        return None

    def needs_producer_id(self, transactional_id: str) -> bool:
        """Whether an InitProducer or an EndTransaction of this id may need a producer id that nobody has."""
        known = self.transactions.get(transactional_id)
        return known is None or known.is_exhausted

    def replay(self, record: StateRecord) -> None:
        """The only writer of what is durable. Keys of kinds that are not known here are skipped."""
        told = self._just_written.pop(record.key, None)
        read = told[1] if told is not None and told[0] == record.value else from_record(record)
        if read is None:
            return
        transactional_id, value = read
        known = self.transactions.pop(transactional_id, None)
        if value is not None and value.state is not State.DEAD:
            self.transactions[transactional_id] = value
        else:
            self._last_epochs.pop(transactional_id, None)
        if value is None or value.state is not State.ONGOING:
            self._open.ended(transactional_id)
        self._count(known, -1)
        self._count(self.transactions.get(transactional_id), +1)

    def _count(self, transaction: Transaction | None, change: int) -> None:
        if transaction is not None:
            self.metrics.active_ids += change
            if transaction.state is State.ONGOING:
                self.metrics.ongoing += change

    def loaded(self, now: Now) -> Outcome:
        """All records were replayed: decided ends are carried out, open transactions have the rest of their time."""
        out = Outcome()
        for transaction in self.transactions.values():
            if transaction.state in PREPARED:
                self._carry_out(transaction, "decided before a restart", now, out)
            elif transaction.state is State.ONGOING and transaction.timeout_ms < FOREVER_MS:
                self._open.found(transaction, now)
        self._abort_scan_ms = now.monotonic_ms + self.config.abort_scan_interval_ms
        self._expiry_scan_ms = now.monotonic_ms + self.config.expiry_scan_interval_ms
        return out

    # -- time

    @property
    def next_deadline_ms(self) -> float | None:
        """When to call `tick`, by the monotonic clock. Nothing is due where there is nothing to look at."""
        if self._overdue or self._aging:
            return NOW_MS
        if len(self._open):
            return min(self._abort_scan_ms, self._expiry_scan_ms)
        return self._expiry_scan_ms if self.transactions else None

    def tick(self, now: Now) -> Outcome:
        """Some of what is due: call again as long as the next deadline has passed."""
        out = Outcome()
        if self._abort_scan_ms <= now.monotonic_ms:
            self._abort_scan_ms = now.monotonic_ms + self.config.abort_scan_interval_ms
            self._overdue = self._open.overdue(now)
        elif self._expiry_scan_ms <= now.monotonic_ms:
            self._expiry_scan_ms = now.monotonic_ms + self.config.expiry_scan_interval_ms
            self._aging = list(self.transactions)
        elif self._overdue:
            self._abort_overdue(now, out)
        else:
            self._expire_some(now, out)
        return out

    def _abort_overdue(self, now: Now, out: Outcome) -> None:
        for transactional_id in _take_some(self._overdue):
            if self._open.is_overdue(transactional_id, now):
                known = self.transactions[transactional_id]
                self.metrics.timed_out += 1
                self._fence(known, f"open for more than {known.timeout_ms} ms", now, out)

    def _expire_some(self, now: Now, out: Outcome) -> None:
        for transactional_id in _take_some(self._aging):
            known = self.transactions.get(transactional_id)
            if known is not None and has_expired(known, self.config.id_expiration_ms, now):
                logger.info("the transactional id %r is forgotten: nobody used it", transactional_id)
                self.metrics.expired_ids += 1
                out.records.append(forgetting(transactional_id))

    # -- a producer begins

    def _init(self, command: InitProducer, token: Token, now: Now, out: Outcome) -> None:
        if not 0 < command.timeout_ms <= self.config.timeout_max_ms:
            raise ApiError(ErrorCode.INVALID_TRANSACTION_TIMEOUT, f"{command.timeout_ms} ms")
        known = self.transactions.get(command.transactional_id)
        if known is None:
            producer_id = spare_producer_id(command)
            begun = transitions.created(command.transactional_id, producer_id, command.timeout_ms, now.wall_ms)
            self._begin(begun, NO_PRODUCER_EPOCH, token, out)
            return
        check_settled(known)
        check_producer(known, command)
        if known.state is State.ONGOING:
            self._end_for_new_instance(known, token, now, out)
        else:
            self._begin_again(known, command, token, now, out)

    def _begin_again(self, known: Transaction, command: InitProducer, token: Token, now: Now, out: Outcome) -> None:
        last_epoch = self._last_epochs.get(known.transactional_id, NO_PRODUCER_EPOCH)
        identity = next_identity(known, command, last_epoch)
        begun = transitions.initialised(known, *identity, command.timeout_ms, now.wall_ms)
        if command.producer_id == NO_PRODUCER_ID:
            last_epoch = NO_PRODUCER_EPOCH
        elif identity != (known.producer_id, known.producer_epoch):
            last_epoch = known.producer_epoch
        self._begin(begun, last_epoch, token, out)

    def _begin(self, begun: Transaction, last_epoch: int, token: Token, out: Outcome) -> None:
        self._last_epochs[begun.transactional_id] = last_epoch
        self._store(begun, out)
        out.reply(token, ProducerIdentity(begun.producer_id, begun.producer_epoch))

    def _end_for_new_instance(self, known: Transaction, token: Token, now: Now, out: Outcome) -> None:
        self.metrics.fenced += 1
        self._fence(known, "another instance of its producer begins", now, out)
        out.reply(token, ApiError(ErrorCode.CONCURRENT_TRANSACTIONS, "the last transaction is being aborted"))

    # -- a transaction grows

    def _add(self, command: AddPartitions, token: Token, now: Now, out: Outcome) -> None:
        known = self.transactions.get(command.transactional_id)
        if known is None:
            raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"no transactional id {command.transactional_id!r}")
        check_settled(known)
        check_current(known, command.producer_id, command.producer_epoch)
        if known.state is not State.ONGOING or not command.partitions <= known.partitions:
            self._grow(known, command, now, out)
        out.reply(token, None)

    def _grow(self, known: Transaction, command: AddPartitions, now: Now, out: Outcome) -> None:
        if known.state is not State.ONGOING and known.timeout_ms < FOREVER_MS:
            self._open.began(known.transactional_id, known.timeout_ms, now)
        grown = transitions.added(known, command.partitions, command.transaction_version, now.wall_ms)
        self._store(grown, out)

    def _verify(self, command: VerifyPartitions, token: Token, now: Now, out: Outcome) -> None:
        who = command[:3]
        out.reply(token, {one: self.holds(*who, *one) or ErrorCode.NONE for one in command.partitions})

    # -- a transaction ends

    def _end(self, command: EndTransaction, token: Token, now: Now, out: Outcome) -> None:
        known = self.transactions.get(command.transactional_id)
        if known is None:
            raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"no transactional id {command.transactional_id!r}")
        if not ends_now(known, command):
            out.reply(token, ProducerIdentity(known.producer_id, known.producer_epoch))
            return
        next_producer_id = NO_PRODUCER_ID
        if command.transaction_version >= transitions.MOVES_ON:
            if known.is_exhausted:
                next_producer_id = spare_producer_id(command)
            self._last_epochs[known.transactional_id] = known.producer_epoch
        ended = transitions.ended(known, command.commit, command.transaction_version, next_producer_id, now.wall_ms)
        self._decided(ended, "asked by its producer", now, out)
        after = transitions.completed(ended, now.wall_ms)
        out.reply(token, ProducerIdentity(after.producer_id, after.producer_epoch))

    def _fence(self, known: Transaction, reason: str, now: Now, out: Outcome) -> None:
        level = self.config.transaction_version
        moves_on = level >= transitions.MOVES_ON
        # Whoever had the old epoch may come back with it only where clients know how to go on after such an end.
        self._last_epochs[known.transactional_id] = known.producer_epoch if moves_on else NO_PRODUCER_EPOCH
        self._decided(transitions.fenced(known, level, now.wall_ms), reason, now, out)

    def _decided(self, ended: Transaction, reason: str, now: Now, out: Outcome) -> None:
        """From here on there is no other end. Where nothing was written there is nothing left to do."""
        if ended.partitions:
            self._store(ended, out)
        self._carry_out(ended, reason, now, out)

    def _carry_out(self, ended: Transaction, reason: str, now: Now, out: Outcome) -> None:
        if not ended.partitions:
            self._complete(ended, now, out)
            return
        out.effects.append(
            Markers(
                ended.transactional_id,
                ended.producer_id,
                ended.producer_epoch,
                ended.state is State.PREPARE_COMMIT,
                self._coordinator_epoch,
                tuple(sorted(ended.partitions)),
                epoch_bumped=ended.client_version >= transitions.MOVES_ON,
                reason=reason,
            )
        )

    def _written(self, command: MarkersWritten, token: Token, now: Now, out: Outcome) -> None:
        """Those of an end that is complete already mean nothing."""
        known = self.transactions.get(command.transactional_id)
        if known is None or known.state not in PREPARED:
            return
        if (known.producer_id, known.producer_epoch) == (command.producer_id, command.producer_epoch):
            self._complete(known, now, out)

    def _complete(self, ended: Transaction, now: Now, out: Outcome) -> None:
        if ended.state is State.PREPARE_COMMIT:
            self.metrics.committed += 1
        else:
            self.metrics.aborted += 1
        self._store(transitions.completed(ended, now.wall_ms), out)

    def _store(self, transaction: Transaction, out: Outcome) -> None:
        level = self.config.transaction_version
        record = to_record(transaction, level)
        out.records.append(record)
        if level >= TELLS_PRODUCER_IDS:
            self._just_written[record.key] = record.value, (transaction.transactional_id, transaction)

    # -- administration

    def _describe(self, command: DescribeTransaction, token: Token, now: Now, out: Outcome) -> None:
        known = self.transactions.get(command.transactional_id)
        if known is None:
            raise ApiError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"no transactional id {command.transactional_id!r}")
        out.reply(token, known)

    def _list(self, command: ListTransactions, token: Token, now: Now, out: Outcome) -> None:
        out.reply(token, listed(command, self.transactions.values(), now.wall_ms))


def _take_some(ids: list[str]) -> list[str]:
    """A tick's worth, taken out."""
    some = ids[-IDS_PER_TICK:]
    del ids[-IDS_PER_TICK:]
    return some
