"""Records from a fetcher's answers to stdout, one by one. Large reads go by `columns` instead."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from lowwater.cli.cat.asked import Looks, Where
from lowwater.cli.cat.envelope import EnvelopePrinter
from lowwater.cli.cat.layout import Printer
from lowwater.cli.cat.talk import Talk
from lowwater.cli.cat.unpacking import UnpackError
from lowwater.client.errors import ClientError
from lowwater.client.fetching.events import Fetched
from lowwater.client.rows import Row, rows_of
from lowwater.types import TopicPartition

CHUNK_BYTES = 256 * 1024


@dataclass(slots=True)
class Poured:
    """What came of one answer. `behind`: first offset of each partition that was not printed, or read again."""

    rows: int = 0
    behind: dict[TopicPartition, int] = field(default_factory=dict)
    stopped_at: dict[TopicPartition, int] = field(default_factory=dict)
    """First offset of each partition that is not before the stop."""
    unread: set[TopicPartition] = field(default_factory=set)
    """Partitions whose rest has to be fetched again."""
    error: ClientError | None = None


class Sink(Protocol):
    """Prints the records of an answer, at most `limit` of them, and gives its memory back."""

    def pour(self, answer: Fetched, limit: int | None) -> Poured: ...


class Output:
    """stdout. What came together is written together, and at once: whoever waits for it sees it."""

    def __init__(self, *, is_unbuffered: bool = False) -> None:
        self._file = sys.stdout.buffer
        self._limit = 0 if is_unbuffered else CHUNK_BYTES
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, text: bytes) -> None:
        self._parts.append(text)
        self._size += len(text)
        if self._size > self._limit:
            self.flush()

    def write(self, data: bytes | memoryview) -> None:
        self.flush()
        self._file.write(data)

    def flush(self) -> None:
        parts, self._parts, self._size = self._parts, [], 0
        self._file.write(b"".join(parts))
        self._file.flush()


class RowSink:
    """Record by record, as Python values: quick to start, and it needs no extra."""

    def __init__(
        self, where: Where, looks: Looks, broker_of: Callable[[str, int], int], output: Output, talk: Talk
    ) -> None:
        self._stop_ms = where.stop_ms
        self._printer: Printer | EnvelopePrinter = (
            EnvelopePrinter(looks.layout.first_text, broker_of)
            if looks.is_json
            else Printer(looks.layout, looks.unpack)
        )
        self._output = output
        self._talk = talk

    def pour(self, answer: Fetched, limit: int | None) -> Poured:
        poured = Poured()
        try:
            for one, position in zip(answer.slices, answer.positions, strict=True):
                for row in rows_of(one):
                    if limit is not None and poured.rows >= limit:
                        return poured
                    self._print(row, one.partition, poured)
                poured.behind[one.partition] = position
        except ClientError as error:
            poured.error = error
        finally:
            self._output.flush()
            answer.release()
        return poured

    def _print(self, row: Row, partition: TopicPartition, poured: Poured) -> None:
        if self._stop_ms is not None and row.timestamp_ms >= self._stop_ms:
            poured.stopped_at.setdefault(partition, row.offset)
            return
        try:
            self._output.add(self._printer.text(row))
        except UnpackError as error:
            self._talk.trouble(
                f"Failed to format message in {row.topic} [{row.partition}] at offset {row.offset}: {error}"
            )
        poured.rows += 1
        poured.behind[partition] = row.offset + 1
