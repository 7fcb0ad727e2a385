"""A consumer of the KIP-848 protocol: it heartbeats, gives up what it shall not have, then takes what it is given."""

from __future__ import annotations

from tests.sim.groups.client import RETRY_MS, Place, Shore, SimClient, commit_error
from tests.sim.groups.network import Exchange
from tests.sim.groups.transactions import REQUESTS, Transactions

from lowwater.errors import ErrorCode
from lowwater.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from lowwater.wire.messages.offset_commit import OffsetCommitRequest
from lowwater.wire.messages.offset_fetch import OffsetFetchRequest

HEARTBEAT_MS = 2_000
COMMIT_MS = 3_000
HEARTBEAT_TIMEOUT_MS = 4_000
REBALANCE_TIMEOUT_MS = 9_000
SLOW_REVOCATION = 0.08
LEAVES, LEAVES_FOR_A_WHILE = -1, -2

_REJOIN = (
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.GROUP_ID_NOT_FOUND,
)
_LATER = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNRELEASED_INSTANCE_ID,
)

# A partition of a topic as the protocol names it.
Held = tuple[bytes, int]


class ConsumerMember(SimClient):
    def __init__(
        self,
        name: str,
        group: str,
        shore: Shore,
        topics: set[str],
        *,
        instance_id: str | None = None,
        regex: str | None = None,
        assignor: str | None = None,
        commit_version: int = 9,
        in_transactions: bool = False,
    ) -> None:
        super().__init__(name, group, shore)
        self.topics = topics
        self.instance_id = instance_id
        self.regex = regex
        self.assignor = assignor
        self.failure: ErrorCode | None = None
        self.version = 1
        self.commit_version = commit_version
        self.in_transactions = in_transactions
        self._transactions = Transactions(self)
        self._forget()

    def _forget(self) -> None:
        self.member_id = ""
        self.epoch = 0
        self.owned: set[Held] = set()
        self.target: set[Held] | None = None  # nothing was assigned yet
        self._in_flight: Exchange | None = None
        self._full = True  # the next heartbeat tells everything
        self._told_owned: set[Held] | None = None
        self._revoking: set[Held] = set()
        self._transactions.forget()

    def start(self) -> None:
        super().start()
        self._forget()
        self.failure = None
        if self.version > 0:
            self.member_id = self.shore.draw.randbytes(12).hex()
        self._beat()
        self.after(HEARTBEAT_MS, self._beat_regularly)
        self.after(self.shore.draw.random() * COMMIT_MS, self._commit_regularly)

    # -- heartbeats

    def _beat_regularly(self) -> None:
        self.after(HEARTBEAT_MS, self._beat_regularly)
        self._beat()

    def _beat(self) -> None:
        """One at a time. What has not changed since the last one is left out."""
        if self._in_flight is not None:
            return
        joins = self._full or self.epoch == 0
        tells_owned = joins or self.owned != self._told_owned
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance_id,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS if joins else -1,
            subscribed_topic_names=sorted(self.topics) if joins else None,
            subscribed_topic_regex=(self.regex or "") if joins and self.version > 0 and self.regex else None,
            server_assignor=self.assignor if joins else None,
            topic_partitions=_by_topic(self.owned) if tells_owned else None,
        )
        self._full = False
        self._told_owned = set(self.owned)
        self._in_flight = self.post(request, self.version, HEARTBEAT_TIMEOUT_MS)

    def _take(self, exchange: Exchange) -> None:
        if exchange is not self._in_flight:
            return
        self._in_flight = None
        answer = exchange.response
        if answer.error_code:
            self._recover(ErrorCode(answer.error_code))
            return
        self.member_id, self.epoch = answer.member_id, answer.member_epoch
        if answer.assignment is None:
            return
        target = {
            (topic.topic_id, partition)
            for topic in answer.assignment.topic_partitions
            for partition in topic.partitions
        }
        if target != self.target:
            self._reconcile(target)

    def _reconcile(self, target: set[Held]) -> None:
        """First give up, then take; giving up needs a callback of the application, which may be slow.

        Every assignment is acknowledged with what is owned then, also when that is what it was.
        """
        self.target, self._told_owned = target, None
        leaving = self.owned - target - self._revoking
        if leaving:
            self._revoking |= leaving
            slow = self.shore.network.is_faulty and self.shore.draw.random() < SLOW_REVOCATION
            delay_ms = self.shore.draw.random() * (1.5 * REBALANCE_TIMEOUT_MS if slow else 300)
            self.after(delay_ms, lambda: self._revoked(leaving))
        if not self._revoking:
            self._settle()

    def _revoked(self, given_up: set[Held]) -> None:
        if not given_up <= self._revoking:
            return  # it was fenced meanwhile and has nothing left
        self._revoking -= given_up
        self.owned -= given_up
        if not self._revoking:
            self._settle()

    def _settle(self) -> None:
        assert self.target is not None
        fresh = self.target - self.owned
        self.owned = set(self.target)
        if fresh:
            places = self.places(fresh)
            if places:
                self.post(self.fetch_request(places), 9)
        if self.owned != self._told_owned:
            self._beat()

    def places(self, held: set[Held]) -> list[Place]:
        names = {facts.id: name for name, facts in self.shore.topics.items()}
        return sorted((names[topic_id], partition) for topic_id, partition in held if topic_id in names)

    # -- living

    def _commit_regularly(self) -> None:
        self.after(COMMIT_MS, self._commit_regularly)
        places = self.places(self.owned)
        if not places or self.epoch <= 0:
            return
        if self.in_transactions:
            said = {"member_id": self.member_id, "generation_id": self.epoch, "group_instance_id": self.instance_id}
            self._transactions.go_on(self.group, places, said, 5)
        else:
            request = self.commit_request(places, self.epoch, self.member_id, self.instance_id)
            self.post(request, self.commit_version)

    def leave(self) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=LEAVES if self.instance_id is None else LEAVES_FOR_A_WHILE,
            instance_id=self.instance_id,
        )
        if self.member_id:
            self.post(request, self.version)
        self.die()

    def subscribe(self, topics: set[str]) -> None:
        self.topics = topics
        self._full = True

    def reconnect(self) -> None:
        """As after a broken connection: the next heartbeat tells everything, and is told everything."""
        self._full = True

    # -- answers

    def answered(self, exchange: Exchange) -> None:
        if isinstance(exchange.request, ConsumerGroupHeartbeatRequest):
            self._take(exchange)
        elif isinstance(exchange.request, OffsetCommitRequest):
            if commit_error(exchange) is ErrorCode.UNKNOWN_MEMBER_ID and self._speaks_of_now(exchange.request):
                self._recover(ErrorCode.UNKNOWN_MEMBER_ID)
        elif isinstance(exchange.request, REQUESTS):
            self._transactions.answered(exchange)
        elif not isinstance(exchange.request, OffsetFetchRequest):
            super().answered(exchange)

    def _speaks_of_now(self, request: OffsetCommitRequest) -> bool:
        return (request.member_id, request.generation_id_or_member_epoch) == (self.member_id, self.epoch)

    def broken(self, exchange: Exchange) -> None:
        self._transactions.broken(exchange)
        if exchange is self._in_flight:
            self._in_flight = None
            self._full = True
            self.after(RETRY_MS, self._beat)

    def _recover(self, code: ErrorCode) -> None:
        self._full = True
        if code in _LATER:
            # Whoever holds the instance needs a while to let go of it: then the next regular heartbeat will do.
            if code is not ErrorCode.UNRELEASED_INSTANCE_ID:
                self.after(RETRY_MS, self._beat)
        elif code in _REJOIN:
            # It has lost everything at once, without a chance to commit.
            self.epoch, self.owned, self.target, self._revoking = 0, set(), None, set()
            self.after(RETRY_MS, self._beat)
        else:
            self.failure = code
            self.die()


def _by_topic(held: set[Held]) -> list[TopicPartitions]:
    topics: dict[bytes, list[int]] = {}
    for topic_id, partition in sorted(held):
        topics.setdefault(topic_id, []).append(partition)
    return [TopicPartitions(topic_id=topic_id, partitions=found) for topic_id, found in topics.items()]
