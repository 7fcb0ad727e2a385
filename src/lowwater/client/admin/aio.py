"""Looking after a cluster from asyncio."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping
from datetime import tzinfo
from typing import Any, Self, TypeVar

from lowwater.client.admin.cluster_info import ClusterInfo, describe_cluster
from lowwater.client.admin.configs import Changes, ConfigEntry, Resource, alter_configs, describe_configs
from lowwater.client.admin.group_members import DescribedGroup, describe_groups
from lowwater.client.admin.group_offsets import alter_group_offsets, delete_group_offsets, group_offsets
from lowwater.client.admin.groups import Groups, delete_groups, list_groups
from lowwater.client.admin.offsets import Bounds, bounds, offsets_at
from lowwater.client.admin.opening import config_of
from lowwater.client.admin.outcomes import Outcomes
from lowwater.client.admin.records import LogDir, delete_records, log_dirs
from lowwater.client.admin.topic_changes import (
    CreatedTopic,
    NewTopic,
    create_partitions,
    create_topics,
    delete_topics,
)
from lowwater.client.admin.topics import DescribedTopic, describe_topics, list_topics
from lowwater.client.aio import AioDriver
from lowwater.client.cluster import Cluster
from lowwater.client.coordinator import Committed
from lowwater.client.network import Network
from lowwater.positions.position import StartPosition, StartPositions
from lowwater.types import TopicPartition

T = TypeVar("T")


class AsyncAdmin:
    """Made and used within one running loop. A call takes at most default.api.timeout.ms, retries included."""

    def __init__(self, bootstrap: str | None = None, config: Mapping[str, object] | None = None) -> None:
        settings = config_of(bootstrap, config)
        self._driver = AioDriver(settings)
        self._cluster = Cluster(Network(settings, self._driver))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        self._cluster.network.close()
        await self._driver.close()

    async def _run(self, flow: Coroutine[Any, Any, T]) -> T:
        return await self._driver.run(flow)

    async def describe_cluster(self) -> ClusterInfo:
        """The brokers, and who controls them."""
        return await self._run(describe_cluster(self._cluster))

    async def list_topics(self, *, internal: bool = False) -> dict[str, DescribedTopic]:
        """Every topic that may be seen, by name; those of the brokers' own only when asked for."""
        return await self._run(list_topics(self._cluster, internal=internal))

    async def describe_topics(self, names: Iterable[str]) -> Outcomes[str, DescribedTopic]:
        """Partitions of topics: their leaders and replicas."""
        return await self._run(describe_topics(self._cluster, names))

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False
    ) -> Outcomes[str, CreatedTopic]:
        """Make topics, or with `validate_only` find out whether that would work."""
        return await self._run(create_topics(self._cluster, topics, validate_only=validate_only))

    async def create_partitions(self, counts: Mapping[str, int], *, validate_only: bool = False) -> Outcomes[str, int]:
        """Let topics grow to so many partitions in all."""
        return await self._run(create_partitions(self._cluster, counts, validate_only=validate_only))

    async def delete_topics(self, names: Iterable[str]) -> Outcomes[str, None]:
        """Delete topics and all their records. There is no way back."""
        return await self._run(delete_topics(self._cluster, names))

    async def describe_configs(
        self, resources: Iterable[Resource | str], names: Iterable[str] | None = None
    ) -> Outcomes[Resource, dict[str, ConfigEntry]]:
        """The settings by name, of topics (by their name alone) and other resources; all of them, or those named."""
        return await self._run(describe_configs(self._cluster, resources, names))

    async def alter_configs(self, changes: Changes, *, validate_only: bool = False) -> Outcomes[Resource, None]:
        """Change single settings and leave the others as they are. None sets one back to its default."""
        return await self._run(alter_configs(self._cluster, changes, validate_only=validate_only))

    async def delete_records(self, before: Mapping[TopicPartition, int]) -> Outcomes[TopicPartition, int]:
        """Delete what is before an offset, or ALL; gives the log start offset of each partition then."""
        return await self._run(delete_records(self._cluster, before))

    async def log_dirs(self, topics: Iterable[str] | None = None) -> Outcomes[int, list[LogDir]]:
        """By broker its directories, with the sizes of all partitions or of those of some topics."""
        return await self._run(log_dirs(self._cluster, topics))

    async def bounds(self, partitions: Iterable[TopicPartition]) -> Outcomes[TopicPartition, Bounds]:
        """Where partitions begin and end."""
        return await self._run(bounds(self._cluster, partitions))

    async def offsets_at(
        self,
        position: str | StartPosition | StartPositions,
        topics: Iterable[str],
        *,
        group: str | None = None,
        zone: tzinfo | None = None,
    ) -> dict[TopicPartition, int]:
        """Where a start position such as `-1h` or `stored|earliest` leads, in every partition of these topics."""
        return await self._run(offsets_at(self._cluster, position, topics, group=group, zone=zone))

    async def list_groups(self, *, states: Iterable[str] = (), kinds: Iterable[str] = ()) -> Groups:
        """Every group of every broker, or those in some states and of some kinds."""
        return await self._run(list_groups(self._cluster, states=states, kinds=kinds))

    async def describe_groups(self, groups: Iterable[str]) -> Outcomes[str, DescribedGroup]:
        """State and members of groups of either kind."""
        return await self._run(describe_groups(self._cluster, groups))

    async def delete_groups(self, groups: Iterable[str]) -> Outcomes[str, None]:
        """Delete groups that have no members, with all they have committed."""
        return await self._run(delete_groups(self._cluster, groups))

    async def group_offsets(
        self, groups: Iterable[str], *, require_stable: bool = False
    ) -> Outcomes[str, dict[TopicPartition, Committed]]:
        """All that groups have committed."""
        return await self._run(group_offsets(self._cluster, groups, require_stable=require_stable))

    async def alter_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int | Committed]
    ) -> Outcomes[TopicPartition, None]:
        """Set where a group goes on. GroupError when it has members: they would not look, and commit over it."""
        return await self._run(alter_group_offsets(self._cluster, group, offsets))

    async def delete_group_offsets(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> Outcomes[TopicPartition, None]:
        """Forget what a group has committed for some partitions, none of which it may be reading."""
        return await self._run(delete_group_offsets(self._cluster, group, partitions))
