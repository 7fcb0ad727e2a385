"""Brokers that refuse, lose answers, fall silent and hand over partitions, in any order: each row is written once."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.unit.client.producing.played import TOPIC, Played, rows
from tests.unit.client.virtual import LATER, Asked

from lowwater.client.producing.reports import Report
from lowwater.errors import ErrorCode
from lowwater.types import TopicPartition
from lowwater.wire.records import BatchHeader

PARTITIONS = 3
STEPS = 40
REFUSALS = [
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
]


class Turmoil:
    """Rows are numbered in the order they are sent."""

    def __init__(self, seed: int, **settings: Any) -> None:
        self.random = random.Random(seed)
        self.played = Played(PARTITIONS, batch_size=150, request_timeout_ms=2_000, **settings)
        self.played.more["Produce"] = self.produce
        self.is_kind = False
        self.rows_max = self.random.choice([3, 5, 100])
        self.sent = 0
        self.reports: list[tuple[int, list[bytes], Report]] = []

    def produce(self, asked: Asked) -> Any:
        if self.is_kind:
            return self.played.produced(asked, lambda one, data: self._append_fairly(asked, one, data))
        chance = self.random.random()
        if chance < 0.05:
            return self.played.hang_up(asked)
        if chance < 0.15:
            self.played.produced(asked, lambda one, data: self._append_fairly(asked, one, data))
            return self.played.hang_up(asked)
        if chance < 0.18:
            return self.played.say_nothing(asked)
        if chance < 0.30:
            return self._later(asked)
        return self.played.produced(asked, lambda one, data: self._append(asked, one, data))

    def _append(self, asked: Asked, one: TopicPartition, data: bytes) -> tuple[int, int]:
        if self.random.random() < 0.15:
            return self.random.choice(REFUSALS), -1
        code, offset = self._append_fairly(asked, one, data)
        if not code and self.random.random() < 0.05:
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, -1
        return code, offset

    def _append_fairly(self, asked: Asked, one: TopicPartition, data: bytes) -> tuple[int, int]:
        if BatchHeader.parse(data).record_count > self.rows_max:
            return ErrorCode.MESSAGE_TOO_LARGE, -1
        return self.played.append(asked, one, data)

    def _later(self, asked: Asked) -> Any:
        """Slow, and nothing behind it on this connection is served before."""
        response = self.played.produced(asked, lambda one, data: self._append_fairly(asked, one, data))
        line = asked.line
        self.played.silent.append(line)

        def answer() -> None:
            if line.is_open:
                asked.answer(response)
                line.drop()

        self.played.driver.call_later(self.random.choice([10, 500]), answer)
        return LATER

    def step(self) -> None:
        if self.random.random() < 0.6:
            partition, count = self.random.randrange(PARTITIONS), self.random.choice([1, 5, 40])
            values = rows(self.sent, count)
            self.sent += count
            self.reports.append((partition, values, self.played.send(values, partition=partition)))
        if self.random.random() < 0.15:
            moved = TopicPartition(TOPIC, self.random.randrange(PARTITIONS))
            self.played.leaders[moved] = self.random.choice([1, 2, -1])
        self.played.driver.time.advance(self.random.choice([0, 0, 1, 30, 400]))

    def calm(self) -> None:
        self.is_kind = True
        for one, leader in self.played.leaders.items():
            self.played.leaders[one] = max(leader, 1)
        self.played.run(self.played.core.flush())


@pytest.mark.parametrize("block", range(4))
def test_every_row_is_written_once_and_in_order(block: int) -> None:
    for seed in range(block * 8, block * 8 + 8):
        turmoil = Turmoil(seed)
        for _ in range(STEPS):
            turmoil.step()
        turmoil.calm()
        for partition in range(PARTITIONS):
            expected = [value for where, values, _ in turmoil.reports if where == partition for value in values]
            assert turmoil.played.values(partition) == expected, f"seed {seed}, partition {partition}"
        for partition, values, report in turmoil.reports:
            _check_offsets(turmoil, partition, values, report, seed)


def _check_offsets(turmoil: Turmoil, partition: int, values: list[bytes], report: Report, seed: int) -> None:
    written = turmoil.played.values(partition)
    offsets = report.offsets().to_pylist()
    assert [written[offset] for offset in offsets] == values, f"seed {seed}: offsets are told that are not so"


@pytest.mark.parametrize("block", range(4))
def test_with_little_time_rows_fail_but_are_never_doubled_nor_out_of_order(block: int) -> None:
    failed = 0
    for seed in range(1_000 + block * 8, 1_000 + block * 8 + 8):
        turmoil = Turmoil(seed, delivery_timeout_ms=600, retry_backoff_ms=50)
        for _ in range(STEPS):
            turmoil.step()
        turmoil.calm()
        for partition in range(PARTITIONS):
            written = turmoil.played.values(partition)
            assert sorted(set(written)) == written, f"seed {seed}, partition {partition}"
        for partition, values, report in turmoil.reports:
            assert report.done
            lost = {number for failure in report.failures for number in failure.rows}
            delivered = {value for number, value in enumerate(values) if number not in lost}
            assert delivered <= set(turmoil.played.values(partition)), f"seed {seed}: told as written, and is not"
            failed += report.failed
    assert failed, "time was not short enough for anything to fail"
