"""Who may speak for a member of a consumer group: by heartbeats, and by commits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from lowwater.errors import ApiError, ErrorCode
from lowwater.groups.consumer_durable import DurableGroup
from lowwater.groups.consumer_members import LEFT_FOR_A_WHILE, NEW_MEMBER, Member
from lowwater.groups.consumer_reconciliation import CurrentAssignment, Held
from lowwater.groups.consumer_requests import JOINS
from lowwater.groups.topics import TopicsView
from lowwater.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

MayCommit: TypeAlias = Callable[[str, int], bool]
"""Whether a member with an older epoch may commit a partition (topic name, partition)."""


def known(durable: DurableGroup, member_id: str) -> Member:
    member = durable.members.get(member_id)
    if member is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id!r} is not a member of the group")
    return member


def caller(durable: DurableGroup, request: ConsumerGroupHeartbeatRequest, member_id: str) -> Member:
    """The member that calls, as the group has it: a new one, a known one, or the static one that it takes over from."""
    joins = request.member_epoch == JOINS
    if request.instance_id is None:
        # A member may join twice: the answer to its first request may have been lost.
        member = durable.members.get(member_id, NEW_MEMBER) if joins else known(durable, member_id)
    elif joins:
        member = _released(durable, request.instance_id, member_id)
    else:
        member = known_static(durable, request.instance_id, member_id)
    if not joins:
        _check_epoch(member.current, request)
    return member


def known_static(durable: DurableGroup, instance_id: str, member_id: str) -> Member:
    holder = durable.member_of_instance(instance_id)
    if holder is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"instance {instance_id!r} is not known")
    if holder.member_id != member_id:
        raise ApiError(ErrorCode.FENCED_INSTANCE_ID, f"instance {instance_id!r} is held by member {holder.member_id!r}")
    return holder


def _released(durable: DurableGroup, instance_id: str, member_id: str) -> Member:
    holder = durable.member_of_instance(instance_id)
    if holder is None:
        return durable.members.get(member_id, NEW_MEMBER)
    # A classic client cannot say that it leaves for a while; another one with its instance id takes its place.
    if holder.current.epoch != LEFT_FOR_A_WHILE and holder.metadata.classic is None:
        raise ApiError(
            ErrorCode.UNRELEASED_INSTANCE_ID, f"instance {instance_id!r} is held by member {holder.member_id!r}"
        )
    return holder


def _check_epoch(current: CurrentAssignment, request: ConsumerGroupHeartbeatRequest) -> None:
    """An older epoch is good when it is the one before: the answer that told the new one may have been lost."""
    epoch = request.member_epoch
    if epoch == current.epoch:
        return
    if epoch == current.previous_epoch and epoch < current.epoch and _owns_only(request, current.assigned):
        return
    raise ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"epoch {epoch}; the member is in epoch {current.epoch} and has to give up its partitions and join anew",
    )


def _owns_only(request: ConsumerGroupHeartbeatRequest, assigned: Held) -> bool:
    if request.topic_partitions is None:
        return False
    return all(assigned.get(topic.topic_id, {}).keys() >= set(topic.partitions) for topic in request.topic_partitions)


def check_commit(durable: DurableGroup, topics: TopicsView, member_id: str, epoch: int) -> MayCommit | None:
    """Whether offsets may be committed; None: all, else those partitions that the answer says yes to."""
    if epoch < 0 and not durable.members:
        return None
    member = known(durable, member_id)
    current = member.current
    if epoch == current.epoch:
        return None
    if not 0 <= epoch < current.epoch or member.metadata.classic is not None:
        raise _stale(epoch, member)
    return lambda topic, partition: _has_since(current, epoch, topics.topic_id(topic), partition)


def _has_since(current: CurrentAssignment, epoch: int, topic_id: bytes | None, partition: int) -> bool:
    """A commit that was on its way when the epoch grew is good if the member has had the partition all the time."""
    given = None if topic_id is None else current.epoch_of(topic_id, partition)
    return given is not None and given <= epoch


def check_fetch(durable: DurableGroup, member_id: str | None, epoch: int) -> None:
    """Who does not speak for a member may read offsets."""
    if member_id is None and epoch < 0:
        return
    member = known(durable, member_id or "")
    if epoch != member.current.epoch:
        raise _stale(epoch, member)


def _stale(epoch: int, member: Member) -> ApiError:
    """To a classic client its epoch is a generation."""
    is_classic = member.metadata.classic is not None
    code = ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH
    return ApiError(code, f"epoch {epoch}; the member is in epoch {member.current.epoch}")
