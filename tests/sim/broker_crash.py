"""Crashes of a whole broker: `python -m tests.sim.broker_crash [--seeds N]`.

A seeded run of requests on virtual time, with fsyncs under way at random moments. Each answer is noted with the number
of disk operations at that very moment. Then the disk is crashed at random points; the next broker must know everything
that had been answered.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.sim.batches import NO_PRODUCER, encode
from tests.sim.world import low_ceilings, read_log

from lowwater.errors import StorageError
from lowwater.testing.faults_disk import Fault, FaultKind, FaultyDisk
from lowwater.testing.simdisk import CrashState, SimDisk
from lowwater.testing.virtual_time import VirtualBroker
from lowwater.types import TopicPartition
from lowwater.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from lowwater.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from lowwater.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from lowwater.wire.messages.delete_topics import DeleteTopicsRequest
from lowwater.wire.messages.init_producer_id import InitProducerIdRequest
from lowwater.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

CONFIG = {"log.segment.bytes": "2000", "log.index.interval.bytes": "200", "auto.create.topics.enable": "false"}
STEPS = 60
NEVER = 1 << 40
FINAL_FAULTS = (FaultKind.EIO, FaultKind.SYNC)
TIMEOUT_MS = 1000
TOPICS = ("orders", "payments", "audit")
ACKS_ALL = -1


@dataclass(slots=True)
class Life:
    """A topic between its creation and its deletion, in disk operations; None: not yet answered."""

    name: str
    id: bytes
    created_at: int
    partitions: list[tuple[int, int]]  # (operations, count)
    deleting_at: int | None = None
    deleted_at: int | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """An acked record."""

    life: Life
    partition: TopicPartition
    offset: int
    value: bytes
    at: int
    durable: bool


@dataclass(slots=True)
class Notes:
    lives: list[Life] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    starts: list[tuple[int, Life, TopicPartition, int]] = field(default_factory=list)
    start_wishes: list[tuple[int, TopicPartition]] = field(default_factory=list)
    producer_ids: list[tuple[int, int]] = field(default_factory=list)


class Run:
    """One seeded life of a broker; kills of its process are part of it. With a fault its disk fails at some point."""

    def __init__(self, seed: int, fault: Fault | None = None) -> None:
        self.draw = random.Random(seed)
        self.disk = SimDisk()
        self.faulty = FaultyDisk(self.disk, fault or Fault(FaultKind.EIO, NEVER))
        self.broker = VirtualBroker(CONFIG, disk=self.faulty if fault else self.disk, seed=seed)
        self.notes = Notes()
        self.ended = False
        self._alive: dict[str, Life] = {}
        self._values = 0

    def play(self) -> Notes:
        actions = [self.produce] * 8 + [self.create, self.delete, self.grow, self.delete_records, self.new_producer]
        actions += [self.let_time_pass, self.restart]
        self.create()
        for _ in range(STEPS):
            if self.ended:
                break
            self.broker.offload.held = self.draw.random() < 0.6
            self.draw.choice(actions)()
            self.work_a_little()
        self.broker.offload.release()
        self.broker.time.settle()
        return self.notes

    def work_a_little(self) -> None:
        if self.draw.random() < 0.5:
            self.broker.offload.step(self.draw.randint(0, self.broker.offload.waiting))
        if self.draw.random() < 0.7:
            self.broker.time.turn()
        if self.draw.random() < 0.2:
            self.broker.offload.step()
            self.broker.time.settle()

    def ask(self, request: Any, answered: Callable[[Any, int], None], version: int) -> None:
        asked = self.broker.send(request, version)
        asked.when_answered(lambda: answered(asked.response, self.disk.operations))

    # -- what clients do

    def create(self) -> None:
        missing = [name for name in TOPICS if name not in self._alive]
        if not missing:
            return
        name, count = self.draw.choice(missing), self.draw.randint(1, 2)

        def answered(response: Any, at: int) -> None:
            if response.topics[0].error_code == 0:
                self._alive[name] = life = Life(name, response.topics[0].topic_id, at, [(at, count)])
                self.notes.lives.append(life)

        topic = CreatableTopic(name=name, num_partitions=count, replication_factor=1)
        self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS), answered, 7)

    def delete(self) -> None:
        if len(self._alive) < 2:
            return
        name = self.draw.choice(sorted(self._alive))
        life = self._alive.pop(name)
        life.deleting_at = self.disk.operations

        def answered(response: Any, at: int) -> None:
            if response.responses[0].error_code == 0:
                life.deleted_at = at

        self.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=TIMEOUT_MS), answered, 4)

    def grow(self) -> None:
        life = self._some_life()
        if life is None:
            return
        count = life.partitions[-1][1] + 1

        def answered(response: Any, at: int) -> None:
            if response.results[0].error_code == 0:
                life.partitions.append((at, count))

        topic = CreatePartitionsTopic(name=life.name, count=count, assignments=None)
        self.ask(CreatePartitionsRequest(topics=[topic], timeout_ms=TIMEOUT_MS), answered, 3)

    def produce(self) -> None:
        life = self._some_life()
        if life is None:
            return
        partition = TopicPartition(life.name, self.draw.randrange(life.partitions[-1][1]))
        acks = self.draw.choice((1, ACKS_ALL, ACKS_ALL))
        values = [self._value() for _ in range(self.draw.randint(1, 3))]

        def answered(response: Any, at: int) -> None:
            answer = response.responses[0].partition_responses[0]
            if answer.error_code == 0:
                for number, value in enumerate(values):
                    offset = answer.base_offset + number
                    self.notes.sent.append(Sent(life, partition, offset, value, at, acks == ACKS_ALL))

        records = [(self.broker.clock.now_ms(), None, value) for value in values]
        data = PartitionProduceData(index=partition.partition, records=encode(records, producer=NO_PRODUCER))
        topic = TopicProduceData(name=life.name, partition_data=[data])
        request = ProduceRequest(transactional_id=None, acks=acks, timeout_ms=TIMEOUT_MS, topic_data=[topic])
        self.ask(request, answered, 9)

    def delete_records(self) -> None:
        life = self._some_life()
        if life is None:
            return
        partition = TopicPartition(life.name, 0)
        end = self.broker.broker.partition(*partition).log.log_end
        offset = self.draw.randint(0, end)
        self.notes.start_wishes.append((offset, partition))

        def answered(response: Any, at: int) -> None:
            answer = response.topics[0].partitions[0]
            if answer.error_code == 0:
                self.notes.starts.append((at, life, partition, answer.low_watermark))

        wanted = DeleteRecordsTopic(
            name=life.name, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)]
        )
        self.ask(DeleteRecordsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS), answered, 2)

    def new_producer(self) -> None:
        def answered(response: Any, at: int) -> None:
            if response.error_code == 0:
                self.notes.producer_ids.append((at, response.producer_id))

        self.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=TIMEOUT_MS), answered, 4)

    def let_time_pass(self) -> None:
        """Timers run: housekeeping, checkpoints."""
        self.broker.time.advance(self.draw.choice((100, 20_000, 400_000)))

    def restart(self) -> None:
        """Half of the restarts are kills; whoever waits for an answer is never told."""
        self.broker.offload.release()
        if self.faulty.struck and self.faulty.fault.kind in FINAL_FAULTS:
            if self.faulty.fault.lasting and self.faulty.fault.kind is FaultKind.EIO:
                # Not even a name could be left behind. On a real machine such a file system has to be mounted anew,
                # and then no page is left of which it is not known whether it is on disk.
                self.ended = True
                return
            self.faulty.heal()
        try:
            if self.draw.random() < 0.5:
                self.broker.stop()
            self._start()
        except (StorageError, OSError):
            self.faulty.heal()
            self._start()

    def _start(self) -> None:
        self.disk.drop_process()
        self.broker.start()

    def _some_life(self) -> Life | None:
        return self._alive[self.draw.choice(sorted(self._alive))] if self._alive else None

    def _value(self) -> bytes:
        self._values += 1
        return f"value-{self._values}".encode().ljust(self.draw.choice((20, 90, 700)), b".")


def crash(run: Run, *, points: int, states: int) -> tuple[int, list[str]]:
    """Crash the disk of a finished run at random points; how many states were tried, and what was broken."""
    tried, broken = 0, []
    for at in sorted(run.draw.sample(range(run.disk.operations + 1), min(points, run.disk.operations + 1))):
        found = list(run.disk.crash_states(at, subsets=2))
        chosen = [*found[:2], *run.draw.sample(found, min(states, len(found)))]
        for state in [*chosen, CrashState(at, power_cut=False)]:
            tried += 1
            try:
                _judge(run.disk.after(state), run.notes, state)
            except Exception as error:
                broken.append(f"{state}: {type(error).__name__}: {error}")
    return tried, broken


def _judge(disk: SimDisk, notes: Notes, state: CrashState) -> None:
    broker = VirtualBroker(CONFIG, disk=disk, seed=99)
    for life in notes.lives:
        _judge_topic(broker, life, state)
    for at, life, partition, low in notes.starts:
        if at <= state.at and _is_certain(life, state):
            log_start = broker.broker.partition(*partition).log.log_start
            assert log_start >= low, f"log start of {partition} went back from {low} to {log_start}"
    _judge_records(broker, notes, state)
    used = max((producer_id for at, producer_id in notes.producer_ids if at <= state.at), default=-1)
    answer = broker.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=TIMEOUT_MS), 4)
    assert answer.error_code == 0
    assert answer.producer_id > used, f"producer id {answer.producer_id} is given out again, {used} was"


def _judge_topic(broker: VirtualBroker, life: Life, state: CrashState) -> None:
    topic = broker.broker.topics.by_id(life.id)
    assert topic is None or life.deleted_at is None or life.deleted_at > state.at, f"deleted {life.name} is back"
    if life.created_at <= state.at and _is_certain(life, state):
        assert topic is not None, f"topic {life.name} is gone"
        count = max(count for at, count in life.partitions if at <= state.at)
        assert topic.partition_count >= count, f"{life.name} has {topic.partition_count} partitions, {count} were there"


def _is_certain(life: Life, state: CrashState) -> bool:
    """Created, and nobody has asked for its deletion."""
    return life.created_at <= state.at and (life.deleting_at is None or life.deleting_at >= state.at)


def _judge_records(broker: VirtualBroker, notes: Notes, state: CrashState) -> None:
    stored: dict[TopicPartition, dict[int, bytes | None]] = {}
    wishes: dict[TopicPartition, int] = {}
    for offset, partition in notes.start_wishes:
        wishes[partition] = max(offset, wishes.get(partition, 0))
    for sent in notes.sent:
        if sent.at > state.at or not _is_certain(sent.life, state) or (state.power_cut and not sent.durable):
            continue
        if sent.partition not in stored:
            log = broker.broker.partition(*sent.partition).log
            stored[sent.partition] = {one.offset: one.value for batch in read_log(log) for one in batch.records}
        found = stored[sent.partition].get(sent.offset)
        deletable = sent.offset < wishes.get(sent.partition, 0)
        assert found == sent.value or (found is None and deletable), f"{sent.partition} {sent.offset} reads {found!r}"


def run_fault(seed: int, fault: Fault) -> tuple[bool, list[str]]:
    """A run whose disk fails; whether it did, and which answers did not hold in the end."""
    with low_ceilings():
        try:
            run = Run(seed, fault)
        except (StorageError, OSError):
            return True, []  # a broker that cannot start promises nothing
        run.play()
        final = run.disk.operations
        broken = []
        for state in [*run.disk.crash_states(final, subsets=4), CrashState(final, power_cut=False)]:
            try:
                _judge(run.disk.after(state), run.notes, state)
            except Exception as error:
                broken.append(f"seed {seed}, {fault}, {run.faulty.struck[:2]}, {state}: {error!r}")
    return bool(run.faulty.struck), broken


def run_seed(seed: int, *, points: int = 12, states: int = 3) -> tuple[int, int, list[str]]:
    """(acked records, states tried, violations) of one seed."""
    with low_ceilings():
        run = Run(seed)
        notes = run.play()
        tried, broken = crash(run, points=points, states=states)
    return len(notes.sent), tried, [f"seed {seed}: {each}" for each in broken]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.broker_crash", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--points", type=int, default=60)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    records = states = 0
    violations: list[str] = []
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        acked, tried, broken = run_seed(seed, points=arguments.points)
        records, states, violations = records + acked, states + tried, violations + broken
        print(*broken, sep="\n", end="\n" if broken else "", flush=True)
    print(f"seeds {arguments.seeds}, acked {records}, states {states}, violations {len(violations)}")
    return int(bool(violations))


if __name__ == "__main__":
    sys.exit(main())
