"""A member of a consumer group: it joins, keeps its place, takes partitions over and gives them up.

member = Member(Coordinator(cluster, "orders-app"), listener, topics=["orders"])
member.start()
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Protocol

from lowwater.client.coordinator import NOBODY, Committed, Coordinator, Identity
from lowwater.client.driver import sleep
from lowwater.client.errors import ClientError, CommitError, GroupError, NotMemberError, RebalancingError
from lowwater.client.flow import Flow
from lowwater.client.group_classic import ClassicProtocol
from lowwater.client.group_consumer import ConsumerProtocol
from lowwater.client.group_share import Listener, OversleptError, Share, State
from lowwater.errors import ErrorCode, LowwaterError
from lowwater.types import TopicPartition

__all__ = ["Listener", "Member", "State"]

LEAVE_TIMEOUT_MS = 5_000
"""Leaving is a courtesy: without it the others wait for the session to end."""
# Shares are being handed out, or the epoch has just moved: whose the partitions are is known in a moment.
_MOVING = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.STALE_MEMBER_EPOCH})


class GroupProtocol(Protocol):
    """How a member speaks to its group; what it is given and what it gives up goes through its `Share`."""

    async def join(self) -> None:
        """Until there is a share, and it was taken over."""

    async def stay(self) -> None:
        """Until it has to join again. What puts the member out of the group is raised."""

    def identity_after(self, error: NotMemberError) -> Identity:
        """Who it is when it joins after that."""

    def subscribe(self, topics: Iterable[str], pattern: str | None) -> None: ...

    def rest(self) -> None:
        """No more heartbeats."""

    def stop(self) -> None:
        """Look for nothing new any more."""

    async def leave(self, identity: Identity, reason: str, timeout_ms: float) -> None: ...


class Member:
    """Once started it stays in the group until closed, whatever happens to connections and coordinators."""

    def __init__(
        self, coordinator: Coordinator, listener: Listener, *, topics: Iterable[str] = (), pattern: str | None = None
    ) -> None:
        network = coordinator.cluster.network
        self.failure: ClientError | None = None
        self.trouble: ClientError | None = None  # why it is not getting on at the moment
        self._coordinator = coordinator
        self._driver = network.driver
        self._listener = listener
        self._share = Share(network.driver, listener, network.config.int("max.poll.interval.ms"))
        chosen = ConsumerProtocol if network.config.str("group.protocol") == "consumer" else ClassicProtocol
        self._protocol: GroupProtocol = chosen(coordinator, self._share, topics, pattern)
        self._flow: Flow[None] | None = None

    @property
    def state(self) -> State:
        return self._share.state

    @property
    def identity(self) -> Identity:
        return self._share.identity

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self._share.assignment

    # ---- for the reader

    def start(self) -> None:
        self.exit_poll()
        self._flow = Flow(self._live())

    async def enter_poll(self, *, is_done: bool = True) -> None:
        """The caller is done with what it was given before. When it is waited for, partitions are given up first.

        Without `is_done` it is not, and nothing is given up however long it waits for more.
        """
        await self._share.enter_poll(is_done=is_done)

    def exit_poll(self) -> None:
        """The caller has something to work on; partitions are not taken from under its hands, unless that takes longer
        than max.poll.interval.ms."""
        self._share.exit_poll()

    def subscribe(self, topics: Iterable[str] = (), pattern: str | None = None) -> None:
        """Read these from the next rebalance on, which begins now."""
        self._protocol.subscribe(topics, pattern)

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int | Committed],
        *,
        timeout_ms: float | None = None,
        is_retried: bool = True,
    ) -> None:
        """As the coordinator's, in this member's name. CommitError names partitions that are not its own any more.

        That the group moves on meanwhile is no failure: it is tried again in the next generation, also when failures
        are not retried.
        """
        own: dict[TopicPartition, int | Committed] = {}
        failure: ClientError | None = None

        async def attempt(left_ms: float) -> None:
            nonlocal own, failure
            own = {one: offset for one, offset in offsets.items() if one in self.assignment}
            identity = self.identity
            try:
                await self._coordinator.commit(own, identity, timeout_ms=left_ms, is_retried=is_retried)
            except ClientError as error:
                if isinstance(error, GroupError) and self._is_moving(error, identity):
                    error.retriable = True
                    raise
                if is_retried:
                    raise
                failure = error

        await self._coordinator.cluster.retry.run(attempt, timeout_ms)
        if failure is not None:
            raise failure
        if len(own) < len(offsets):
            raise CommitError({one: self._not_own(one) for one in offsets if one not in own}, own)

    def _is_moving(self, error: GroupError, identity: Identity) -> bool:
        """Whether it was refused because the group is on its way to another generation, together with this member."""
        if error.code == ErrorCode.ILLEGAL_GENERATION:
            # Joining goes by a connection of its own, and may be there first.
            return self.state is State.JOINING or self.identity.generation != identity.generation
        return error.code in _MOVING

    async def close(self, timeout_ms: float | None = None) -> None:
        """Give up what is owned and leave; a static member's place is kept for it until its session ends."""
        if self.state is State.OVER:
            return
        if self._flow is not None:
            self._flow.cancel()
        self._protocol.stop()
        self._share.stop_timer()
        try:
            await self._share.revoke(self.assignment)
        finally:
            self._protocol.rest()
            self._share.state = State.OVER
        identity, self._share.identity = self.identity, NOBODY
        await self._leave(identity, "the reader is closed", timeout_ms)

    # ---- its life

    async def _live(self) -> None:
        try:
            await self._rounds()
        except Exception as error:  # a hook may fail in any way, and the reader has to hear of it
            self.failure = error if isinstance(error, ClientError) else _unexpected(error)
            self._protocol.stop()
            self._share.stop_timer()
            identity = self.identity
            try:
                await self._lose()
            finally:
                self._share.state = State.OVER
                self._listener.failed(self.failure)
            await self._leave(identity, "the member has failed")

    async def _rounds(self) -> None:
        tries = 0
        while True:
            try:
                await self._protocol.join()
                tries, self.trouble = 0, None
                await self._protocol.stay()
                continue
            except OversleptError:
                await self._oversleep()
                continue
            except NotMemberError as error:
                self.trouble = error
                identity = self._protocol.identity_after(error)
                await self._lose()
                self._share.identity = identity
            except RebalancingError as error:
                self.trouble = error
            except ClientError as error:
                self.trouble = error
                if not error.retriable:
                    raise
            tries += 1
            if tries > 1:
                await sleep(self._driver, self._coordinator.cluster.retry.wait_ms(tries - 1))

    async def _lose(self) -> None:
        self._protocol.rest()
        await self._share.lose()

    async def _oversleep(self) -> None:
        """Let the others have the partitions; join again when the caller is back."""
        identity = self.identity
        await self._lose()
        await self._leave(identity, f"no poll for {self._share.max_poll_ms} ms")
        await self._share.until(lambda: self._share.is_polling)

    async def _leave(self, identity: Identity, reason: str, timeout_ms: float | None = None) -> None:
        limit_ms = LEAVE_TIMEOUT_MS if timeout_ms is None else min(timeout_ms, LEAVE_TIMEOUT_MS)
        with contextlib.suppress(ClientError):
            await self._protocol.leave(identity, reason, limit_ms)

    def _not_own(self, one: TopicPartition) -> NotMemberError:
        return NotMemberError(
            ErrorCode.ILLEGAL_GENERATION,
            f"not this member's in group {self._coordinator.group!r}",
            topic=one.topic,
            partition=one.partition,
            advice="what was read of it is read again by whoever has it now",
        )


def _unexpected(error: Exception) -> ClientError:
    failure = ClientError(str(error) if isinstance(error, LowwaterError) else f"the member failed: {error!r}")
    failure.__cause__ = error
    return failure
