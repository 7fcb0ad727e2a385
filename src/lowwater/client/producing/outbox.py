"""What waits to be written to one partition, what is on its way there, and in which sequence.

Rows leave in the order they came. A batch of an idempotent producer keeps its sequence until the broker has answered
it; what has to be sent again goes before everything else, and alone, so that no later batch overtakes it.
"""

from __future__ import annotations

from bisect import insort
from collections import deque

from lowwater.client.errors import ClientError, RecordTooLargeError
from lowwater.client.producing.calls import Batch, Call
from lowwater.client.producing.identity import NOBODY, Identity
from lowwater.client.producing.rules import Rules
from lowwater.types import TopicPartition
from lowwater.wire.records import TRANSACTIONAL

SEQUENCE_MASK = 0x7FFFFFFF


class Outbox:
    """Of one partition. `in_flight` and `again` are in the order of their rows."""

    def __init__(self, partition: TopicPartition, rules: Rules) -> None:
        self.partition = partition
        self.not_before_ms = 0.0
        self.failures = 0
        self.last_error: ClientError | None = None
        self.identity = NOBODY
        self._rules = rules
        self._attributes = rules.codec | (TRANSACTIONAL if rules.transactional_id is not None else 0)
        self._fresh: deque[Batch] = deque()
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
        return bool(self._again or self._fresh)

    def holds(self, call: Call) -> bool:
        """Whether something of this call waits here."""
        return any(batch.call is call for batch in (*self._again, *self._fresh))

    def put(self, batch: Batch) -> None:
        self._fresh.append(batch)

    @property
    def next_fresh(self) -> Batch | None:
        """What is sent next, if it was not sent before."""
        return self._fresh[0] if self._fresh and not self._again else None

    def may_send(self, node: int, now_ms: float) -> bool:
        if not self.has_work or now_ms < self.not_before_ms:
            return False
        if not self._in_flight:
            return True
        # One broker at a time, or a batch at the new leader could come before one that the old one still has.
        if self._again or self._node != node:
            return False
        # A retry goes alone: with others behind it, brokers could forget that they have it. And so does the first of an
        # identity: a broker that knows nothing of it takes any sequence for its first.
        is_alone = not self._is_known or self._in_flight[0].tries > 1
        return not is_alone and len(self._in_flight) < self._rules.in_flight_max

    # ---- sending

    def take(self, node: int, identity: Identity) -> Batch | None:
        """The next batch, from now on in flight; None when the rows that were next cannot be sent at all."""
        if identity != self.identity and not self._in_flight and (self._begins_anew or not self._again):
            self._adopt(identity)
        batch = self._again.pop(0) if self._again else self._next_fresh()
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
            self._stamp(batch)

    def _next_fresh(self) -> Batch | None:
        batch = self._fresh.popleft()
        batch.pack(self._rules.codec, self._rules.codec_level)
        if len(batch.data) > self._rules.record_bytes and len(batch.chosen) == 1:
            batch.call.failed(self.partition.partition, batch.chosen, self.too_large(batch))
            return None
        self._stamp(batch)
        return batch

    def _stamp(self, batch: Batch) -> None:
        """The next sequence of the identity."""
        if self.identity is NOBODY:
            batch.stamp(NOBODY, -1, self._attributes)
            return
        batch.stamp(self.identity, self._next_sequence, self._attributes)
        self._next_sequence = (self._next_sequence + len(batch.chosen)) & SEQUENCE_MASK

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
        sequence = batch.sequence
        for part in batch.halves():
            part.pack(self._rules.codec, self._rules.codec_level)
            part.stamp(batch.identity, sequence, self._attributes)
            insort(self._again, part, key=_order)
            if sequence >= 0:
                sequence = (sequence + len(part.chosen)) & SEQUENCE_MASK

    # ---- giving up

    def drop(self, error: ClientError, of: Call | None = None) -> None:
        """What waits fails, all of it or that of one call. What is in flight is answered first."""
        dropped = [batch for batch in (*self._again, *self._fresh) if of is None or batch.call is of]
        self._again = [batch for batch in self._again if of is not None and batch.call is not of]
        self._fresh = deque(batch for batch in self._fresh if of is not None and batch.call is not of)
        for batch in dropped:
            batch.call.failed(self.partition.partition, batch.chosen, error)


def _order(batch: Batch) -> tuple[int, int]:
    return batch.order
