"""What a group of both protocols must never do: give a partition to one member while another one has it.

What members of the consumer protocol have is known to their judge. A classic member has what it was told by Sync, until
it joins again or is out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tests.sim.groups.classic_member import decode_places
from tests.sim.groups.client import TopicFacts
from tests.sim.groups.consumer_member import Held
from tests.sim.groups.judge_consumer import ConsumerJudge
from tests.sim.groups.network import Exchange

from lowwater.errors import ErrorCode
from lowwater.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from lowwater.wire.messages.heartbeat import HeartbeatRequest
from lowwater.wire.messages.join_group import JoinGroupRequest
from lowwater.wire.messages.leave_group import LeaveGroupRequest
from lowwater.wire.messages.sync_group import SyncGroupRequest

_OUT = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.ILLEGAL_GENERATION)


@dataclass(slots=True)
class Told:
    """A classic member as the answers describe it."""

    instance_id: str | None
    session_ms: int
    rebalance_ms: int
    touched_ms: float
    settled_ms: float  # when it was last told that there is nothing new
    let_go_at: int = -1  # the place in the order of delivery of what took everything from it
    holds: set[Held] = field(default_factory=set)

    def may_be_out(self, now_ms: float, slack_ms: float) -> bool:
        asleep = now_ms - self.touched_ms >= self.session_ms - slack_ms
        return asleep or now_ms - self.settled_ms >= self.rebalance_ms - slack_ms


class MixedJudge:
    def __init__(self, report: Callable[[str], None], consumer: ConsumerJudge, slack_ms: float) -> None:
        self._report = report
        self._consumer = consumer
        self._slack_ms = slack_ms
        self._members: dict[str, dict[str, Told]] = {}

    def forget(self, group: str) -> None:
        self._members.pop(group, None)

    # -- the broker got a request

    def delivered(self, exchange: Exchange) -> None:
        request = exchange.request
        if isinstance(request, JoinGroupRequest):
            self._let_go(exchange, request.member_id, None if request.member_id else request.group_instance_id)
        elif isinstance(request, LeaveGroupRequest):
            for identity in [*request.members, request]:
                self._let_go(exchange, identity.member_id, getattr(identity, "group_instance_id", None))

    def _let_go(self, exchange: Exchange, member_id: str, instance_id: str | None) -> None:
        """Who joins has given up everything before; who left or was replaced has nothing any more."""
        for name, told in self._of(exchange.request.group_id).items():
            if name == member_id or (instance_id is not None and told.instance_id == instance_id):
                told.holds.clear()
                told.let_go_at = exchange.delivered_at

    def _of(self, group: str) -> dict[str, Told]:
        return self._members.setdefault(group, {})

    # -- an answer left

    def issued(self, exchange: Exchange, now_ms: float, topics: Mapping[str, TopicFacts]) -> None:
        request = exchange.request
        if isinstance(request, JoinGroupRequest) and not exchange.response.error_code:
            self._joined(exchange)
        elif isinstance(request, SyncGroupRequest | HeartbeatRequest):
            self._answered(exchange, now_ms, topics)
        elif isinstance(request, ConsumerGroupHeartbeatRequest) and exchange.response.assignment is not None:
            given = exchange.response.assignment.topic_partitions
            held = {(topic.topic_id, at) for topic in given for at in topic.partitions}
            self._check(exchange, held, self._classic_holders(request.group_id, now_ms, but=""))

    def _joined(self, exchange: Exchange) -> None:
        request, answer = exchange.request, exchange.response
        of_group = self._of(request.group_id)
        before = of_group.get(answer.member_id)
        told = of_group[answer.member_id] = Told(
            request.group_instance_id,
            request.session_timeout_ms,
            request.rebalance_timeout_ms,
            touched_ms=exchange.decided_ms,
            settled_ms=exchange.decided_ms,
            let_go_at=exchange.delivered_at,
        )
        if before is not None and before.let_go_at > exchange.delivered_at:
            told.let_go_at = before.let_go_at

    def _answered(self, exchange: Exchange, now_ms: float, topics: Mapping[str, TopicFacts]) -> None:
        request, code = exchange.request, exchange.response.error_code
        told = self._of(request.group_id).get(request.member_id)
        if told is None:
            return
        if code in _OUT:
            told.holds.clear()
        # In groups of both protocols a Sync that is refused prolongs no session.
        if not code or (isinstance(request, HeartbeatRequest) and code == ErrorCode.REBALANCE_IN_PROGRESS):
            told.touched_ms = max(told.touched_ms, exchange.delivered_ms)
        if code == ErrorCode.NONE:
            told.settled_ms = max(told.settled_ms, exchange.decided_ms)
            if isinstance(request, SyncGroupRequest) and told.let_go_at < exchange.delivered_at:
                self._synced(exchange, told, now_ms, topics)

    def _synced(self, exchange: Exchange, told: Told, now_ms: float, topics: Mapping[str, TopicFacts]) -> None:
        group, member_id = exchange.request.group_id, exchange.request.member_id
        places = decode_places(exchange.response.assignment)
        told.holds = {(topics[name].id, at) for name, at in places if name in topics}
        self._check(exchange, told.holds, self._classic_holders(group, now_ms, but=member_id))
        self._check(exchange, told.holds, self._consumer.holders(group, now_ms))

    def _classic_holders(self, group: str, now_ms: float, *, but: str) -> Iterable[tuple[str, set[Held]]]:
        for member_id, told in self._of(group).items():
            if member_id != but and not told.may_be_out(now_ms, self._slack_ms):
                yield member_id, told.holds

    def _check(self, exchange: Exchange, given: set[Held], others: Iterable[tuple[str, set[Held]]]) -> None:
        for member_id, holds in others:
            if holds & given:
                self._report(f"{exchange}: {sorted(holds & given)} were given away, {member_id} has them still")

    # -- the broker starts again

    def lost_assignments(self, group: str) -> None:
        """A start found a generation without assignments: what its members had is not known, they shall join again."""
        for told in self._of(group).values():
            told.holds.clear()

    def crashed(self, now_ms: float) -> None:
        for of_group in self._members.values():
            for told in of_group.values():
                if told.may_be_out(now_ms, self._slack_ms):
                    told.holds.clear()

    def reloaded(self, now_ms: float) -> None:
        """Members come back with fresh deadlines."""
        for of_group in self._members.values():
            for told in of_group.values():
                told.touched_ms = told.settled_ms = now_ms
