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


class Entries:
    """Columns of the index; most logs are small and have none."""

    __slots__ = ("offsets", "positions", "sums", "time_offsets", "times")

    def __init__(self) -> None:
        self.offsets = array("I")
        self.positions = array("I")
        self.sums = array("I")
        self.times = array("q")
        self.time_offsets = array("I")

    def add(self, last_offset: int, position: int, interval_sum: int) -> None:
        self.offsets.append(last_offset)
        self.positions.append(position)
        self.sums.append(interval_sum)

    def add_time(self, timestamp: int, offset: int) -> None:
        """The largest timestamp so far; ignored when it has not grown."""
        if timestamp > (self.times[-1] if self.times else NO_TIMESTAMP):
            self.times.append(timestamp)
            self.time_offsets.append(offset)

    def position_for_time(self, timestamp: int) -> int:
        """The last entry before which everything is earlier than `timestamp`."""
        time_entry = bisect_left(self.times, timestamp)
        if time_entry == len(self.times):
            return self.positions[-1]
        entry = bisect_left(self.offsets, self.time_offsets[time_entry])
        return self.positions[entry - 1] if entry > 0 else 0


_NONE = Entries()


class SegmentIndex:
    """Offsets are relative to the segment's base offset."""

    __slots__ = ("_recent_offsets", "_recent_positions", "chain", "entries", "unindexed_bytes", "unverified")

    def __init__(self) -> None:
        self.entries = _NONE
        self.chain = 0  # the sum of the last interval, so far
        self.unindexed_bytes = 0
        # Every batch since the last entry, for the readers at the tail; those written by this process only.
        self._recent_offsets = array("I")
        self._recent_positions = array("I")
        # One byte per interval, 1 = not yet compared with its sum; None when everything was written by this process.
        self.unverified: bytearray | None = None

    @property
    def is_empty(self) -> bool:
        return self.entries is _NONE

    def add_entry(self, last_offset: int, position: int, max_timestamp: int, max_timestamp_offset: int) -> None:
        """An interval ends, and the next begins with the batch at `position`."""
        if self.entries is _NONE:
            self.entries = Entries()
        self.entries.add(last_offset, position, self.chain)
        self.entries.add_time(max_timestamp, max_timestamp_offset)
        self.chain = 0
        self.unindexed_bytes = 0
        del self._recent_offsets[:], self._recent_positions[:]
        if self.unverified is not None:
            self.unverified.append(0)

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
        entry = bisect_right(self.entries.offsets, offset) - 1
        return self.entries.positions[entry] if entry >= 0 else 0

    def offset_beyond(self, offset: int, size: int) -> int | None:
        """An offset that no read of `size` bytes (or one batch) from `offset` on reaches; None: that may be the end."""
        # The batch with `offset` begins at or before the next entry, and ends at or before the one after that.
        following = bisect_right(self.entries.offsets, offset)
        if following >= len(self.entries.positions):
            return None
        beyond = bisect_left(self.entries.positions, self.entries.positions[following] + size, following + 1)
        return self.entries.offsets[beyond] if beyond < len(self.entries.offsets) else None

    def boundary_before(self, position: int) -> int:
        """A batch begins here, at or before `position`."""
        entry = bisect_right(self.entries.positions, position) - 1
        return self.entries.positions[entry] if entry >= 0 else 0

    def position_for_time(self, timestamp: int) -> int:
        """Where to begin the search for the first batch with a timestamp at or after this one."""
        return 0 if self.entries is _NONE else self.entries.position_for_time(timestamp)

    # -- intervals

    def unverified_intervals(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """(number, first position, end position or -1 for the last) of what [start, end) touches and nobody checked."""
        if self.unverified is None:
            return
        positions = self.entries.positions
        for number in range(bisect_right(positions, start), bisect_left(positions, end) + 1):
            if self.unverified[number]:
                begin = positions[number - 1] if number else 0
                yield number, begin, positions[number] if number < len(positions) else -1

    def sum_of(self, number: int) -> int:
        """Of an interval that has ended."""
        return self.entries.sums[number]

    @property
    def last_interval(self) -> tuple[int, int]:
        """(number, sum so far) of the one that still grows."""
        return len(self.entries.sums), self.chain

    def doubt_everything(self) -> None:
        """The segment was read from disk: each interval is checked when it is first used."""
        self.unverified = bytearray(b"\x01" * (len(self.entries.positions) + 1))

    # -- Kafka's files

    def offset_file(self) -> bytes:
        """Entries of 8 bytes: relative offset, position."""
        pairs = array("I", bytes(8 * len(self.entries.offsets)))
        pairs[0::2] = self.entries.offsets
        pairs[1::2] = self.entries.positions
        return _big_endian(pairs)

    def time_file(self, last_timestamp: int, last_offset: int) -> bytes:
        """Entries of 12 bytes: timestamp, relative offset; the last is the segment's maximum."""
        times, offsets = array("q", self.entries.times), array("I", self.entries.time_offsets)
        if last_timestamp > (times[-1] if times else NO_TIMESTAMP):
            times.append(last_timestamp)
            offsets.append(last_offset)
        halves = array("I", times.tobytes())
        low, high = _HALVES
        triples = array("I", bytes(12 * len(times)))
        triples[0::3] = halves[high::2]
        triples[1::3] = halves[low::2]
        triples[2::3] = offsets
        return _big_endian(triples)

    @classmethod
    def from_files(cls, offset_file: bytes, time_file: bytes, sums: bytes) -> SegmentIndex:
        """The index that wrote these."""
        index = cls()
        if not offset_file:
            return index
        pairs, triples = _native(offset_file), _native(time_file)
        halves = array("I", bytes(8 * (len(triples) // 3)))
        low, high = _HALVES
        halves[high::2] = triples[0::3]
        halves[low::2] = triples[1::3]
        entries = index.entries = Entries()
        entries.offsets, entries.positions, entries.sums = pairs[0::2], pairs[1::2], array("I", sums)
        entries.times, entries.time_offsets = array("q", halves.tobytes()), triples[2::3]
        return index


_HALVES = (0, 1) if sys.byteorder == "little" else (1, 0)


def _big_endian(numbers: array[int]) -> bytes:
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers.tobytes()


def _native(content: bytes) -> array[int]:
    numbers = array("I", content)
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers
