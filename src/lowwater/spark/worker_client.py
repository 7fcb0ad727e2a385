"""The client of a Python worker, and how a task is read by it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
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
from lowwater.spark.shaping import Shape
from lowwater.spark.splitting import Task
from lowwater.types import TopicPartition
from lowwater.wire.schema import ZERO_UUID

PARTITION_BYTES = 8 * 1024 * 1024
"""How much a Fetch brings of a partition, unless the user says: large pieces cost much less for each row."""
_PARTITION_BYTES = "max.partition.fetch.bytes"


class WorkerClient:
    """Connections to one cluster, for the one thread that reads."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        config = ClientConfig(settings)
        if not config.is_given(_PARTITION_BYTES):
            config = ClientConfig({**settings, _PARTITION_BYTES: PARTITION_BYTES})
        self._driver = BlockingDriver(config)
        self.cluster = Cluster(Network(config, self._driver))
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
    reading = RangeReading(client.cluster, _ranges(task), on_lost=on_lost, columns=shape.reads)
    try:
        while (batch := client.run(reading.next(), patience_ms)) is not None:
            yield shape.fit(batch)
    except Exception:
        clients.forget(settings)
        raise
    finally:
        with contextlib.suppress(ClientError):
            client.run(reading.close())
        clients.used(settings)


def _ranges(task: Task) -> list[OffsetRange]:
    return [
        OffsetRange(TopicPartition(each.topic, each.partition), each.start, each.end, _id(each.topic_id))
        for each in task.ranges
    ]


def _id(text: str) -> bytes:
    return topic_id(text) if text else ZERO_UUID
