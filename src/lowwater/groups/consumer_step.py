"""What one heartbeat of a consumer group's member changes, thought through before any of it is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from lowwater.groups.consumer_durable import DurableGroup
from lowwater.groups.consumer_members import (
    NEW_MEMBER,
    Member,
    MemberMetadata,
    current_record,
    metadata_record,
    removal_records,
    target_record,
)
from lowwater.groups.consumer_patterns import TopicPatterns
from lowwater.groups.consumer_reconciliation import CurrentAssignment, Goal, Partitions, reconcile
from lowwater.groups.consumer_target import hash_of_topics
from lowwater.groups.record_schemas import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from lowwater.groups.records import encode
from lowwater.groups.topics import TopicsView
from lowwater.outcome import StateRecord

# A group begins in epoch 1, in which nobody has anything: members that wait for the first assignment are in it.
FIRST_EPOCH = 1


class Subscriptions:
    """What the members that stay, and one that comes or changes, want: the topics, and an epoch for them."""

    def __init__(self, group_id: str, durable: DurableGroup, topics: TopicsView, patterns: TopicPatterns) -> None:
        self.group_id = group_id
        self.durable = durable
        self.topics = topics
        self.patterns = patterns
        self.records: list[StateRecord] = []
        self.resolved = durable.resolved
        self.epoch = durable.epoch
        self.topics_hash = durable.topics_hash

    def renew(self, leaving: Iterable[Member], wish: MemberMetadata, wall_ms: int, *, changed: bool) -> None:
        """Resolve the patterns anew and look at the topics; a new epoch when `changed` or when they have."""
        leaving = list(leaving)
        patterns = self.durable.patterns_without(leaving) | {wish.pattern} - {""}
        changed = self._resolve(patterns, wall_ms) or changed
        names = self.durable.topics_without(leaving).union(wish.topics, *self.resolved.values())
        topics_hash = hash_of_topics(names, self.topics)
        if changed or topics_hash != self.topics_hash:
            self._begin_epoch(max(self.epoch, FIRST_EPOCH) + 1, topics_hash)
        elif self.epoch < FIRST_EPOCH:
            self._begin_epoch(FIRST_EPOCH, topics_hash)

    def _resolve(self, patterns: set[str], wall_ms: int) -> bool:
        resolved = {pattern: self.patterns.topics_of(pattern) for pattern in sorted(patterns)}
        if resolved == self.durable.resolved:
            return False
        for pattern in self.durable.resolved.keys() - resolved.keys():
            self._write_pattern(pattern, None)
        for pattern, matches in resolved.items():
            if self.durable.resolved.get(pattern) != matches:
                version = self.topics.version
                value = ConsumerGroupRegularExpressionValue(topics=sorted(matches), version=version, timestamp=wall_ms)
                self._write_pattern(pattern, value)
        self.resolved = resolved
        return True

    def _write_pattern(self, pattern: str, value: ConsumerGroupRegularExpressionValue | None) -> None:
        key = ConsumerGroupRegularExpressionKey(group_id=self.group_id, regular_expression=pattern)
        self.records.append(encode(key, value))

    def _begin_epoch(self, epoch: int, topics_hash: int) -> None:
        self.epoch, self.topics_hash = epoch, topics_hash
        value = ConsumerGroupMetadataValue(epoch=self.epoch, metadata_hash=topics_hash)
        self.records.append(encode(ConsumerGroupMetadataKey(group_id=self.group_id), value))


class Step(Subscriptions):
    """`before` is the member as the log has it: a new one, a known one, or the static one that it replaces."""

    def __init__(
        self,
        group_id: str,
        durable: DurableGroup,
        topics: TopicsView,
        patterns: TopicPatterns,
        member_id: str,
        before: Member,
        metadata: MemberMetadata,
    ) -> None:
        super().__init__(group_id, durable, topics, patterns)
        self.member_id = member_id
        self.before = before
        self.metadata = metadata
        self.current = before.current
        self.target_epoch = durable.target_epoch
        self.target = durable.target_of(before.member_id)

    @property
    def is_new(self) -> bool:
        return self.before is NEW_MEMBER

    @property
    def subscription_changed(self) -> bool:
        before = self.before.metadata
        return self.metadata.topics != before.topics or self.metadata.pattern != before.pattern

    @property
    def reason(self) -> str:
        """Why the group has a new epoch."""
        if self.is_new:
            return f"member {self.member_id!r} joined"
        if self.subscription_changed:
            return f"member {self.member_id!r} changed its subscription"
        return "topics changed"

    @property
    def ends_rebalance(self) -> bool:
        """Whether with this member all are where they shall be."""
        if self.epoch != self.target_epoch or not self.current.is_reconciled_to(self.epoch):
            return False
        is_new_target = self.target_epoch != self.durable.target_epoch
        behind = self.durable.members.keys() if is_new_target else self.durable.behind
        return len(behind) <= 2 and behind <= {self.member_id, self.before.member_id}

    def become_static_successor(self) -> None:
        """The member takes over from `before`, whose partitions are its own; it owns none of them yet."""
        self.records += removal_records(self.group_id, self.before.member_id)
        self.records.append(target_record(self.group_id, self.member_id, self.target))
        held = self.before.current
        self.current = CurrentAssignment(state=held.state, assigned=held.assigned)
        self.records.append(metadata_record(self.group_id, self.member_id, self.metadata))

    def enter(self) -> None:
        """The member is new, or says something new of itself."""
        if self.is_new or self.metadata != self.before.metadata:
            self.records.append(metadata_record(self.group_id, self.member_id, self.metadata))

    def look_at_topics(self, wall_ms: int) -> None:
        """Must be called when the subscription changed, the group is new or the topics may have changed."""
        leaving = () if self.is_new else (self.before,)
        self.renew(leaving, self.metadata, wall_ms, changed=self.subscription_changed)

    def members(self) -> dict[str, MemberMetadata]:
        """All members as they will be."""
        members = {member_id: member.metadata for member_id, member in self.durable.members.items()}
        members.pop(self.before.member_id, None)
        members[self.member_id] = self.metadata
        return members

    def targets(self) -> dict[str, Partitions]:
        """Those of the epoch before; a successor's is that of its predecessor."""
        return {**self.durable.targets, self.member_id: self.target}

    def assignor_votes(self) -> Counter[str]:
        votes = self.durable.assignor_votes.copy()
        if self.before.metadata.assignor is not None:
            votes[self.before.metadata.assignor] -= 1
        if self.metadata.assignor is not None:
            votes[self.metadata.assignor] += 1
        return votes

    def reconcile(self, owned: Partitions | None) -> None:
        """Bring the member nearer to its target; `owned` is what it reports to own."""
        epoch = max(self.target_epoch, FIRST_EPOCH)
        if self.current.is_reconciled_to(epoch) and not self.subscription_changed:
            return
        wanted = (self.topics.topic_id(name) for name in self.metadata.subscribed(self.resolved))
        goal = Goal(epoch, self.target, {topic_id for topic_id in wanted if topic_id is not None})
        self.current = reconcile(
            self.current, goal, owned, self._is_taken, subscription_changed=self.subscription_changed
        )
        if self.current != self.before.current or self.member_id != self.before.member_id:
            self.records.append(current_record(self.group_id, self.member_id, self.current))

    def _is_taken(self, topic_id: bytes, partition: int) -> bool:
        return self.durable.is_taken(topic_id, partition, (self.member_id, self.before.member_id))
