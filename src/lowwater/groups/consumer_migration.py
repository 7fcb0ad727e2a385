"""Groups with members that change their protocol: classic to consumer by the first member that speaks the new one,
and back when the last of those has gone.
"""

from __future__ import annotations

from lowwater.groups.classic import PREPARING, ClassicGroup
from lowwater.groups.classic_members import Member as ClassicMember
from lowwater.groups.config import GroupConfig
from lowwater.groups.consumer_durable import DurableGroup
from lowwater.groups.consumer_members import (
    Member,
    MemberMetadata,
    current_record,
    metadata_record,
    target_record,
)
from lowwater.groups.consumer_protocol import PROTOCOL_TYPE, decode_assignment, decode_subscription
from lowwater.groups.consumer_reconciliation import CurrentAssignment, Held
from lowwater.groups.record_schemas import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataValue,
)
from lowwater.groups.record_schemas import MemberMetadata as StoredClassicMember
from lowwater.groups.records import encode
from lowwater.groups.topics import TopicsView
from lowwater.outcome import Now, StateRecord

UPGRADES = ("bidirectional", "upgrade")
DOWNGRADES = ("bidirectional", "downgrade")
# What these add to an assignment is only what the member said itself: librdkafka's sticky assignor repeats it.
KNOWN_ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")


# -- classic to consumer


def upgraded(group: ClassicGroup, config: GroupConfig, topics: TopicsView, now: Now) -> list[StateRecord] | None:
    """The classic group with its members as a consumer group; None when it cannot be one.

    The epoch is the generation, and everybody has what the leader last gave it. There is no hash of topics yet, so the
    first heartbeat finds them changed and assigns anew.
    """
    members = group.roster.members.values()
    if config.consumer_migration_policy not in UPGRADES or group.protocol_type != PROTOCOL_TYPE:
        return None
    if group.protocol is None or group.generation < 1 or len(members) >= config.consumer_group_size_max:
        return None
    converted = [_converted(member, group, topics) for member in members]
    found = [member for member in converted if member is not None]
    if len(found) < len(converted) or _overlap(found):
        return None
    return _consumer_records(group.group_id, group.generation, found, now)


def _converted(member: ClassicMember, group: ClassicGroup, topics: TopicsView) -> Member | None:
    """None when its words cannot be read, or say more than can be kept."""
    subscription = decode_subscription(_spoken(member, group))
    held = _held(member.holds, group, topics)
    if subscription is None or held is None:
        return None
    protocols = [ClassicProtocol(name=name, metadata=metadata) for name, metadata in member.protocols]
    metadata = MemberMetadata(
        instance_id=member.instance_id,
        rack_id=subscription.rack_id or None,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=frozenset(subscription.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicMemberMetadata(session_timeout_ms=member.session_timeout_ms, supported_protocols=protocols),
    )
    return Member(member.member_id, metadata, CurrentAssignment(group.generation, group.generation, assigned=held))


def _spoken(member: ClassicMember, group: ClassicGroup) -> bytes:
    """One that joins a rebalance may not know the protocol of the generation before."""
    spoken = member.metadata(group.protocol)
    return member.protocols[0][1] if not spoken and group.state == PREPARING else spoken


def _held(assignment: bytes, group: ClassicGroup, topics: TopicsView) -> Held | None:
    if not assignment:
        return {}
    decoded = decode_assignment(assignment)
    if decoded is None or (decoded.user_data and group.protocol not in KNOWN_ASSIGNORS):
        return None
    named = ((topics.topic_id(one.topic), one.partitions) for one in decoded.assigned_partitions)
    return {
        topic_id: dict.fromkeys(partitions, group.generation) for topic_id, partitions in named if topic_id is not None
    }


def _overlap(members: list[Member]) -> bool:
    """A leader may give a partition to several members; the coordinator never does."""
    held = [
        (topic_id, partition)
        for member in members
        for topic_id, partitions in member.current.assigned.items()
        for partition in partitions
    ]
    return len(held) != len(set(held))


def _consumer_records(group_id: str, epoch: int, members: list[Member], now: Now) -> list[StateRecord]:
    records = [metadata_record(group_id, member.member_id, member.metadata) for member in members]
    records.append(encode(ConsumerGroupMetadataKey(group_id=group_id), ConsumerGroupMetadataValue(epoch=epoch)))
    for member in members:
        target = {topic_id: frozenset(partitions) for topic_id, partitions in member.current.assigned.items()}
        records.append(target_record(group_id, member.member_id, target))
    made = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=now.wall_ms)
    records.append(encode(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), made))
    records += [current_record(group_id, member.member_id, member.current) for member in members]
    return records


# -- consumer to classic


def downgraded(durable: DurableGroup, config: GroupConfig, now: Now) -> GroupMetadataValue | None:
    """The group as a classic one, when all its members speak that; None when not, or when it may not be.

    Its generation is the last epoch that members may have heard of, and it has no assignments: they join again, and
    their leader assigns.
    """
    members = list(durable.members.values())
    classic = [(member, member.metadata.classic) for member in members if member.metadata.classic is not None]
    if config.consumer_migration_policy not in DOWNGRADES or not members or len(classic) < len(members):
        return None
    protocol = _common_protocol([one for _, one in classic])
    if protocol is None or len(members) > config.group_size_max:
        return None
    return GroupMetadataValue(
        protocol_type=PROTOCOL_TYPE,
        generation=max(durable.target_epoch, *(member.current.epoch for member in members)),
        protocol=protocol,
        leader=members[0].member_id,
        current_state_timestamp=now.wall_ms,
        members=[_stored(member, one, protocol) for member, one in classic],
    )


def _common_protocol(members: list[ClassicMemberMetadata]) -> str | None:
    common = set.intersection(*({one.name for one in member.supported_protocols} for member in members))
    return next((one.name for one in members[0].supported_protocols if one.name in common), None)


def _stored(member: Member, classic: ClassicMemberMetadata, protocol: str) -> StoredClassicMember:
    metadata = member.metadata
    return StoredClassicMember(
        member_id=member.member_id,
        group_instance_id=metadata.instance_id,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        rebalance_timeout=metadata.rebalance_timeout_ms,
        session_timeout=classic.session_timeout_ms,
        subscription=next(one.metadata for one in classic.supported_protocols if one.name == protocol),
        assignment=b"",
    )
