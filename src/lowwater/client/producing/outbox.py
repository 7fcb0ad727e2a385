"""What waits to be written to one partition, what is on its way there, and in which sequence.

Rows leave in the order they came. A batch of an idempotent producer keeps its sequence until the broker has answered
it; what has to be sent again goes before everything else, and alone, so that no later batch overtakes it.
"""

from __future__ import annotations

from bisect import insort
from collections import deque

from lowwater.client.errors import ClientError, RecordTooLargeError
from lowwater.client.producing.calls import Batch, Call, Parcel
from lowwater.client.producing.identity import NOBODY, Identity
from lowwater.client.producing.rules import Rules
from lowwater.types import TopicPartition
from lowwater.wire.records import HEADER_SIZE, TRANSACTIONAL

SEQUENCE_MASK = 0x7FFFFFFF
_UNBOUNDED = 1 << 31


class Outbox:
    """Of one partition. `in_flight` and `again` are in the order of their rows."""

    def __init__(self, partition: TopicPartition, rules: Rules) -> None:
        self.partition = partition
        self.not_before_ms = 0.0
        self.failures = 0
        self.last_error: ClientError | None = None
        self.identity = NOBODY
        self._rules = rules
        self._parcels: deque[Parcel] = deque()
        self._again: list[Batch] = []
        self._in_flight: list[Batch] = []
        self._node = -1
        self._next_sequence = 0
        self._begins_anew = False
        self._is_known = True  # whether the broker has something of this identity

    # ---- what waits

    @property
    def has_work(self) -> bool:
        """Something is to be sent, now or later."""
        return bool(self._again or self._parcels)

    @property
    def is_idle(self) -> bool:
        return not (self._again or self._parcels or self._in_flight)

    def holds(self, call: Call) -> bool:
        """Whether something of this call waits here."""
        return call in (batch.call for batch in self._again) or call in (parcel.call for parcel in self._parcels)

    def put(self, parcel: Parcel) -> None:
        self._parcels.append(parcel)

    def may_send(self, node: int, now_ms: float) -> bool:
        if not self.has_work or now_ms < self.not_before_ms:
            return False
        if not self._in_flight:
            return True
        # One broker at a time, or a batch at the new leader could come before one that the old one still has. And the
        # first of an identity goes alone: a broker that knows nothing of it takes any sequence for its first.
        at_most = self._rules.in_flight_max if self._is_known else 1
        return not self._again and self._node == node and len(self._in_flight) < at_most

    # ---- sending

    def take(self, node: int, identity: Identity) -> Batch | None:
        """The next batch, from now on in flight; None when the rows that were next cannot be sent at all."""
        if identity != self.identity and not self._in_flight and (self._begins_anew or not self._again):
            self._adopt(identity)
        batch = self._again.pop(0) if self._again else self._encoded()
        if batch is None:
            return None
        batch.tries += 1
        self._node = node
        self._in_flight.append(batch)
        return batch

    def _adopt(self, identity: Identity) -> None:
        """Begin the sequences of another identity with what was not written under the one before."""
        self.identity, self._next_sequence, self._begins_anew = identity, 0, False
        self._is_known = identity is NOBODY
        for batch in self._again:
            batch.stamp(identity, self._sequence_for(len(batch.chosen)))

    def _sequence_for(self, rows: int) -> int:
        if self.identity is NOBODY:
            return -1
        sequence = self._next_sequence
        self._next_sequence = (sequence + rows) & SEQUENCE_MASK
        return sequence

    def _encoded(self) -> Batch | None:
        parcel = self._parcels[0]
        batch = self._encode(parcel.call, parcel.chosen, parcel.at, self._rules.batch_bytes, self._next_sequence)
        parcel.at += len(batch.chosen)
        if parcel.at == len(parcel.chosen):
            self._parcels.popleft()
        if len(batch.data) > self._rules.record_bytes and len(batch.chosen) == 1:
            batch.call.failed(self.partition.partition, batch.chosen, self.too_large(batch))
            return None
        batch.sequence = self._sequence_for(len(batch.chosen))
        return batch

    def _encode(self, call: Call, chosen: object, first: int, bytes_max: int, sequence: int) -> Batch:
        identity = self.identity
        encoded = call.rows.encode(
            chosen,
            first,
            bytes_max=max(bytes_max, HEADER_SIZE + 1),
            codec=self._rules.codec,
            attributes=TRANSACTIONAL if self._rules.transactional_id is not None else 0,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            base_sequence=-1 if identity is NOBODY else sequence,
        )
        rows = chosen[first : first + encoded.rows]  # type: ignore[index]
        return Batch(call, rows, first, encoded.data, identity, sequence)

    def too_large(self, batch: Batch) -> RecordTooLargeError:
        """Of a batch with one row."""
        return RecordTooLargeError(
            f"row {int(batch.call.numbers[batch.chosen[0]])} takes {len(batch.data)} bytes, which is too large",
            topic=self.partition.topic,
            partition=self.partition.partition,
            advice=f"max.request.size is {self._rules.record_bytes}, and the topic has its own max.message.bytes",
        )

    # ---- answers

    def is_first(self, batch: Batch) -> bool:
        """Whether every batch before it has been answered for good."""
        return all(batch.order <= other.order for other in (*self._in_flight, *self._again))

    def written(self, batch: Batch, base_offset: int) -> None:
        self._in_flight.remove(batch)
        self.failures = 0
        self._is_known = True
        batch.call.written(self.partition, batch.chosen, base_offset)

    def failed(self, batch: Batch, error: ClientError) -> None:
        """For good. Batches behind it will be told that there is a gap, and begin anew."""
        self._in_flight.remove(batch)
        batch.call.failed(self.partition.partition, batch.chosen, error)

    def returned(self, batch: Batch, error: ClientError, not_before_ms: float) -> None:
        """To be sent again, not before some time."""
        self._in_flight.remove(batch)
        self.last_error = error
        insort(self._again, batch, key=_order)
        self.not_before_ms = max(self.not_before_ms, not_before_ms)

    def begin_anew(self) -> None:
        """The broker does not know the sequences before: what is here is sent under the next identity."""
        self._begins_anew = True

    def halve(self, batch: Batch) -> None:
        """It is too large for its topic: two of half its rows each, which share its sequence."""
        self._in_flight.remove(batch)
        half = len(batch.chosen) // 2
        for chosen, at in ((batch.chosen[:half], 0), (batch.chosen[half:], half)):
            sequence = -1 if batch.sequence < 0 else (batch.sequence + at) & SEQUENCE_MASK
            part = self._encode(batch.call, chosen, 0, _UNBOUNDED, sequence)
            part.first = batch.first + at
            part.tries = batch.tries
            insort(self._again, part, key=_order)

    # ---- giving up

    def drop(self, error: ClientError, of: Call | None = None) -> None:
        """What waits fails, all of it or that of one call. What is in flight is answered first."""
        dropped = [batch for batch in self._again if of is None or batch.call is of]
        parcels = [parcel for parcel in self._parcels if of is None or parcel.call is of]
        self._again = [batch for batch in self._again if batch not in dropped]
        self._parcels = deque(parcel for parcel in self._parcels if parcel not in parcels)
        for batch in dropped:
            batch.call.failed(self.partition.partition, batch.chosen, error)
        for parcel in parcels:
            parcel.call.failed(self.partition.partition, parcel.rest, error)


def _order(batch: Batch) -> tuple[int, int]:
    return batch.order
