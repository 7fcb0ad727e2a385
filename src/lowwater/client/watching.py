"""Topics and partitions that come and go while somebody reads them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lowwater.client.cluster import Cluster, Topic
from lowwater.client.driver import sleep
from lowwater.client.errors import ClientError, UnknownTopicError
from lowwater.types import TopicPartition


class Seen(NamedTuple):
    """The topics that there are, and which partitions are new or gone since the last look."""

    topics: Mapping[str, Topic]
    added: list[TopicPartition]
    gone: list[TopicPartition]

    @property
    def is_different(self) -> bool:
        return bool(self.added or self.gone)


class TopicWatch:
    """Looks after topics by name, or after all whose whole name matches a regular expression.

    A topic that is deleted and made anew between two looks shows as neither: whoever fetches it is told.
    """

    def __init__(self, cluster: Cluster, names: Iterable[str] = (), pattern: str | None = None) -> None:
        self._cluster = cluster
        self._names = frozenset(names)
        self._pattern = None if pattern is None else re.compile(pattern)
        self._interval_ms = cluster.network.config.int("metadata.max.age.ms")
        self._before: frozenset[TopicPartition] | None = None

    async def look(self, timeout_ms: float | None = None) -> Seen:
        """Ask now. A topic by name that does not exist is UnknownTopicError; one that is gone later is just gone."""
        topics = await self._topics(timeout_ms)
        now = frozenset(TopicPartition(name, number) for name, topic in topics.items() for number in topic.partitions)
        before, self._before = self._before or frozenset(), now
        added, gone = sorted(now - before), sorted(before - now)
        return Seen(topics, added, gone)

    async def changed(self, *, or_again: bool = False) -> Seen:
        """Look every metadata.max.age.ms until something is different, or once; brokers that cannot be asked are asked
        later."""
        while True:
            await sleep(self._cluster.network.driver, self._interval_ms)
            try:
                seen = await self.look()
            except ClientError as error:
                if not error.retriable:
                    raise
                continue
            if seen.is_different or or_again:
                return seen

    async def _topics(self, timeout_ms: float | None) -> dict[str, Topic]:
        if self._pattern is not None:
            return await self._cluster.matching(self._pattern.pattern, timeout_ms)
        if self._before is None:
            # It may just have been made.
            self._cluster.outdate(self._names)
            try:
                return await self._cluster.topics(self._names, timeout_ms)
            except UnknownTopicError as error:
                await self._cluster.name_alike(error)
                raise
        return await self._cluster.retry.run(self._named, timeout_ms)

    async def _named(self, left_ms: float) -> dict[str, Topic]:
        problems = await self._cluster.refresh(self._names, left_ms)
        for error in problems.values():
            if not isinstance(error, UnknownTopicError):
                raise error
        found = {name: self._cluster.known(name) for name in self._names if name not in problems}
        return {name: topic for name, topic in found.items() if topic is not None}
