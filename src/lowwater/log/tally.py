"""Counting a segment's batches: its size, its ends, its latest timestamp, and the index that grows with them."""

from __future__ import annotations

from lowwater.log.index import SegmentIndex
from lowwater.log.sidecar import SegmentFacts
from lowwater.types import Buffer


class Tally:
    """What is known of a segment from the batches noted so far."""

    __slots__ = (
        "_index",
        "base_offset",
        "first_timestamp",
        "has_aborts",
        "max_timestamp",
        "max_timestamp_offset",
        "modified_ms",
        "next_offset",
        "size",
    )

    def __init__(self, base_offset: int, now_ms: int) -> None:
        self.base_offset = base_offset
        self.modified_ms = now_ms
        self.start_over()
        self._index: SegmentIndex | None = None

    def start_over(self) -> None:
        """Forget everything about the content; `note` brings it back batch by batch."""
        self._index = SegmentIndex()
        self.size = 0
        self.next_offset = self.base_offset
        self.max_timestamp = self.first_timestamp = -1
        self.max_timestamp_offset = self.base_offset
        self.has_aborts = False

    @property
    def index(self) -> SegmentIndex:
        assert self._index is not None
        return self._index

    def note(self, prefix: Buffer, last_offset: int, max_timestamp: int, size: int, interval: int) -> None:
        """Take into account the batch that follows in the file; `prefix` is what its CRC does not cover."""
        index = self._index or self.index
        position = self.size
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if index.unindexed_bytes > interval:
            latest_offset = self.max_timestamp_offset - self.base_offset
            index.add_entry(last_offset - self.base_offset, position, self.max_timestamp, latest_offset)
        if not position:
            self.first_timestamp = max_timestamp
        index.note_batch(prefix, last_offset - self.base_offset, position, size)
        self.size = position + size
        self.next_offset = last_offset + 1

    @property
    def facts(self) -> SegmentFacts:
        return SegmentFacts(
            self.size,
            self.next_offset,
            self.max_timestamp,
            self.max_timestamp_offset,
            self.first_timestamp,
            self.modified_ms,
            self.has_aborts,
        )

    def take(self, facts: SegmentFacts) -> None:
        """Believe what was known of this segment before; the index is found when it is needed."""
        self.size, self.next_offset, self.max_timestamp, self.max_timestamp_offset = facts[:4]
        self.first_timestamp, self.modified_ms, self.has_aborts = facts[4:]
        self._index = None
