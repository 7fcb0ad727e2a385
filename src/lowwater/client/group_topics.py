"""The topics of a group: those that a member asks for, and, for its leader, how many partitions all of them have."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable

from lowwater.client.cluster import Cluster
from lowwater.client.driver import sleep
from lowwater.client.errors import ClientError
from lowwater.client.flow import Flow
from lowwater.types import TopicPartition


class Topics:
    """Looks again every metadata.max.age.ms, and says so when the group has to be rebalanced for what it finds."""

    def __init__(
        self, cluster: Cluster, names: Iterable[str], pattern: str | None, changed: Callable[[str], None]
    ) -> None:
        self._cluster = cluster
        self._names = frozenset(names)
        self._pattern = pattern
        self._changed = changed
        self._wanted: frozenset[str] = frozenset()
        self._counts: dict[str, int] = {}
        self._led: frozenset[str] = frozenset()
        self._watching: Flow[None] | None = None

    def change(self, names: Iterable[str], pattern: str | None) -> None:
        self._names, self._pattern = frozenset(names), pattern

    async def wanted(self) -> frozenset[str]:
        """What to subscribe to now."""
        self._wanted = await self._find()
        return self._wanted

    async def lead(self, topics: frozenset[str]) -> dict[str, int]:
        """The partitions of each topic that is there; from now on these are watched. None for a member that follows."""
        self._led = topics
        self._counts = await self._count()
        return dict(self._counts)

    async def get_to_know(self, partitions: Iterable[TopicPartition]) -> None:
        """Who shares partitions out may have seen some that are newer than what is known here."""
        known = self._cluster.known
        news = {
            one.topic
            for one in partitions
            if (topic := known(one.topic)) is None or one.partition not in topic.partitions
        }
        with contextlib.suppress(ClientError):  # whoever reads them asks again
            await self._cluster.present(news)

    def watch(self) -> None:
        self.stop()
        self._watching = Flow(self._watch())

    def stop(self) -> None:
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.cancel()

    async def _find(self) -> frozenset[str]:
        if self._pattern is None:
            return self._names
        return self._names | frozenset(await self._cluster.matching(self._pattern))

    async def _count(self) -> dict[str, int]:
        found = await self._cluster.present(self._led)
        return {name: len(topic.partitions) for name, topic in found.items()}

    async def _watch(self) -> None:
        network = self._cluster.network
        while True:
            await sleep(network.driver, network.config.int("metadata.max.age.ms"))
            with contextlib.suppress(ClientError):  # it is looked at again after the same time
                if await self._find() != self._wanted:
                    self._changed("other topics match the subscription")
                elif await self._count() != self._counts:
                    self._changed("the partitions of topics have changed")
