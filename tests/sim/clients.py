"""Clients of a simulated broker: they send, retry, fetch and note everything, one step at a time."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from tests.sim.batches import decode_all, encode

from lowwater.errors import ErrorCode, WireError
from lowwater.testing.checker import Outcome, Poll, Send
from lowwater.testing.virtual_time import Asked, VirtualBroker
from lowwater.types import TopicPartition
from lowwater.wire.messages import FetchRequest, InitProducerIdRequest, ProduceRequest
from lowwater.wire.messages.fetch import FetchPartition, FetchTopic
from lowwater.wire.messages.produce import PartitionProduceData, TopicProduceData

IN_FLIGHT_MAX = 5
BATCH_RECORDS_MAX = 4
FETCH_WAIT_MS = 40
PRODUCE_VERSION, FETCH_VERSION = 12, 12
ACKS_ALL = -1
# The batch is written already, and too long ago for its offset to be known.
WRITTEN_BEFORE = ErrorCode.DUPLICATE_SEQUENCE_NUMBER


@dataclass(slots=True)
class Batch:
    """What one Produce carries; `asked` while an answer is awaited."""

    sequence: int
    values: list[bytes]
    asked: Asked | None = None
    tries: int = 0
    offset: int | None = None
    spans_power_cut: bool = False


@dataclass(slots=True)
class Producer:
    """Idempotent, one partition, several batches in flight, retries in order until acked."""

    name: str
    partition: TopicPartition
    draw: random.Random
    id: int = -1
    _asking_id: Asked | None = None
    _next: int = 0
    _open: deque[Batch] = field(default_factory=deque)
    done: list[Batch] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)

    def act(self, broker: VirtualBroker, *, may_begin: bool, loss: float) -> None:
        """Take what was answered, then send one thing: a retry, or something new."""
        self._take_answers()
        if self.id < 0:
            self._ask_id(broker)
            return
        waiting = [batch for batch in self._open if batch.asked is None]
        if waiting:
            self._send(broker, waiting[0], loss)
        elif may_begin and len(self._open) < IN_FLIGHT_MAX:
            count = self.draw.randint(1, BATCH_RECORDS_MAX)
            values = [f"{self.name}-{self._next + n}".encode() for n in range(count)]
            self._open.append(Batch(self._next, values))
            self._next += count
            self._send(broker, self._open[-1], loss)

    @property
    def is_idle(self) -> bool:
        return not self._open

    def lose_connection(self, *, power_cut: bool) -> None:
        """The broker is gone, with every answer that was not taken."""
        self._asking_id = None
        for batch in self._open:
            batch.asked = None
            batch.spans_power_cut |= power_cut and batch.tries > 0

    def _ask_id(self, broker: VirtualBroker) -> None:
        if self._asking_id is None:
            self._asking_id = broker.send(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000))
        elif self._asking_id.is_answered:
            self.id = self._asking_id.response.producer_id
            self.ids.append(self.id)

    def _send(self, broker: VirtualBroker, batch: Batch, loss: float) -> None:
        batch.tries += 1
        if self.draw.random() < loss / 2:
            return  # the request is lost
        stamped = [(broker.clock.now_ms(), value, value) for value in batch.values]
        records = encode(stamped, producer=(self.id, 0, batch.sequence))
        data = PartitionProduceData(index=self.partition.partition, records=memoryview(records))
        request = ProduceRequest(
            acks=ACKS_ALL,
            timeout_ms=1000,
            topic_data=[TopicProduceData(name=self.partition.topic, partition_data=[data])],
        )
        asked = broker.send(request, PRODUCE_VERSION)
        if self.draw.random() < loss / 2:
            asked.disconnect()  # the answer is lost
        else:
            batch.asked = asked

    def _take_answers(self) -> None:
        for batch in tuple(self._open):
            if batch.asked is None or not batch.asked.is_answered:
                continue
            answer = self._answer(batch)
            batch.asked = None
            if answer is None:
                continue
            if answer.error_code == 0:
                batch.offset = answer.base_offset
                self._finish(batch)
            elif answer.error_code == WRITTEN_BEFORE:
                self._finish(batch)

    @staticmethod
    def _answer(batch: Batch) -> Any:
        assert batch.asked is not None
        try:
            return batch.asked.response.responses[0].partition_responses[0]
        except WireError:
            return None

    def _finish(self, batch: Batch) -> None:
        self._open.remove(batch)
        self.done.append(batch)

    def sends(self) -> list[Send]:
        """In the order of their sequence, as they were called."""
        found = []
        for batch in sorted([*self.done, *self._open], key=lambda one: one.sequence):
            for place, value in enumerate(batch.values):
                acked = batch.offset is not None
                found.append(
                    Send(
                        self.name,
                        self.partition,
                        value,
                        Outcome.OK if acked else Outcome.UNKNOWN,
                        batch.offset + place if batch.offset is not None else None,
                        # A reader may see a record that a power cut takes, and then its retry elsewhere.
                        idempotent=not batch.spans_power_cut,
                    )
                )
        return found


@dataclass(slots=True)
class Consumer:
    """Assigned to one partition from its start; long polls."""

    name: str
    partition: TopicPartition
    draw: random.Random
    position: int = 0
    _asked: Asked | None = None
    _started: bool = False
    polls: list[Poll] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def act(self, broker: VirtualBroker) -> None:
        if self._asked is None:
            self._asked = broker.send(self._request(), FETCH_VERSION)
        elif self._asked.is_answered:
            asked, self._asked = self._asked, None
            self._take(asked.response.responses[0].partitions[0])
        elif self.draw.random() < 0.02:
            self._asked.disconnect()
            self._asked = None

    def lose_connection(self) -> None:
        self._asked = None

    @property
    def is_waiting(self) -> bool:
        return self._asked is not None

    def _request(self) -> FetchRequest:
        limit = self.draw.choice((1, 300, 10_000))
        wanted = FetchPartition(
            partition=self.partition.partition, fetch_offset=self.position, partition_max_bytes=limit
        )
        return FetchRequest(
            max_wait_ms=FETCH_WAIT_MS,
            min_bytes=self.draw.choice((0, 1, 500)),
            max_bytes=limit,
            topics=[FetchTopic(topic=self.partition.topic, partitions=[wanted])],
            forgotten_topics_data=[],
        )

    def _take(self, data: Any) -> None:
        if data.error_code:
            # Nothing is deleted and no disk fails here, so every position that was reached stays one.
            self.errors.append(f"{self.name} at {self.position}: {ErrorCode(data.error_code).name}")
            return
        records = [
            (one.offset, one.value or b"")
            for batch in decode_all(bytes(data.records or b""))
            for one in batch.records
            if one.offset >= self.position
        ]
        if not records:
            return
        sought = None if self._started else self.position
        self._started = True
        self.polls.append(Poll(self.name, self.partition, tuple(records), sought))
        self.position = records[-1][0] + 1
