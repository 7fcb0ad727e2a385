"""Whose turn it is: readers in order of time ask for the partitions that are furthest behind, and as far as one time.

Whatever else they asked for would only have to be held until those have come.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter

from lowwater.client.fetching.partition import PartitionFetch
from lowwater.client.fetching.stored import NO_CLOCK
from lowwater.types import TopicPartition

PIECE_BYTES_MIN = 16 * 1024
_BY_CLOCK = attrgetter("clock_ms", "one")


def due_first(partitions: Iterable[PartitionFetch], bytes_max: int, piece_bytes: int) -> dict[TopicPartition, int]:
    """How much to ask for, and of whom, so that about `bytes_max` come: what brings those who are behind to one time.

    Those of which nothing came yet are first, with `piece_bytes` of each at least: nothing can go before they come.
    """
    wanted = list(partitions)
    if silent := silent_of(wanted):
        return first_pieces(silent, len(wanted), bytes_max, piece_bytes)
    wanted.sort(key=_BY_CLOCK)
    until_ms = _level(wanted, bytes_max)
    sizes: dict[TopicPartition, int] = {}
    left = bytes_max
    for partition in wanted:
        if sizes and (left <= 0 or partition.clock_ms > until_ms):
            break
        missing = int((until_ms - partition.clock_ms) * partition.bytes_per_ms)
        # Batches come whole, or not at all: with a little to spare, as they differ.
        size = max(missing, partition.batch_bytes * 9 // 8, PIECE_BYTES_MIN)
        sizes[partition.one] = size
        left -= size
    return sizes


def silent_of(partitions: Iterable[PartitionFetch]) -> list[TopicPartition]:
    """Those of which nothing came yet."""
    return [partition.one for partition in partitions if partition.clock_ms == NO_CLOCK]


def first_pieces(
    silent: Sequence[TopicPartition], partitions: int, bytes_max: int, piece_bytes: int
) -> dict[TopicPartition, int]:
    """How much to ask for of these, which are some of so many `partitions`.

    No more of the last ones than of the first: nobody knows how far in time that leads.
    """
    share = max(bytes_max // partitions, piece_bytes)
    return dict.fromkeys(silent[: max(bytes_max // share, 1)], share)


def _level(by_clock: list[PartitionFetch], bytes_max: int) -> float:
    """The time up to which all partitions can be brought by so many bytes, if they go on as they did."""
    if not by_clock:
        return 0.0
    start = by_clock[0].clock_ms
    rate = filled = 0.0
    for partition in by_clock:
        behind_ms = partition.clock_ms - start
        if rate and behind_ms * rate - filled > bytes_max:
            break
        rate += partition.bytes_per_ms
        filled += behind_ms * partition.bytes_per_ms
    return start + (bytes_max + filled) / rate
