"""What becomes of a partition that has nothing at the offset it is to be read from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lowwater.client.cluster import Cluster
from lowwater.client.errors import ClientError, OffsetOutOfRangeError, truncated
from lowwater.client.fetching.events import Event, Failed, Reset
from lowwater.client.fetching.partition import PartitionFetch
from lowwater.client.fetching.questions import Questions
from lowwater.client.fetching.stored import NO_EPOCH
from lowwater.client.offsets import EARLIEST, LATEST
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


class Resets:
    """Asks where such partitions begin and end, and does what the policy says."""

    def __init__(
        self,
        cluster: Cluster,
        policy: str,
        isolation: str,
        advice: str,
        *,
        again: Callable[[PartitionFetch, ClientError | None], None],
        tell: Callable[[PartitionFetch, Event], None],
        ended: Callable[[Pending[Any]], None],
    ) -> None:
        self._policy = _POLICY[policy]
        self._advice = advice
        self._again = again
        self._tell = tell
        self._bounds = Questions(
            cluster, (EARLIEST, LATEST), isolation, answered=self._decide, unknown=self._unknown, ended=ended
        )
        self.goes_on = self._policy != "error"
        self.out_of_range = self._bounds.ask
        self.close = self._bounds.close

    def _unknown(self, partition: PartitionFetch, error: ClientError) -> None:
        if error.retriable or error.topic not in (None, partition.one.topic):
            self._again(partition, error)
        else:
            partition.is_stopped = True
            self._tell(partition, Failed(partition.one, error))

    def _decide(self, partition: PartitionFetch, bounds: list[int]) -> None:
        offset, (log_start, log_end) = partition.position, bounds
        one, was_read = partition.one, partition.fetched_epoch != NO_EPOCH
        error = _out_of_range(one, offset, self._advice)
        if was_read and log_start <= offset:
            # No such leader ever was, by what is in the log now: of what was read nothing is certain.
            error = truncated(one, log_start, offset, self._advice)
        error = error.within(log_start, log_end)
        if log_start <= offset <= log_end and not was_read:
            self._again(partition, error)  # it is there by now
        elif not self.goes_on:
            partition.is_stopped = True
            self._tell(partition, Failed(one, error))
        else:
            partition.go_to(log_start if self._policy == "earliest" else log_end)
            self._tell(partition, Reset(one, offset, partition.position, log_start, log_end))
            self._again(partition, None)


def _out_of_range(one: TopicPartition, offset: int, advice: str) -> OffsetOutOfRangeError:
    code = ErrorCode.OFFSET_OUT_OF_RANGE
    return OffsetOutOfRangeError(code, topic=one.topic, partition=one.partition, offset=offset, advice=advice)
