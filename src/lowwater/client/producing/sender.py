"""Sends what waits in the outboxes: one Produce after the other to each leader, and again what may succeed later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from lowwater.client.cluster import NO_LEADER, OUTDATED, Cluster
from lowwater.client.driver import sleep
from lowwater.client.errors import (
    BrokerError,
    ClientError,
    DeliveryTimeoutError,
    ProtocolError,
    UnknownTopicError,
    broker_error,
)
from lowwater.client.flow import Flow, surface
from lowwater.client.producing.calls import Batch, Call, pack_all
from lowwater.client.producing.ending import ENDING_MS, ENDING_TRIES, is_ending
from lowwater.client.producing.identity import Identity
from lowwater.client.producing.outbox import Outbox
from lowwater.client.producing.requests import NAMES_UNTIL, answers_in, produce_request
from lowwater.client.producing.rules import Rules
from lowwater.errors import ErrorCode
from lowwater.pending import Pending
from lowwater.ports import Timer
from lowwater.types import TopicPartition
from lowwater.wire.messages import ProduceRequest
from lowwater.wire.messages.produce import PartitionProduceResponse
from lowwater.wire.schema import ZERO_UUID

# Partitions share a request up to this size; a single batch may be larger.
REQUEST_BYTES = 4 * 1024 * 1024
_TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
_GAP = frozenset({ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID})


class Standing(Protocol):
    """Under which identity rows are written, and whether they may be."""

    def current(self) -> Identity | None:
        """None while there is none: it is seen to, and `Sender.look` is called when it is there."""

    def begin_anew(self, known: Identity) -> bool:
        """The broker does not know the sequences of this identity; false when there cannot be another."""

    def admits(self, partition: TopicPartition) -> bool:
        """Whether rows may be sent there by now; it is seen to that they may be, and `Sender.look` called then."""

    @property
    def produce_versions(self) -> tuple[int, int]: ...


class Sender:
    """Of one producer. Everything happens in the driver's thread."""

    def __init__(self, cluster: Cluster, rules: Rules, standing: Standing) -> None:
        self._cluster = cluster
        self._network = cluster.network
        self._driver = cluster.network.driver
        self._rules = rules
        self._standing = standing
        self._outboxes: dict[TopicPartition, Outbox] = {}
        self._waiting: dict[TopicPartition, Outbox] = {}  # those with work; who was served goes to the end
        self._in_flight: dict[int, int] = {}
        self._finding: dict[str, Flow[None]] = {}
        self._timer: Timer | None = None
        self._is_due = False
        self._given_up: ClientError | None = None

    def put(self, partition: TopicPartition, batch: Batch) -> None:
        if self._given_up is not None:
            batch.call.failed(partition.partition, batch.chosen, self._given_up)
            return
        outbox = self._outboxes.get(partition)
        if outbox is None:
            outbox = self._outboxes[partition] = Outbox(partition, self._rules)
        outbox.put(batch)
        self._waiting[partition] = outbox
        self.look()

    def look(self) -> None:
        """Something may have changed: send what can be sent, soon."""
        if not self._is_due and self._given_up is None:
            self._is_due = True
            self._driver.call_soon(self._drain)

    def drop(self, error: ClientError, of: Call | None = None) -> None:
        """What waits fails, all of it or that of one call. What is in flight goes on."""
        for outbox in list(self._waiting.values()):
            self._drop_from(outbox, error, of)

    def _drop_from(self, outbox: Outbox, error: ClientError, of: Call | None = None) -> None:
        outbox.drop(error, of)
        if not outbox.has_work:
            self._waiting.pop(outbox.partition, None)

    def give_up(self, error: ClientError) -> None:
        """What waits fails, and so does what comes, or comes back from a broker unwritten, until `resume`."""
        self._given_up = error
        self.drop(error)

    def resume(self) -> None:
        self._given_up = None

    def expire(self, call: Call) -> None:
        """Its time is over: what waits of it fails, and what is in flight has its last try."""
        for outbox in [box for box in self._waiting.values() if box.holds(call)]:
            error = overdue(self._rules, outbox.last_error)
            self._drop_from(outbox, error, call)

    def close(self, error: ClientError) -> None:
        """What waits fails. What is in flight is settled by its answer, or by the end of the network."""
        self.give_up(error)
        for flow in list(self._finding.values()):
            flow.cancel()
        if self._timer is not None:
            self._timer.cancel()

    # ---- sending

    def _drain(self) -> None:
        self._is_due = False
        if not self._waiting or self._given_up is not None or self._standing.current() is None:
            return
        now_ms = self._driver.monotonic_ms()
        ready: dict[int, list[Outbox]] = {}
        for partition, outbox in list(self._waiting.items()):
            node = self._cluster.leader(partition)
            if node == NO_LEADER:
                self._find_leader(partition.topic)
            elif outbox.may_send(node, now_ms) and self._standing.admits(partition):
                ready.setdefault(node, []).append(outbox)
        for node, outboxes in ready.items():
            self._fill(node, outboxes, now_ms)
        self._set_timer(now_ms)

    def _fill(self, node: int, outboxes: list[Outbox], now_ms: float) -> None:
        """Requests until the broker has as many as it may have, or nothing is left to send."""
        while outboxes and self._in_flight.get(node, 0) < self._rules.in_flight_max:
            identity = self._standing.current()
            if identity is None:
                return  # a row could not be sent, and took its whole transaction with it
            taken, later, size = [], [], 0
            self._pack_next(outboxes)
            for outbox in outboxes:
                may_send = size < REQUEST_BYTES and outbox.may_send(node, now_ms)
                batch = self._take(node, outbox, identity) if may_send else None
                if batch is not None:
                    taken.append((outbox, batch))
                    size += len(batch.data)
                if outbox.may_send(node, now_ms):
                    later.append(outbox)
            if taken:
                self._send(node, taken, now_ms)
            outboxes = later

    def _pack_next(self, outboxes: list[Outbox]) -> None:
        """About what fits into one request, together: that is faster than one by one."""
        if not self._rules.codec:
            return
        fresh, size = [], 0
        for batch in (outbox.next_fresh for outbox in outboxes):
            if batch is not None and size < REQUEST_BYTES:
                fresh.append(batch)
                size += len(batch.data)
        pack_all(fresh, self._rules.codec, self._rules.codec_level)

    def _take(self, node: int, outbox: Outbox, identity: Identity) -> Batch | None:
        batch = outbox.take(node, identity)
        self._waiting.pop(outbox.partition, None)
        if outbox.has_work:
            self._waiting[outbox.partition] = outbox
        return batch

    def _send(self, node: int, taken: list[tuple[Outbox, Batch]], now_ms: float) -> None:
        self._in_flight[node] = self._in_flight.get(node, 0) + 1
        topics = {outbox.partition.topic for outbox, _ in taken}
        ids = {name: topic.id for name in topics if (topic := self._cluster.known(name)) is not None}
        lowest, highest = self._standing.produce_versions
        if len(ids) < len(topics) or ZERO_UUID in ids.values():
            highest = min(highest, NAMES_UNTIL)
        answer = self._network.ask(
            node,
            lambda version: produce_request(self._rules, ids, taken),
            api=ProduceRequest,
            versions=(lowest, highest),
            timeout_ms=min(self._rules.request_ms, max(1, _last_deadline(taken) - now_ms)),
            answered=self._rules.acks != 0,
        )
        answer.on_done(lambda done: self._answered(node, ids, taken, done))

    def _set_timer(self, now_ms: float) -> None:
        """For what waits for its next try."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due_ms = min((box.not_before_ms for box in self._waiting.values() if box.not_before_ms > now_ms), default=None)
        if due_ms is not None:
            self._timer = self._driver.call_later(due_ms - now_ms, self.look)

    # ---- answers

    def _answered(
        self, node: int, ids: dict[str, bytes], taken: list[tuple[Outbox, Batch]], done: Pending[Any]
    ) -> None:
        self._in_flight[node] -= 1
        try:
            response = done.result()
        except ClientError as error:
            self._lost(taken, error)
        else:
            answers = {} if response is None else answers_in(response, ids)
            for outbox, batch in taken:
                if response is None:
                    outbox.written(batch, -1)
                else:
                    self._take_answer(outbox, batch, answers.get(outbox.partition))
        for outbox, _ in taken:
            if outbox.has_work:
                self._waiting.setdefault(outbox.partition, outbox)
        self.look()

    def _lost(self, taken: list[tuple[Outbox, Batch]], error: ClientError) -> None:
        """No answer. Who leads may be somebody else by now."""
        if error.retriable:
            self._cluster.outdate({outbox.partition.topic for outbox, _ in taken})
        for outbox, batch in taken:
            self._settle(outbox, batch, error)

    def _take_answer(self, outbox: Outbox, batch: Batch, answer: PartitionProduceResponse | None) -> None:
        partition = outbox.partition
        if answer is None:
            self._settle(
                outbox, batch, ProtocolError("the broker's answer leaves a partition out", **_where(partition))
            )
            return
        code = answer.error_code
        if not code:
            outbox.written(batch, answer.base_offset)
        elif code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            outbox.written(batch, -1)
        elif code in _TOO_LARGE and len(batch.chosen) > 1:
            outbox.halve(batch)
        elif code in _TOO_LARGE:
            self._fail(outbox, batch, outbox.too_large(batch))
        elif code in _GAP and self._rules.is_idempotent:
            self._take_gap(outbox, batch, broker_error(code, **_where(partition)))
        else:
            self._heed(partition, answer)
            self._settle(outbox, batch, _refusal(partition, batch, answer))

    def _heed(self, partition: TopicPartition, answer: PartitionProduceResponse) -> None:
        if answer.error_code not in OUTDATED:
            return
        leader = answer.current_leader
        if leader is None or not self._cluster.moved(partition, leader.leader_id, leader.leader_epoch):
            self._cluster.outdate([partition.topic])

    def _take_gap(self, outbox: Outbox, batch: Batch, error: BrokerError) -> None:
        """Mostly a batch before this one has to be sent again. When there is none, the broker lacks what we sent, or
        we gave up on it: sequences begin anew."""
        if outbox.is_first(batch) and batch.identity == outbox.identity:
            if not self._standing.begin_anew(batch.identity):
                self._fail(outbox, batch, error)
                return
            outbox.begin_anew()
        error.retriable = True
        self._settle(outbox, batch, error)

    def _settle(self, outbox: Outbox, batch: Batch, error: ClientError) -> None:
        """Again later, if that may help and there is time; else this is the end of it."""
        now_ms = self._driver.monotonic_ms()
        if not error.retriable or batch.tries > self._rules.retries:
            self._fail(outbox, batch, error)
        elif self._given_up is not None:
            self._fail(outbox, batch, self._given_up)
        elif now_ms >= batch.call.deadline_ms:
            self._fail(outbox, batch, overdue(self._rules, error))
        else:
            outbox.failures += 1
            outbox.returned(batch, error, now_ms + self._wait_ms(outbox.failures, error))

    def _wait_ms(self, failures: int, error: ClientError) -> float:
        if is_ending(error) and failures <= ENDING_TRIES:
            return ENDING_MS
        return self._cluster.retry.wait_ms(failures)

    def _fail(self, outbox: Outbox, batch: Batch, error: ClientError) -> None:
        outbox.failed(batch, error.after(batch.tries, 0))

    # ---- leaders

    def _find_leader(self, topic: str) -> None:
        if topic not in self._finding:
            self._finding[topic] = flow = Flow(self._leaders_of(topic))
            flow.on_done(lambda _: self._found(topic))
            flow.on_done(surface)

    def _found(self, topic: str) -> None:
        self._finding.pop(topic, None)

    async def _leaders_of(self, topic: str) -> None:
        tries = 0
        while True:
            try:
                found = (await self._cluster.topics([topic]))[topic]
            except ClientError as error:
                if not error.retriable:
                    self._give_up(self._boxes_of(topic), error)
            else:
                self._give_up(
                    [box for box in self._boxes_of(topic) if box.partition.partition not in found.partitions],
                    UnknownTopicError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, topic=topic),
                )
            self.look()
            if all(self._cluster.leader(box.partition) != NO_LEADER for box in self._boxes_of(topic)):
                return
            tries += 1
            await sleep(self._driver, self._cluster.retry.wait_ms(tries))
            self._cluster.outdate([topic])

    def _boxes_of(self, topic: str) -> list[Outbox]:
        return [outbox for partition, outbox in self._waiting.items() if partition.topic == topic]

    def _give_up(self, outboxes: Iterable[Outbox], error: ClientError) -> None:
        for outbox in outboxes:
            self._drop_from(outbox, error)


def overdue(rules: Rules, last: ClientError | None) -> DeliveryTimeoutError:
    """Of rows that were not written in time, with the last thing that went wrong."""
    why = "" if last is None else f": {last.what}"
    error = DeliveryTimeoutError(
        f"not written within {rules.delivery_ms / 1000:g} s (delivery.timeout.ms){why}",
        topic=None if last is None else last.topic,
        partition=None if last is None else last.partition,
    )
    error.__cause__ = last
    return error


def _refusal(partition: TopicPartition, batch: Batch, answer: PartitionProduceResponse) -> BrokerError:
    """Some brokers say which record of a batch was not acceptable."""
    rows = [int(batch.call.numbers[batch.chosen[each.batch_index]]) for each in _named(batch, answer)]
    what = f"row {', '.join(map(str, rows[:5]))} was refused" if rows else ""
    return broker_error(answer.error_code, what, advice=answer.error_message or "", **_where(partition))


def _named(batch: Batch, answer: PartitionProduceResponse) -> Iterator[Any]:
    return (each for each in answer.record_errors or () if 0 <= each.batch_index < len(batch.chosen))


def _where(partition: TopicPartition) -> dict[str, Any]:
    return {"topic": partition.topic, "partition": partition.partition}


def _last_deadline(taken: list[tuple[Outbox, Batch]]) -> float:
    return max(batch.call.deadline_ms for _, batch in taken)
