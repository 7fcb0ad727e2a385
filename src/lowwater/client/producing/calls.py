"""Rows of one call on their way: who they belong to, and which of them are in which batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lowwater.client.errors import ClientError
from lowwater.client.producing.identity import NOBODY, Identity
from lowwater.client.producing.reports import Failure, Report
from lowwater.types import TopicPartition
from lowwater.wire.records import BatchHeader, fill_header


class Call:
    """A record batch that was handed in for one topic. `numbers` says which rows of the call its rows are."""

    __slots__ = (
        "deadline_ms",
        "left",
        "number",
        "numbers",
        "on_end",
        "on_failure",
        "report",
        "rows",
        "size",
        "source",
        "topic",
    )

    def __init__(
        self, topic: str, source: Any, rows: Any, numbers: Any, size: int, report: Report, deadline_ms: float
    ) -> None:
        self.topic = topic
        self.source = source
        self.rows = rows
        self.numbers = numbers
        self.size = size
        self.report = report
        self.deadline_ms = deadline_ms
        self.number = 0
        self.left: int = rows.count
        self.on_end: Callable[[Call], None] | None = None
        self.on_failure: Callable[[ClientError], None] | None = None

    @property
    def everything(self) -> Any:
        """All its rows. Numbers ascend, so that their order is that of the rows."""
        return self.numbers.argsort()

    def written(self, partition: TopicPartition, chosen: Any, base_offset: int) -> None:
        self.report.written(partition, self.numbers[chosen], base_offset)
        self._count(len(chosen))

    def failed(self, partition: int | None, chosen: Any, error: ClientError) -> None:
        if not len(chosen):
            return
        # First: a transaction must know that it is broken before somebody learns that its rows are settled.
        if self.on_failure is not None:
            self.on_failure(error)
        self.report.refused(Failure(self.topic, partition, self.numbers[chosen], error, self.source, chosen))
        self._count(len(chosen))

    def _count(self, rows: int) -> None:
        self.left -= rows
        if not self.left and self.on_end is not None:
            self.on_end(self)


class Parcel:
    """Rows of a call for one partition; those before `at` are in batches already."""

    __slots__ = ("at", "call", "chosen")

    def __init__(self, call: Call, chosen: Any) -> None:
        self.call = call
        self.chosen = chosen
        self.at = 0

    @property
    def rest(self) -> Any:
        return self.chosen[self.at :]


class Batch:
    """Rows of a parcel as they are sent. They keep their sequence through every retry."""

    __slots__ = ("call", "chosen", "data", "first", "identity", "sequence", "tries")

    def __init__(
        self, call: Call, chosen: Any, first: int, data: bytearray, identity: Identity = NOBODY, sequence: int = -1
    ) -> None:
        self.call = call
        self.chosen = chosen
        self.first = first
        self.data = data
        self.identity = identity
        self.sequence = sequence
        self.tries = 0

    @property
    def order(self) -> tuple[int, int]:
        """Of its partition's batches, smaller is to be written first."""
        return self.call.number, self.first

    def stamp(self, identity: Identity, sequence: int) -> None:
        """Another identity, because the broker did not know the sequences of the one before."""
        header = BatchHeader.parse(self.data)
        stamped = header._replace(
            producer_id=identity.producer_id, producer_epoch=identity.epoch, base_sequence=sequence
        )
        fill_header(self.data, stamped)
        self.identity, self.sequence = identity, sequence
