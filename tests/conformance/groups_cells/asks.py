"""Requests as cells name them: by the actor that asks, with whatever is out of the ordinary about it.

An actor is a letter. Its member id is the one that it was told last, unless `member` names another: an actor, "" for
none, or `STRANGER`. A generation or epoch is the actor's own, unless it is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Protocol

from lowwater.groups.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    encode_assignment,
    encode_subscription,
)
from lowwater.wire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from lowwater.wire.messages.consumer_group_heartbeat import TopicPartitions
from lowwater.wire.messages.join_group import JoinGroupRequestProtocol
from lowwater.wire.messages.leave_group import MemberIdentity
from lowwater.wire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from lowwater.wire.messages.offset_delete import OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from lowwater.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from lowwater.wire.messages.sync_group import SyncGroupRequestAssignment

TOPIC = "cells"  # with two partitions, on every broker that is asked
OTHER_TOPIC = "other-cells"  # the same; nobody subscribes to it
MISSING_TOPIC = "no-such-topic"
STRANGER = "stranger"
UNKNOWN_ID = bytes(range(16))
GROUPS_SINCE = 8  # OffsetFetch of many groups
MEMBERS_SINCE = 3  # LeaveGroup of many members


class Cast(Protocol):
    """What requests need to know of the play so far."""

    group: str

    def member_id(self, actor: str) -> str: ...

    def consumer_id(self, actor: str) -> str:
        """The same, of a member of the newer protocol, which chooses its id itself."""

    def generation(self, actor: str) -> int: ...

    def topic_id(self, topic: str) -> bytes: ...

    def producer(self, actor: str) -> tuple[int, int]:
        """Its id and epoch."""


def metadata_of(*topics: str) -> bytes:
    return encode_subscription(ConsumerProtocolSubscription(topics=list(topics)), 0)


def assignment_of(*partitions: int) -> bytes:
    held = [TopicPartition(topic=TOPIC, partitions=list(partitions))]
    return encode_assignment(ConsumerProtocolAssignment(assigned_partitions=held), 0)


def metadata_with(*owned: int) -> bytes:
    """A subscription to `TOPIC` that says what is owned of it."""
    held = [TopicPartition(topic=TOPIC, partitions=list(owned))] if owned else []
    return encode_subscription(ConsumerProtocolSubscription(topics=[TOPIC], owned_partitions=held), 1)


USUAL = metadata_of(TOPIC)
CHANGED = metadata_of(TOPIC, OTHER_TOPIC)


@dataclass(frozen=True)
class Ask:
    """One request. `v`: its version, when the cell is not about that of all versions."""

    actor: str
    _: KW_ONLY
    v: int | None = None
    group: str | None = None
    request_type: ClassVar[type[Any]]

    def request(self, cast: Cast, version: int) -> Any:
        raise AssertionError(f"{type(self).__name__} makes no request")

    def group_id(self, cast: Cast) -> str:
        return cast.group if self.group is None else self.group


@dataclass(frozen=True)
class MemberAsk(Ask):
    _: KW_ONLY
    member: str | None = None
    instance: str | None = None
    generation: int | None = None

    def member_id(self, cast: Cast) -> str:
        return cast.member_id(self.actor if self.member is None else self.member)

    def generation_id(self, cast: Cast) -> int:
        return cast.generation(self.actor) if self.generation is None else self.generation


@dataclass(frozen=True)
class Join(MemberAsk):
    _: KW_ONLY
    protocol_type: str = "consumer"
    protocols: Sequence[tuple[str, bytes]] = (("range", USUAL),)
    session_ms: int = 30_000
    rebalance_ms: int = 60_000
    request_type = JoinGroupRequest

    def request(self, cast: Cast, version: int) -> Any:
        return JoinGroupRequest(
            group_id=self.group_id(cast),
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=self.rebalance_ms,
            member_id=self.member_id(cast),
            group_instance_id=self.instance,
            protocol_type=self.protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=data) for name, data in self.protocols],
        )


@dataclass(frozen=True)
class Sync(MemberAsk):
    """`assign`: to which actors; each is given its letter as its assignment.

    `share`: what a consumer can read instead, the partitions of `TOPIC` one by one.
    """

    _: KW_ONLY
    assign: Sequence[str] = ()
    share: bool = False
    protocol_type: str | None = "consumer"
    protocol: str | None = "range"
    request_type = SyncGroupRequest

    def request(self, cast: Cast, version: int) -> Any:
        return SyncGroupRequest(
            group_id=self.group_id(cast),
            generation_id=self.generation_id(cast),
            member_id=self.member_id(cast),
            group_instance_id=self.instance,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol,
            assignments=[
                SyncGroupRequestAssignment(
                    member_id=cast.member_id(each),
                    assignment=assignment_of(number) if self.share else each.encode(),
                )
                for number, each in enumerate(self.assign)
            ],
        )


@dataclass(frozen=True)
class Heartbeat(MemberAsk):
    request_type = HeartbeatRequest

    def request(self, cast: Cast, version: int) -> Any:
        return HeartbeatRequest(
            group_id=self.group_id(cast),
            generation_id=self.generation_id(cast),
            member_id=self.member_id(cast),
            group_instance_id=self.instance,
        )


@dataclass(frozen=True)
class Leave(MemberAsk):
    """`others`: (member, instance) of more that leave in the same request."""

    _: KW_ONLY
    others: Sequence[tuple[str, str | None]] = ()
    request_type = LeaveGroupRequest

    def request(self, cast: Cast, version: int) -> Any:
        if version < MEMBERS_SINCE:
            return LeaveGroupRequest(group_id=self.group_id(cast), member_id=self.member_id(cast))
        leaving = [(self.member_id(cast), self.instance)]
        leaving += [(cast.member_id(member), instance) for member, instance in self.others]
        return LeaveGroupRequest(
            group_id=self.group_id(cast),
            members=[MemberIdentity(member_id=member, group_instance_id=instance) for member, instance in leaving],
        )


@dataclass(frozen=True)
class Commit(MemberAsk):
    """Offset 5 of partition 0, unless told otherwise, and of the partitions that are named `also`."""

    _: KW_ONLY
    topic: str = TOPIC
    partition: int = 0
    also: Sequence[int] = ()
    offset: int = 5
    metadata: str | None = "note"
    request_type = OffsetCommitRequest

    def request(self, cast: Cast, version: int) -> Any:
        parts = [
            OffsetCommitRequestPartition(
                partition_index=each,
                committed_offset=self.offset,
                committed_leader_epoch=0,
                committed_metadata=self.metadata,
            )
            for each in (self.partition, *self.also)
        ]
        topic = OffsetCommitRequestTopic(name=self.topic, topic_id=cast.topic_id(self.topic), partitions=parts)
        return OffsetCommitRequest(
            group_id=self.group_id(cast),
            generation_id_or_member_epoch=self.generation_id(cast),
            member_id=self.member_id(cast),
            group_instance_id=self.instance,
            topics=[topic],
        )


@dataclass(frozen=True)
class Fetch(MemberAsk):
    """What is committed for partitions 0 and 1; of all topics when `topic` is None."""

    _: KW_ONLY
    topic: str | None = TOPIC
    stable: bool = False
    request_type = OffsetFetchRequest

    def request(self, cast: Cast, version: int) -> Any:
        name, partitions = self.topic, [0, 1]
        if version < GROUPS_SINCE:
            old = None if name is None else [OffsetFetchRequestTopic(name=name, partition_indexes=partitions)]
            return OffsetFetchRequest(group_id=self.group_id(cast), topics=old, require_stable=self.stable)
        topics = None
        if name is not None:
            topics = [OffsetFetchRequestTopics(name=name, topic_id=cast.topic_id(name), partition_indexes=partitions)]
        member = None if self.member is None else cast.member_id(self.member)
        asked = OffsetFetchRequestGroup(
            group_id=self.group_id(cast),
            member_id=member,
            member_epoch=-1 if self.generation is None else self.generation,
            topics=topics,
        )
        return OffsetFetchRequest(groups=[asked], require_stable=self.stable)


@dataclass(frozen=True)
class Describe(Ask):
    request_type = DescribeGroupsRequest

    def request(self, cast: Cast, version: int) -> Any:
        return DescribeGroupsRequest(groups=[self.group_id(cast)])


@dataclass(frozen=True)
class DescribeConsumer(Ask):
    request_type = ConsumerGroupDescribeRequest

    def request(self, cast: Cast, version: int) -> Any:
        return ConsumerGroupDescribeRequest(group_ids=[self.group_id(cast)])


@dataclass(frozen=True)
class ListGroups(Ask):
    """Answers of this are cut down to the group of the cell: others are about."""

    _: KW_ONLY
    states: Sequence[str] = ()
    types: Sequence[str] = ()
    request_type = ListGroupsRequest

    def request(self, cast: Cast, version: int) -> Any:
        return ListGroupsRequest(states_filter=list(self.states), types_filter=list(self.types))


@dataclass(frozen=True)
class Delete(Ask):
    _: KW_ONLY
    twice: bool = False
    request_type = DeleteGroupsRequest

    def request(self, cast: Cast, version: int) -> Any:
        return DeleteGroupsRequest(groups_names=[self.group_id(cast)] * (1 + self.twice))


@dataclass(frozen=True)
class DeleteOffset(Ask):
    _: KW_ONLY
    topic: str = TOPIC
    partition: int = 0
    request_type = OffsetDeleteRequest

    def request(self, cast: Cast, version: int) -> Any:
        part = OffsetDeleteRequestPartition(partition_index=self.partition)
        topic = OffsetDeleteRequestTopic(name=self.topic, partitions=[part])
        return OffsetDeleteRequest(group_id=self.group_id(cast), topics=[topic])


@dataclass(frozen=True)
class Beat(Ask):
    """A ConsumerGroupHeartbeat. The epoch is the actor's own unless given; `owned` partitions are of `TOPIC`."""

    epoch: int | None = None
    _: KW_ONLY
    member: str | None = None
    instance: str | None = None
    rack: str | None = None
    rebalance_ms: int = -1
    topics: Sequence[str] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Sequence[int] | None = None
    request_type = ConsumerGroupHeartbeatRequest

    def request(self, cast: Cast, version: int) -> Any:
        owned = None
        if self.owned is not None:
            owned = [TopicPartitions(topic_id=cast.topic_id(TOPIC), partitions=list(self.owned))] if self.owned else []
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group_id(cast),
            member_id=cast.consumer_id(self.actor) if self.member is None else cast.member_id(self.member),
            member_epoch=cast.generation(self.actor) if self.epoch is None else self.epoch,
            instance_id=self.instance,
            rack_id=self.rack,
            rebalance_timeout_ms=self.rebalance_ms,
            subscribed_topic_names=None if self.topics is None else list(self.topics),
            subscribed_topic_regex=self.regex,
            server_assignor=self.assignor,
            topic_partitions=owned,
        )


@dataclass(frozen=True)
class Waits(Ask):
    """On the way to a state: an ask that is left without an answer, until it `Comes`."""

    asked: Ask | None = None


@dataclass(frozen=True)
class Comes(Ask):
    """What the actor has been waiting for is answered now."""


def waits(ask: Ask) -> Waits:
    return Waits(ask.actor, ask)


def enter(actor: str, **more: Any) -> Beat:
    """The first heartbeat of a member that does all as it should."""
    return Beat(actor, 0, **{"rebalance_ms": 60_000, "topics": (TOPIC,), "owned": (), **more})
