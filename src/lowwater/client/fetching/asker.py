"""One stream of Fetch requests to one broker: at most one is on its way at a time."""

from __future__ import annotations

from lowwater.client.fetching.session import FetchSession
from lowwater.client.network import FETCHING, WAITING
from lowwater.types import TopicPartition

_VERSIONS = (4, 18)
_VERSIONS_BY_NAME = (4, 12)
_FIRST_BYTES = 1024 * 1024
# Larger ones cost more: with the columns that are made of them they do not stay in the processor's caches.
_GOOD_BYTES = 4 * 1024 * 1024
# But where answers take long, a larger one is less often waited for. One that was held up says nothing of the others.
_LONG_BYTES = 8 * 1024 * 1024
_LONG_MS = 10
_LONG_ONES = 4
# And in order of time an answer brings all partitions a little further, which costs something for each of them.
_STEP_BYTES = 128 * 1024
MOST_BYTES = 16 * 1024 * 1024


class Asker:
    """For partitions with records to come, or, `is_waiting`, for those that are read up to their end.

    Brokers let a Fetch wait when there is nothing. If both kinds were asked for together, a partition that has records
    and is wanted again would have to wait for that; so each kind has a connection and a session of its own.
    """

    __slots__ = (
        "appetite_bytes",
        "asked_bytes",
        "asked_ms",
        "is_asking",
        "is_waiting",
        "long_ones",
        "node",
        "refused_sessions",
        "session",
        "turns",
        "untaken",
    )

    def __init__(self, node: int, session: FetchSession, *, is_waiting: bool) -> None:
        self.node = node
        self.is_waiting = is_waiting
        self.session = session
        self.is_asking = False
        self.appetite_bytes = _FIRST_BYTES  # how large an answer is wished
        self.asked_bytes = 0  # how large the answer that is on its way may be
        self.asked_ms = 0.0  # when it was asked for
        self.turns: dict[TopicPartition, int] | None = None  # in order of time, of whom how much is asked for just now
        self.untaken = 0  # answers that nobody has taken yet
        self.long_ones = 0  # answers that took long, in a row
        self.refused_sessions = 0  # in a row

    def grow(self, took_ms: float, *, is_in_time: bool) -> None:
        """The first rows come soon, in small answers; larger ones, which cost less, follow."""
        self.long_ones = self.long_ones + 1 if took_ms >= _LONG_MS else 0
        good_bytes = _LONG_BYTES if self.long_ones >= _LONG_ONES else _GOOD_BYTES
        if is_in_time:
            good_bytes = max(good_bytes, min(len(self.session.wanted) * _STEP_BYTES, MOST_BYTES))
        self.appetite_bytes = min(2 * self.appetite_bytes, good_bytes)

    @property
    def lane(self) -> str:
        return WAITING if self.is_waiting else FETCHING

    @property
    def versions(self) -> tuple[int, int]:
        return _VERSIONS if self.session.has_ids else _VERSIONS_BY_NAME
