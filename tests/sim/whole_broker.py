"""A whole broker through many crashes, on virtual time: `python -m tests.sim.whole_broker --seeds 200`.

Producers and consumers live on while the broker is killed, loses power or restarts; requests and answers get lost,
worker threads finish in any order. In the end nothing fails any more, what is left is sent, everything is read, and the
checker of sends and reads judges. The same seed gives the same run.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
from dataclasses import dataclass, field

from tests.sim.batches import decode_all
from tests.sim.clients import Consumer, Producer

from lowwater.testing.checker import FinalRead, History, check
from lowwater.testing.disk_image import pending_operations
from lowwater.testing.simdisk import CrashState, SimDisk
from lowwater.testing.virtual_time import VirtualBroker
from lowwater.types import TopicPartition
from lowwater.wire.messages import CreateTopicsRequest, FetchRequest
from lowwater.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig
from lowwater.wire.messages.fetch import FetchPartition, FetchTopic

CONFIG = {
    "log.retention.check.interval.ms": "500",
    "log.cleaner.backoff.ms": "300",
    "auto.create.topics.enable": "false",
}
TOPICS = {
    "orders": {"segment.bytes": "2000", "index.interval.bytes": "200"},
    "keyed": {"segment.bytes": "1500", "min.cleanable.dirty.ratio": "0.1"},
}
PARTITIONS = 2
STEPS = 1500
HEAL_STEPS = 20_000
LOSS = 0.1


@dataclass(slots=True)
class Report:
    seed: int
    kills: int = 0
    power_cuts: int = 0
    restarts: int = 0
    acked: int = 0
    polled: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        head = (
            f"seed {self.seed}: {self.kills} kills, {self.power_cuts} power cuts, {self.restarts} restarts, "
            f"{self.acked} acked, {self.polled} polled"
        )
        return "\n".join([head, *self.problems])


class World:
    """One broker, its clients, and the draw of what happens next."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.report = Report(seed)
        # Half of the worlds lose power, the other half compact: a compacted log may have gaps, so that what a power cut
        # took between two of its segments cannot be told from what compaction took.
        self._power_fails = seed % 2 == 0
        self.disk = SimDisk()
        self._lives = 0
        self.broker = self._new_broker()
        _create_topics(self.broker, compact=not self._power_fails)
        places = [TopicPartition(topic, index) for topic in TOPICS for index in range(PARTITIONS)]
        self.places = places
        self.producers = [Producer(f"p{n}", place, self.draw) for n, place in enumerate(places * 2)]
        # One reader per partition: of what a power cut takes, another one would not know.
        self.consumers = [Consumer(f"c{n}", place, self.draw) for n, place in enumerate(places)]

    def _new_broker(self) -> VirtualBroker:
        self._lives += 1
        broker = VirtualBroker(CONFIG, disk=self.disk, seed=self.report.seed * 1000 + self._lives)
        broker.offload.held = True
        return broker

    def step(self) -> None:
        chance = self.draw.random()
        if chance < 0.45:
            self.draw.choice(self.producers).act(self.broker, may_begin=True, loss=LOSS)
        elif chance < 0.65:
            self.draw.choice(self.consumers).act(self.broker)
        elif chance < 0.80:
            self._work()
        elif chance < 0.93:
            self.broker.time.turn()
        elif chance < 0.985:
            self.broker.time.advance(self.draw.choice((0, 1, 10, 100, 1000)))
        elif chance < 0.990:
            self._restart()
        else:
            self._crash(power_cut=self._power_fails and self.draw.random() < 0.5)

    def _work(self) -> None:
        """A worker thread finishes something."""
        if self.broker.offload.waiting:
            self.broker.offload.do(self.draw.randrange(self.broker.offload.waiting))

    def _restart(self) -> None:
        self.broker.offload.release()
        self.broker.time.settle()
        self.broker.stop()
        self.disk.drop_process()
        self.report.restarts += 1
        self._begin_again(power_cut=False)

    def _crash(self, *, power_cut: bool) -> None:
        at = self.disk.operations
        if power_cut:
            pending = pending_operations(self.disk.journal)
            lost = frozenset(index for index in pending if self.draw.random() < self.draw.choice((0.1, 0.5, 1.0)))
            state = CrashState(at, lost)
        else:
            state = self.draw.choice(list(self.disk.kill_states()))
        clock = self.disk.clock
        self.disk = self.disk.after(state)
        self.disk.clock.advance(int(clock.elapsed_ms) + self.draw.randrange(1000))
        self.report.power_cuts += power_cut
        self.report.kills += not power_cut
        self._begin_again(power_cut=power_cut)

    def _begin_again(self, *, power_cut: bool) -> None:
        for producer in self.producers:
            producer.lose_connection(power_cut=power_cut)
        for consumer in self.consumers:
            consumer.lose_connection()
        self.broker = self._new_broker()

    def heal(self) -> None:
        """Nothing goes wrong any more: whatever was begun has to come to its end."""
        self.broker.offload.release()
        for _ in range(HEAL_STEPS):
            if all(producer.is_idle for producer in self.producers):
                break
            self.draw.choice(self.producers).act(self.broker, may_begin=False, loss=0)
            self.broker.time.advance(1)
        else:
            stuck = [producer.name for producer in self.producers if not producer.is_idle]
            self.report.problems.append(f"{stuck} are still not answered")
        self.broker.time.advance(1000)
        left = sum(len(self.broker.broker.partition(*place).waiting_fetches) for place in self.places)
        if left:
            self.report.problems.append(f"{left} fetches still wait")

    def judge(self) -> None:
        history = History(
            sends=[send for producer in self.producers for send in producer.sends()],
            polls=[poll for consumer in self.consumers for poll in consumer.polls],
            final={place: _read_all(self.broker, place) for place in self.places},
        )
        self.report.acked = history.acked()
        self.report.polled = sum(len(poll.records) for poll in history.polls)
        self.report.problems += map(str, check(history))
        self.report.problems += [error for consumer in self.consumers for error in consumer.errors[:1]]
        ids = [one for producer in self.producers for one in producer.ids]
        if len(ids) != len(set(ids)):
            self.report.problems.append(f"a producer id was given out twice: {sorted(ids)}")


