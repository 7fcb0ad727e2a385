"""Ends of partitions that compaction has emptied: the log goes on up to there, but no record is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lowwater.client.cluster import Cluster
from lowwater.client.errors import ClientError, UnsupportedError
from lowwater.client.fetching.partition import PartitionFetch
from lowwater.client.fetching.questions import Questions
from lowwater.client.offsets import EARLIEST_LOCAL
from lowwater.pending import Pending


class Gaps:
    """Decides about partitions of which an answer brought nothing although there was room, and an end ahead.

    What lies in tiered storage may be missing from an answer because it did not come in time. So a gap is one only
    where everything behind the position is local: then it would have been there.
    """

    def __init__(
        self,
        cluster: Cluster,
        isolation: str,
        *,
        skip: Callable[[PartitionFetch], None],
        wait: Callable[[PartitionFetch], None],
        again: Callable[[PartitionFetch, ClientError | None], None],
        ended: Callable[[Pending[Any]], None],
    ) -> None:
        self._skip = skip
        self._wait = wait
        self._again = again
        self._places = Questions(
            cluster, (EARLIEST_LOCAL,), isolation, answered=self._decide, unknown=self._unknown, ended=ended
        )
        self.look_into = self._places.ask
        self.close = self._places.close

    def _decide(self, partition: PartitionFetch, places: list[int]) -> None:
        [local_start] = places
        if 0 <= local_start <= partition.position:
            self._skip(partition)
        else:
            self._wait(partition)

    def _unknown(self, partition: PartitionFetch, error: ClientError) -> None:
        if isinstance(error, UnsupportedError):
            self._skip(partition)  # brokers that cannot be asked this have no tiered storage
        else:
            self._again(partition, error)
