"""The sparse index of one segment: where batches are, and how late they were.

An entry every `index.interval.bytes`, for the batch that begins there: its last offset, its position, and the largest
timestamp so far with the offset it came with. On disk they are Kafka's `.index` and `.timeindex`.

Between two entries lies an interval. `sums` holds a checksum per interval over the bytes of each batch header that the
batch's own CRC does not cover (base offset, length, epoch, magic, CRC), so that damage there is found as well.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from crc32c import crc32c

from lowwater.types import Buffer

NO_TIMESTAMP = -1


class SegmentIndex:
    """Offsets are relative to the segment's base offset."""

    __slots__ = (
        "_recent_offsets",
        "_recent_positions",
        "chain",
        "offsets",
        "positions",
        "sums",
        "time_offsets",
        "times",
        "unindexed_bytes",
        "unverified",
    )

    def __init__(self) -> None:
        self.offsets = array("I")
        self.positions = array("I")
        self.times = array("q")
        self.time_offsets = array("I")
        self.sums = array("I")
        self.chain = 0
        self.unindexed_bytes = 0
        # Every batch since the last entry, for the readers at the tail; those written by this process only.
        self._recent_offsets = array("I")
        self._recent_positions = array("I")
        # One byte per interval, 1 = not yet compared with its sum; None when everything was written by this process.
        self.unverified: bytearray | None = None

    def add_entry(self, last_offset: int, position: int) -> None:
        """An interval ends, and the next begins with the batch at `position`."""
        self.offsets.append(last_offset)
        self.positions.append(position)
        self.sums.append(self.chain)
        self.chain = 0
        self.unindexed_bytes = 0
        del self._recent_offsets[:], self._recent_positions[:]
        if self.unverified is not None:
            self.unverified.append(0)

    def add_time(self, timestamp: int, offset: int) -> None:
        """The largest timestamp so far; ignored when it has not grown."""
        if timestamp > (self.times[-1] if self.times else NO_TIMESTAMP):
            self.times.append(timestamp)
            self.time_offsets.append(offset)

    def note_batch(self, prefix: Buffer, last_offset: int, position: int, size: int) -> None:
        """A batch was written; `prefix` is the part of its header that its CRC does not cover."""
        self._recent_offsets.append(last_offset)
        self._recent_positions.append(position)
        self.chain = crc32c(prefix, self.chain)
        self.unindexed_bytes += size

    # -- lookups

    def position_before(self, offset: int) -> int:
        """Where to begin the search for the batch that holds `offset`."""
        recent = bisect_left(self._recent_offsets, offset)
        if 0 < recent < len(self._recent_offsets):
            return self._recent_positions[recent]
        entry = bisect_right(self.offsets, offset) - 1
        return self.positions[entry] if entry >= 0 else 0

    def boundary_before(self, position: int) -> int:
        """A batch begins here, at or before `position`."""
        entry = bisect_right(self.positions, position) - 1
        return self.positions[entry] if entry >= 0 else 0

    def position_for_time(self, timestamp: int) -> int:
        """Where to begin the search for the first batch with a timestamp at or after this one."""
        time_entry = bisect_left(self.times, timestamp)
        if time_entry == len(self.times):
            return self.positions[-1] if self.positions else 0
        entry = bisect_left(self.offsets, self.time_offsets[time_entry])
        return self.positions[entry - 1] if entry > 0 else 0

    # -- intervals

    def unverified_intervals(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """(number, first position, end position or -1 for the last) of what [start, end) touches and nobody checked."""
        if self.unverified is None:
            return
        first = bisect_right(self.positions, start)
        for number in range(first, bisect_left(self.positions, end) + 1):
            if self.unverified[number]:
                begin = self.positions[number - 1] if number else 0
                yield number, begin, self.positions[number] if number < len(self.positions) else -1

    def sum_of(self, number: int) -> int:
        return self.sums[number] if number < len(self.sums) else self.chain

    # -- Kafka's files

    def offset_file(self) -> bytes:
        """Entries of 8 bytes: relative offset, position."""
        pairs = array("I", bytes(8 * len(self.offsets)))
        pairs[0::2] = self.offsets
        pairs[1::2] = self.positions
        return _big_endian(pairs)

    def time_file(self, last_timestamp: int, last_offset: int) -> bytes:
        """Entries of 12 bytes: timestamp, relative offset; the last is the segment's maximum."""
        times, offsets = array("q", self.times), array("I", self.time_offsets)
        if last_timestamp > (times[-1] if times else NO_TIMESTAMP):
            times.append(last_timestamp)
            offsets.append(last_offset)
        halves = array("I", times.tobytes())
        low, high = (0, 1) if sys.byteorder == "little" else (1, 0)
        triples = array("I", bytes(12 * len(times)))
        triples[0::3] = halves[high::2]
        triples[1::3] = halves[low::2]
        triples[2::3] = offsets
        return _big_endian(triples)

    @classmethod
    def from_files(cls, offset_file: bytes, time_file: bytes) -> SegmentIndex:
        """The index that wrote these two; sums are not in them."""
        index = cls()
        pairs = _native(offset_file)
        index.offsets, index.positions = pairs[0::2], pairs[1::2]
        triples = _native(time_file)
        halves = array("I", bytes(8 * (len(triples) // 3)))
        low, high = (0, 1) if sys.byteorder == "little" else (1, 0)
        halves[high::2] = triples[0::3]
        halves[low::2] = triples[1::3]
        index.times = array("q", halves.tobytes())
        index.time_offsets = triples[2::3]
        return index


def _big_endian(numbers: array[int]) -> bytes:
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers.tobytes()


def _native(content: bytes) -> array[int]:
    numbers = array("I", content)
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers
