"""A reader's flow, written once for every driver: find partitions, resolve where they start, fetch, release, commit.

`poll` waits until the next batch is in its slot, and `take` hands it over. Between the two nothing is lost: a poll that
is given up leaves the batch there for the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from lowwater.client.bell import Bell
from lowwater.client.cluster import Cluster
from lowwater.client.coordinator import NOBODY, Coordinator, Identity
from lowwater.client.driver import sleep
from lowwater.client.errors import ClientError
from lowwater.client.fetching.fetcher import Fetcher
from lowwater.client.flow import Flow, GivenUpError
from lowwater.client.group import Member
from lowwater.client.group_commits import Committer
from lowwater.client.loading import READING, load
from lowwater.client.offsets import LATEST, list_offsets
from lowwater.client.planning import Plan, Planner
from lowwater.client.releasing import Releasing
from lowwater.client.wanted import Wanted
from lowwater.client.watching import TopicWatch
from lowwater.merge.merging import Progress
from lowwater.pending import Pending
from lowwater.positions.position import Latest, StartPosition
from lowwater.types import TopicPartition

HELD_BYTES_MAX = 128 * 1024 * 1024
BATCH_SIZE = 65_536
CLOSE_MS = 15_000
"""How long the last commit may take."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to read. `resumes`: with a group, never before its committed offset."""

    order: Literal["timestamp", "partition"] | None = "timestamp"
    batch_size: int = BATCH_SIZE
    held_bytes_max: int = HELD_BYTES_MAX
    cutoff_ms: int | None = None
    columns: tuple[str, ...] | None = None
    group: str | None = None
    joins: bool = True
    resumes: bool = True
    commits: bool | None = None
    """Whether what was returned is committed from time to time; None: enable.auto.commit says."""
    on_commit_failure: Literal["retry", "raise", "continue"] = "retry"
    on_lost: str | None = None


