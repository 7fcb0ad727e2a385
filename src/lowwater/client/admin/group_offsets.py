"""How far groups have read: looking it up for many at once, setting it and forgetting it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lowwater.client.admin.by_coordinator import group_error, of_coordinators
from lowwater.client.admin.outcomes import Outcomes
from lowwater.client.cluster import Cluster
from lowwater.client.coordinator import Coordinator
from lowwater.client.errors import ClientError, CommitError, UnsupportedError, broker_error
from lowwater.client.group_offsets import FETCH_VERSIONS, MANY_GROUPS_SINCE, NONE_COMMITTED, Committed
from lowwater.types import TopicPartition
from lowwater.wire.messages import OffsetDeleteRequest, OffsetFetchRequest
from lowwater.wire.messages.offset_delete import OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from lowwater.wire.messages.offset_fetch import OffsetFetchRequestGroup

_MANY = (MANY_GROUPS_SINCE, FETCH_VERSIONS[1])


async def group_offsets(
    cluster: Cluster, groups: Iterable[str], *, require_stable: bool = False
) -> Outcomes[str, dict[TopicPartition, Committed]]:
    """All that groups have committed. A group that has nothing, or is not there, gives nothing.

    With `require_stable` an offset that a transaction still decides about is waited for.
    """

    def request(names: list[str]) -> OffsetFetchRequest:
        wanted = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in names]
        return OffsetFetchRequest(groups=wanted, require_stable=require_stable)

    found = await of_coordinators(cluster, groups, request, _offsets, OffsetFetchRequest, _MANY)
    done, failed = dict(found), dict(found.failed)
    for group, error in found.failed.items():
        if isinstance(error, UnsupportedError):  # one by one, then
            try:
                done[group] = await Coordinator(cluster, group).committed_in_full(require_stable=require_stable)
                del failed[group]
            except ClientError as again:
                failed[group] = again
    return Outcomes(done, failed)


def _offsets(answer: Any, _: int) -> dict[str, dict[TopicPartition, Committed] | ClientError]:
    return {each.group_id: _offsets_of(each) for each in answer.groups}


def _offsets_of(group: Any) -> dict[TopicPartition, Committed] | ClientError:
    if group.error_code:
        return group_error(group.error_code, group.group_id)
    found: dict[TopicPartition, Committed] = {}
    for topic in group.topics:
        for each in topic.partitions:
            if each.error_code:
                what = f"the offset of group {group.group_id!r} cannot be had"
                return broker_error(each.error_code, what, topic=topic.name, partition=each.partition_index)
            if each.committed_offset != NONE_COMMITTED:
                committed = Committed(each.committed_offset, each.committed_leader_epoch, each.metadata or "")
                found[TopicPartition(topic.name, each.partition_index)] = committed
    return found


async def alter_group_offsets(
    cluster: Cluster, group: str, offsets: Mapping[TopicPartition, int | Committed]
) -> Outcomes[TopicPartition, None]:
    """Set where a group goes on. GroupError when it has members: they would not look, and commit over it."""
    try:
        await Coordinator(cluster, group).commit(offsets)
    except CommitError as error:
        return Outcomes(dict.fromkeys(error.committed), error.errors)
    return Outcomes(dict.fromkeys(offsets), {})


async def delete_group_offsets(
    cluster: Cluster, group: str, partitions: Iterable[TopicPartition]
) -> Outcomes[TopicPartition, None]:
    """Forget what a group has committed for some partitions, none of which it may be reading."""
    wanted: dict[str, list[OffsetDeleteRequestPartition]] = {}
    for one in partitions:
        wanted.setdefault(one.topic, []).append(OffsetDeleteRequestPartition(partition_index=one.partition))
    topics = [OffsetDeleteRequestTopic(name=name, partitions=each) for name, each in wanted.items()]
    if not topics:
        return Outcomes({}, {})
    answer = await Coordinator(cluster, group).insist(OffsetDeleteRequest(group_id=group, topics=topics))
    if answer.error_code:
        raise group_error(answer.error_code, group)
    return _deleted(answer)


def _deleted(answer: Any) -> Outcomes[TopicPartition, None]:
    done: dict[TopicPartition, None] = {}
    failed: dict[TopicPartition, ClientError] = {}
    for topic in answer.topics:
        for each in topic.partitions:
            one = TopicPartition(topic.name, each.partition_index)
            if each.error_code:
                failed[one] = broker_error(each.error_code, topic=one.topic, partition=one.partition)
            else:
                done[one] = None
    return Outcomes(done, failed)
