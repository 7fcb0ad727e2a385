"""What the transaction coordinator counts. Plain numbers."""

from __future__ import annotations


class TransactionMetrics:
    """Of one shard, or of all together. Ids and open transactions go up and down, everything else only up."""

    __slots__ = ("aborted", "active_ids", "committed", "expired_ids", "fenced", "ongoing", "timed_out")

    def __init__(self) -> None:
        self.active_ids = 0
        self.ongoing = 0
        self.committed = 0
        self.aborted = 0
        # Of the aborted ones: those whose producer was silent for too long, and those that a new instance ended.
        self.timed_out = 0
        self.fenced = 0
        self.expired_ids = 0

    def add_totals(self, other: TransactionMetrics) -> None:
        """Everything that only goes up."""
        self.committed += other.committed
        self.aborted += other.aborted
        self.timed_out += other.timed_out
        self.fenced += other.fenced
        self.expired_ids += other.expired_ids
