"""How transactions ended, for a compaction that reads a log from its start."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from lowwater.log.aborted import AbortedTransaction
from lowwater.wire.records import BatchHeader


class Outcomes:
    """Of decided transactions; `aborted` are all that have records there, in the order of their ends."""

    __slots__ = ("_by_end", "_by_producer", "_seen")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._by_end: dict[int, AbortedTransaction] = {}
        # Transactions of one producer come one after the other, so their starts are in order too.
        self._by_producer: dict[int, tuple[list[int], list[int]]] = {}
        self._seen: set[int] = set()
        for one in aborted:
            self._by_end[one.last_offset] = one
            starts, ends = self._by_producer.setdefault(one.producer_id, ([], []))
            starts.append(one.first_offset)
            ends.append(one.last_offset)

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether the records of that batch never happened."""
        if not header.is_transactional or header.producer_id not in self._by_producer:
            return False
        starts, ends = self._by_producer[header.producer_id]
        place = bisect_right(starts, header.base_offset) - 1
        return place >= 0 and header.base_offset < ends[place]

    def pass_batch(self, header: BatchHeader) -> None:
        """A batch with records, or emptied, goes by."""
        if header.is_transactional:
            self._seen.add(header.producer_id)

    def pass_marker(self, header: BatchHeader) -> bool:
        """A marker goes by: whether batches of the transaction that it ends are still there."""
        if header.producer_id not in self._seen:
            return False
        self._seen.remove(header.producer_id)
        return True

    def aborted_at(self, header: BatchHeader) -> AbortedTransaction | None:
        """The transaction that this marker aborted, if there were records of it."""
        return self._by_end.get(header.base_offset)
