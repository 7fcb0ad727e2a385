"""What became of rows that were sent: counts, places by partition, and which rows failed and why."""

from __future__ import annotations

from typing import Any, NamedTuple

from lowwater.client.errors import ClientError, DeliveryError
from lowwater.client.loading import WRITING, load
from lowwater.pending import Pending
from lowwater.types import TopicPartition

NO_OFFSET = -1
# Of a summary that nobody asks for; what is beyond is still counted.
FAILURES_KEPT = 1_000


class Placed(NamedTuple):
    """Rows in one partition. Offsets are those of the first and the last of them, -1 where brokers do not tell."""

    first_offset: int
    last_offset: int
    rows: int

    def and_then(self, other: Placed) -> Placed:
        known = [one for one in (self, other) if one.first_offset != NO_OFFSET]
        first = min((one.first_offset for one in known), default=NO_OFFSET)
        last = max((one.last_offset for one in known), default=NO_OFFSET)
        return Placed(first, last, self.rows + other.rows)


class Failure(NamedTuple):
    """Rows that were not written, or of which nobody knows. `rows` are their numbers within the call."""

    topic: str
    partition: int | None
    rows: Any
    error: ClientError
    source: Any = None
    places: Any = None

    def table(self) -> Any:
        """The rows themselves, as an Arrow record batch: to look at, or to send again."""
        return self.source.take(self.places)


class Summary:
    """Of any number of calls."""

    def __init__(self) -> None:
        self.rows = 0
        self.delivered = 0
        self.failed = 0
        self.partitions: dict[TopicPartition, Placed] = {}
        self.failures: list[Failure] = []

    def place(self, partition: TopicPartition, placed: Placed) -> None:
        before = self.partitions.get(partition)
        self.partitions[partition] = placed if before is None else before.and_then(placed)
        self.delivered += placed.rows

    def fail(self, failure: Failure) -> None:
        self.failed += len(failure.rows)
        if len(self.failures) < FAILURES_KEPT:
            self.failures.append(failure)

    def add(self, other: Summary) -> None:
        """What became of further rows."""
        self.rows += other.rows
        self.failed += other.failed
        for partition, placed in other.partitions.items():
            self.place(partition, placed)
        self.failures += other.failures[: FAILURES_KEPT - len(self.failures)]

    def raise_failures(self) -> None:
        """DeliveryError when any row failed."""
        if self.failed:
            first = self.failures[0]
            # A plain summary: errors outlive the client, and may go to another process.
            summary = Summary()
            summary.add(self)
            raise DeliveryError(summary, int(first.rows[0]), first.error) from first.error

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}(rows={self.rows}, delivered={self.delivered}, failed={self.failed})"


class Report(Summary):
    """Of one call, or of the plain records that left together. It fills until it is `done`."""

    def __init__(self) -> None:
        super().__init__()
        self.settled: Pending[Report] = Pending()
        self.is_asked = False
        """Whether somebody wanted to know: a flush need not raise what was seen already."""
        self._is_complete = False
        self._places: list[tuple[Any, int]] = []

    @property
    def done(self) -> bool:
        return self.settled.done

    def expect(self, rows: int) -> None:
        """So many more rows belong to this."""
        self.rows += rows

    def complete(self) -> None:
        """No more rows will be expected."""
        self._is_complete = True
        self._check()

    def written(self, partition: TopicPartition, numbers: Any, base_offset: int) -> None:
        """These rows stand one after the other from `base_offset` on."""
        count = len(numbers)
        last = NO_OFFSET if base_offset == NO_OFFSET else base_offset + count - 1
        self.place(partition, Placed(base_offset, last, count))
        self._places.append((numbers, base_offset))
        self._check()

    def refused(self, failure: Failure) -> None:
        self.fail(failure)
        self._check()

    def _check(self) -> None:
        if self._is_complete and not self.settled.done and self.delivered + self.failed == self.rows:
            self.settled.resolve(self)

    def offsets(self) -> Any:
        """The offset of each row, as an Arrow array: null for rows that failed, are not done, or whose is not told."""
        return load(WRITING).offsets(self.rows, self._places)
