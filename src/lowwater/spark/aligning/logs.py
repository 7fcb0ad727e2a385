"""What brokers are asked to find a cut."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from lowwater.spark.offsets import Range
from lowwater.types import TopicPartition


class Stamp(NamedTuple):
    """A record and its time."""

    offset: int
    time_ms: int


class Rows(NamedTuple):
    """Rows of a partition in the order of their offsets; what is no row, as a transaction's end, is not among them."""

    offsets: Sequence[int]
    times_ms: Sequence[int]


@dataclass(frozen=True, slots=True)
class Edge:
    """[start, head) is there to be read."""

    start: int
    head: int

    @property
    def size(self) -> int:
        return max(self.head - self.start, 0)


class Logs(Protocol):
    """Partitions, as brokers show them. Each call is one request to each broker that leads some of them, or a few.

    `has_markers`: ends of transactions may stand between the rows, and be taken for one.
    """

    @property
    def has_markers(self) -> bool: ...

    def first_at(self, partitions: Collection[TopicPartition], time_ms: int) -> Mapping[TopicPartition, Stamp | None]:
        """By partition the first record from the beginning of its log stamped at or after that; None: there is none.

        That may be one that was read long ago, or the end of a transaction, which is no row at all.
        """

    def rows(self, ranges: Mapping[TopicPartition, Range]) -> Mapping[TopicPartition, Rows]:
        """The rows of these offsets, fetched."""