def _create_topics(broker: VirtualBroker, *, compact: bool) -> None:
    settings = {**TOPICS, "keyed": {**TOPICS["keyed"], "cleanup.policy": "compact" if compact else "delete"}}
    topics = [
        CreatableTopic(
            name=name,
            num_partitions=PARTITIONS,
            replication_factor=1,
            assignments=[],
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        for name, configs in settings.items()
    ]
    asked = broker.send(CreateTopicsRequest(topics=topics, timeout_ms=1000))
    broker.offload.step()
    broker.time.settle()
    assert {topic.error_code for topic in asked.response.topics} == {0}


def _read_all(broker: VirtualBroker, place: TopicPartition) -> FinalRead:
    log = broker.broker.partition(*place).log
    records: list[tuple[int, bytes]] = []
    offset = log.log_start
    while offset < log.log_end:
        wanted = FetchPartition(partition=place.partition, fetch_offset=offset, partition_max_bytes=1 << 20)
        topics = [FetchTopic(topic=place.topic, partitions=[wanted])]
        answer = broker.ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics, forgotten_topics_data=[]), 12)
        data = answer.responses[0].partitions[0]
        assert data.error_code == 0, data
        batches = list(decode_all(bytes(data.records or b"")))
        if not batches:
            break
        records += [
            (one.offset, one.value or b"") for batch in batches for one in batch.records if one.offset >= offset
        ]
        offset = batches[-1].last_offset + 1
    return FinalRead(log.log_start, log.log_end, tuple(records))


def run(seed: int, steps: int = STEPS) -> Report:
    world = World(seed)
    for _ in range(steps):
        world.step()
    world.heal()
    world.judge()
    return world.report


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.whole_broker", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--steps", type=int, default=STEPS)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    failed = []
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        report = run(seed, arguments.steps)
        print(report, flush=True)
        failed += [seed] if report.problems else []
    print(f"{arguments.seeds} seeds, failed: {failed or 'none'}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
