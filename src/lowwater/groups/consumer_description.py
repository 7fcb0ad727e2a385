"""A consumer group as ConsumerGroupDescribe tells it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lowwater.groups.consumer_durable import DurableGroup
from lowwater.groups.consumer_members import Member as GroupMember
from lowwater.groups.topics import TopicsView
from lowwater.wire.messages.consumer_group_describe import Assignment, DescribedGroup, Member, TopicPartitions

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def described(group_id: str, state: str, assignor: str, durable: DurableGroup, topics: TopicsView) -> DescribedGroup:
    return DescribedGroup(
        group_id=group_id,
        group_state=state,
        group_epoch=durable.epoch,
        assignment_epoch=durable.target_epoch,
        assignor_name=assignor,
        members=[_member(member, durable, topics) for member in durable.members.values()],
    )


def _member(member: GroupMember, durable: DurableGroup, topics: TopicsView) -> Member:
    metadata, current = member.metadata, member.current
    return Member(
        member_id=member.member_id,
        instance_id=metadata.instance_id,
        rack_id=metadata.rack_id,
        member_epoch=current.epoch,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        subscribed_topic_names=sorted(metadata.topics),
        subscribed_topic_regex=metadata.pattern,
        assignment=_assignment(_all_held(member), topics),
        target_assignment=_assignment(durable.target_of(member.member_id), topics),
        member_type=CONSUMER_MEMBER if metadata.classic is None else CLASSIC_MEMBER,
    )


def _all_held(member: GroupMember) -> Mapping[bytes, Iterable[int]]:
    """What the member was told to give up is its own until it did."""
    assigned, revoking = member.current.assigned, member.current.revoking
    return {
        topic_id: (*assigned.get(topic_id, ()), *revoking.get(topic_id, ())) for topic_id in {**assigned, **revoking}
    }


def _assignment(partitions: Mapping[bytes, Iterable[int]], topics: TopicsView) -> Assignment:
    """Topics that are gone are left out."""
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=sorted(held))
            for topic_id, held in partitions.items()
            if (name := topics.topic_name(topic_id)) is not None
        ]
    )
