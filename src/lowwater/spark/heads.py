"""Where the partitions of a query begin and end. Asked on the driver's side, for every planning.

Spark asks for the latest offsets without a pause while there is nothing to read. An answer that says "nothing new" has
to rest on what brokers said after Spark asked, or rows that were written before would be overlooked; so such answers
are asked for anew, but at the pace that the query was given, and more slowly while nothing comes. Brokers that do not
answer in time hold nothing up: the last answer counts until they do.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Protocol

from lowwater.client.cluster import Topic
from lowwater.client.coordinator import Coordinator
from lowwater.client.driver import sleep
from lowwater.client.errors import ClientError, UnknownTopicError
from lowwater.client.flow import Flow
from lowwater.client.offsets import EARLIEST, LATEST, list_offsets_many, resolve
from lowwater.client.topic_ids import id_text
from lowwater.client.watching import TopicWatch
from lowwater.positions.position import StartPosition
from lowwater.spark.driver_client import DriverClient
from lowwater.spark.pacing import Pace
from lowwater.spark.snapshot import Head, Snapshot
from lowwater.types import TopicPartition
from lowwater.wire.schema import ZERO_UUID

LOG = logging.getLogger("lowwater.spark")
PATIENCE_MS = 2_000
"""So long Spark waits for an answer when there is an older one."""
WIDE_MS = 1_000
"""So often a look is wide in any case."""


class Topics(Protocol):
    """Which partitions a query follows: all of some topics, of those that match a pattern, or just these."""

    @property
    def names(self) -> Collection[str]: ...
    @property
    def pattern(self) -> str | None: ...
    @property
    def partitions(self) -> Collection[TopicPartition]: ...


class Heads:
    """For the one thread that plans. Everything is retried within default.api.timeout.ms; errors are ClientErrors."""

    def __init__(self, client: DriverClient, topics: Topics, isolation: str, align_with: Collection[str] = ()) -> None:
        """`align_with`: further topics whose ends are asked as well."""
        self._client = client
        self._looks = Looks(client, topics, isolation, align_with)
        self._latest: Snapshot | None = None
        self._looking: Flow[Snapshot] | None = None
        self._looks_wide = False

    @property
    def known(self) -> Snapshot | None:
        """The last one, however old; None before the first."""
        return self._latest

    def partitions(self) -> list[TopicPartition]:
        """Those that there are now. UnknownTopicError for a topic that was named and is not there."""
        return self._client.run(self._looks.partitions())

    def resolve(self, wishes: Mapping[TopicPartition, StartPosition], group: str | None) -> dict[TopicPartition, int]:
        """An offset for every wish, by one "now"."""
        self._latest = None  # the next look has to be later than what this finds
        return self._client.run(self._looks.resolve(wishes, group))

    def snapshot(self, age_max_ms: float = WIDE_MS) -> Snapshot:
        """The last one, unless it is too old."""
        latest = self._latest
        if latest is not None and 0 <= self._client.now_ms() - latest.asked_ms <= age_max_ms:
            return latest
        return self.look(PATIENCE_MS)

    def look(self, patience_ms: float | None = None, *, pace_ms: float = 0, is_wide: bool = False) -> Snapshot:
        """Asked for after this was called; the last one when brokers need longer than `patience_ms`, or fail meanwhile.

        `is_wide`: also for new partitions, other topics of the same name, and where logs begin.
        """
        looking = self._client.run(self._begin(pace_ms, is_wide))
        if not self._client.wait(looking, None if self._latest is None else patience_ms):
            assert self._latest is not None
            return self._latest
        try:
            self._latest = looking.result()
        except ClientError as error:
            if patience_ms is None or self._latest is None or not error.retriable:
                raise
            LOG.warning("where partitions end cannot be asked, it is tried again: %s", error)
        return self._latest

    async def _begin(self, pace_ms: float, is_wide: bool) -> Flow[Snapshot]:
        """One at a time: while brokers do not answer, the look that waits for them goes on."""
        if self._looking is not None and not self._looking.done:
            if self._looks_wide or not is_wide:
                return self._looking
            self._looking.cancel()  # it need not ask what is wanted here
        self._looking, self._looks_wide = Flow(self._looks.look(pace_ms, is_wide)), is_wide
        return self._looking


class Looks:
    """The flows behind it, in the client's thread."""

    def __init__(self, client: DriverClient, topics: Topics, isolation: str, align_with: Collection[str]) -> None:
        self._cluster = client.cluster
        self._driver = client.cluster.network.driver
        names = topics.names or {one.topic for one in topics.partitions}
        self._watch = TopicWatch(client.cluster, names, topics.pattern)
        self._others_watch = TopicWatch(client.cluster, align_with) if align_with else None
        self._others: Mapping[str, Topic] = {}
        self._chosen = frozenset(topics.partitions)
        self._isolation = isolation
        self._topics: Mapping[str, Topic] = {}
        self._log_starts: dict[TopicPartition, int] = {}
        self._began_ms = float("-inf")
        self._wide_ms = float("-inf")
        self._pace = Pace()

    async def look(self, pace_ms: float, is_wide: bool) -> Snapshot:
        rest_ms = self._began_ms + self._pace.pause_ms(pace_ms) - self._driver.monotonic_ms()
        if rest_ms > 0:
            await sleep(self._driver, rest_ms)
        self._began_ms = self._driver.monotonic_ms()
        is_wide = is_wide or self._began_ms - self._wide_ms >= WIDE_MS
        try:
            return await self._snapshot(is_wide=is_wide)
        except UnknownTopicError:
            if is_wide:
                raise
            return await self._snapshot(is_wide=True)  # it was deleted since the last time

    async def _snapshot(self, *, is_wide: bool) -> Snapshot:
        asked_ms = self._driver.now_ms()
        partitions = await self.partitions() if is_wide else self._partitions()
        others = await self._other_partitions(is_wide)
        every = [*partitions, *others]
        unknown = [one for one in every if is_wide or one not in self._log_starts]
        asked = [dict.fromkeys(every, LATEST), dict.fromkeys(unknown, EARLIEST)]
        ends, starts = await list_offsets_many(self._cluster, asked, isolation=self._isolation)
        self._log_starts.update({one: found.offset for one, found in starts.items()})
        if is_wide:
            self._wide_ms = self._began_ms
        heads = {one: Head(self._log_starts[one], ends[one].offset, ends[one].leader_epoch) for one in every}
        own = {one: heads[one] for one in partitions}
        self._pace.saw(heads)
        return Snapshot(own, self._ids(), asked_ms, {one: heads[one] for one in others})

    async def partitions(self) -> list[TopicPartition]:
        self._topics = (await self._watch.look()).topics
        found = self._partitions()
        missing = sorted(self._chosen.difference(found))
        if missing:
            await self._cluster.leaders(missing[:1])  # which says what is wrong with it
        return found

    async def _other_partitions(self, is_wide: bool) -> list[TopicPartition]:
        """Those that are not read, but aligned with."""
        if self._others_watch is None:
            return []
        if is_wide:
            self._others = (await self._others_watch.look()).topics
        every = (TopicPartition(name, number) for name, topic in self._others.items() for number in topic.partitions)
        return sorted(set(every).difference(self._partitions()))

    def _partitions(self) -> list[TopicPartition]:
        every = (TopicPartition(name, number) for name, topic in self._topics.items() for number in topic.partitions)
        return sorted(one for one in every if not self._chosen or one in self._chosen)

    def _ids(self) -> dict[str, str]:
        return {name: id_text(topic.id) for name, topic in self._topics.items() if topic.id != ZERO_UUID}

    async def resolve(
        self, wishes: Mapping[TopicPartition, StartPosition], group: str | None
    ) -> dict[TopicPartition, int]:
        committed = None if group is None else Coordinator(self._cluster, group).committed
        found = await resolve(
            self._cluster, wishes, now_ms=self._driver.now_ms(), isolation=self._isolation, committed=committed
        )
        return found.starts
