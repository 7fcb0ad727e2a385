"""What becomes of a partition that has nothing at the offset it is to be read from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lowwater.client.cluster import Cluster
from lowwater.client.errors import ClientError, OffsetOutOfRangeError
from lowwater.client.fetching.events import Event, Failed, Reset
from lowwater.client.fetching.partition import PartitionFetch
from lowwater.client.flow import Flow
from lowwater.client.offsets import EARLIEST, LATEST, list_offsets_many
from lowwater.errors import ErrorCode
from lowwater.pending import Pending
from lowwater.types import TopicPartition

_POLICY = {
    "error": "error",
    "none": "error",
    "earliest": "earliest",
    "beginning": "earliest",
    "smallest": "earliest",
    "latest": "latest",
    "end": "latest",
    "largest": "latest",
}
_ADVICE = "choose another start, or set auto.offset.reset to earliest or latest"


class Resets:
    """Asks where such partitions begin and end, for many at once, and does what the policy says."""

    def __init__(
        self,
        cluster: Cluster,
        policy: str,
        isolation: str,
        *,
        again: Callable[[PartitionFetch, ClientError | None], None],
        tell: Callable[[PartitionFetch, Event], None],
        ended: Callable[[Pending[Any]], None],
    ) -> None:
        self._cluster = cluster
        self._policy = _POLICY[policy]
        self._isolation = isolation
        self._again = again
        self._tell = tell
        self._ended = ended
        self._waiting: dict[TopicPartition, PartitionFetch] = {}
        self._asking: Flow[None] | None = None
        self._is_closed = False

    def out_of_range(self, partition: PartitionFetch) -> None:
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
        asked = [dict.fromkeys(partitions, EARLIEST), dict.fromkeys(partitions, LATEST)]
        try:
            starts, ends = await list_offsets_many(self._cluster, asked, isolation=self._isolation)
        except ClientError as error:
            for partition in partitions.values():
                self._unknown(partition, error)
            return
        for one, partition in partitions.items():
            self._decide(partition, starts[one].offset, ends[one].offset)

    def _unknown(self, partition: PartitionFetch, error: ClientError) -> None:
        if error.retriable or error.topic not in (None, partition.one.topic):
            self._again(partition, error)
        else:
            partition.is_stopped = True
            self._tell(partition, Failed(partition.one, error))

    def _decide(self, partition: PartitionFetch, log_start: int, log_end: int) -> None:
        offset = partition.position
        error = _out_of_range(partition.one, offset).within(log_start, log_end)
        if log_start <= offset <= log_end:
            self._again(partition, error)  # it is there by now
        elif self._policy == "error":
            partition.is_stopped = True
            self._tell(partition, Failed(partition.one, error))
        else:
            partition.position = log_start if self._policy == "earliest" else log_end
            self._tell(partition, Reset(partition.one, offset, partition.position, log_start, log_end))
            self._again(partition, None)

    def close(self) -> None:
        self._is_closed = True
        if self._asking is not None:
            self._asking.cancel()


def _out_of_range(one: TopicPartition, offset: int) -> OffsetOutOfRangeError:
    code = ErrorCode.OFFSET_OUT_OF_RANGE
    return OffsetOutOfRangeError(code, topic=one.topic, partition=one.partition, offset=offset, advice=_ADVICE)
