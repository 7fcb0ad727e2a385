"""The classic protocol: all members join, one of them shares the partitions out, each asks for its share."""

from __future__ import annotations

from collections.abc import Iterable

from lowwater.client.coordinator import NOBODY, Coordinator, Identity
from lowwater.client.errors import ClientError, NotMemberError, RebalancingError
from lowwater.client.group_assigning import Owned, is_cooperative
from lowwater.client.group_heartbeats import Heartbeats
from lowwater.client.group_joining import Exchange, Joined
from lowwater.client.group_share import Share, State
from lowwater.client.group_topics import Topics
from lowwater.errors import ErrorCode


class ClassicProtocol:
    """Eager: everything is given up before a rebalance. Cooperative: only what goes to others, and then it joins again.

    See `GroupProtocol` for what its methods are.
    """

    def __init__(self, coordinator: Coordinator, share: Share, topics: Iterable[str], pattern: str | None) -> None:
        self._driver = coordinator.cluster.network.driver
        self._share = share
        self._exchange = Exchange(coordinator)
        self._is_cooperative = is_cooperative(self._exchange.strategies)
        self._heartbeats = Heartbeats(coordinator, self._hear)
        self._topics = Topics(coordinator.cluster, topics, pattern, self._rejoin)
        self._had = Owned()
        self._rejoin_reason: str | None = None

    def subscribe(self, topics: Iterable[str], pattern: str | None) -> None:
        self._topics.change(topics, pattern)
        self._rejoin("the subscription has changed")

    async def join(self) -> None:
        share = self._share
        topics = await self._topics.wanted()
        if not self._is_cooperative:
            await share.give_up(share.assignment)
        await share.until(lambda: True)  # so that what was heard until now is not held against the next generation
        share.state = State.JOINING
        reason, self._rejoin_reason = self._rejoin_reason or "", None
        self._heartbeats.stop()
        owned = Owned(share.assignment, share.identity.generation if share.assignment else -1)
        joined = await self._exchange.join(share.identity.member_id, topics, owned, self._had, reason, self._take_id)
        share.identity = joined.identity
        mine = await self._exchange.sync(joined, await self._shares(joined))
        self._heartbeats.start(share.identity)
        self._topics.watch()
        self._had = Owned(mine, share.identity.generation)
        await self._topics.get_to_know(mine)
        if await share.take_over(mine):
            self._rejoin("partitions were given up for others")
        share.state = State.STABLE

    def _take_id(self, member_id: str) -> None:
        self._share.identity = Identity(member_id, -1, self._exchange.instance_id)

    async def _shares(self, joined: Joined) -> dict[str, bytes]:
        sharing = joined.sharing
        counts = await self._topics.lead(frozenset() if sharing is None else sharing.topics)
        if sharing is None or joined.is_leader_excused:
            return {}
        return await self._driver.elsewhere(lambda: sharing.assign(counts))

    async def stay(self) -> None:
        await self._share.until(lambda: self._rejoin_reason is not None)

    def identity_after(self, error: NotMemberError) -> Identity:
        """A member of an older generation has a place in the group still."""
        if error.code != ErrorCode.ILLEGAL_GENERATION:
            return NOBODY
        return Identity(self._share.identity.member_id, -1, self._exchange.instance_id)

    def rest(self) -> None:
        self._heartbeats.stop()

    def stop(self) -> None:
        self._topics.stop()

    async def leave(self, identity: Identity, reason: str, timeout_ms: float) -> None:
        """A static member stays: its place is kept for it until its session ends."""
        if self._exchange.instance_id is None:
            await self._exchange.leave(identity, reason, timeout_ms)

    def _hear(self, news: ClientError) -> None:
        if isinstance(news, RebalancingError):
            self._rejoin("the group is rebalancing")
        else:
            self._share.hear(news)

    def _rejoin(self, reason: str) -> None:
        self._rejoin_reason = self._rejoin_reason or reason
        self._share.look()
