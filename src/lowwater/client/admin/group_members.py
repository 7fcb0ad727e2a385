"""Who is in a group, and who reads what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lowwater.client.admin.by_coordinator import group_error, of_coordinators
from lowwater.client.admin.groups import CLASSIC, CONSUMER
from lowwater.client.admin.outcomes import Outcomes
from lowwater.client.cluster import Cluster
from lowwater.client.errors import BrokerError, ClientError, UnsupportedError
from lowwater.errors import ErrorCode
from lowwater.groups.consumer_protocol import PROTOCOL_TYPE, decode_assignment, decode_subscription
from lowwater.types import TopicPartition
from lowwater.wire.messages import ConsumerGroupDescribeRequest, DescribeGroupsRequest

DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class GroupMember:
    """`topics` are those it wants to read, `partitions` those it has; None where members speak of other things."""

    member_id: str
    client_id: str
    host: str
    instance_id: str | None = None
    topics: tuple[str, ...] | None = None
    partitions: tuple[TopicPartition, ...] | None = None
    target: tuple[TopicPartition, ...] | None = None
    """What it shall have; only known of groups whose coordinator assigns."""


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """`assignor` names the way partitions are shared; `epoch` is -1 in classic groups."""

    group: str
    state: str
    kind: str
    coordinator: int
    protocol: str = PROTOCOL_TYPE
    assignor: str = ""
    epoch: int = -1
    members: tuple[GroupMember, ...] = ()


async def describe_groups(cluster: Cluster, groups: Iterable[str]) -> Outcomes[str, DescribedGroup]:
    """State and members of groups of either kind."""
    wanted = list(dict.fromkeys(groups))
    newer = await of_coordinators(
        cluster, wanted, lambda names: ConsumerGroupDescribeRequest(group_ids=names), _consumer_groups
    )
    others = [group for group, error in newer.failed.items() if _is_of_another_kind(error)]
    older = await of_coordinators(cluster, others, lambda names: DescribeGroupsRequest(groups=names), _classic_groups)
    done = {**newer, **older}
    failed = {**{group: error for group, error in newer.failed.items() if group not in others}, **older.failed}
    return Outcomes({group: done[group] for group in wanted if group in done}, failed)


def _is_of_another_kind(error: ClientError) -> bool:
    """Or the broker is older than that kind of groups."""
    unknown = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
    return isinstance(error, UnsupportedError) or (isinstance(error, BrokerError) and error.code in unknown)


# ---- groups whose coordinator assigns


def _consumer_groups(answer: Any, node: int) -> dict[str, DescribedGroup | ClientError]:
    return {each.group_id: _consumer_group(each, node) for each in answer.groups}


def _consumer_group(each: Any, node: int) -> DescribedGroup | ClientError:
    if each.error_code:
        return group_error(each.error_code, each.group_id, each.error_message)
    return DescribedGroup(
        each.group_id,
        each.group_state,
        CONSUMER,
        node,
        assignor=each.assignor_name,
        epoch=each.group_epoch,
        members=tuple(_consumer_member(one) for one in each.members),
    )


def _consumer_member(one: Any) -> GroupMember:
    return GroupMember(
        one.member_id,
        one.client_id,
        one.client_host,
        one.instance_id,
        tuple(one.subscribed_topic_names),
        _by_name(one.assignment),
        _by_name(one.target_assignment),
    )


def _by_name(assignment: Any) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(
            TopicPartition(topic.topic_name, partition)
            for topic in assignment.topic_partitions
            for partition in topic.partitions
        )
    )


# ---- groups whose members assign


def _classic_groups(answer: Any, node: int) -> dict[str, DescribedGroup | ClientError]:
    return {each.group_id: _classic_group(each, node) for each in answer.groups}


def _classic_group(each: Any, node: int) -> DescribedGroup | ClientError:
    if each.error_code:
        return group_error(each.error_code, each.group_id, each.error_message)
    if each.group_state == DEAD:  # how older brokers say that there is none
        return group_error(ErrorCode.GROUP_ID_NOT_FOUND, each.group_id)
    return DescribedGroup(
        each.group_id,
        each.group_state,
        CLASSIC,
        node,
        each.protocol_type,
        each.protocol_data,
        members=tuple(_classic_member(one, each.protocol_type) for one in each.members),
    )


def _classic_member(one: Any, protocol: str) -> GroupMember:
    subscription = decode_subscription(one.member_metadata) if protocol == PROTOCOL_TYPE else None
    assignment = decode_assignment(one.member_assignment) if protocol == PROTOCOL_TYPE else None
    return GroupMember(
        one.member_id,
        one.client_id,
        one.client_host,
        one.group_instance_id,
        None if subscription is None else tuple(subscription.topics),
        None if assignment is None else _assigned(assignment),
    )


def _assigned(assignment: Any) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(
            TopicPartition(topic.topic, partition)
            for topic in assignment.assigned_partitions
            for partition in topic.partitions
        )
    )
