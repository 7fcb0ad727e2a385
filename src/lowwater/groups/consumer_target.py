"""What every member of a consumer group shall have: asked of an assignor, stored as the target assignment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

from lowwater.groups.assignors import Assignment, MemberSpec, Spec
from lowwater.groups.config import GroupConfig
from lowwater.groups.consumer_durable import DurableGroup
from lowwater.groups.consumer_members import MemberMetadata, Resolved, target_record
from lowwater.groups.consumer_reconciliation import Partitions
from lowwater.groups.record_schemas import (
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from lowwater.groups.records import encode
from lowwater.groups.topics import TopicsView
from lowwater.outcome import StateRecord


class AssignmentComputed(NamedTuple):
    """A command: the assignment of a big group was computed for this epoch. `result` is an exception when it failed."""

    group_id: str
    epoch: int
    topics_hash: int
    result: Assignment | Exception


@dataclass(frozen=True, slots=True)
class Computed:
    """What a Computation calls with its result, to make a command of it."""

    group_id: str
    epoch: int
    topics_hash: int

    def __call__(self, result: Any) -> AssignmentComputed:
        return AssignmentComputed(self.group_id, self.epoch, self.topics_hash, result)


def hash_of_topics(names: Iterable[str], topics: TopicsView) -> int:
    """Changes when one of the topics comes, goes, is made anew or grows. 0 when there is none of them."""
    digest = blake2b(digest_size=8)
    found = False
    for name in sorted(names):
        topic_id = topics.topic_id(name)
        if topic_id is not None:
            found = True
            digest.update(topic_id)
            digest.update(f"{topics.partition_count(name)}:{name}/".encode())
    return int.from_bytes(digest.digest(), signed=True) if found else 0


def assignor_of(votes: Mapping[str, int], config: GroupConfig) -> str:
    """The one that most members wish for, of equals the one named first in the settings; without wishes the first."""
    order = config.consumer_assignors
    wished = [name for name in order if votes.get(name)]
    return max(wished, key=lambda name: votes[name]) if wished else order[0]


def spec_of(
    members: Mapping[str, MemberMetadata], targets: Mapping[str, Partitions], resolved: Resolved, topics: TopicsView
) -> Spec:
    """`targets` are those of the epoch before, by which an assignor moves as little as it can."""
    # Members with equal subscriptions share one set: an assignor compares them by identity first.
    subscriptions: dict[tuple[frozenset[str], str], frozenset[str]] = {}
    names: dict[bytes, str | None] = {}
    specs: dict[str, MemberSpec] = {}
    for member_id, metadata in members.items():
        wish = (metadata.topics, metadata.pattern)
        if wish not in subscriptions:
            subscriptions[wish] = metadata.subscribed(resolved)
        owned: dict[str, frozenset[int]] = {}
        for topic_id, partitions in targets.get(member_id, {}).items():
            if topic_id not in names:
                names[topic_id] = topics.topic_name(topic_id)
            name = names[topic_id]
            if name is not None:
                owned[name] = partitions
        specs[member_id] = MemberSpec(subscriptions[wish], owned, metadata.instance_id, metadata.rack_id)
    wanted = frozenset[str]().union(*subscriptions.values())
    counts = {name: topics.partition_count(name) for name in wanted}
    return Spec(specs, {name: count for name, count in counts.items() if count is not None})


def work_of(spec: Spec) -> int:
    """How much there is to do, in members times partitions."""
    return len(spec.members) * sum(spec.partitions.values())


def targets_by_id(assignment: Assignment, topics: TopicsView) -> dict[str, Partitions]:
    ids = {name: topics.topic_id(name) for name in {name for given in assignment.values() for name in given}}
    return {
        member_id: {
            topic_id: frozenset(partitions)
            for name, partitions in given.items()
            if partitions and (topic_id := ids[name]) is not None
        }
        for member_id, given in assignment.items()
    }


def target_records(
    group_id: str, durable: DurableGroup, targets: Mapping[str, Partitions], epoch: int, wall_ms: int
) -> list[StateRecord]:
    """Only what changed, and last the epoch that makes it the group's."""
    records = [
        target_record(group_id, member_id, target)
        for member_id, target in targets.items()
        if durable.targets.get(member_id) != target
    ]
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=wall_ms)
    return [*records, encode(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)]
