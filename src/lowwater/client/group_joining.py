"""The exchanges of a member of a classic group with its coordinator: JoinGroup, SyncGroup, LeaveGroup."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lowwater.client.coordinator import Coordinator, Identity
from lowwater.client.errors import broker_error
from lowwater.client.flow import Flow
from lowwater.client.group_assigning import Owned, Sharing, partitions_of, strategies, subscription
from lowwater.client.network import COORDINATING
from lowwater.errors import ErrorCode
from lowwater.groups.consumer_protocol import PROTOCOL_TYPE
from lowwater.pending import Pending
from lowwater.types import TopicPartition
from lowwater.wire.messages import JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest
from lowwater.wire.messages.join_group import JoinGroupRequestProtocol
from lowwater.wire.messages.leave_group import MemberIdentity
from lowwater.wire.messages.sync_group import SyncGroupRequestAssignment

JOIN_SLACK_MS = 5_000
"""A broker answers JoinGroup when the rebalance timeout is over at the latest; the answer needs a while to come."""
REASON_LENGTH_MAX = 255
MANY_LEAVE_SINCE = 3
_LEAVE_VERSION_MAX = 5

_ADVICE: dict[int, str] = {
    ErrorCode.FENCED_INSTANCE_ID: "give every client a group.instance.id of its own",
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "the other members share by another partition.assignment.strategy, "
    "or the group is not one of consumers",
    ErrorCode.INVALID_SESSION_TIMEOUT: "session.timeout.ms has to be within the broker's "
    "group.min.session.timeout.ms and group.max.session.timeout.ms",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "the broker's group.max.size says how many there may be",
}


@dataclass(frozen=True, slots=True)
class Joined:
    """A member's place in a new generation. `sharing` is the leader's: whom it has to give partitions to."""

    identity: Identity
    strategy: str
    sharing: Sharing | None = None
    is_leader_excused: bool = False


class Exchange:
    """Speaks for one member. What may wait long at the broker goes on the lane of its own."""

    def __init__(self, coordinator: Coordinator) -> None:
        config = coordinator.cluster.network.config
        self._coordinator = coordinator
        self.strategies = strategies(config.list("partition.assignment.strategy"))
        self.instance_id = config.maybe_str("group.instance.id")
        self._session_timeout_ms = config.int("session.timeout.ms")
        self._rebalance_timeout_ms = config.int("max.poll.interval.ms")
        self._request_timeout_ms = config.int("request.timeout.ms")
        self._rack = config.str("client.rack") or None
        self._naming: Flow[Any] | None = None

    async def join(
        self,
        member_id: str,
        topics: Iterable[str],
        owned: Owned,
        had: Owned,
        reason: str,
        on_id: Callable[[str], None],
    ) -> Joined:
        """A place in the next generation. A dynamic member is first told its id: `on_id` keeps it for `leave`."""
        protocols = [
            JoinGroupRequestProtocol(name=name, metadata=subscription(name, topics, owned, had, self._rack))
            for name in self.strategies
        ]
        asking = self._naming = Flow(self._join_once(member_id, protocols, reason))
        response = await asking.then(lambda done: done.result())
        self._naming = None
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            on_id(response.member_id)
            response = await self._join_once(response.member_id, protocols, reason)
        self._require(response.error_code, "join")
        return self._joined(response)

    async def _join_once(self, member_id: str, protocols: list[JoinGroupRequestProtocol], reason: str) -> Any:
        request = JoinGroupRequest(
            group_id=self._coordinator.group,
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
            member_id=member_id,
            group_instance_id=self.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=protocols,
            reason=reason[:REASON_LENGTH_MAX],
        )
        return await self._coordinator.ask(request, lane=COORDINATING, timeout_ms=self._long_timeout_ms)

    @property
    def _long_timeout_ms(self) -> float:
        return max(self._request_timeout_ms, self._rebalance_timeout_ms + JOIN_SLACK_MS)

    def _joined(self, response: Any) -> Joined:
        identity = Identity(response.member_id, response.generation_id, self.instance_id)
        strategy = response.protocol_name or ""
        if response.leader != response.member_id:
            return Joined(identity, strategy)
        members = {each.member_id: (each.group_instance_id, bytes(each.metadata)) for each in response.members}
        return Joined(identity, strategy, Sharing(strategy, members), response.skip_assignment)

    async def sync(self, joined: Joined, shares: Mapping[str, bytes]) -> frozenset[TopicPartition]:
        """This member's share; the leader hands in everybody's."""
        identity = joined.identity
        request = SyncGroupRequest(
            group_id=self._coordinator.group,
            generation_id=identity.generation,
            member_id=identity.member_id,
            group_instance_id=identity.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=joined.strategy,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=share) for member, share in shares.items()
            ],
        )
        response = await self._coordinator.ask(request, lane=COORDINATING, timeout_ms=self._long_timeout_ms)
        self._require(response.error_code, "have a share of")
        return partitions_of(bytes(response.assignment))

    async def leave(self, identity: Identity, reason: str, timeout_ms: float) -> None:
        """Out of the group at once, so that the others need not wait for the session to end."""
        member_id = identity.member_id or await self._name_to_come(timeout_ms)
        if not member_id:
            return
        await self._coordinator.insist(
            _leaving(self._coordinator.group, member_id, reason),
            api=LeaveGroupRequest,
            versions=(0, _LEAVE_VERSION_MAX),
            timeout_ms=timeout_ms,
        )

    async def _name_to_come(self, timeout_ms: float) -> str:
        """Of a member that gave up before it was told its id: the group waits for whom it has named."""
        naming, self._naming = self._naming, None
        if naming is None:
            return ""
        over: Pending[None] = Pending()
        timer = self._coordinator.cluster.network.driver.call_later(timeout_ms, lambda: _settle(over))
        naming.on_done(lambda _: _settle(over))
        try:
            await over
            return str(naming.result().member_id) if naming.done else ""
        finally:
            timer.cancel()

    def _require(self, code: int, what: str) -> None:
        if code:
            raise broker_error(code, f"cannot {what} group {self._coordinator.group!r}", advice=_ADVICE.get(code, ""))


def _settle(over: Pending[None]) -> None:
    if not over.done:
        over.resolve(None)


def _leaving(group: str, member_id: str, reason: str) -> Callable[[int], LeaveGroupRequest]:
    def request(version: int) -> LeaveGroupRequest:
        if version < MANY_LEAVE_SINCE:
            return LeaveGroupRequest(group_id=group, member_id=member_id)
        who = MemberIdentity(member_id=member_id, reason=reason[:REASON_LENGTH_MAX])
        return LeaveGroupRequest(group_id=group, members=[who])

    return request
