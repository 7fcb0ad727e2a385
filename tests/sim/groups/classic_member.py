"""A consumer of the classic protocol: find a member id, join, sync, beat, commit, leave, and rejoin as real ones do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from itertools import cycle

from tests.sim.groups.client import RETRY_MS, UNKNOWN_TOPIC, Place, Shore, SimClient, commit_error
from tests.sim.groups.network import Exchange
from tests.sim.groups.transactions import REQUESTS, Transactions

from lowwater.errors import ErrorCode
from lowwater.groups.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from lowwater.wire.messages.heartbeat import HeartbeatRequest
from lowwater.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from lowwater.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from lowwater.wire.messages.offset_commit import OffsetCommitRequest
from lowwater.wire.messages.offset_fetch import OffsetFetchRequest
from lowwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

HEARTBEAT_MS = 2_000
COMMIT_MS = 3_000
JOIN_PATIENCE_MS = 5_000  # beyond the rebalance timeout
SLOW_SYNC = 0.06

_NEW_MEMBER = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
_FATAL = (
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.GROUP_MAX_SIZE_REACHED,
    ErrorCode.INVALID_SESSION_TIMEOUT,
    ErrorCode.INVALID_GROUP_ID,
)


class Phase(Enum):
    OUT = auto()  # has to join (again)
    JOINING = auto()
    SYNCING = auto()
    STABLE = auto()


@dataclass(frozen=True, slots=True)
class Habits:
    """What stays the same over the processes of one member."""

    join_version: int = 9
    commit_version: int = 9
    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 12_000
    protocols: tuple[str, ...] = ("range", "roundrobin")
    in_transactions: bool = False
    txn_commit_version: int = 5

    @property
    def sync_version(self) -> int:
        return {9: 5, 8: 5, 7: 5, 6: 4, 5: 3}.get(self.join_version, 2)

    @property
    def heartbeat_version(self) -> int:
        return 4 if self.join_version >= 6 else 3 if self.join_version == 5 else 2

    @property
    def leave_version(self) -> int:
        return 5 if self.join_version >= 8 else 3 if self.join_version >= 5 else 2


class ClassicMember(SimClient):
    def __init__(
        self, name: str, group: str, shore: Shore, habits: Habits, topics: set[str], instance_id: str | None = None
    ) -> None:
        super().__init__(name, group, shore)
        self.habits = habits
        self.topics = topics
        self.instance_id = instance_id
        self.failure: ErrorCode | None = None
        self._transactions = Transactions(self)
        self._forget()

    def _forget(self) -> None:
        self.phase = Phase.OUT
        self.member_id = ""
        self.generation = -1
        self.owned: list[Place] = []
        self._awaited: Exchange | None = None
        self._is_rejoining = False
        self._leads = False
        self._transactions.forget()

    def start(self) -> None:
        super().start()
        self._forget()
        self.failure = None
        self._rejoin(delay_ms=0)
        self.after(HEARTBEAT_MS, self._beat)
        self.after(self.shore.draw.random() * COMMIT_MS, self._commit_regularly)

    # -- joining

    def _rejoin(self, delay_ms: float | None = None) -> None:
        """Join at the next poll, which takes a while."""
        if self._is_rejoining or self.phase is Phase.JOINING:
            return
        self._is_rejoining = True
        self._awaited = None
        self.phase = Phase.OUT
        usual = RETRY_MS * self.shore.draw.choice((1, 1, 1, 5, 15))
        self.after(usual if delay_ms is None else delay_ms, self._join)

    def _join(self) -> None:
        self._is_rejoining = False
        self.phase = Phase.JOINING
        subscription = ConsumerProtocolSubscription(topics=sorted(self.topics), user_data=None)
        protocols = [
            JoinGroupRequestProtocol(name=name, metadata=encode_subscription(subscription, 1))
            for name in self.habits.protocols
        ]
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self.habits.session_timeout_ms,
            rebalance_timeout_ms=self.habits.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=protocols,
        )
        patience_ms = self.habits.rebalance_timeout_ms + JOIN_PATIENCE_MS
        self._awaited = self.post(request, self.habits.join_version, patience_ms)

    def _joined(self, exchange: Exchange) -> None:
        if exchange is not self._awaited:
            return
        answer = exchange.response
        self.phase, self._awaited = Phase.OUT, None
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self._rejoin(delay_ms=1)
            return
        if answer.error_code:
            self._recover(answer.error_code)
            return
        self.member_id, self.generation = answer.member_id, answer.generation_id
        self._leads = answer.leader == answer.member_id
        self.phase = Phase.SYNCING
        slow = self.shore.network.is_faulty and self.shore.draw.random() < SLOW_SYNC
        delay_ms = self.shore.draw.random() * 1.5 * self.habits.rebalance_timeout_ms if slow else 0
        self.after(delay_ms, lambda: self._sync(exchange))

    def _sync(self, joined: Exchange) -> None:
        answer = joined.response
        if self.phase is not Phase.SYNCING or self._awaited or self.generation != answer.generation_id:
            return
        leads = answer.leader == self.member_id and not answer.skip_assignment
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=answer.protocol_type,
            protocol_name=answer.protocol_name,
            assignments=self._assign(joined) if leads else [],
        )
        patience_ms = self.habits.rebalance_timeout_ms + JOIN_PATIENCE_MS
        self._awaited = self.post(request, self.habits.sync_version, patience_ms)

    def _assign(self, joined: Exchange) -> list[SyncGroupRequestAssignment]:
        """Partitions in turns to those who want their topic. The number tells one computation from every other."""
        nonce = str(self.shore.new_offset()).encode()
        shares: dict[str, list[Place]] = {one.member_id: [] for one in joined.response.members}
        wishes = {one.member_id: decode_subscription(one.metadata) for one in joined.response.members}
        turns = cycle(sorted(shares))
        for place in self.all_places():
            wanting = {name for name, wish in wishes.items() if wish is not None and place[0] in wish.topics}
            if wanting:
                shares[next(name for name in turns if name in wanting)].append(place)
        return [
            SyncGroupRequestAssignment(member_id=name, assignment=encode_places(places, nonce))
            for name, places in shares.items()
        ]

    def _synced(self, exchange: Exchange) -> None:
        if exchange is not self._awaited:
            return
        self._awaited = None
        answer = exchange.response
        if answer.error_code:
            self.phase = Phase.OUT
            if answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
                self._rejoin()  # the group changed its protocol after the Join
            else:
                self._recover(answer.error_code)
            return
        self.phase = Phase.STABLE
        self.owned = decode_places(answer.assignment)
        if self.owned:
            self.post(self.fetch_request(self.owned), 9)

    # -- living

    def _beat(self) -> None:
        self.after(HEARTBEAT_MS, self._beat)
        if self.generation < 0 or self.phase is Phase.JOINING:
            return
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        self.post(request, self.habits.heartbeat_version)

    def _commit_regularly(self) -> None:
        self.after(COMMIT_MS, self._commit_regularly)
        if not self.owned or self.generation < 0:
            return
        if self.habits.in_transactions:
            said = {"member_id": self.member_id, "generation_id": self.generation}
            said["group_instance_id"] = self.instance_id
            self._transactions.go_on(self.group, self.owned, said, self.habits.txn_commit_version)
        else:
            request = self.commit_request(self.owned, self.generation, self.member_id, self.instance_id)
            self.post(request, self.habits.commit_version)

    def leave(self) -> None:
        """Close as a client does: a dynamic member says so, a static one stays until its session ends."""
        if self.member_id and self.instance_id is None:
            version = self.habits.leave_version
            many = [MemberIdentity(member_id=self.member_id)] if version >= 3 else []
            one = self.member_id if version < 3 else ""
            self.post(LeaveGroupRequest(group_id=self.group, member_id=one, members=many), version)
        self.die()

    def subscribe(self, topics: set[str]) -> None:
        self.topics = topics
        if self.is_alive:
            self._rejoin()

    # -- answers

    def answered(self, exchange: Exchange) -> None:
        request = exchange.request
        if isinstance(request, JoinGroupRequest):
            self._joined(exchange)
        elif isinstance(request, SyncGroupRequest):
            self._synced(exchange)
        elif isinstance(request, HeartbeatRequest):
            self._heed(exchange.response.error_code, request.generation_id)
        elif isinstance(request, OffsetCommitRequest):
            self._heed_commit(commit_error(exchange), request.generation_id_or_member_epoch)
        elif isinstance(request, REQUESTS):
            self._transactions.answered(exchange)
        elif not isinstance(request, OffsetFetchRequest | LeaveGroupRequest):
            super().answered(exchange)

    def broken(self, exchange: Exchange) -> None:
        self._transactions.broken(exchange)
        if exchange is self._awaited:
            self.phase, self._awaited = Phase.OUT, None
            self._rejoin()

    def _heed(self, code: int, generation: int) -> None:
        """An error counts while it is about the generation of now, and no Join is under way."""
        if code and generation == self.generation and self.phase is not Phase.JOINING:
            self._recover(code)

    def _heed_commit(self, code: int, generation: int) -> None:
        """That a topic is gone is the leader's to act on; for the others nothing would change by joining again."""
        if self._leads or code not in UNKNOWN_TOPIC:
            self._heed(code, generation)

    def _recover(self, code: int) -> None:
        if code in _FATAL:
            self.failure = ErrorCode(code)
            self.die()
            return
        if code in _NEW_MEMBER:
            self.member_id, self.generation, self.owned = "", -1, []
        self._rejoin()


def encode_places(places: list[Place], nonce: bytes) -> bytes:
    topics: dict[str, list[int]] = {}
    for topic, partition in places:
        topics.setdefault(topic, []).append(partition)
    parts = [TopicPartition(topic=name, partitions=found) for name, found in topics.items()]
    return encode_assignment(ConsumerProtocolAssignment(assigned_partitions=parts, user_data=nonce), 1)


def decode_places(assignment: bytes) -> list[Place]:
    decoded = decode_assignment(bytes(assignment)) if assignment else None
    if decoded is None:
        return []
    return [(part.topic, partition) for part in decoded.assigned_partitions for partition in part.partitions]


def nonce_of(assignment: bytes) -> bytes | None:
    """Which computation of a leader this comes from; None when a member was left out."""
    decoded = decode_assignment(bytes(assignment)) if assignment else None
    return bytes(decoded.user_data or b"") if decoded is not None else None
