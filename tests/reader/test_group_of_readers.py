"""Readers that share a group: they come and go, and every row is returned to exactly one of them."""

from __future__ import annotations

import random
import threading
from collections import Counter
from typing import Any

import pytest

import lowwater
from lowwater.testing import Broker

PARTITIONS = 6
ROWS_EACH = 1_000
READERS = 3
LIMIT_S = 180  # kernels may have to be compiled first
STYLES: dict[str, dict[str, Any]] = {
    "range": {"partition.assignment.strategy": "range", "heartbeat.interval.ms": 100},
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky", "heartbeat.interval.ms": 100},
    "consumer": {"group.protocol": "consumer"},
}


class Group:
    """What its readers returned, counted; each reader reads some batches, leaves, and the next one comes."""

    def __init__(self, broker: Broker, style: str) -> None:
        self.bootstrap = broker.bootstrap
        self.config = STYLES[style]
        self.random = random.Random(style)
        self.seen: Counter[tuple[int, int]] = Counter()
        self.lock = threading.Lock()
        self.is_over = threading.Event()
        self.came = 0
        self.failures: list[BaseException] = []

    def read_on(self) -> None:
        try:
            while not self.is_over.is_set():
                with self.lock:
                    self.came += 1
                    batches = self.random.randint(1, 20)
                self._read(batches)
        except BaseException as error:
            self.failures.append(error)
            self.is_over.set()
            raise

    def _read(self, batches: int) -> None:
        with lowwater.read(
            "t", bootstrap=self.bootstrap, group="g", batch_size=40, order=None, config=self.config
        ) as reader:
            while batches and not self.is_over.is_set():
                batch = reader.poll(timeout_ms=200)
                if batch.num_rows:
                    batches -= 1
                    self._count(batch)

    def _count(self, batch: Any) -> None:
        places = zip(batch.column("partition").to_pylist(), batch.column("offset").to_pylist(), strict=True)
        with self.lock:
            self.seen.update(places)
            if len(self.seen) == PARTITIONS * ROWS_EACH:
                self.is_over.set()


@pytest.mark.parametrize("style", STYLES)
def test_readers_that_come_and_go_return_every_row_once(style: str) -> None:
    with Broker({"group.consumer.heartbeat.interval.ms": "100"}) as broker:
        for number in range(PARTITIONS):
            broker.fill("t", number, next=ROWS_EACH)
        group = Group(broker, style)
        threads = [threading.Thread(target=group.read_on, daemon=True) for _ in range(READERS)]
        for thread in threads:
            thread.start()
        assert group.is_over.wait(LIMIT_S), f"{len(group.seen)} rows after {group.came} readers"
        for thread in threads:
            thread.join(LIMIT_S)
        assert not group.failures
        assert group.came > READERS
        assert set(group.seen.values()) == {1}
