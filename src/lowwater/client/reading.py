"""A reader's flow, written once for every driver: find partitions, read them, hand over, commit.

`poll` waits until the next batch is in its slot, and `take` hands it over. Between the two nothing is lost: a poll that
is given up leaves the batch there for the next one.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from lowwater.client.bell import Bell
from lowwater.client.cluster import Cluster, Topic
from lowwater.client.coordinator import NOBODY, Coordinator, Identity
from lowwater.client.errors import ClientError, NotMemberError, UnknownTopicError
from lowwater.client.group import Member
from lowwater.client.group_commits import Committer
from lowwater.client.read_partitions import Options, ReadPartitions
from lowwater.client.topic_ids import check_ids
from lowwater.client.wanted import Wanted
from lowwater.client.watching import TopicWatch
from lowwater.errors import ErrorCode
from lowwater.pending import Pending
from lowwater.positions.position import StartPosition
from lowwater.types import TopicPartition

__all__ = ["Options", "Reading"]

LOG = logging.getLogger("lowwater.reader")
CLOSE_MS = 15_000
"""How long the last commit may take."""


class Reading:
    """One reader. Everything is called in the driver's thread."""

    def __init__(self, cluster: Cluster, wanted: Wanted, options: Options) -> None:
        self._cluster = cluster
        self._driver = cluster.network.driver
        self._wanted = wanted
        self._options = options
        self._bell = Bell(self._driver)
        self._coordinator = None if options.group is None else Coordinator(cluster, options.group)
        self.partitions = ReadPartitions(cluster, wanted, options, self._coordinator, self._bell.ring)
        self._fetched: Pending[None] | None = None
        self._has_share = False
        self._is_polling = False
        self._ready: Any = None
        self._ready_positions: dict[TopicPartition, int] = {}
        self._returned: dict[TopicPartition, int] = {}
        self._done_with: dict[TopicPartition, int] = {}  # of what was returned
        self._was_finished: bool | None = None  # at its end, when it has given up everything
        self._is_torn = False  # something that the caller is not done with went to others
        self._member: Member | None = None
        self._committer: Committer | None = None

    # ---- beginning

    async def begin(self) -> None:
        """All starts and ends are known when this returns; those of a group's member as soon as it has its share."""
        if self._coordinator is not None and self._options.joins:
            self._join(self._coordinator)
        if self._coordinator is not None:
            self._committer = self._committing(self._coordinator)
        watch = TopicWatch(self._cluster, self._wanted.names, self._wanted.pattern)
        seen = await watch.look()
        check_ids(self._wanted.topic_ids, seen.topics)
        there = [one for one in seen.added if self._wanted.has(one)]
        self._require_partitions(seen.topics)
        await self.partitions.begin(there, is_member=self._member is not None)
        if self._member is not None:
            self._member.start()
        else:
            await self.assigned(there)
            self.partitions.go(self._follow(watch))
        await self.partitions.loaded()

    def _join(self, coordinator: Coordinator) -> None:
        if self._wanted.partitions:
            raise ClientError("a member of a group is given its partitions", advice="name topics, or use join=False")
        self._member = Member(coordinator, self, topics=self._wanted.names, pattern=self._wanted.pattern)

    def _require_partitions(self, topics: Mapping[str, Topic]) -> None:
        """That those which are named are there. By a pattern, whole topics may not be there yet."""
        for one in sorted(self._wanted.named_partitions):
            if one.topic not in topics or one.partition in (there := topics[one.topic].partitions):
                continue
            raise UnknownTopicError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                topic=one.topic,
                partition=one.partition,
                advice=f"the topic has {len(there)} partitions",
            )

    def _committing(self, coordinator: Coordinator) -> Committer:
        interval_ms = self._cluster.network.config.int("auto.commit.interval.ms")
        return Committer(
            coordinator.commit if self._member is None else self._member.commit,
            self._driver,
            on_failure=self._options.on_commit_failure,
            interval_ms=interval_ms if self._commits_by_itself else None,
        )

    @property
    def _commits_by_itself(self) -> bool:
        commits = self._options.commits
        return self._cluster.network.config.commits_by_itself if commits is None else commits

    async def _follow(self, watch: TopicWatch) -> None:
        """Without a group's other members: every partition, also those that are added later.

        While their leaders cannot be asked where they begin, the others are read on.
        """
        waiting: list[TopicPartition] = []
        while True:
            seen = await watch.changed(or_again=bool(waiting))
            known = self.partitions.plans
            waiting = [
                one
                for one in (*waiting, *seen.added)
                if self._wanted.has(one) and one not in known and one not in seen.gone
            ]
            try:
                await self.partitions.add(waiting)
            except ClientError as error:
                if not error.retriable:
                    raise
                LOG.warning("partitions that are new cannot be read yet, which is tried again: %s", error)
            else:
                waiting = []

    # ---- as a member's listener

    async def assigned(self, partitions: list[TopicPartition]) -> None:
        await self.partitions.add(partitions)
        self._has_share = True

    async def revoked(self, partitions: list[TopicPartition]) -> None:
        """What the caller never got is dropped, what he is done with is committed."""
        self._has_share = False  # there is another one to come
        self._remove(partitions)  # first: a poll that waits must not be given rows of them meanwhile
        if self._committer is not None:
            await self._committer.give_up(partitions)

    async def lost(self, partitions: list[TopicPartition]) -> None:
        self._has_share = False
        if self._committer is not None:
            self._committer.forget(partitions)
        self._is_torn = self._is_torn or any(map(self._is_at_hand, partitions))
        self._remove(partitions)
        self._bell.ring()

    def _is_at_hand(self, one: TopicPartition) -> bool:
        """Whether the caller has rows of it that he is not done with."""
        plan = self.partitions.plans.get(one)
        began = None if plan is None else plan.start
        return self._returned.get(one, began) != self._done_with.get(one, began)

    def failed(self, error: BaseException) -> None:
        self.partitions.fail(error)

    def _remove(self, partitions: list[TopicPartition]) -> None:
        self._take_back()
        self.partitions.remove(partitions)
        for one in partitions:
            self._returned.pop(one, None)
            self._ready_positions.pop(one, None)
            self._done_with.pop(one, None)

    def _take_back(self) -> None:
        """A batch that an interrupted poll left may hold rows of partitions that go. What is left of it comes again."""
        if self._ready is None or self._committer is None:
            return
        self._ready = None
        for one, position in self._ready_positions.items():
            if self._returned.get(one) != position:
                self.partitions.return_to(one, self._returned.get(one))

    # ---- reading

    async def poll(self, timeout_ms: float | None = None, *, is_done: bool = True) -> None:
        """Until there is a batch to take, everything is read, or the time is over. Raises what went wrong.

        Whoever polls is done with what he got before. Without `is_done` he gathers: all of it stays at hand.
        """
        if self._is_polling:
            raise ClientError("the reader is being polled already", advice="give each task or thread one of its own")
        self._is_polling = True
        try:
            await self._enter(is_done=is_done)
            until_ms = None if timeout_ms is None else self._driver.monotonic_ms() + timeout_ms
            while not self._advance(is_done=is_done):
                left_ms = None if until_ms is None else until_ms - self._driver.monotonic_ms()
                if left_ms is not None and left_ms <= 0:
                    return
                if not self._has_fetched():
                    await self._wait(left_ms)
            if self._ready is None and is_done:
                await self._commit_all()
        finally:
            self._is_polling = False
            if self._member is not None:
                self._member.exit_poll()

    async def _enter(self, *, is_done: bool) -> None:
        if is_done:
            self._is_torn = False
            self._done()
        if self._committer is not None:
            self._committer.check()
        if self._member is not None:
            await self._member.enter_poll(is_done=is_done)

    def _done(self) -> None:
        """The caller is done with what was returned."""
        if self._committer is not None:
            self._done_with = dict(self._returned)
            self._committer.done(self.partitions.committing(self._returned))

    def _advance(self, *, is_done: bool) -> bool:
        if self._is_torn and not is_done:
            raise _torn()
        if self._ready is not None:
            return True
        if self.partitions.failure is not None:
            raise self.partitions.failure
        releasing = self.partitions.releasing
        if releasing is None:
            return False
        self._ready = releasing.step()
        if self._ready is not None and self._committer is not None:
            self._ready_positions = releasing.released()
        return self._ready is not None or self.is_finished

    def _has_fetched(self) -> bool:
        fetched = self.partitions.fetcher.fetched()
        if fetched.done:
            return True
        if fetched is not self._fetched:
            self._fetched = fetched
            fetched.on_done(lambda _: self._bell.ring())
        return False

    async def _wait(self, limit_ms: float | None) -> None:
        timer = None if limit_ms is None else self._driver.call_later(limit_ms, self._bell.ring)
        try:
            await self._bell.heard()
        finally:
            if timer is not None:
                timer.cancel()

    def take(self) -> Any:
        """The batch, or None. From here on its rows count as returned."""
        batch, self._ready = self._ready, None
        if batch is not None and self._committer is not None:
            self._returned = self._ready_positions
        return batch

    @property
    def is_finished(self) -> bool:
        """Everything up to the stop was handed over."""
        if self._was_finished is not None:
            return self._was_finished
        releasing = self.partitions.releasing
        has_all = releasing is not None and releasing.is_finished and self._ready is None
        return self.partitions.has_stop and self._has_share and has_all

    async def give_back(self) -> None:
        """What was gathered did not get into the caller's hands: it comes again."""
        if self._committer is None:
            return
        self._take_back()
        for one in self.partitions.plans:
            if self._is_at_hand(one):
                self.partitions.return_to(one, self._done_with.get(one))
        self._returned = dict(self._done_with)

    async def stop_now(self) -> None:
        """Where there is no stop already: read what was there at the beginning, or is there now, and no more."""
        await self.partitions.stop_now()

    async def seek(self, one: TopicPartition, position: StartPosition) -> None:
        """Read on from there, also back; what is committed next follows."""
        offset = await self.partitions.seek(one, position)
        self._leave_out([one])
        if self._committer is not None:
            self._ready_positions = {**self._ready_positions, one: offset}
            self._returned = {**self._returned, one: offset}
            self._done_with = {**self._done_with, one: offset}

    async def drop(self, topic: str, partition: int | None = None) -> None:
        """Go on without it."""
        known = self.partitions.plans
        dropped = [one for one in known if one.topic == topic and partition in (None, one.partition)]
        self._leave_out(dropped)
        self._remove(dropped)

    def _leave_out(self, partitions: list[TopicPartition]) -> None:
        """A batch that an interrupted poll left may hold rows of these, which are not wanted any more."""
        if self._ready is not None and self.partitions.releasing is not None:
            self._ready = self.partitions.releasing.last_without(self._ready, partitions)

    # ---- committing

    async def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """What was returned, or these offsets; on_commit_failure says what becomes of a failure."""
        if self._committer is None:
            raise ClientError("there is no group to commit to", advice="give the reader one: group=…")
        if offsets is not None:
            await self._committer.commit(offsets)
            return
        self._done()
        await self._committer.flush()

    async def _commit_all(self) -> None:
        """Everything up to the stop was returned, and whoever asks for more is done with it."""
        if self._committer is not None and self._commits_by_itself:
            await self._committer.flush()

    @property
    def commit_failures(self) -> int:
        return 0 if self._committer is None else self._committer.failures

    @property
    def identity(self) -> Identity:
        """As which member the group knows this reader."""
        return NOBODY if self._member is None else self._member.identity

    # ---- the end

    @property
    def group(self) -> str | None:
        return self._options.group

    @property
    def owes_a_commit(self) -> bool:
        """Whether rows were returned that will be committed when the caller is done with them."""
        return self._commits_by_itself and any(map(self._is_at_hand, self.partitions.plans))

    async def close(self, *, is_done: bool = True) -> None:
        """Commit, if that is done at all, leave the group, and let go. `is_done`: with what was returned last too."""
        self._was_finished = self.is_finished
        if is_done:
            self._done()
        try:
            if self._committer is not None:
                await self._committer.close(CLOSE_MS)
        finally:
            await self._leave()

    async def _leave(self) -> None:
        try:
            if self._member is not None:
                await self._member.close(CLOSE_MS)
        finally:
            await self.partitions.close()
            self._cluster.network.close()


def _torn() -> NotMemberError:
    return NotMemberError(
        ErrorCode.ILLEGAL_GENERATION,
        "partitions went to others while all that is left was gathered",
        advice="read batch by batch, or raise max.poll.interval.ms",
    )
