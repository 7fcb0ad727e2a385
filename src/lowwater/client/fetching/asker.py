"""One stream of Fetch requests to one broker: at most one is on its way at a time."""

from __future__ import annotations

from lowwater.client.fetching.session import FetchSession
from lowwater.client.network import FETCHING, WAITING

_VERSIONS = (4, 18)
_VERSIONS_BY_NAME = (4, 12)


class Asker:
    """For partitions with records to come, or, `is_waiting`, for those that are read up to their end.

    Brokers let a Fetch wait when there is nothing. If both kinds were asked for together, a partition that has records
    and is wanted again would have to wait for that; so each kind has a connection and a session of its own.
    """

    __slots__ = ("is_asking", "is_waiting", "node", "refused_sessions", "reserved_bytes", "session", "untaken")

    def __init__(self, node: int, session: FetchSession, *, is_waiting: bool) -> None:
        self.node = node
        self.is_waiting = is_waiting
        self.session = session
        self.is_asking = False
        self.reserved_bytes = 0  # of the answer that is on its way
        self.untaken = 0  # answers that nobody has taken yet
        self.refused_sessions = 0  # in a row

    @property
    def lane(self) -> str:
        return WAITING if self.is_waiting else FETCHING

    @property
    def versions(self) -> tuple[int, int]:
        return _VERSIONS if self.session.has_ids else _VERSIONS_BY_NAME
