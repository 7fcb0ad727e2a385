"""Aborted transactions: what a reader of committed records must be told to leave out.

Those that ended in a segment stand beside it in `.txnindex`, in the order of their ends. The file is written when the
segment is sealed or the log is closed. It is not synced and not needed: the markers in the log say the same.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lowwater.errors import StorageError
from lowwater.log.atomic_file import read_sealed, sealed
from lowwater.log.sidecar import SegmentFacts
from lowwater.ports import Disk

TXN_INDEX_SUFFIX = ".txnindex"
TXN_INDEX_KIND = b"LWA1"
_SEGMENT = struct.Struct(">qqq")  # size, next offset and largest timestamp of the segment it was written for


class AbortedTransaction(NamedTuple):
    """Records of `producer_id` in [first_offset, last_offset] never happened; the marker that says so is the last."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable: int  # once it had ended: each transaction that ends later began at or after it


_FIELDS = len(AbortedTransaction._fields)


class AbortedTransactions:
    """Those that ended in one segment, in the order of their ends."""

    __slots__ = ("_numbers",)

    def __init__(self, transactions: Iterable[AbortedTransaction] = ()) -> None:
        self._numbers = array("q")
        for one in transactions:
            self.add(one)

    def __len__(self) -> int:
        return len(self._numbers) // _FIELDS

    def __iter__(self) -> Iterator[AbortedTransaction]:
        return map(self._at, range(len(self)))

    def _at(self, place: int) -> AbortedTransaction:
        return AbortedTransaction._make(self._numbers[place * _FIELDS : (place + 1) * _FIELDS])

    def _last_offset(self, place: int) -> int:
        return self._numbers[place * _FIELDS + 2]

    def add(self, one: AbortedTransaction) -> None:
        self._numbers.extend(one)

    def overlapping(self, start: int, end: int, found: list[AbortedTransaction]) -> bool:
        """Add to `found` what touches [start, end); whether later segments cannot have more of it."""
        first = bisect_left(range(len(self)), start, key=self._last_offset)
        rest = iter(memoryview(self._numbers)[first * _FIELDS :])
        for one in map(AbortedTransaction, rest, rest, rest, rest):
            if one.first_offset < end:
                found.append(one)
            if one.last_stable >= end:
                return True
        return False

    # -- the file

    def write(self, disk: Disk, stem: str, facts: SegmentFacts, *, sync: bool = False) -> None:
        """`stem` is the path without its suffix."""
        numbers = struct.pack(f">{len(self._numbers)}q", *self._numbers)
        content = sealed(TXN_INDEX_KIND, _fingerprint(facts) + numbers)
        file = disk.open(stem + TXN_INDEX_SUFFIX, create=True)
        try:
            file.truncate(0)
            if file.pwrite(content, 0) != len(content):
                raise StorageError(f"{stem}{TXN_INDEX_SUFFIX} cannot be written: no space left", retriable=True)
            if sync:
                file.sync()
        finally:
            file.close()

    @classmethod
    def read(cls, disk: Disk, stem: str, facts: SegmentFacts) -> AbortedTransactions | None:
        """None when the file is missing, damaged, or was written for another state of the segment."""
        data = read_sealed(disk, stem + TXN_INDEX_SUFFIX, TXN_INDEX_KIND)
        if data is None or data[: _SEGMENT.size] != _fingerprint(facts):
            return None
        found = cls()
        found._numbers.extend(number for (number,) in struct.iter_unpack(">q", data[_SEGMENT.size :]))
        return found


def _fingerprint(facts: SegmentFacts) -> bytes:
    return _SEGMENT.pack(facts.size, facts.next_offset, facts.max_timestamp)
