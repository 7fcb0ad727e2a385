"""Logs as scenarios write them down: the timestamps of records, and what else lies between them.

    [100, 200, null, {"abort": [300]}, {"commit": [400]}, {"empty": 2}]

A number is a record with that timestamp, null one without; a transaction has a marker behind it; `empty` is a batch
whose records compaction took away. Every number, and every other thing, is a batch of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lowwater.types import TopicPartition
from lowwater.wire.control import build_end_marker
from lowwater.wire.records import TRANSACTIONAL, Record, build_batch, set_position

TOPIC = "cars"
NO_TIME = -1
PRODUCER_ID = 7


def place(text: str) -> TopicPartition:
    """`p1`, or `bikes/p1`."""
    topic, _, partition = text.rpartition("/")
    return TopicPartition(topic or TOPIC, int(partition.removeprefix("p")))


def named(one: TopicPartition, timestamp: int | None) -> str:
    """`p1@100`, as scenarios name a row; without a timestamp, `p1@-`."""
    topic = "" if one.topic == TOPIC else f"{one.topic}/"
    return f"{topic}p{one.partition}@{'-' if timestamp in (None, NO_TIME) else timestamp}"


def times_of(thing: Any) -> list[int]:
    """The timestamps of the records that readers of committed records get of it."""
    if isinstance(thing, dict):
        return list(thing.get("commit", []))
    return [NO_TIME if thing is None else thing]


@dataclass
class StagedLog:
    """One partition: its batches, each with the offset behind it."""

    one: TopicPartition
    batches: list[tuple[int, bytes]] = field(default_factory=list)
    aborted: list[tuple[int, int]] = field(default_factory=list)  # where a transaction began, and its marker
    start: int = 0
    end: int = 0

    def write(self, things: Sequence[Any]) -> None:
        for thing in things:
            if not isinstance(thing, dict):
                self._records([NO_TIME if thing is None else thing])
            elif "empty" in thing:
                self._append(build_batch([], base_offset=0, last_offset=thing["empty"] - 1), thing["empty"])
            else:
                is_commit = "commit" in thing
                first = self.end
                self._records(thing["commit" if is_commit else "abort"], attributes=TRANSACTIONAL)
                if not is_commit:
                    self.aborted.append((first, self.end))
                self._append(build_end_marker(PRODUCER_ID, 0, is_commit, 0, 0), 1)

    def _records(self, times: Sequence[int], attributes: int = 0) -> None:
        records = [Record(at, time, None, b"v") for at, time in enumerate(times)]
        producer_id = PRODUCER_ID if attributes else -1
        self._append(build_batch(records, attributes=attributes, producer_id=producer_id), len(times))

    def _append(self, batch: bytearray, count: int) -> None:
        set_position(batch, self.end, 0)
        self.end += count
        self.batches.append((self.end, bytes(batch)))

    def read(self, offset: int, count: int) -> bytes:
        """The next batches from there."""
        return b"".join([data for behind, data in self.batches if behind > offset][:count])

    def left(self, offset: int) -> int:
        return sum(behind > offset for behind, _ in self.batches)
