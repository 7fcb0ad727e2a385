"""Questions about offsets that come up while fetching, asked for many partitions at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lowwater.client.cluster import Cluster
from lowwater.client.errors import ClientError
from lowwater.client.fetching.partition import PartitionFetch
from lowwater.client.flow import Flow
from lowwater.client.offsets import list_offsets_many
from lowwater.pending import Pending
from lowwater.types import TopicPartition


class Questions:
    """The same questions for every partition, by the codes that ListOffsets has for them."""

    def __init__(
        self,
        cluster: Cluster,
        asked: Sequence[int],
        isolation: str,
        *,
        answered: Callable[[PartitionFetch, list[int]], None],
        unknown: Callable[[PartitionFetch, ClientError], None],
        ended: Callable[[Pending[Any]], None],
    ) -> None:
        self._cluster = cluster
        self._asked = asked
        self._isolation = isolation
        self._answered = answered
        self._unknown = unknown
        self._ended = ended
        self._waiting: dict[TopicPartition, PartitionFetch] = {}
        self._asking: Flow[None] | None = None
        self._is_closed = False

    def ask(self, partition: PartitionFetch) -> None:
        self._waiting[partition.one] = partition
        if self._asking is None:
            # In the next turn: an answer mostly says it of many.
            self._cluster.network.driver.call_soon(self._begin)

    def _begin(self) -> None:
        if self._asking is not None or not self._waiting or self._is_closed:
            return
        waiting, self._waiting = self._waiting, {}
        self._asking = asking = Flow(self._ask(waiting))
        asking.on_done(self._done)

    def _done(self, asking: Pending[Any]) -> None:
        self._asking = None
        self._ended(asking)
        self._begin()

    async def _ask(self, partitions: dict[TopicPartition, PartitionFetch]) -> None:
        asked = [dict.fromkeys(partitions, each) for each in self._asked]
        try:
            found = await list_offsets_many(self._cluster, asked, isolation=self._isolation)
        except ClientError as error:
            for partition in partitions.values():
                self._unknown(partition, error)
            return
        for one, partition in partitions.items():
            self._answered(partition, [each[one].offset for each in found])

    def close(self) -> None:
        self._is_closed = True
        if self._asking is not None:
            self._asking.cancel()
