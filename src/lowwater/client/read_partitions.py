"""The partitions of one reader: planned, fetched, stopped, let go; and how far each of them is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from lowwater.client.cluster import Cluster
from lowwater.client.coordinator import Committed, Coordinator
from lowwater.client.driver import sleep
from lowwater.client.errors import ClientError
from lowwater.client.fetching.fetcher import Fetcher
from lowwater.client.flow import Flow, GivenUpError
from lowwater.client.loading import READING, load
from lowwater.client.offsets import LATEST, list_offsets
from lowwater.client.planning import Plan, Planner
from lowwater.client.releasing import Releasing
from lowwater.client.wanted import Wanted
from lowwater.merge.merging import Progress
from lowwater.pending import Pending
from lowwater.positions.position import Latest, StartPosition
from lowwater.types import TopicPartition

HELD_BYTES_MAX = 128 * 1024 * 1024
BATCH_SIZE = 65_536
LOST_ADVICE = 'choose another start, or say how to go on: on_lost="earliest" or "latest"'


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


class ReadPartitions:
    """`changed` is called when there may be something to release, or `failure` is set."""

    def __init__(
        self,
        cluster: Cluster,
        wanted: Wanted,
        options: Options,
        coordinator: Coordinator | None,
        changed: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._driver = cluster.network.driver
        self._wanted = wanted
        self._options = options
        self._changed = changed
        self._planner = Planner(cluster, coordinator, resumes=options.resumes)
        self._plans: dict[TopicPartition, Plan] = {}
        self._loading: Pending[Any] | None = None
        self._background: list[Flow[None]] = []
        self.failure: BaseException | None = None
        self.releasing: Releasing | None = None
        self.fetcher = Fetcher(
            cluster,
            bytes_max=options.held_bytes_max,
            held_bytes=lambda: 0 if self.releasing is None else self.releasing.held_bytes,
            reset=options.on_lost,
            tell_ends=True,
            topic_ids=wanted.topic_ids,
            reset_advice=LOST_ADVICE,
        )

    async def loaded(self) -> Releasing:
        """Numba and Arrow are loaded meanwhile, by a thread; here one waits for them."""
        if self._loading is None:
            self._loading = self._driver.elsewhere(lambda: load(READING))
        # Not the loading itself: one who gives up must not take it from the others.
        await self._loading.then(lambda done: done.result())
        if self.releasing is None:
            self.releasing = Releasing(
                self.fetcher,
                order=self._options.order,
                batch_size=self._options.batch_size,
                held_bytes_max=self._options.held_bytes_max,
                cutoff_ms=self._options.cutoff_ms,
                columns=self._options.columns,
                now_ms=self._driver.now_ms(),
            )
        return self.releasing

    # ---- in the background

    def go(self, coroutine: Any) -> None:
        """What fails there is the failure of all."""
        flow: Flow[None] = Flow(coroutine)
        self._background = [*(one for one in self._background if not one.done), flow]
        flow.on_done(self._went)

    def _went(self, flow: Pending[None]) -> None:
        try:
            flow.result()
        except GivenUpError:
            return
        except BaseException as error:
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        self.failure = error
        self._changed()

    # ---- coming and going

    async def begin(self, partitions: list[TopicPartition], *, is_member: bool) -> None:
        """These are there at the beginning; a member of a group is given some of them later."""
        await self._planner.begin(self._wanted, partitions, is_member=is_member)

    async def add(self, partitions: list[TopicPartition]) -> None:
        """Their starts and ends are known when this returns, and they are being fetched."""
        plans = self._stopped(await self._planner.plans(self._wanted, partitions))
        reads = {one: plan for one, plan in plans.items() if not plan.is_empty}
        self.fetcher.add(
            {one: plan.start for one, plan in reads.items()}, {one: plan.epoch for one, plan in reads.items()}
        )
        releasing = await self.loaded()
        plans = self._stopped(plans)  # as it is wanted now
        self._plans.update(plans)
        releasing.add(plans)
        waiting = [one for one, plan in plans.items() if plan.waits_for_stop]
        if waiting:
            self.go(self._stop_in_time(waiting))
        self._changed()

    def _stopped(self, plans: Mapping[TopicPartition, Plan]) -> dict[TopicPartition, Plan]:
        return {one: plan.stopped(self._wanted.stop_of(one)) for one, plan in plans.items()}

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Rows that are held of them are dropped."""
        gone = list(partitions)
        self.fetcher.remove(gone)
        if self.releasing is not None:
            self.releasing.remove(gone)
        for one in gone:
            self._plans.pop(one, None)

    async def seek(self, one: TopicPartition, position: StartPosition) -> int:
        """Read on from there, also back; nothing that is held of it is released any more."""
        if one not in self._plans:
            raise ClientError("it is not read here", topic=one.topic, partition=one.partition)
        offset = await self._planner.offset(one, position)
        (await self.loaded()).seek(one, offset)
        return offset

    def return_to(self, one: TopicPartition, offset: int | None) -> None:
        """Read it again from there, or from where it began."""
        if self.releasing is not None and one in self._plans:
            self.releasing.seek(one, self._plans[one].start if offset is None else offset)

    async def close(self) -> None:
        for flow in self._background:
            flow.cancel()
        await self.fetcher.aclose()

    # ---- stopping

    @property
    def has_stop(self) -> bool:
        return self._wanted.has_stop

    async def stop_now(self) -> None:
        """Where there is no stop already: read what was there at the beginning, or is there now, and no more."""
        unstopped = [one for one in self._plans if self._wanted.stop_of(one) is None]
        self._wanted = replace(self._wanted, stop=self._wanted.stop or Latest())
        if self.releasing is not None and self.releasing.batches:
            await self._stop_at_end(unstopped)
        elif self.releasing is not None:
            for one in unstopped:
                self.releasing.stop_at(one, self._plans[one].end)

    async def _stop_in_time(self, partitions: list[TopicPartition]) -> None:
        """When the time to stop at has come, what is there by then is still read."""
        for stop_ms in sorted({self._plans[one].stop_ms for one in partitions}):
            await sleep(self._driver, max(stop_ms - self._driver.now_ms(), 0))
            due = [one for one in partitions if one in self._plans and self._plans[one].stop_ms == stop_ms]
            await self._stop_at_end(due)

    async def _stop_at_end(self, partitions: list[TopicPartition]) -> None:
        ends = await list_offsets(self._cluster, dict.fromkeys(partitions, LATEST)) if partitions else {}
        releasing = await self.loaded()
        for one, found in ends.items():
            releasing.stop_at(one, found.offset)
        self._changed()

    # ---- what there is to say

    @property
    def plans(self) -> Mapping[TopicPartition, Plan]:
        """As resolved: where each partition began for us, and where it ended then."""
        return MappingProxyType(self._plans)

    def positions(self) -> dict[TopicPartition, int]:
        """By partition, the next offset that the caller gets."""
        released = {} if self.releasing is None else self.releasing.released()
        return {one: released.get(one, plan.start) for one, plan in self._plans.items()}

    def committing(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | Committed]:
        """The same with the leaders' epochs: whoever starts there learns whether what was read is still in the log."""
        epochs = {one: self.fetcher.epoch_behind(one) for one in offsets}
        return {one: offset if epochs[one] < 0 else Committed(offset, epochs[one]) for one, offset in offsets.items()}

    def progress(self) -> dict[TopicPartition, tuple[Progress, int]]:
        """Of each partition what is known of it, and the next offset that the caller gets."""
        if self.releasing is None:
            return {}
        positions = self.positions()
        found = self.releasing.progress.items()
        return {one: (progress, positions[one]) for one, progress in found if one in positions}

    def lag(self) -> dict[TopicPartition, int]:
        """Offsets that were not released yet, as far as brokers told where partitions end."""
        lags = {}
        for one, position in self.positions().items():
            bounds = self.fetcher.bounds(one) if one in self.fetcher else None
            end = self._plans[one].end if bounds is None else bounds.high_watermark
            lags[one] = max(end - position, 0)
        return lags
