"""Committed offsets on the wire: what OffsetFetch and OffsetCommit say in each of their versions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lowwater.client.errors import broker_error
from lowwater.types import TopicPartition
from lowwater.wire.messages import OffsetCommitRequest, OffsetFetchRequest
from lowwater.wire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from lowwater.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

# From v10 on topics go by id, which not every topic has; names say the same.
FETCH_VERSIONS = (1, 9)
COMMIT_VERSIONS = (2, 9)
MANY_GROUPS_SINCE = 8
STABLE_SINCE = 7
INSTANCES_SINCE = 7
NONE_COMMITTED = -1


@dataclass(frozen=True, slots=True)
class Committed:
    """The next offset to read of a partition, the leader epoch of the record before it, and a note."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who speaks to a group: a member in its generation (or member epoch), or nobody."""

    member_id: str = ""
    generation: int = -1
    instance_id: str | None = None


NOBODY = Identity()


def fetch_request(
    group: str, partitions: Iterable[TopicPartition] | None, require_stable: bool
) -> Callable[[int], OffsetFetchRequest]:
    """For whichever version it will be; None asks for everything."""
    by_topic = None if partitions is None else _by_topic((one, None) for one in partitions)

    def request(version: int) -> OffsetFetchRequest:
        stable = require_stable and version >= STABLE_SINCE
        if version < MANY_GROUPS_SINCE:
            names = None if by_topic is None else [
                OffsetFetchRequestTopic(name=topic, partition_indexes=list(found)) for topic, found in by_topic.items()
            ]  # fmt: skip
            return OffsetFetchRequest(group_id=group, topics=names, require_stable=stable)
        topics = None if by_topic is None else [
            OffsetFetchRequestTopics(name=topic, partition_indexes=list(found)) for topic, found in by_topic.items()
        ]  # fmt: skip
        return OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)], require_stable=stable
        )

    return request


def fetch_code(response: Any) -> int:
    """The error of the group as a whole. Versions without a place for it put it at the partitions."""
    if response.groups:
        return int(response.groups[0].error_code)
    return int(response.error_code)


def fetched_offsets(response: Any, group: str) -> dict[TopicPartition, Committed]:
    """What is committed; an error of the group or of any partition is raised."""
    if code := fetch_code(response):
        raise broker_error(code, f"the offsets of group {group!r} cannot be had")
    found: dict[TopicPartition, Committed] = {}
    for topic in response.groups[0].topics if response.groups else response.topics:
        for each in topic.partitions:
            one = TopicPartition(topic.name, each.partition_index)
            if each.error_code:
                raise broker_error(
                    each.error_code,
                    f"the offset of group {group!r} cannot be had",
                    topic=one.topic,
                    partition=one.partition,
                )
            if each.committed_offset != NONE_COMMITTED:
                found[one] = Committed(each.committed_offset, each.committed_leader_epoch, each.metadata or "")
    return found


def commit_request(
    group: str, offsets: Mapping[TopicPartition, Committed], by: Identity
) -> Callable[[int], OffsetCommitRequest]:
    """For whichever version it will be."""
    topics = [
        OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=each.offset,
                    committed_leader_epoch=each.leader_epoch,
                    committed_metadata=each.metadata,
                )
                for partition, each in found.items()
            ],
        )
        for topic, found in _by_topic(offsets.items()).items()
    ]

    def request(version: int) -> OffsetCommitRequest:
        return OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=by.generation,
            member_id=by.member_id,
            group_instance_id=by.instance_id if version >= INSTANCES_SINCE else None,
            topics=topics,
        )

    return request


def commit_codes(response: Any) -> Iterator[tuple[TopicPartition, int]]:
    """How it went, partition by partition."""
    for topic in response.topics:
        for each in topic.partitions:
            yield TopicPartition(topic.name, each.partition_index), int(each.error_code)


def _by_topic(items: Iterable[tuple[TopicPartition, Any]]) -> dict[str, dict[int, Any]]:
    found: dict[str, dict[int, Any]] = {}
    for one, value in items:
        found.setdefault(one.topic, {})[one.partition] = value
    return found
