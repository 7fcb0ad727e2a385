"""A member of a consumer group: it joins, keeps its place, takes partitions over and gives them up.

member = Member(Coordinator(cluster, "orders-app"), listener, topics=["orders"])
member.start()
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Protocol

from lowwater.client.bell import Bell
from lowwater.client.coordinator import NOBODY, Committed, Coordinator, Identity
from lowwater.client.driver import sleep
from lowwater.client.errors import ClientError, CommitError, NotMemberError, RebalancingError
from lowwater.client.flow import Flow
from lowwater.client.group_assigning import Owned, is_cooperative
from lowwater.client.group_heartbeats import Heartbeats
from lowwater.client.group_joining import Exchange, Joined
from lowwater.client.group_topics import Topics
from lowwater.errors import ErrorCode
from lowwater.pending import Pending
from lowwater.ports import Timer
from lowwater.types import TopicPartition

LEAVE_TIMEOUT_MS = 5_000
"""Leaving is a courtesy: without it the others wait for the session to end."""


class Listener(Protocol):
    """Who reads what the member is given. The coroutines keep their own errors: what they raise ends the member."""

    async def assigned(self, partitions: list[TopicPartition]) -> None:
        """These are new, from now on. Told after every rebalance, also when there is nothing new."""

    async def revoked(self, partitions: list[TopicPartition]) -> None:
        """These go to others when this returns: commit what is done, and let go."""

    async def lost(self, partitions: list[TopicPartition]) -> None:
        """These are not this member's any more: let go; a commit would be refused."""

    def failed(self, error: ClientError) -> None:
        """The member is out of the group for good."""


class State(Enum):
    OUT = "not in the group"
    JOINING = "waiting for the others, or for its share"
    STABLE = "has its share"
    OVER = "closed, or out for good"


