"""The client of a Python worker: one for each set of settings, kept from task to task.

Workers live across micro-batches and queries. To connect, to log in and to ask for leaders takes longer than to read a
small batch, so that is done once.
"""

from __future__ import annotations

import contextlib
import os
import time
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
from lowwater.spark.shaping import Shape
from lowwater.spark.splitting import Task
from lowwater.types import TopicPartition
from lowwater.wire.schema import ZERO_UUID

PARTITION_BYTES = 8 * 1024 * 1024
"""How much a Fetch brings of a partition, unless the user says: large pieces cost much less for each row."""
CLIENTS_MAX = 4
IDLE_S = 300
_PARTITION_BYTES = "max.partition.fetch.bytes"


class WorkerClient:
    """Connections to one cluster. Made in the process that uses it: a fork takes none of it along."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        config = ClientConfig(settings)
        if not config.is_given(_PARTITION_BYTES):
            config = ClientConfig({**settings, _PARTITION_BYTES: PARTITION_BYTES})
        self.pid = os.getpid()
        self.used_s = time.monotonic()
        self._driver = BlockingDriver(config)
        self.cluster = Cluster(Network(config, self._driver))
        self.run = self._driver.run

    @property
    def is_usable(self) -> bool:
        """Not in another process; and brokers close connections that were not used for long."""
        return self.pid == os.getpid() and time.monotonic() - self.used_s < IDLE_S

    def close(self) -> None:
        if self.pid == os.getpid():
            self.cluster.network.close()
        self._driver.close()


_clients: dict[tuple[tuple[str, str], ...], WorkerClient] = {}
"""The one used last stands last."""


def client_for(settings: Mapping[str, str]) -> WorkerClient:
    """That of these settings, made when there is none."""
    key = tuple(sorted(settings.items()))
    client = _clients.pop(key, None)
    if client is not None and not client.is_usable:
        client.close()
        client = None
    while len(_clients) >= CLIENTS_MAX:
        _clients.pop(next(iter(_clients))).close()
    client = _clients[key] = client or WorkerClient(settings)
    client.used_s = time.monotonic()
    return client


def forget(client: WorkerClient) -> None:
    """Something went wrong with it: the next task begins with a new one."""
    for key in [key for key, each in _clients.items() if each is client]:
        del _clients[key]
    client.close()


def read_task(
    settings: Mapping[str, str],
    task: Task,
    shape: Shape,
    *,
    on_lost: Callable[[Lost], None],
    patience_ms: float | None = None,
) -> Iterator[Any]:
    """Every row of the task's ranges, in batches of the shape. RequestTimeoutError when none comes for so long."""
    client = client_for(settings)
    reading = RangeReading(client.cluster, _ranges(task), on_lost=on_lost, columns=shape.reads)
    try:
        while (batch := client.run(reading.next(), patience_ms)) is not None:
            yield shape.fit(batch)
    except Exception:
        forget(client)
        raise
    finally:
        with contextlib.suppress(ClientError):
            client.run(reading.close())
        client.used_s = time.monotonic()


def _ranges(task: Task) -> list[OffsetRange]:
    return [
        OffsetRange(TopicPartition(each.topic, each.partition), each.start, each.end, _id(each.topic_id))
        for each in task.ranges
    ]


def _id(text: str) -> bytes:
    return topic_id(text) if text else ZERO_UUID
