"""Anything may happen in any order: every row is given out once, in order, and nothing is stuck in the end."""

from __future__ import annotations

import random

import pytest
from tests.unit.client.fetching.played import NODES, PlayedCluster
from tests.unit.client.fetching.probe import Probe
from tests.unit.client.virtual import refused

from lowwater.client.fetching.events import AtEnd, Failed, Reset
from lowwater.errors import ErrorCode
from lowwater.types import TopicPartition

STEPS = 80
PASSING = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.OFFSET_NOT_AVAILABLE,
)
NEVER_MS = 1 << 30


class Turmoil:
    """One fetcher among brokers that misbehave; `expected` has the offset that has to come next, by partition."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.played = PlayedCluster(
            fetch_versions=(4, self.random.choice([6, 12, 18])),
            max_partition_fetch_bytes=self.random.choice([1, 300, 5_000]),
            fetch_max_bytes=self.random.choice([1, 3_000, 1 << 20]),
            request_timeout_ms=3_000,
            default_api_timeout_ms=NEVER_MS,
            metadata_max_age_ms=5_000,
            client_rack=self.random.choice(["", "here"]),
        )
        self.played.driver.piece_bytes = self.random.choice([7, 1 << 30])
        self.played.keeps_sessions = self.random.random() < 0.8
        self.partitions = self.played.create("t", *self.random.choices(list(NODES), k=6))
        self.probe = Probe(self.played, dict.fromkeys(self.partitions, 0), reset="earliest", tell_ends=True)
        self.expected = dict.fromkeys(self.partitions, 0)
        self.counted = dict.fromkeys(self.partitions, 0)
        self.paused: set[TopicPartition] = set()
        self.hurry()

    def one(self) -> TopicPartition:
        return self.random.choice(self.partitions)

    def step(self) -> None:
        self.random.choice(
            [
                *(self.write, self.write, self.write, self.delete, self.compact),
                *(self.take, self.take, self.pause, self.resume, self.seek, self.put_back, self.replace, self.hurry),
                *(self.move, self.prefer, self.drop, self.leave, self.come_back, self.forget, self.fail, self.heal),
            ]
        )()
        self.played.time.advance(self.random.choice([0, 0, 0, 5, 100, 600, 3_500]))

    # ---- the log

    def write(self) -> None:
        self.played.append(
            self.one(), self.random.randint(1, 4), b"v" * self.random.choice([1, 100, 2_000]), self.time()
        )

    def time(self) -> int:
        return self.random.choice([-1, 0, 1_000, self.random.randint(0, 1_000_000), 1 << 50])

    def delete(self) -> None:
        log = self.played.logs[self.one()]
        log.start = self.random.randint(log.start, log.end)

    def compact(self) -> None:
        """What was there at the end is gone."""
        self.played.logs[self.one()].end += self.random.randint(1, 3)
        self.played.grew()

    def behind(self, one: TopicPartition) -> list[int]:
        """The offsets that are still to come."""
        batches = self.played.logs[one].batches
        return [at for batch in batches for at in range(batch.first, batch.behind) if at >= self.expected[one]]

    # ---- brokers

    def move(self) -> None:
        self.played.names_leaders = self.random.random() < 0.5
        self.played.move(self.one(), self.random.choice(list(NODES)))

    def prefer(self) -> None:
        self.played.preferred = {self.one(): self.random.choice(list(NODES))}

    def drop(self) -> None:
        lines = self.played.driver.open_lines
        if lines:
            self.random.choice(lines).drop()

    def leave(self) -> None:
        address = self.random.choice([NODES[2], NODES[3]])
        self.played.driver.unreachable[address] = refused(address)
        for line in self.played.driver.open_lines:
            if line.address == address:
                line.drop()

    def come_back(self) -> None:
        self.played.driver.unreachable.clear()

    def forget(self) -> None:
        self.played.sessions[self.random.choice(list(NODES))].clear()

    def fail(self) -> None:
        self.played.fails[self.one()] = self.random.choice(PASSING)

    def heal(self) -> None:
        self.played.fails.clear()

    # ---- whoever reads

    def pause(self) -> None:
        one = self.one()
        self.paused.add(one)
        self.probe.fetcher.pause([one])

    def resume(self) -> None:
        self.probe.fetcher.resume(self.paused)
        self.paused.clear()

    def seek(self) -> None:
        one = self.one()
        self.expected[one] = self.random.randint(0, self.played.logs[one].end)
        self.probe.fetcher.seek(one, self.expected[one])

    def hurry(self) -> None:
        """In order of time, or not."""
        self.probe.fetcher.read_in_time(self.random.choice([None, 0, 500_000, 1 << 60]))

    def put_back(self) -> None:
        one = self.one()
        self.expected[one] = self.random.randint(0, self.played.logs[one].end)
        self.probe.fetcher.put_back({one: (self.expected[one], self.time())})

    def replace(self) -> None:
        one = self.one()
        self.probe.fetcher.remove([one])
        self.expected[one] = self.played.logs[one].start
        self.probe.fetcher.add({one: self.expected[one]})
        self.paused.discard(one)

    def take(self) -> None:
        """Answer by answer, so that a reset counts for what comes behind it."""
        for fetched in self.probe.fetcher.take():
            self.probe._note(fetched)
            self.check()
            for event in self.probe.events:
                self.hear(event)
            self.probe.events.clear()

    def check(self) -> None:
        for one, rows in self.probe.rows.items():
            new = rows[self.counted[one] :]
            assert new == self.behind(one)[: len(new)], one
            self.counted[one] += len(new)
            self.expected[one] = new[-1] + 1 if new else self.expected[one]

    def hear(self, event: object) -> None:
        assert not isinstance(event, Failed), event
        if isinstance(event, Reset):
            assert not [at for at in self.behind(event.partition) if at < event.offset]
            self.expected[event.partition] = event.position
        if isinstance(event, AtEnd):
            assert not [at for at in self.behind(event.partition) if at < event.offset]

    def calm_down(self) -> None:
        self.heal()
        self.come_back()
        self.resume()
        self.played.throttle_ms = 0
        for _ in range(40):
            self.played.time.advance(500)
            self.take()


@pytest.mark.parametrize("seed", range(25))
def test_every_row_comes_once_and_in_order_whatever_happens(seed: int) -> None:
    turmoil = Turmoil(seed)
    for _ in range(STEPS):
        turmoil.step()
    turmoil.calm_down()
    assert {one: turmoil.behind(one) for one in turmoil.partitions} == {one: [] for one in turmoil.partitions}
    assert {one: turmoil.probe.fetcher.position(one) for one in turmoil.partitions} == {
        one: log.end for one, log in turmoil.played.logs.items()
    }
