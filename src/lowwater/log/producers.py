"""What a log remembers of idempotent producers: enough to know a repeated batch from a new one, and a gap from both.

Also which of them have a transaction open here, and since which offset.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from lowwater.errors import ApiError, ErrorCode
from lowwater.log.aborted import AbortedTransaction
from lowwater.wire.control import EndMarker
from lowwater.wire.records import TRANSACTIONAL, BatchHeader

REMEMBERED_BATCHES = 5
SEQUENCE_MAX = (1 << 31) - 1
EPOCH_MAX = (1 << 15) - 1
NO_TRANSACTION = -1

_PRODUCER = struct.Struct(">qhqqiqB")
_SENT = struct.Struct(">iiqqq")


class SentBatch(NamedTuple):
    """One batch of a producer, as it was answered. Those of the broker itself have the sequence -1."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    log_append_time_ms: int


class Producer:
    """The last batches of one producer id, and where its open transaction began (-1: it has none)."""

    __slots__ = ("coordinator_epoch", "epoch", "last_timestamp", "seen_ms", "sent", "txn_start_offset")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.sent: list[SentBatch] = []
        self.last_timestamp = -1
        self.seen_ms = 0
        self.coordinator_epoch = -1
        self.txn_start_offset = NO_TRANSACTION

    @property
    def last_sequence(self) -> int:
        return self.sent[-1].last_sequence if self.sent else -1

    def find(self, header: BatchHeader) -> SentBatch | None:
        """The remembered batch with these sequences."""
        first, last = header.base_sequence, sequence_after(header.base_sequence, header.last_offset_delta)
        return next((one for one in self.sent if one.first_sequence == first and one.last_sequence == last), None)


def sequence_after(sequence: int, count: int) -> int:
    """Sequences go from 0 to 2^31 - 1 and then begin again at 0."""
    return (sequence + count) & SEQUENCE_MAX


