"""Where a slice of time lies in the partitions of a batch. Pure: told what brokers answered.

Brokers search from the beginning of the log, and markers of transactions count: what they find may lie before the first
row as late, never behind it. So a start is safe, and an end is a guess.
"""

from __future__ import annotations

from typing import NamedTuple

from lowwater.client.offsets import Found
from lowwater.client.ranges import OffsetRange
from lowwater.spark.offsets import TIME_MAX, Range
from lowwater.spark.splitting import Slice

_SPARE = 64  # of what is guessed is read beyond it: reading on costs more than that


class Extent(NamedTuple):
    """Where a slice lies in a partition: from `start`, and as far as is known to before `end`; not beyond `limit`."""

    start: int
    end: int
    limit: int


def start_ms(part: Slice) -> int | None:
    """No row is of the slice before the first that is stamped then or later; None: any may be."""
    if part.start is None or (part.floor_ms is not None and part.start.key_ms <= part.floor_ms):
        return None
    return part.start.key_ms if part.start.key_ms > 0 else None


def end_ms(part: Slice) -> int | None:
    """No row is of the slice behind the first that is stamped then or later; None: any may be."""
    if part.end is None:
        return None
    moment = part.end.key_ms + part.out_of_order_ms + bool(part.end.topic)
    is_beyond = moment > TIME_MAX or (part.cap_ms is not None and moment > part.cap_ms)
    return None if moment <= 0 or is_beyond else moment


def started(whole: OffsetRange, first: Found, log_start: int) -> int:
    """When rows of the range are gone, and those of the slice may be among them, whoever reads it is told."""
    if log_start > whole.start and (log_start >= whole.end or 0 <= first.offset <= log_start):
        return whole.start
    return whole.end if first.offset < 0 else max(first.offset, whole.start)


def ended(extent: Extent, behind: Found | None) -> Extent:
    if behind is None or behind.offset < extent.start:
        return extent
    return extent._replace(end=min(behind.offset + 1, extent.limit))  # with that row, which shows that it is one


def guessed(whole: Range, first: int | None, behind: int | None) -> tuple[int, int]:
    """From what was found when the batch was planned: where the slice begins, and about where it ends.

    `first`: of the rows that are stamped late enough, -1 where there is none, None where any may be of the slice;
    `behind`: about the first that is too late, None: nobody is. Rows that are gone since are told by those who read
    them, and those before by the first slice.
    """
    start = whole.end if first is not None and first < 0 else min(max(first or 0, whole.start), whole.end)
    if behind is None:
        return start, whole.end
    end = max(behind, start)
    return start, min(end + 1 + (end - start) // _SPARE, whole.end)
