"""What a log remembers of idempotent producers: enough to know a repeated batch from a new one, and a gap from both."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from lowwater.errors import ApiError, ErrorCode
from lowwater.wire.records import BatchHeader

REMEMBERED_BATCHES = 5
SEQUENCE_MAX = (1 << 31) - 1

_PRODUCER = struct.Struct(">qhqqiqB")
_SENT = struct.Struct(">iiqqq")


class SentBatch(NamedTuple):
    """One batch of a producer, as it was answered."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    log_append_time_ms: int


class Producer:
    """The last batches of one producer id."""

    __slots__ = ("coordinator_epoch", "epoch", "last_timestamp", "seen_ms", "sent", "txn_start_offset")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.sent: list[SentBatch] = []
        self.last_timestamp = -1
        self.seen_ms = 0
        self.coordinator_epoch = -1
        self.txn_start_offset = -1

    @property
    def last_sequence(self) -> int:
        return self.sent[-1].last_sequence if self.sent else -1


def sequence_after(sequence: int, count: int) -> int:
    """Sequences go from 0 to 2^31 - 1 and then begin again at 0."""
    return (sequence + count) & SEQUENCE_MAX


class Producers:
    """All producers of one log, the one seen least lately first."""

    __slots__ = ("_by_id",)

    def __init__(self) -> None:
        self._by_id: dict[int, Producer] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def items(self) -> Iterator[tuple[int, Producer]]:
        return iter(self._by_id.items())

    def repeated(self, header: BatchHeader) -> SentBatch | None:
        """The batch that this one repeats, if it does; ApiError when it may not follow what was sent before."""
        producer = self._by_id.get(header.producer_id)
        if producer is None:
            return None
        if header.producer_epoch != producer.epoch:
            _check_epoch(header, producer)
            return None
        if not producer.sent:
            return None
        first = header.base_sequence
        expected = sequence_after(producer.sent[-1].last_sequence, 1)
        if first == expected:
            return None
        last = sequence_after(first, header.last_offset_delta)
        for sent in producer.sent:
            if sent.first_sequence == first and sent.last_sequence == last:
                return sent
        raise ApiError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id} sent sequence {first}, expected is {expected}",
        )

    def note(
        self, header: BatchHeader, base_offset: int, max_timestamp: int, now_ms: int, *, log_append_time: bool
    ) -> None:
        """The batch is in the log at `base_offset`."""
        producer = self._by_id.pop(header.producer_id, None)
        if producer is None or producer.epoch != header.producer_epoch:
            producer = Producer(header.producer_epoch)
        self._by_id[header.producer_id] = producer
        producer.last_timestamp = max_timestamp
        producer.seen_ms = now_ms
        if header.is_control:
            return
        first = header.base_sequence
        delta = header.last_offset_delta
        append_time = max_timestamp if log_append_time else -1
        producer.sent.append(
            SentBatch(first, sequence_after(first, delta), base_offset, base_offset + delta, append_time)
        )
        if len(producer.sent) > REMEMBERED_BATCHES:
            del producer.sent[0]

    def expire(self, now_ms: int, after_ms: int) -> None:
        """Forget who has not been seen for that long."""
        old = [one for one, producer in self._by_id.items() if now_ms - producer.seen_ms >= after_ms]
        for producer_id in old:
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
        return producers


def _check_epoch(header: BatchHeader, producer: Producer) -> None:
    if header.producer_epoch < producer.epoch:
        raise ApiError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"producer {header.producer_id} has epoch {header.producer_epoch}, {producer.epoch} was seen",
        )
    if header.base_sequence != 0:
        raise ApiError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id} began epoch {header.producer_epoch} at sequence {header.base_sequence}",
        )