class Member:
    """Once started it stays in the group until closed, whatever happens to connections and coordinators.

    Between `exit_poll` and `enter_poll` the caller works on what it was given: partitions are not taken from under
    its hands, unless that takes longer than max.poll.interval.ms.
    """

    def __init__(
        self, coordinator: Coordinator, listener: Listener, *, topics: Iterable[str] = (), pattern: str | None = None
    ) -> None:
        network = coordinator.cluster.network
        self.state = State.OUT
        self.identity = NOBODY
        self.assignment: frozenset[TopicPartition] = frozenset()
        self.failure: ClientError | None = None
        self.trouble: ClientError | None = None  # why it is not getting on at the moment
        self._coordinator = coordinator
        self._driver = network.driver
        self._listener = listener
        self._exchange = Exchange(coordinator)
        self._is_cooperative = is_cooperative(self._exchange.strategies)
        self._heartbeats = Heartbeats(coordinator, self._hear)
        self._topics = Topics(coordinator.cluster, topics, pattern, self.rejoin)
        self._had = Owned()
        self._max_poll_ms = network.config.int("max.poll.interval.ms")
        self._poll_timer: Timer | None = None
        self._is_polling = False
        self._giving_up: Pending[None] | None = None
        self._news: ClientError | None = None
        self._rejoin_reason: str | None = None
        self._bell = Bell(network.driver)
        self._flow: Flow[None] | None = None

    # ---- for the reader

    def start(self) -> None:
        self.exit_poll()
        self._flow = Flow(self._live())

    async def enter_poll(self) -> None:
        """The caller is done with what it was given before. When it is waited for, partitions are given up first."""
        self._is_polling = True
        self._stop_poll_timer()
        if isinstance(self._news, OversleptError):
            self._news = None  # back in time
        self._bell.ring()
        if self._giving_up is not None:
            await self._giving_up.then(lambda _: None)

    def exit_poll(self) -> None:
        """The caller has something to work on."""
        self._is_polling = False
        self._stop_poll_timer()
        self._poll_timer = self._driver.call_later(self._max_poll_ms, lambda: self._hear(_overslept(self._max_poll_ms)))

    def subscribe(self, topics: Iterable[str] = (), pattern: str | None = None) -> None:
        """Read these from the next rebalance on, which begins now."""
        self._topics.change(topics, pattern)
        self.rejoin("the subscription has changed")

    def rejoin(self, reason: str) -> None:
        """Have the partitions shared anew."""
        self._rejoin_reason = self._rejoin_reason or reason
        self._bell.ring()

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int | Committed],
        *,
        timeout_ms: float | None = None,
        is_retried: bool = True,
    ) -> None:
        """As the coordinator's, in this member's name. CommitError names partitions that are not its own any more."""
        own: dict[TopicPartition, int | Committed] = {}

        async def attempt(left_ms: float) -> None:
            nonlocal own
            own = {one: offset for one, offset in offsets.items() if one in self.assignment}
            try:
                await self._coordinator.commit(own, self.identity, timeout_ms=left_ms, is_retried=is_retried)
            except RebalancingError as error:
                # Shares are being handed out; whose the partitions are then is known in a moment.
                error.retriable = is_retried
                raise

        await self._coordinator.cluster.retry.run(attempt, timeout_ms)
        if len(own) < len(offsets):
            raise CommitError({one: self._not_own(one) for one in offsets if one not in own}, own)

    async def close(self, timeout_ms: float | None = None) -> None:
        """Give up what is owned and leave; a static member's place is kept for it until its session ends."""
        if self.state is State.OVER:
            return
        if self._flow is not None:
            self._flow.cancel()
        self._topics.stop()
        self._stop_poll_timer()
        try:
            if self.assignment:
                await self._listener.revoked(sorted(self.assignment))
        finally:
            self.assignment = frozenset()
            self._heartbeats.stop()
            self.state = State.OVER
        identity, self.identity = self.identity, NOBODY
        await self._leave(identity, "the reader is closed", timeout_ms)

    # ---- its life

    async def _live(self) -> None:
        try:
            await self._rounds()
        except Exception as error:  # a hook may fail in any way, and the reader has to hear of it
            self.failure = error if isinstance(error, ClientError) else _unexpected(error)
            self._topics.stop()
            self._stop_poll_timer()
            identity = self.identity
            try:
                await self._lose()
            finally:
                self.state = State.OVER
                self._listener.failed(self.failure)
            await self._leave(identity, "the member has failed")

    async def _rounds(self) -> None:
        tries = 0
        while True:
            try:
                await self._round()
                tries = 0
                self.trouble = None
                await self._until(lambda: self._rejoin_reason is not None)
                continue
            except OversleptError:
                await self._oversleep()
                continue
            except NotMemberError as error:
                self.trouble = error
                # A member of an older generation has a place in the group still.
                is_known = error.code == ErrorCode.ILLEGAL_GENERATION
                member_id = self.identity.member_id if is_known else ""
                await self._lose()
                self._take_id(member_id)
            except RebalancingError as error:
                self.trouble = error
            except ClientError as error:
                self.trouble = error
                if not error.retriable:
                    raise
            tries += 1
            if tries > 1:
                await sleep(self._driver, self._coordinator.cluster.retry.wait_ms(tries - 1))

    async def _round(self) -> None:
        """One rebalance, from what is given up before it to what is taken over after it."""
        topics = await self._topics.wanted()
        if not self._is_cooperative:
            await self._give_up(self.assignment)
        await self._until(lambda: True)  # so that what was heard until now is not held against the next generation
        self.state = State.JOINING
        reason, self._rejoin_reason = self._rejoin_reason or "", None
        self._heartbeats.stop()
        owned = Owned(self.assignment, self.identity.generation if self.assignment else -1)
        joined = await self._exchange.join(self.identity.member_id, topics, owned, self._had, reason, self._take_id)
        self.identity = joined.identity
        share = await self._exchange.sync(joined, await self._shares(joined))
        self._heartbeats.start(self.identity)
        self._topics.watch()
        self._had = Owned(share, self.identity.generation)
        await self._take_over(share)
        self.state = State.STABLE

    def _take_id(self, member_id: str) -> None:
        self.identity = Identity(member_id, -1, self._exchange.instance_id)

    async def _shares(self, joined: Joined) -> dict[str, bytes]:
        sharing = joined.sharing
        counts = await self._topics.lead(frozenset() if sharing is None else sharing.topics)
        if sharing is None or joined.is_leader_excused:
            return {}
        return await self._driver.elsewhere(lambda: sharing.assign(counts))

    async def _take_over(self, share: frozenset[TopicPartition]) -> None:
        given_up, new = self.assignment - share, share - self.assignment
        if given_up:
            await self._give_up(given_up)
            self.rejoin("partitions were given up for others")
        self.assignment = share
        await self._listener.assigned(sorted(new))

    async def _give_up(self, partitions: frozenset[TopicPartition]) -> None:
        """Not before the caller is done with what it has of them."""
        if not partitions:
            return
        giving_up: Pending[None] = Pending()
        self._giving_up = giving_up
        try:
            await self._until(lambda: self._is_polling)
            await self._listener.revoked(sorted(partitions))
            self.assignment -= partitions
        finally:
            self._giving_up = None
            giving_up.resolve(None)

    async def _lose(self) -> None:
        """The group goes on without this member."""
        self._heartbeats.stop()
        self.state = State.OUT
        lost, self.assignment = self.assignment, frozenset()
        self.identity = NOBODY
        if lost:
            await self._listener.lost(sorted(lost))

    async def _oversleep(self) -> None:
        """Let the others have the partitions; join again when the caller is back."""
        identity = self.identity
        await self._lose()
        await self._leave(identity, f"no poll for {self._max_poll_ms} ms")
        await self._until(lambda: self._is_polling)

    async def _leave(self, identity: Identity, reason: str, timeout_ms: float | None = None) -> None:
        if not identity.member_id or identity.instance_id is not None:
            return
        limit_ms = LEAVE_TIMEOUT_MS if timeout_ms is None else min(timeout_ms, LEAVE_TIMEOUT_MS)
        with contextlib.suppress(ClientError):
            await self._exchange.leave(identity, reason, limit_ms)

    # ---- what is heard meanwhile

    def _hear(self, news: ClientError) -> None:
        """From heartbeats and timers. That the group gathers is no news that ends anything."""
        if isinstance(news, RebalancingError):
            self.rejoin("the group is rebalancing")
            return
        self._news = self._news or news
        self._bell.ring()

    async def _until(self, is_so: Callable[[], bool]) -> None:
        """Wait for it; what puts the member out of the group meanwhile is raised."""
        while True:
            if self._news is not None:
                news, self._news = self._news, None
                raise news
            if is_so():
                return
            await self._bell.heard()

    def _not_own(self, one: TopicPartition) -> NotMemberError:
        return NotMemberError(
            ErrorCode.ILLEGAL_GENERATION,
            f"not this member's in group {self._coordinator.group!r}",
            topic=one.topic,
            partition=one.partition,
            advice="what was read of it is read again by whoever has it now",
        )

    def _stop_poll_timer(self) -> None:
        timer, self._poll_timer = self._poll_timer, None
        if timer is not None:
            timer.cancel()


class OversleptError(ClientError):
    """The caller did not come back within max.poll.interval.ms."""


def _overslept(limit_ms: int) -> OversleptError:
    return OversleptError(f"no poll for {limit_ms} ms", advice="raise max.poll.interval.ms, or read smaller batches")


def _unexpected(error: Exception) -> ClientError:
    failure = ClientError(f"the member failed: {error!r}")
    failure.__cause__ = error
    return failure