class Producers:
    """All producers of one log, the one seen least lately first."""

    __slots__ = ("_by_id", "_open")

    def __init__(self) -> None:
        self._by_id: dict[int, Producer] = {}
        # First offsets of open transactions by producer, in the order in which they began.
        self._open: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def items(self) -> Iterator[tuple[int, Producer]]:
        return iter(self._by_id.items())

    @property
    def first_open(self) -> int:
        """Where the oldest open transaction began, or -1."""
        return next(iter(self._open.values())) if self._open else NO_TRANSACTION

    def has_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        return producer_id in self._open and self._by_id[producer_id].epoch == producer_epoch

    # -- what may come

    def repeated(self, header: BatchHeader, in_transaction: bool, epoch_bumped: bool) -> SentBatch | None:
        """The batch that this one repeats, if it does; ApiError when it may not follow what was sent before."""
        producer = self._by_id.get(header.producer_id)
        if producer is not None and header.producer_epoch == producer.epoch:
            sent = producer.sent
            expected = (sent[-1].last_sequence + 1) & SEQUENCE_MAX if sent else 0
            is_plain = not header.attributes & TRANSACTIONAL
            if header.base_sequence == expected and is_plain is (producer.txn_start_offset < 0):
                return None  # nearly always
            if (found := producer.find(header)) is not None:
                return found
        if header.is_transactional and not in_transaction:
            self._check_transaction(header)
        if epoch_bumped and header.base_sequence and (producer is None or not producer.sent):
            raise _out_of_order(header, 0)
        if producer is not None:
            _check_order(header, producer)
        return None

    def check_own(self, producer_id: int, producer_epoch: int) -> None:
        """The same for a batch that the broker writes in the name of a producer, without sequence numbers."""
        producer = self._by_id.get(producer_id)
        if producer is not None:
            _check_epoch(producer_id, producer_epoch, producer)

    def check_marker(
        self, producer_id: int, producer_epoch: int, coordinator_epoch: int, *, epoch_bumped: bool
    ) -> None:
        """Refuse the end of a transaction that an older producer or an older coordinator speaks of."""
        producer = self._by_id.get(producer_id)
        if producer is None:
            return
        _check_epoch(producer_id, producer_epoch, producer)
        is_open = producer.txn_start_offset >= 0
        if epoch_bumped and producer_epoch == producer.epoch and is_open and producer_epoch != EPOCH_MAX:
            # Each transaction has its own epoch: this marker is a late copy of the one before this transaction.
            raise _old_epoch(producer_id, producer_epoch, producer)
        if coordinator_epoch < producer.coordinator_epoch:
            raise ApiError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"coordinator epoch {coordinator_epoch}, {producer.coordinator_epoch} was seen",
            )

    def _check_transaction(self, header: BatchHeader) -> None:
        if not self.has_transaction(header.producer_id, header.producer_epoch):
            raise ApiError(
                ErrorCode.INVALID_TXN_STATE, f"producer {header.producer_id} has no transaction in this partition"
            )

    # -- what came

    def note(
        self, header: BatchHeader, base_offset: int, max_timestamp: int, now_ms: int, log_append_time: bool
    ) -> None:
        """The batch is in the log at `base_offset`."""
        producer = self._seen(header, max_timestamp, now_ms)
        first = header.base_sequence
        delta = header.last_offset_delta
        sent = producer.sent
        if first < 0:
            last = first
            sent.clear()
        else:
            last = sequence_after(first, delta)
        sent.append(SentBatch(first, last, base_offset, base_offset + delta, max_timestamp if log_append_time else -1))
        if len(sent) > REMEMBERED_BATCHES:
            del sent[0]
        if header.attributes & TRANSACTIONAL and producer.txn_start_offset < 0:
            producer.txn_start_offset = self._open[header.producer_id] = base_offset

    def end(
        self, header: BatchHeader, marker: EndMarker, offset: int, timestamp: int, now_ms: int
    ) -> AbortedTransaction | None:
        """The marker is in the log at `offset`; the transaction that it aborted, if there was anything of it here."""
        producer = self._seen(header, timestamp, now_ms)
        producer.coordinator_epoch = marker.coordinator_epoch
        first_offset, producer.txn_start_offset = producer.txn_start_offset, NO_TRANSACTION
        if self._open.pop(header.producer_id, None) is None or marker.commit:
            return None
        last_stable = self.first_open if self._open else offset + 1
        return AbortedTransaction(header.producer_id, first_offset, offset, last_stable)

    def lose_ends(self) -> None:
        """A batch cannot be read that may have been a marker: nobody knows how the open transactions ended.

        So that none is taken for another they hold up readers from here on, under ids that no producer has; an
        administrator may end them by those.
        """
        for producer_id, first_offset in self._open.items():
            self._by_id[producer_id].txn_start_offset = NO_TRANSACTION
            lost = self._by_id[_lost_id(first_offset)] = Producer(0)
            lost.txn_start_offset = first_offset
        self._open = {_lost_id(first_offset): first_offset for first_offset in self._open.values()}

    def _seen(self, header: BatchHeader, timestamp: int, now_ms: int) -> Producer:
        producer = self._by_id.pop(header.producer_id, None)
        if producer is None:
            producer = Producer(header.producer_epoch)
        elif producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.sent = []
        self._by_id[header.producer_id] = producer
        producer.last_timestamp = timestamp
        producer.seen_ms = now_ms
        return producer

    def expire(self, now_ms: int, after_ms: int) -> None:
        """Forget who has not been seen for that long, unless a transaction waits for its end."""
        old = [one for one, producer in self._by_id.items() if now_ms - producer.seen_ms >= after_ms]
        for producer_id in old:
            if producer_id not in self._open:
                del self._by_id[producer_id]

    # -- snapshots

    def encode(self) -> bytes:
        output = bytearray()
        for producer_id, one in self._by_id.items():
            output += _PRODUCER.pack(
                producer_id,
                one.epoch,
                one.last_timestamp,
                one.seen_ms,
                one.coordinator_epoch,
                one.txn_start_offset,
                len(one.sent),
            )
            for sent in one.sent:
                output += _SENT.pack(*sent)
        return bytes(output)

    @classmethod
    def decode(cls, data: bytes) -> Producers:
        """`data` comes from `encode`, under a checksum."""
        producers = cls()
        position = 0
        while position < len(data):
            producer_id, epoch, last_timestamp, seen_ms, coordinator, txn_start, count = _PRODUCER.unpack_from(
                data, position
            )
            position += _PRODUCER.size
            one = Producer(epoch)
            one.last_timestamp, one.seen_ms = last_timestamp, seen_ms
            one.coordinator_epoch, one.txn_start_offset = coordinator, txn_start
            for _ in range(count):
                one.sent.append(SentBatch._make(_SENT.unpack_from(data, position)))
                position += _SENT.size
            producers._by_id[producer_id] = one
        started = ((one.txn_start_offset, producer_id) for producer_id, one in producers._by_id.items())
        producers._open = {producer_id: start for start, producer_id in sorted(started) if start >= 0}
        return producers


NOBODY = Producers()  # not to be changed


def _lost_id(first_offset: int) -> int:
    return -2 - first_offset


def first_open_in(data: bytes) -> int:
    """Where the oldest open transaction of an encoded state began, or -1; without decoding all of it."""
    position, first = 0, NO_TRANSACTION
    while position < len(data):
        *_, start, count = _PRODUCER.unpack_from(data, position)
        position += _PRODUCER.size + count * _SENT.size
        if start >= 0 and (first < 0 or start < first):
            first = start
    return first


def _check_order(header: BatchHeader, producer: Producer) -> None:
    _check_epoch(header.producer_id, header.producer_epoch, producer)
    is_new_epoch = header.producer_epoch != producer.epoch
    expected = 0 if is_new_epoch else sequence_after(producer.last_sequence, 1)
    if header.base_sequence != expected:
        raise _out_of_order(header, expected)
    if producer.txn_start_offset >= 0 and not header.is_transactional:
        raise ApiError(
            ErrorCode.INVALID_TXN_STATE, f"producer {header.producer_id} is in a transaction, its batch is not"
        )


def _check_epoch(producer_id: int, producer_epoch: int, producer: Producer) -> None:
    if producer_epoch < producer.epoch:
        raise _old_epoch(producer_id, producer_epoch, producer)


def _old_epoch(producer_id: int, producer_epoch: int, producer: Producer) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"producer {producer_id} has epoch {producer_epoch}, {producer.epoch} was seen",
    )


def _out_of_order(header: BatchHeader, expected: int) -> ApiError:
    return ApiError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"producer {header.producer_id} sent sequence {header.base_sequence} of epoch {header.producer_epoch}, "
        f"expected is {expected}",
    )
