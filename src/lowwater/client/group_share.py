"""What a member has of a group's partitions, who reads them, and whether they may be taken away."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Protocol

from lowwater.client.bell import Bell
from lowwater.client.driver import Driver
from lowwater.client.errors import ClientError
from lowwater.client.group_offsets import NOBODY
from lowwater.pending import Pending
from lowwater.ports import Timer
from lowwater.types import TopicPartition


class Listener(Protocol):
    """Who reads what the member is given. The coroutines keep their own errors: what they raise ends the member."""

    async def assigned(self, partitions: list[TopicPartition]) -> None:
        """These are new, from now on. Told after every rebalance, also when there is nothing new.

        Told again when it raises something retriable: nothing of them may have been begun then.
        """

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


class OversleptError(ClientError):
    """The caller did not come back within max.poll.interval.ms."""


class Share:
    """Between `exit_poll` and `enter_poll` the caller works on what it was given. Nothing is given up from under its
    hands; when that takes longer than `max_poll_ms`, that is news. News end a wait in `until`."""

    def __init__(self, driver: Driver, listener: Listener, max_poll_ms: int) -> None:
        self.state = State.OUT
        self.identity = NOBODY
        self.assignment: frozenset[TopicPartition] = frozenset()
        self.is_polling = False
        self.max_poll_ms = max_poll_ms
        self._driver = driver
        self._listener = listener
        self._bell = Bell(driver)
        self._news: ClientError | None = None
        self._poll_timer: Timer | None = None
        self._giving_up: Pending[None] | None = None

    # ---- the caller

    async def enter_poll(self, *, is_done: bool = True) -> None:
        """Without `is_done` the caller keeps what it was given, and waits for more."""
        self.is_polling = is_done
        self.stop_timer()
        if isinstance(self._news, OversleptError):
            self._news = None  # back in time
        self.look()
        if is_done and self._giving_up is not None:
            # Not the pending itself: a poll that is given up must not take it from others.
            await self._giving_up.then(lambda _: None)

    def exit_poll(self) -> None:
        self.is_polling = False
        self.stop_timer()
        self._poll_timer = self._driver.call_later(self.max_poll_ms, self._oversleep)

    def stop_timer(self) -> None:
        timer, self._poll_timer = self._poll_timer, None
        if timer is not None:
            timer.cancel()

    def _oversleep(self) -> None:
        advice = "raise max.poll.interval.ms, or read smaller batches"
        self.hear(OversleptError(f"no poll for {self.max_poll_ms} ms", advice=advice))

    # ---- what is heard

    def hear(self, news: ClientError) -> None:
        """Of heartbeats and timers: something that puts the member out of the group."""
        self._news = self._news or news
        self.look()

    def look(self) -> None:
        """Whoever waits in `until` is to look again."""
        self._bell.ring()

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait for it; news are raised instead."""
        while True:
            if self._news is not None:
                news, self._news = self._news, None
                raise news
            if is_so():
                return
            await self._bell.heard()

    # ---- partitions

    async def take_over(self, share: frozenset[TopicPartition]) -> bool:
        """Have exactly these. True when others had to be given up for that."""
        given_up = self.assignment - share
        await self.give_up(given_up)
        new = share - self.assignment
        self.assignment = share
        try:
            await self._listener.assigned(sorted(new))
        except ClientError as error:
            if error.retriable:
                self.assignment -= new  # so that they are told of again
            raise
        return bool(given_up)

    async def give_up(self, partitions: frozenset[TopicPartition]) -> None:
        """Not before the caller is done with what it has of them."""
        if not partitions:
            return
        giving_up: Pending[None] = Pending()
        self._giving_up = giving_up
        try:
            await self.until(lambda: self.is_polling)
            await self.revoke(partitions)
        finally:
            self._giving_up = None
            giving_up.resolve(None)

    async def revoke(self, partitions: frozenset[TopicPartition]) -> None:
        """The same without waiting."""
        if partitions:
            await self._listener.revoked(sorted(partitions))
            self.assignment -= partitions

    async def lose(self) -> None:
        """The group goes on without this member."""
        self.state = State.OUT
        self.identity = NOBODY
        lost, self.assignment = self.assignment, frozenset()
        if lost:
            await self._listener.lost(sorted(lost))
