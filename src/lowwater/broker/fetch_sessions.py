"""Incremental fetch sessions (KIP-227): a consumer names its partitions once, then only what changes.

Epoch 0 opens a session, -1 fetches without one; any other epoch goes on with the session whose next epoch it must be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lowwater.errors import ApiError, ErrorCode
from lowwater.ports import Ids

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EPOCH_MAX = 2**31 - 1
EVICTION_MS = 120_000
# In all sessions together: what is remembered outlives the requests that brought it.
PARTITIONS_MAX = 200_000

TopicKey = str | bytes
"""A topic as the request names it: by name up to v12, by id since."""


class Wanted:
    """One partition a fetch asks for, and what its session has told the client last."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "max_bytes",
        "partition",
        "sent_high_watermark",
        "sent_log_start",
        "topic",
    )

    def __init__(
        self,
        topic: TopicKey,
        partition: int,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int,
        last_fetched_epoch: int,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.sent_high_watermark = -1
        self.sent_log_start = -1

    def has_news(self, high_watermark: int, log_start: int) -> bool:
        """Whether the session has not told these bounds yet."""
        return self.sent_high_watermark != high_watermark or self.sent_log_start != log_start

    def update(self, newer: Wanted) -> None:
        self.fetch_offset = newer.fetch_offset
        self.max_bytes = newer.max_bytes
        self.current_leader_epoch = newer.current_leader_epoch
        self.last_fetched_epoch = newer.last_fetched_epoch


class FetchSession:
    """The partitions of one consumer, in the order in which they are served."""

    __slots__ = ("created_ms", "id", "next_epoch", "partitions", "used_ms", "uses_topic_ids")

    def __init__(self, session_id: int, wanted: Iterable[Wanted], uses_topic_ids: bool, now_ms: float) -> None:
        self.id = session_id
        self.next_epoch = 1
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = self.used_ms = now_ms
        self.partitions = {(one.topic, one.partition): one for one in wanted}

    def change(self, wanted: Iterable[Wanted], forgotten: Iterable[tuple[TopicKey, int]]) -> None:
        for one in wanted:
            known = self.partitions.get((one.topic, one.partition))
            if known is None:
                self.partitions[one.topic, one.partition] = one
            else:
                known.update(one)
        for key in forgotten:
            self.partitions.pop(key, None)

    def serve_last(self, one: Wanted) -> None:
        """A partition that had its turn goes to the end, so that a full response starves nobody."""
        key = (one.topic, one.partition)
        if self.partitions.pop(key, None) is not None:
            self.partitions[key] = one


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """What one request reads, and how it is to be answered."""

    wanted: list[Wanted]
    session: FetchSession | None
    incremental: bool

    @property
    def session_id(self) -> int:
        return self.session.id if self.session is not None else 0


class FetchSessions:
    """All sessions of the broker, at most `slots_max`; a new one replaces an idle or a smaller old one."""

    def __init__(self, slots_max: int, ids: Ids) -> None:
        self._slots_max = slots_max
        self._ids = ids
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def plan(
        self,
        session_id: int,
        epoch: int,
        wanted: list[Wanted],
        forgotten: list[tuple[TopicKey, int]],
        *,
        uses_topic_ids: bool,
        now_ms: float,
    ) -> FetchPlan:
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(session_id, None)
            session = self._open(wanted, uses_topic_ids, now_ms) if epoch == INITIAL_EPOCH else None
            return FetchPlan(wanted, session, incremental=False)
        session = self._continue(session_id, epoch, uses_topic_ids)
        session.change(wanted, forgotten)
        if wanted and self._partitions() > PARTITIONS_MAX:
            del self._sessions[session_id]
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"fetch session {session_id} grew too large")
        if not session.partitions:
            del self._sessions[session_id]
            return FetchPlan([], None, incremental=True)
        session.next_epoch = 1 if epoch == EPOCH_MAX else epoch + 1
        session.used_ms = now_ms
        return FetchPlan(list(session.partitions.values()), session, incremental=True)

    def _continue(self, session_id: int, epoch: int, uses_topic_ids: bool) -> FetchSession:
        session = self._sessions.get(session_id)
        if session is None:
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"no fetch session {session_id}")
        if epoch != session.next_epoch:
            raise ApiError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"fetch session {session_id} is at epoch {session.next_epoch}, not {epoch}",
            )
        if session.uses_topic_ids != uses_topic_ids:
            raise ApiError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, "a session names topics by id or by name, not both")
        return session

    def _open(self, wanted: list[Wanted], uses_topic_ids: bool, now_ms: float) -> FetchSession | None:
        if len(self._sessions) >= self._slots_max and not self._evict(len(wanted), now_ms):
            return None
        if self._partitions() + len(wanted) > PARTITIONS_MAX:
            return None
        session = FetchSession(self._new_id(), wanted, uses_topic_ids, now_ms)
        self._sessions[session.id] = session
        return session

    def _evict(self, size: int, now_ms: float) -> bool:
        if not self._sessions:
            return False
        idle = min(self._sessions.values(), key=lambda session: session.used_ms)
        if now_ms - idle.used_ms > EVICTION_MS:
            del self._sessions[idle.id]
            return True
        smallest = min(self._sessions.values(), key=lambda session: len(session.partitions))
        if now_ms - smallest.created_ms > EVICTION_MS and len(smallest.partitions) < size:
            del self._sessions[smallest.id]
            return True
        return False

    def _partitions(self) -> int:
        return sum(len(session.partitions) for session in self._sessions.values())

    def _new_id(self) -> int:
        while True:
            session_id = int.from_bytes(self._ids.uuid()[:4], "big") & 0x7FFFFFFF
            if session_id and session_id not in self._sessions:
                return session_id
