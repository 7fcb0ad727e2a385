"""Members that keep groups busy while their broker is killed: steady ones of three client libraries, and raw ones that
join, change their minds and leave as fast as they are answered. None of them is ever restarted."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from contextlib import suppress
from typing import Any

import aiokafka
import confluent_kafka
import kafka
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AioRange
from aiokafka.errors import KafkaError as AioKafkaError
from kafka.coordinator.assignors.range import RangePartitionAssignor
from tests.conformance.groups.raw_member import RawMember, subscription
from tests.conformance.raw import ConnectionEndedError
from tests.crash.group_ledger import Ledger

from lowwater.errors import ErrorCode
from lowwater.wire.messages.join_group import JoinGroupRequestProtocol
from lowwater.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

TOPIC = "kills"
PARTITIONS = 8
SESSION_MS = 2000
REBALANCE_MS = 6000
HEARTBEAT_MS = 150
RECONNECT_MS = 20
RECONNECT_MAX_MS = 200
PACE_S = 0.03
# A leave is not in the log before the rebalance that follows it: a kill in between costs a session timeout.
LEAVING = 0.25
# kafka-python 3.0 can forget that it was rejoining when a poll ends in the middle of it; Apache Kafka sees the same. It
# is then reminded, and how often is counted.
FORGETFUL_S = 1.0
COMMIT_TIMEOUT_MS = 5000
AGAIN = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.REBALANCE_IN_PROGRESS,
}


class Busy:
    """Runs `_run` in a thread until `stop`; an exception there is an error of the run."""

    def __init__(self, name: str, bootstrap: str, group: str, slot: int, ledger: Ledger) -> None:
        self.name = name
        self.bootstrap = bootstrap
        self.group = group
        self.slot = slot
        self.ledger = ledger
        self.stopping = threading.Event()
        self._thread = threading.Thread(target=self._guarded, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.stopping.set()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            self.ledger.breach("waits-for-ever", f"{self.name} did not stop")

    def _guarded(self) -> None:
        try:
            self._run()
        except (Exception, asyncio.CancelledError) as error:
            self.ledger.failed(self.name, repr(error))

    def _run(self) -> None:
        raise AssertionError("each has its own")


class ConfluentMember(Busy):
    """librdkafka; of the consumer protocol when its group is named so."""

    def _run(self) -> None:
        settings = {
            "bootstrap.servers": self.bootstrap,
            "group.id": self.group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "reconnect.backoff.ms": RECONNECT_MS,
            "reconnect.backoff.max.ms": RECONNECT_MAX_MS,
            "fetch.wait.max.ms": 100,
            "log_level": 0,
        }
        classic = {
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "max.poll.interval.ms": REBALANCE_MS,
            "partition.assignment.strategy": "range",
        }
        new = {"group.protocol": "consumer", "max.poll.interval.ms": REBALANCE_MS}
        consumer = confluent_kafka.Consumer({**settings, **(new if self.group.startswith("new") else classic)})
        consumer.subscribe([TOPIC], on_assign=self._assigned, on_revoke=self._assigned)
        while not self.stopping.is_set():
            consumer.poll(PACE_S)
            if consumer.assignment():
                self._commit(consumer)
        consumer.close()

    def _assigned(self, *_: Any) -> None:
        self.ledger.noted("assignments", self.name)

    def _commit(self, consumer: confluent_kafka.Consumer) -> None:
        slot = (self.group, self.slot)
        offset = self.ledger.next_offset(slot)
        wanted = [confluent_kafka.TopicPartition(TOPIC, self.slot, offset)]
        try:
            done = consumer.commit(offsets=wanted, asynchronous=False)
        except confluent_kafka.KafkaException:
            return
        if done is not None and done[0].error is None:
            self.ledger.acked(self.name, slot, offset)


class ConfluentVisitor(ConfluentMember):
    """A member of the consumer protocol that keeps leaving and coming back."""

    def _run(self) -> None:
        draw = random.Random(self.name)
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": self.group,
                "group.protocol": "consumer",
                "enable.auto.commit": False,
                "reconnect.backoff.ms": RECONNECT_MS,
                "reconnect.backoff.max.ms": RECONNECT_MAX_MS,
                "log_level": 0,
            }
        )
        while not self.stopping.is_set():
            consumer.subscribe([TOPIC], on_assign=self._assigned, on_revoke=self._assigned)
            for _ in range(draw.randint(5, 60)):
                consumer.poll(PACE_S)
            consumer.unsubscribe()
            consumer.poll(PACE_S)
        consumer.close()


class KafkaPythonMember(Busy):
    forgot_at: float | None = None

    def _run(self) -> None:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=self.group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            max_poll_interval_ms=REBALANCE_MS,
            partition_assignment_strategy=[RangePartitionAssignor],
            reconnect_backoff_ms=RECONNECT_MS,
            reconnect_backoff_max_ms=RECONNECT_MAX_MS,
            retry_backoff_ms=RECONNECT_MS,
            fetch_max_wait_ms=100,
        )
        consumer.subscribe([TOPIC])
        while not self.stopping.is_set():
            with suppress(kafka.errors.KafkaError):
                consumer.poll(timeout_ms=100)
                if consumer.assignment():
                    self._commit(consumer)
            self._remind(consumer)
        consumer.close(timeout_ms=COMMIT_TIMEOUT_MS)

    def _remind(self, consumer: kafka.KafkaConsumer) -> None:
        coordinator = consumer._coordinator
        forgot = coordinator.rejoining and not coordinator.need_rejoin()
        if not forgot:
            self.forgot_at = None
        elif self.forgot_at is None:
            self.forgot_at = time.monotonic()
        elif time.monotonic() - self.forgot_at > FORGETFUL_S:
            self.ledger.noted("reminders")
            coordinator.request_rejoin()
            self.forgot_at = None

    def _commit(self, consumer: kafka.KafkaConsumer) -> None:
        slot = (self.group, self.slot)
        offset = self.ledger.next_offset(slot)
        place = kafka.TopicPartition(TOPIC, self.slot)
        consumer.commit({place: kafka.structs.OffsetAndMetadata(offset, "", -1)}, timeout_ms=COMMIT_TIMEOUT_MS)
        self.ledger.acked(self.name, slot, offset)


class AioKafkaMember(Busy):
    """aiokafka commits only what it is assigned: nobody else of its group may commit."""

    def _run(self) -> None:
        asyncio.run(self._live())

    async def _live(self) -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            TOPIC,
            bootstrap_servers=self.bootstrap,
            group_id=self.group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            # When this one passes, aiokafka leaves the group, and can end its own coordination for good while it does.
            max_poll_interval_ms=300_000,
            rebalance_timeout_ms=REBALANCE_MS,
            partition_assignment_strategy=[AioRange],
            retry_backoff_ms=RECONNECT_MS,
            fetch_max_wait_ms=100,
        )
        await consumer.start()
        while not self.stopping.is_set():
            with suppress(AioKafkaError):
                await consumer.getmany(timeout_ms=int(PACE_S * 1000))
                await self._commit(consumer)
        with suppress(AioKafkaError, TimeoutError):
            await asyncio.wait_for(consumer.stop(), COMMIT_TIMEOUT_MS / 1000)

    async def _commit(self, consumer: aiokafka.AIOKafkaConsumer) -> None:
        if self.slot < 0:
            self.ledger.noted("polls", self.name)
            return
        place = min(consumer.assignment(), default=None)
        if place is None:
            return
        slot = (self.group, place.partition)
        offset = self.ledger.next_offset(slot)
        await consumer.commit({place: offset})
        self.ledger.acked(self.name, slot, offset)


class RawVisitor(Busy):
    """Joins, syncs, beats and commits for a while, leaves or joins anew; its member id outlives a broken connection."""

    def _run(self) -> None:
        host, _, port = self.bootstrap.rpartition(":")
        self.draw = random.Random(self.name)
        self.address = (host, int(port))
        self.member: RawMember | None = None
        while not self.stopping.is_set():
            try:
                self._visit(self.member or self._connect())
            except TimeoutError as error:
                self.ledger.breach("waits-for-ever", f"{self.name}: {error!r}")
                self._disconnected()
            except (ConnectionEndedError, OSError):
                self._disconnected()
                self.stopping.wait(RECONNECT_MS / 1000)

    def _connect(self) -> RawMember:
        kept = getattr(self, "kept_id", "")
        member = RawMember(
            self.address, self.group, [TOPIC], session_timeout_ms=SESSION_MS, rebalance_timeout_ms=REBALANCE_MS
        )
        member.member_id = kept
        self.member = member
        return member

    def _disconnected(self) -> None:
        if self.member is not None:
            self.kept_id = self.member.member_id
            self.member.close()
            self.member = None

    def _visit(self, member: RawMember) -> None:
        if not self._join(member) or not self._sync(member):
            return
        for _ in range(self.draw.randint(1, 15)):
            if self.stopping.wait(PACE_S * self.draw.random()) or not self._stay(member):
                return
        if self.draw.random() < LEAVING:
            member.leave()
            member.member_id = ""
            self.ledger.noted("leaves", self.name)
        else:  # A changed subscription makes the group rebalance.
            changed = subscription([TOPIC, f"unknown-{self.draw.randint(1, 9)}"])
            member.protocols = [JoinGroupRequestProtocol(name="range", metadata=changed)]

    def _join(self, member: RawMember) -> bool:
        self.ledger.noted("joining")
        joined = member.try_join()
        if joined.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            member.member_id = ""
        if joined.error_code != 0:
            self._pause_for(joined.error_code)
            return False
        members = {each.member_id for each in joined.members} if member.leads else None
        self.ledger.joined(self.group, member.generation, joined.leader, member.member_id, members)
        self.ledger.noted("visits", self.name)
        return True

    def _sync(self, member: RawMember) -> bool:
        self.ledger.noted("syncing")
        everyone = [each.member_id for each in member.joined.members]
        shares = {each: {TOPIC: list(range(index, PARTITIONS, len(everyone)))} for index, each in enumerate(everyone)}
        answer = member.sync(shares if member.leads else None)
        return self._judge(member, answer.error_code)

    def _stay(self, member: RawMember) -> bool:
        if self.slot < 0 or self.draw.random() < 0.3:
            return self._judge(member, member.heartbeat())
        slot = (self.group, self.slot)
        offset = self.ledger.next_offset(slot)
        code = commit(member, self.slot, offset)
        if code == ErrorCode.NONE:
            self.ledger.acked(self.name, slot, offset)
        return self._judge(member, code)

    def _judge(self, member: RawMember, code: int) -> bool:
        """Whether the member is still in its generation."""
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            member.member_id = ""
        elif code not in AGAIN and code not in (ErrorCode.NONE, ErrorCode.ILLEGAL_GENERATION):
            self.ledger.failed(self.name, ErrorCode(code).name)
        self._pause_for(code)
        return code == ErrorCode.NONE

    def _pause_for(self, code: int) -> None:
        if code in AGAIN and code != ErrorCode.REBALANCE_IN_PROGRESS:
            self.stopping.wait(RECONNECT_MS / 1000)


def commit(member: RawMember, partition: int, offset: int) -> int:
    place = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
    request = OffsetCommitRequest(
        group_id=member.group,
        generation_id_or_member_epoch=member.generation,
        member_id=member.member_id,
        topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[place])],
    )
    return int(member.wire.ask(request, 9).topics[0].partitions[0].error_code)


def members(bootstrap: str, ledger: Ledger) -> tuple[list[Busy], list[str]]:
    """All that keep the groups busy, and the groups. Slots: who commits where, one each; -1 does not commit."""
    plan: list[tuple[type[Busy], str, int]] = [
        (ConfluentMember, "of-confluent", 0),
        (RawVisitor, "of-confluent", 1),
        (KafkaPythonMember, "of-kafka-python", 0),
        (RawVisitor, "of-kafka-python", 1),
        (AioKafkaMember, "of-aiokafka", 0),
        (RawVisitor, "of-aiokafka", -1),
        (ConfluentMember, "mixed", 0),
        (KafkaPythonMember, "mixed", 1),
        (AioKafkaMember, "mixed", -1),
        (RawVisitor, "mixed", 2),
        (ConfluentMember, "new", 0),
        (ConfluentMember, "new", 1),
        (ConfluentVisitor, "new", -1),
        *[(RawVisitor, f"raw-{group}", slot) for group in range(2) for slot in range(3)],
    ]
    busy = [
        kind(f"{kind.__name__}-{number}-{group}", bootstrap, group, slot, ledger)
        for number, (kind, group, slot) in enumerate(plan)
    ]
    return busy, sorted({group for _, group, _ in plan})
