"""The client of a Python worker, and how a task is read by it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from lowwater.client.blocking import BlockingDriver
from lowwater.client.cluster import Cluster
from lowwater.client.config import ClientConfig
from lowwater.client.errors import ClientError
from lowwater.client.network import Network
from lowwater.client.ranges import OffsetRange, RangeReading
from lowwater.client.releasing import Lost
from lowwater.client.topic_ids import topic_id
from lowwater.spark.kept import Kept
from lowwater.spark.ordering.reading import SliceReading
from lowwater.spark.shaping import Shape
from lowwater.spark.splitting import Task
from lowwater.types import TopicPartition
from lowwater.wire.schema import ZERO_UUID

PARTITION_BYTES = 8 * 1024 * 1024
"""How much a Fetch brings of a partition, unless the user says: large pieces cost much less for each row."""
KEPT_BYTES_MAX = 32 * 1024 * 1024
"""Memory of answers that a worker keeps for the next ones: there are as many workers as cores."""
_PARTITION_BYTES = "max.partition.fetch.bytes"


class WorkerClient:
    """One connection to each broker of one cluster, for the one thread that reads."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        config = ClientConfig(settings)
        if not config.is_given(_PARTITION_BYTES):
            config = ClientConfig({**settings, _PARTITION_BYTES: PARTITION_BYTES})
        self._driver = BlockingDriver(config)
        self.cluster = Cluster(Network(config, self._driver, kept_bytes_max=KEPT_BYTES_MAX, has_lanes=False))
        self.run = self._driver.run

    def close(self) -> None:
        self.cluster.network.close()
        self._driver.close()


clients: Kept[WorkerClient] = Kept(WorkerClient, WorkerClient.close)


def read_task(
    settings: Mapping[str, str],
    task: Task,
    shape: Shape,
    *,
    on_lost: Callable[[Lost], None],
    patience_ms: float | None = None,
) -> Iterator[Any]:
    """Every row of the task's ranges, in batches of the shape. RequestTimeoutError when none comes for so long."""
    client = clients.get(settings)
    read = _unordered if task.slice is None else _ordered
    try:
        yield from map(shape.fit, read(client, task, shape.reads, on_lost, patience_ms))
    except Exception:
        clients.forget(settings)
        raise
    finally:
        clients.used(settings)


def _unordered(
    client: WorkerClient, task: Task, columns: Sequence[str], on_lost: Callable[[Lost], None], patience_ms: float | None
) -> Iterator[Any]:
    reading = RangeReading(client.cluster, _ranges(task), on_lost=on_lost, columns=columns)
    try:
        while (batch := client.run(reading.next(), patience_ms)) is not None:
            yield batch
    finally:
        with contextlib.suppress(ClientError):
            client.run(reading.close())


def _ordered(
    client: WorkerClient, task: Task, columns: Sequence[str], on_lost: Callable[[Lost], None], patience_ms: float | None
) -> Iterator[Any]:
    assert task.slice is not None
    reading = SliceReading(client, _ranges(task), task.slice, columns, on_lost=on_lost, patience_ms=patience_ms)
    return reading.batches()


def _ranges(task: Task) -> list[OffsetRange]:
    return [
        OffsetRange(TopicPartition(each.topic, each.partition), each.start, each.end, _id(each.topic_id))
        for each in task.ranges
    ]


def _id(text: str) -> bytes:
    return topic_id(text) if text else ZERO_UUID