class Reading:
    """One reader. Everything is called in the driver's thread."""

    def __init__(self, cluster: Cluster, wanted: Wanted, options: Options) -> None:
        self._cluster = cluster
        self._driver = cluster.network.driver
        self._wanted = wanted
        self._options = options
        self._bell = Bell(self._driver)
        self._fetcher = Fetcher(
            cluster,
            bytes_max=options.held_bytes_max,
            held_bytes=self._held_bytes,
            reset=options.on_lost,
            tell_ends=True,
        )
        self._releasing: Releasing | None = None
        self._loading: Pending[Any] | None = None
        self._fetched: Pending[None] | None = None
        self._background: list[Flow[None]] = []
        self._failure: BaseException | None = None
        self._has_begun = False
        self._ready: Any = None
        self._ready_positions: dict[TopicPartition, int] = {}
        self._returned: dict[TopicPartition, int] = {}
        self._plans: dict[TopicPartition, Plan] = {}
        self._coordinator = None if options.group is None else Coordinator(cluster, options.group)
        self._planner = Planner(cluster, self._coordinator, resumes=options.resumes)
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
        there = [one for one in (await watch.look()).added if self._wanted.has(one)]
        self._planner.begin(there)
        if self._member is not None:
            self._member.start()
        else:
            await self._add(there)
            self._has_begun = True
            self._go(self._follow(watch))
        await self._loaded()

    def _join(self, coordinator: Coordinator) -> None:
        if self._wanted.partitions:
            raise ClientError("a member of a group is given its partitions", advice="name topics, or use join=False")
        self._member = Member(coordinator, self, topics=self._wanted.names, pattern=self._wanted.pattern)

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
        return self._cluster.network.config.bool("enable.auto.commit") if commits is None else commits

    async def _follow(self, watch: TopicWatch) -> None:
        """Without a group's other members: every partition, also those that are added later."""
        while True:
            seen = await watch.changed()
            await self._add([one for one in seen.added if self._wanted.has(one) and one not in self._plans])

    def _go(self, coroutine: Any) -> None:
        """In the background; what fails there is raised by the next poll."""
        flow: Flow[None] = Flow(coroutine)
        self._background = [*(one for one in self._background if not one.done), flow]
        flow.on_done(self._went)

    def _went(self, flow: Pending[None]) -> None:
        try:
            flow.result()
        except GivenUpError:
            return
        except BaseException as error:
            self.failed(error)

    async def _loaded(self) -> Releasing:
        """Numba and Arrow are loaded meanwhile, by a thread; here one waits for them."""
        if self._releasing is None:
            if self._loading is None:
                self._loading = self._driver.elsewhere(lambda: load(READING))
            await self._loading
        if self._releasing is None:
            self._releasing = Releasing(
                self._fetcher,
                order=self._options.order,
                batch_size=self._options.batch_size,
                held_bytes_max=self._options.held_bytes_max,
                cutoff_ms=self._options.cutoff_ms,
                columns=self._options.columns,
                now_ms=self._driver.now_ms(),
            )
        return self._releasing

    # ---- partitions

    async def _add(self, partitions: list[TopicPartition]) -> None:
        plans = await self._planner.plans(self._wanted, partitions)
        self._plans.update(plans)
        self._fetcher.add({one: plan.start for one, plan in plans.items() if not plan.is_empty})
        (await self._loaded()).add(plans)
        waiting = [one for one, plan in plans.items() if plan.waits_for_stop]
        if waiting:
            self._go(self._stop_in_time(waiting))
        self._bell.ring()

    async def _stop_in_time(self, partitions: list[TopicPartition]) -> None:
        """When the time to stop at has come, what is there by then is still read."""
        for stop_ms in sorted({self._plans[one].stop_ms for one in partitions}):
            await sleep(self._driver, max(stop_ms - self._driver.now_ms(), 0))
            due = [one for one in partitions if one in self._plans and self._plans[one].stop_ms == stop_ms]
            await self._stop_at_end(due)

    async def _stop_at_end(self, partitions: list[TopicPartition]) -> None:
        ends = await list_offsets(self._cluster, dict.fromkeys(partitions, LATEST)) if partitions else {}
        releasing = await self._loaded()
        for one, found in ends.items():
            releasing.stop_at(one, found.offset)
        self._bell.ring()

    def _remove(self, partitions: Iterable[TopicPartition]) -> None:
        gone = list(partitions)
        self._fetcher.remove(one for one in gone if one in self._fetcher)
        if self._releasing is not None:
            self._releasing.remove(gone)
        for one in gone:
            self._plans.pop(one, None)
            self._returned.pop(one, None)
            self._ready_positions.pop(one, None)

    # ---- as a member's listener

    async def assigned(self, partitions: list[TopicPartition]) -> None:
        await self._add(partitions)
        self._has_begun = True

    async def revoked(self, partitions: list[TopicPartition]) -> None:
        """What the caller is done with is committed, what he never got is dropped."""
        if self._committer is not None:
            await self._committer.give_up(partitions)
        self._remove(partitions)

    async def lost(self, partitions: list[TopicPartition]) -> None:
        if self._committer is not None:
            self._committer.forget(partitions)
        self._remove(partitions)

    def failed(self, error: BaseException) -> None:
        self._failure = error
        self._bell.ring()

    # ---- reading

    async def poll(self, timeout_ms: float | None = None) -> None:
        """Until there is a batch to take, everything is read, or the time is over. Raises what went wrong."""
        try:
            await self._enter()
            until_ms = None if timeout_ms is None else self._driver.monotonic_ms() + timeout_ms
            while not self._advance():
                left_ms = None if until_ms is None else until_ms - self._driver.monotonic_ms()
                if left_ms is not None and left_ms <= 0:
                    return
                if not self._has_fetched():
                    await self._wait(left_ms)
            if self._ready is None:
                await self._commit_all()
        finally:
            if self._member is not None:
                self._member.exit_poll()

    async def _wait(self, limit_ms: float | None) -> None:
        timer = None if limit_ms is None else self._driver.call_later(limit_ms, self._bell.ring)
        try:
            await self._bell.heard()
        finally:
            if timer is not None:
                timer.cancel()

    async def _enter(self) -> None:
        """Whoever polls again is done with what he got before."""
        if self._committer is not None:
            self._committer.done(self._returned)
            self._committer.check()
        if self._member is not None:
            await self._member.enter_poll()

    def _advance(self) -> bool:
        if self._ready is not None:
            return True
        if self._failure is not None:
            raise self._failure
        if self._releasing is None:
            return False
        self._ready = self._releasing.step()
        if self._ready is not None and self._committer is not None:
            self._ready_positions = self._releasing.released()
        return self._ready is not None or self.is_finished

    def _has_fetched(self) -> bool:
        fetched = self._fetcher.fetched()
        if fetched.done:
            return True
        if fetched is not self._fetched:
            self._fetched = fetched
            fetched.on_done(lambda _: self._bell.ring())
        return False

    def take(self) -> Any:
        """The batch, or None. From here on its rows count as returned."""
        batch, self._ready = self._ready, None
        if batch is not None and self._committer is not None:
            self._returned = self._ready_positions
        return batch

    @property
    def is_finished(self) -> bool:
        """Everything up to the stop was handed over."""
        return (
            self._wanted.has_stop
            and self._has_begun
            and self._ready is None
            and self._releasing is not None
            and self._releasing.is_finished
        )

    async def stop_now(self) -> None:
        """Unless there is a stop already: read what was there at the beginning, or is there now, and no more."""
        if self._wanted.has_stop:
            return
        self._wanted = replace(self._wanted, stop=Latest())
        releasing = await self._loaded()
        if releasing.batches:
            await self._stop_at_end(list(self._plans))
            return
        for one, plan in self._plans.items():
            releasing.stop_at(one, plan.end)

    async def seek(self, one: TopicPartition, position: StartPosition) -> None:
        """Read on from there, also back: nothing that is held of the partition is returned any more."""
        if one not in self._plans:
            raise ClientError("it is not read here", topic=one.topic, partition=one.partition)
        offset = await self._planner.offset(one, position)
        (await self._loaded()).seek(one, offset)
        if self._committer is not None:
            self._returned = {**self._returned, one: offset}

    async def drop(self, topic: str, partition: int | None = None) -> None:
        """Go on without it."""
        self._remove([one for one in self._plans if one.topic == topic and partition in (None, one.partition)])

    # ---- committing

    async def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """What was returned, or these offsets; on_commit_failure says what becomes of a failure."""
        if self._committer is None:
            raise ClientError("there is no group to commit to", advice="give the reader one: group=…")
        self._committer.done(self._returned if offsets is None else offsets)
        await self._committer.flush()

    async def _commit_all(self) -> None:
        """Everything up to the stop was returned, and whoever asks for more is done with it."""
        if self._committer is not None and self._commits_by_itself:
            await self._committer.flush()

    async def close(self, *, is_done: bool = True) -> None:
        """Commit, if that is done at all, leave the group, and let go. `is_done`: with what was returned last too."""
        for flow in self._background:
            flow.cancel()
        if self._committer is not None and is_done:
            self._committer.done(self._returned)
        try:
            if self._committer is not None:
                await self._committer.close(CLOSE_MS)
        finally:
            await self._let_go()

    async def _let_go(self) -> None:
        try:
            if self._member is not None:
                await self._member.close(CLOSE_MS)
        finally:
            await self._fetcher.aclose()
            self._cluster.network.close()

    # ---- what there is to say

    @property
    def plans(self) -> Mapping[TopicPartition, Plan]:
        """As resolved: where each partition began for us, and where it ended then."""
        return MappingProxyType(self._plans)

    @property
    def releasing(self) -> Releasing | None:
        return self._releasing

    @property
    def identity(self) -> Identity:
        return NOBODY if self._member is None else self._member.identity

    @property
    def commit_failures(self) -> int:
        return 0 if self._committer is None else self._committer.failures

    def positions(self) -> dict[TopicPartition, int]:
        """By partition, the next offset that the caller gets."""
        released = {} if self._releasing is None else self._releasing.released()
        return {one: released.get(one, plan.start) for one, plan in list(self._plans.items())}

    def progress(self) -> dict[TopicPartition, tuple[Progress, int]]:
        """Of each partition what is known of it, and the next offset that the caller gets."""
        if self._releasing is None:
            return {}
        positions = self.positions()
        found = self._releasing.progress.items()
        return {one: (progress, positions[one]) for one, progress in found if one in positions}

    def lag(self) -> dict[TopicPartition, int]:
        """Offsets that were not released yet, as far as brokers told where partitions end."""
        lags = {}
        for one, position in self.positions().items():
            bounds = self._fetcher.bounds(one) if one in self._fetcher else None
            end = self._plans[one].end if bounds is None else bounds.high_watermark
            lags[one] = max(end - position, 0)
        return lags

    def _held_bytes(self) -> int:
        return 0 if self._releasing is None else self._releasing.held_bytes
