"""Members of a consumer group, and how they are stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from lowwater.errors import WireError
from lowwater.groups.consumer_reconciliation import CurrentAssignment, Held, MemberState, Partitions
from lowwater.groups.record_schemas import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    TargetTopicPartitions,
    TopicPartitions,
)
from lowwater.groups.records import encode
from lowwater.outcome import StateRecord

Resolved: TypeAlias = Mapping[str, frozenset[str]]
"""Regular expression → the topics that match it."""

LEFT_FOR_A_WHILE = -2
"""The epoch of a static member that said it will be back."""


class MemberMetadata(NamedTuple):
    """What a member told of itself. `pattern` is a regular expression over topic names, or empty."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    pattern: str = ""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicMemberMetadata | None = None

    def subscribed(self, resolved: Resolved) -> frozenset[str]:
        """The names of all topics it wants, by name or by pattern."""
        return self.topics | resolved[self.pattern] if self.pattern in resolved else self.topics


class Member:
    """One object for as long as the member is in the group. Only a replay changes it."""

    __slots__ = ("current", "member_id", "metadata")

    def __init__(self, member_id: str, metadata: MemberMetadata, current: CurrentAssignment) -> None:
        self.member_id = member_id
        self.metadata = metadata
        self.current = current


NEW_MEMBER = Member("", MemberMetadata(), CurrentAssignment())
"""What a member is before it joins."""


def metadata_record(group_id: str, member_id: str, metadata: MemberMetadata | None) -> StateRecord:
    key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
    if metadata is None:
        return encode(key, None)
    value = ConsumerGroupMemberMetadataValue(
        instance_id=metadata.instance_id,
        rack_id=metadata.rack_id,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        subscribed_topic_names=sorted(metadata.topics),
        subscribed_topic_regex=metadata.pattern,
        rebalance_timeout_ms=metadata.rebalance_timeout_ms,
        server_assignor=metadata.assignor,
        classic_member_metadata=metadata.classic,
    )
    return encode(key, value)


def stored_metadata(value: ConsumerGroupMemberMetadataValue) -> MemberMetadata:
    return MemberMetadata(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topics=frozenset(value.subscribed_topic_names),
        pattern=value.subscribed_topic_regex or "",
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        assignor=value.server_assignor,
        classic=value.classic_member_metadata,
    )


def current_record(group_id: str, member_id: str, current: CurrentAssignment | None) -> StateRecord:
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
    if current is None:
        return encode(key, None)
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        state=current.state,
        assigned_partitions=_written(current.assigned),
        partitions_pending_revocation=_written(current.revoking),
    )
    return encode(key, value)


def stored_current(value: ConsumerGroupCurrentMemberAssignmentValue) -> CurrentAssignment:
    """A state of a later version is taken as one that has yet to be reconciled, from what the member has."""
    known = value.state in MemberState._value2member_map_
    return CurrentAssignment(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state) if known else MemberState.UNRELEASED_PARTITIONS,
        assigned=_read(value.assigned_partitions, value.member_epoch),
        revoking=_read(value.partitions_pending_revocation, value.member_epoch),
    )


def _written(held: Held) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic_id=topic_id, partitions=list(epochs), assignment_epochs=list(epochs.values()))
        for topic_id, epochs in held.items()
    ]


def _read(topics: Iterable[TopicPartitions], epoch: int) -> Held:
    return {topic.topic_id: _epochs(topic, epoch) for topic in topics}


def _epochs(topic: TopicPartitions, epoch: int) -> dict[int, int]:
    """Kafka before 4.3 did not say since when; then it is since the member's epoch."""
    if topic.assignment_epochs is None:
        return dict.fromkeys(topic.partitions, epoch)
    if len(topic.assignment_epochs) != len(topic.partitions):
        raise WireError(f"{len(topic.partitions)} partitions with {len(topic.assignment_epochs)} epochs")
    return dict(zip(topic.partitions, topic.assignment_epochs, strict=True))


def target_record(group_id: str, member_id: str, target: Partitions | None) -> StateRecord:
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    if target is None:
        return encode(key, None)
    topics = [TargetTopicPartitions(topic_id=topic_id, partitions=sorted(target[topic_id])) for topic_id in target]
    return encode(key, ConsumerGroupTargetAssignmentMemberValue(topic_partitions=topics))


def stored_target(value: ConsumerGroupTargetAssignmentMemberValue) -> Partitions:
    return {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}


def removal_records(group_id: str, member_id: str) -> list[StateRecord]:
    """The member itself last: without it nothing else of it is looked at."""
    return [
        current_record(group_id, member_id, None),
        target_record(group_id, member_id, None),
        metadata_record(group_id, member_id, None),
    ]
