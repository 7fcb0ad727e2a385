"""Aborted transactions: what a reader of committed records must be told to leave out."""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter
from typing import NamedTuple

_LAST_OFFSET = attrgetter("last_offset")


class AbortedTransaction(NamedTuple):
    """Records of `producer_id` in [first_offset, last_offset] never happened; the marker that says so is the last."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable: int  # once it had ended: each transaction that ends later began at or after it


def overlapping(aborted: list[AbortedTransaction], start: int, end: int, found: list[AbortedTransaction]) -> bool:
    """Add to `found` what touches [start, end), of entries in the order of their ends; whether that is all."""
    for place in range(bisect_left(aborted, start, key=_LAST_OFFSET), len(aborted)):
        one = aborted[place]
        if one.first_offset < end:
            found.append(one)
        if one.last_stable >= end:
            return True
    return False
