"""When a reader's offsets are committed, and what becomes of a commit that fails.

committer.done({partition: 105})   # 100…104 are finished with
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Protocol, TypeAlias

from lowwater.client.coordinator import Committed
from lowwater.client.driver import Driver
from lowwater.client.errors import ClientError, CommitError, NotMemberError, RebalancingError
from lowwater.client.flow import Flow
from lowwater.errors import ConfigError
from lowwater.pending import Pending
from lowwater.ports import Timer
from lowwater.types import TopicPartition

Offsets: TypeAlias = Mapping[TopicPartition, int | Committed]

INTERVAL_MS_MIN = 20
"""Commits by themselves come no denser than this, also when auto.commit.interval.ms is 0."""


class Commit(Protocol):
    """`Member.commit` or `Coordinator.commit`."""

    async def __call__(self, offsets: Offsets, *, timeout_ms: float | None = None, is_retried: bool = True) -> None: ...


class CommitPolicy(Enum):
    """What a commit that fails means to the reader."""

    RETRY = "retry"
    RAISE = "raise"
    CONTINUE = "continue"


class Committer:
    """Keeps what the caller is finished with, and commits it: when asked, at intervals if there is one, and then also
    before partitions go.

    retry: tried again until default.api.timeout.ms is over, then raised. raise: raised at the first failure.
    continue: counted, and the next commit covers the same. What fails in the background is raised by `check`.
    """

    def __init__(
        self, commit: Commit, driver: Driver, *, on_failure: str = "retry", interval_ms: int | None = None
    ) -> None:
        self._commit = commit
        self._driver = driver
        self._policy = _policy(on_failure)
        self._interval_ms = None if interval_ms is None else max(interval_ms, INTERVAL_MS_MIN)
        self._done: dict[TopicPartition, int | Committed] = {}
        self._committed: dict[TopicPartition, int | Committed] = {}
        self._timer: Timer | None = None
        self._is_in_background = False
        self._busy: Pending[None] | None = None
        self._unraised: ClientError | None = None
        self.commits = 0
        self.failures = 0
        self.last_failure: ClientError | None = None

    def done(self, offsets: Offsets) -> None:
        """The caller is finished with everything below these offsets, each the next one to read."""
        self._done.update(offsets)
        if self._interval_ms is None or self._timer is not None or self._is_in_background:
            return
        if self._due():
            self._timer = self._driver.call_later(self._interval_ms, self._begin)

    def check(self) -> None:
        """Raise what failed since the last look, unless the policy is to go on."""
        failure, self._unraised = self._unraised, None
        if failure is not None:
            raise failure

    async def flush(self, timeout_ms: float | None = None) -> None:
        """Commit now what the caller is finished with."""
        await self._in_turn(None, timeout_ms)

    async def commit(self, offsets: Offsets, timeout_ms: float | None = None) -> None:
        """Commit these now, and nothing that is done besides."""
        self.done(offsets)
        await self._in_turn(frozenset(offsets), timeout_ms)

    async def give_up(self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None) -> None:
        """Forget these; before, what is done of them is committed, when commits are made at intervals.

        A failure is kept for `check`: the partitions go in any case.
        """
        going = frozenset(partitions)
        try:
            if self._interval_ms is not None:
                await self._in_turn(going, timeout_ms)
        except ClientError as error:
            self._keep(error)
        self.forget(going)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """They are somebody else's: nothing of them is committed any more."""
        for one in partitions:
            self._done.pop(one, None)
            self._committed.pop(one, None)

    async def close(self, timeout_ms: float | None = None) -> None:
        """The last commit, when commits are made at intervals; no more then."""
        is_automatic, self._interval_ms = self._interval_ms is not None, None
        self._stop_timer()
        if is_automatic:
            await self.flush(timeout_ms)

    # ---- at intervals

    def _begin(self) -> None:
        self._timer = None
        Flow(self._in_background())

    async def _in_background(self) -> None:
        self._is_in_background = True
        try:
            await self._in_turn(None, None)
        except ClientError as error:
            self._keep(error)
        finally:
            self._is_in_background = False
        self.done({})

    def _keep(self, error: ClientError) -> None:
        """For `check`. Partitions that went to others are read there from the last commit on: no reason to stop."""
        if self._policy is CommitPolicy.RAISE or not _is_of_membership(error):
            self._unraised = error

    def _stop_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    # ---- committing

    def _due(self, only: frozenset[TopicPartition] | None = None) -> dict[TopicPartition, int | Committed]:
        return {
            one: offset
            for one, offset in self._done.items()
            if self._committed.get(one) != offset and (only is None or one in only)
        }

    async def _in_turn(self, only: frozenset[TopicPartition] | None, timeout_ms: float | None) -> None:
        """One at a time: a commit that is tried again must not come after a later one."""
        while self._busy is not None:
            await self._busy.then(lambda _: None)
        busy = self._busy = Pending()
        try:
            await self._commit_now(self._due(only), timeout_ms)
        finally:
            self._busy = None
            busy.resolve(None)

    async def _commit_now(self, due: dict[TopicPartition, int | Committed], timeout_ms: float | None) -> None:
        if not due:
            return
        try:
            await self._commit(due, timeout_ms=timeout_ms, is_retried=self._policy is CommitPolicy.RETRY)
        except ClientError as error:
            self.failures += 1
            self.last_failure = error
            if isinstance(error, CommitError):
                self._note({one: due[one] for one in error.committed})
            if self._policy is not CommitPolicy.CONTINUE:
                raise
        else:
            self.commits += 1
            self._note(due)

    def _note(self, committed: dict[TopicPartition, int | Committed]) -> None:
        """Those that were given up meanwhile are not kept."""
        self._committed.update({one: offset for one, offset in committed.items() if one in self._done})


def _is_of_membership(error: ClientError) -> bool:
    if isinstance(error, CommitError):
        return all(map(_is_of_membership, error.errors.values()))
    return isinstance(error, NotMemberError | RebalancingError)


def _policy(name: str) -> CommitPolicy:
    try:
        return CommitPolicy(name)
    except ValueError:
        known = ", ".join(policy.value for policy in CommitPolicy)
        raise ConfigError(f"what to do when a commit fails cannot be {name!r}; there are {known}") from None
