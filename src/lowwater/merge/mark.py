"""The low-water mark: up to where records may be released."""

from __future__ import annotations

from typing import NamedTuple


class Mark(NamedTuple):
    """Records up to this key may go: those stamped before it, and those of the same time up to this partition.

    Ties are broken by topic and partition, so that the order does not depend on how records happened to arrive. When
    the clock of partition 1 stands at 100 it may still bring more stamped 100, and they go before those of partition 2.
    """

    timestamp_ms: int
    topic: str
    partition: int

    def covers(self, timestamp_ms: int, topic: str, partition: int) -> bool:
        return (timestamp_ms, topic, partition) <= self


BEGINNING_MS = -(1 << 63)
END_MS = (1 << 63) - 1
NOTHING = Mark(BEGINNING_MS, "", -1)
EVERYTHING = Mark(END_MS, "\U0010ffff", 1 << 31)
