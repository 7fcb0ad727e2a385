"""Everything of a consumer group that the log holds. Replay alone changes it, live and at recovery."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

from lowwater.groups import record_schemas as schemas
from lowwater.groups.consumer_members import (
    NEW_MEMBER,
    Member,
    MemberMetadata,
    stored_current,
    stored_metadata,
    stored_target,
)
from lowwater.groups.consumer_reconciliation import CurrentAssignment, Held, Partitions
from lowwater.groups.metrics import GroupMetrics

NOTHING: Partitions = {}


class DurableGroup:
    """Read freely. The counts and `behind` follow from the rest and are kept so that nobody has to walk the members."""

    __slots__ = (
        "_metrics",
        "assignor_votes",
        "behind",
        "classic_count",
        "epoch",
        "instances",
        "members",
        "owners",
        "patterns",
        "resolved",
        "subscribers",
        "target_epoch",
        "targets",
        "topics_hash",
    )

    def __init__(self, metrics: GroupMetrics) -> None:
        self._metrics = metrics
        self.epoch = 0
        self.topics_hash = 0
        self.target_epoch = 0
        self.members: dict[str, Member] = {}
        self.targets: dict[str, Partitions] = {}
        self.resolved: dict[str, frozenset[str]] = {}
        # Instance id → member id.
        self.instances: dict[str, str] = {}
        # Topic id → partition → the member that may be reading it.
        self.owners: dict[bytes, dict[int, str]] = {}
        # How many members want a topic by name, a pattern, an assignor.
        self.subscribers: Counter[str] = Counter()
        self.patterns: Counter[str] = Counter()
        self.assignor_votes: Counter[str] = Counter()
        # Members that speak the classic protocol.
        self.classic_count = 0
        # Members that are not yet stable in the target's epoch.
        self.behind: set[str] = set()

    def target_of(self, member_id: str) -> Partitions:
        return self.targets.get(member_id, NOTHING)

    def member_of_instance(self, instance_id: str) -> Member | None:
        member_id = self.instances.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def is_taken(self, topic_id: bytes, partition: int, by_others_than: Collection[str]) -> bool:
        owner = self.owners.get(topic_id, {}).get(partition)
        return owner is not None and owner not in by_others_than

    def topics_without(self, leaving: Iterable[Member]) -> set[str]:
        """What is subscribed to by name when these members are gone."""
        return set(_without(self.subscribers, (name for member in leaving for name in member.metadata.topics)))

    def patterns_without(self, leaving: Iterable[Member]) -> set[str]:
        return set(_without(self.patterns, (member.metadata.pattern for member in leaving)))

    # -- replay

    def replay(self, key: Any, value: Any) -> None:
        """A record of this group, as `records.decode` gives it. The end of the group itself is the shard's."""
        match type(key):
            case schemas.ConsumerGroupCurrentMemberAssignmentKey:
                self._replay_current(key.member_id, value)
            case schemas.ConsumerGroupMemberMetadataKey:
                self._replay_member(key.member_id, value)
            case schemas.ConsumerGroupTargetAssignmentMemberKey:
                self._replay_target(key.member_id, value)
            case schemas.ConsumerGroupTargetAssignmentMetadataKey:
                self._replay_target_epoch(0 if value is None else value.assignment_epoch)
            case schemas.ConsumerGroupMetadataKey if value is not None:
                self.epoch, self.topics_hash = value.epoch, value.metadata_hash
            case schemas.ConsumerGroupRegularExpressionKey:
                self._replay_pattern(key.regular_expression, value)

    def _replay_member(self, member_id: str, value: Any) -> None:
        if value is None:
            self._remove(member_id)
            return
        member = self._member(member_id)
        metadata = stored_metadata(value)
        self._count(member.metadata, -1)
        self._count(metadata, 1)
        member.metadata = metadata
        if metadata.instance_id is not None:
            self.instances[metadata.instance_id] = member_id

    def _member(self, member_id: str) -> Member:
        """Compaction may leave the assignment of a member before the record of the member itself."""
        member = self.members.get(member_id)
        if member is None:
            member = self.members[member_id] = Member(member_id, NEW_MEMBER.metadata, NEW_MEMBER.current)
            self.behind.add(member_id)
            self._metrics.total_members += 1
        return member

    def _remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._metrics.total_members -= 1
        self.behind.discard(member_id)
        self._count(member.metadata, -1)
        self._release(member)
        instance_id = member.metadata.instance_id
        if instance_id is not None and self.instances.get(instance_id) == member_id:
            del self.instances[instance_id]

    def _count(self, metadata: MemberMetadata, by: int) -> None:
        if metadata.classic is not None:
            self.classic_count += by
        for name in metadata.topics:
            _add(self.subscribers, name, by)
        if metadata.pattern:
            _add(self.patterns, metadata.pattern, by)
        if metadata.assignor is not None:
            _add(self.assignor_votes, metadata.assignor, by)

    def _replay_current(self, member_id: str, value: Any) -> None:
        if value is None:
            if member_id in self.members:
                self._set_current(self.members[member_id], NEW_MEMBER.current)
            return
        self._set_current(self._member(member_id), stored_current(value))

    def _set_current(self, member: Member, current: CurrentAssignment) -> None:
        self._release(member)
        member.current = current
        for held in (current.assigned, current.revoking):
            self._take(member.member_id, held)
        if current.is_reconciled_to(self.target_epoch):
            self.behind.discard(member.member_id)
        else:
            self.behind.add(member.member_id)

    def _take(self, member_id: str, held: Held) -> None:
        for topic_id, partitions in held.items():
            self.owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member_id))

    def _release(self, member: Member) -> None:
        for held in (member.current.assigned, member.current.revoking):
            for topic_id, partitions in held.items():
                self._release_topic(member.member_id, topic_id, partitions)

    def _release_topic(self, member_id: str, topic_id: bytes, partitions: Iterable[int]) -> None:
        owners = self.owners.get(topic_id, {})
        for partition in partitions:
            if owners.get(partition) == member_id:
                del owners[partition]
        if not owners:
            self.owners.pop(topic_id, None)

    def _replay_target(self, member_id: str, value: Any) -> None:
        if value is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = stored_target(value)

    def _replay_target_epoch(self, epoch: int) -> None:
        self.target_epoch = epoch
        self.behind = {
            member_id for member_id, member in self.members.items() if not member.current.is_reconciled_to(epoch)
        }

    def _replay_pattern(self, pattern: str, value: Any) -> None:
        if value is None:
            self.resolved.pop(pattern, None)
        else:
            self.resolved[pattern] = frozenset(value.topics)


def _add(counts: Counter[str], name: str, by: int) -> None:
    counts[name] += by
    if counts[name] <= 0:
        del counts[name]


def _without(counts: Counter[str], leaving: Iterable[str]) -> Iterable[str]:
    gone = Counter(leaving)
    return (name for name, count in counts.items() if count > gone[name])
