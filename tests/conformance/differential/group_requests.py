"""The same for groups without members, and for those who say that they are members: both brokers know better.

Member ids are each broker's own choice, and so are assignments; groups with members are asked in groups_cells.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.conformance.asking import UNKNOWN_ID
from tests.conformance.differential.shots import Ids, Shot

from lowwater.wire.messages import (
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    describe_groups,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)

GROUPS = ["alpha", "beta", "gamma", "a b", "", "ü"]
TOPICS = ["one", "two", "missing", "a b", ""]
PARTITIONS = [0, 0, 1, 1, 5, -1]
# A refused Join, or a commit of which nothing is stored, leaves an empty group behind in Kafka: docs/differences.md.
NOTES = ["", "note", None, "€" * 2000, "x" * 4096]
GENERATIONS = [-1, -1, -1, 0, 1, 7]
MEMBERS = ["", "", "", "nobody"]
GONE_FOR_A_WHILE = -2
BY_ID_SINCE = 10
GROUPS_SINCE = 8
MEMBERS_SINCE = 3


def commit_shot(pick: random.Random) -> Shot:
    version = pick.randrange(2, 11)
    group, generation, member = pick.choice(GROUPS), pick.choice(GENERATIONS), pick.choice(MEMBERS)
    instance = pick.choice([None, None, "i", ""]) if version >= 7 else None
    retention = pick.choice([-1, -1, 0, 3_600_000]) if version <= 4 else -1
    topics = _known_once(version, pick.choices(TOPICS, k=pick.choice([1, 1, 2])))
    asked = {topic: _commits(pick) for topic in topics}

    def make(ids: Ids) -> Any:
        return offset_commit.OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member,
            group_instance_id=instance,
            retention_time_ms=retention,
            topics=[
                offset_commit.OffsetCommitRequestTopic(
                    name=topic, topic_id=ids.get(topic, UNKNOWN_ID), partitions=parts
                )
                for topic, parts in asked.items()
            ],
        )

    return Shot("offset_commit", version, make)


def _commits(pick: random.Random) -> list[offset_commit.OffsetCommitRequestPartition]:
    return [
        offset_commit.OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=pick.choice([0, 1, 5, 2**40, -1, -7]),
            committed_leader_epoch=pick.choice([-1, 0, 3]),
            committed_metadata=pick.choice(NOTES),
        )
        for partition in sorted({*pick.choices(PARTITIONS, k=2)})
    ]


def _known_once(version: int, topics: list[str]) -> list[str]:
    """By id, all unknown topics are the same one."""
    known = sorted({topic for topic in topics if version < BY_ID_SINCE or topic in ("one", "two")})
    return known or ["missing"]


def fetch_shot(pick: random.Random) -> Shot:
    version = pick.randrange(1, 11)
    groups = sorted({*pick.choices(GROUPS, k=pick.choice([1, 1, 2]))})
    everything = version >= 2 and pick.random() < 0.3
    topics = _known_once(version, pick.choices(TOPICS, k=2))
    partitions = sorted({*pick.choices(PARTITIONS, k=2)})
    member, epoch = pick.choice([(None, -1), (None, -1), ("nobody", 3), ("", -1)]) if version >= 9 else (None, -1)

    def make(ids: Ids) -> Any:
        if version < GROUPS_SINCE:
            asked = [offset_fetch.OffsetFetchRequestTopic(name=topic, partition_indexes=partitions) for topic in topics]
            return offset_fetch.OffsetFetchRequest(group_id=groups[0], topics=None if everything else asked)
        wishes = [
            offset_fetch.OffsetFetchRequestTopics(
                name=topic, topic_id=ids.get(topic, UNKNOWN_ID), partition_indexes=partitions
            )
            for topic in topics
        ]
        return offset_fetch.OffsetFetchRequest(
            groups=[
                offset_fetch.OffsetFetchRequestGroup(
                    group_id=group, member_id=member, member_epoch=epoch, topics=None if everything else wishes
                )
                for group in groups
            ]
        )

    return Shot("offset_fetch", version, make)


def delete_offset_shot(pick: random.Random) -> Shot:
    parts = [offset_delete.OffsetDeleteRequestPartition(partition_index=pick.choice(PARTITIONS))]
    topic = offset_delete.OffsetDeleteRequestTopic(name=pick.choice(TOPICS), partitions=parts)
    request = offset_delete.OffsetDeleteRequest(group_id=pick.choice(GROUPS), topics=[topic])
    return Shot("offset_delete", 0, lambda ids: request)


def delete_shot(pick: random.Random) -> Shot:
    request = delete_groups.DeleteGroupsRequest(groups_names=pick.choices(GROUPS, k=pick.choice([1, 1, 2])))
    return Shot("delete_groups", pick.randrange(3), lambda ids: request)


def describe_shot(pick: random.Random) -> Shot:
    version = pick.randrange(7)
    told = version >= 3 and pick.random() < 0.3
    asked = sorted({*pick.choices(GROUPS, k=2)})
    request = describe_groups.DescribeGroupsRequest(groups=asked, include_authorized_operations=told)
    return Shot("describe_groups", version, lambda ids: request)


def describe_consumer_shot(pick: random.Random) -> Shot:
    asked = sorted({*pick.choices(GROUPS, k=2)})
    request = consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=asked)
    return Shot("consumer_group_describe", pick.randrange(2), lambda ids: request)


def list_shot(pick: random.Random) -> Shot:
    version = pick.randrange(6)
    states = pick.choices(["Empty", "Stable", "empty", "Nonsense"], k=pick.randrange(3)) if version >= 4 else []
    types = pick.choices(["classic", "consumer", "Classic", "nonsense"], k=pick.randrange(3)) if version >= 5 else []
    request = list_groups.ListGroupsRequest(states_filter=states, types_filter=types)
    return Shot("list_groups", version, lambda ids: request)


def heartbeat_shot(pick: random.Random) -> Shot:
    version = pick.randrange(5)
    request = heartbeat.HeartbeatRequest(
        group_id=pick.choice(GROUPS),
        generation_id=pick.choice(GENERATIONS),
        member_id=pick.choice(MEMBERS),
        group_instance_id=pick.choice([None, "i", ""]) if version >= 3 else None,
    )
    return Shot("heartbeat", version, lambda ids: request)


def sync_shot(pick: random.Random) -> Shot:
    version = pick.randrange(6)
    request = sync_group.SyncGroupRequest(
        group_id=pick.choice(GROUPS),
        generation_id=pick.choice(GENERATIONS),
        member_id=pick.choice(MEMBERS),
        group_instance_id=pick.choice([None, "i"]) if version >= 3 else None,
        protocol_type=pick.choice([None, "consumer"]),
        protocol_name=pick.choice([None, "range"]),
        assignments=[],
    )
    return Shot("sync_group", version, lambda ids: request)


def leave_shot(pick: random.Random) -> Shot:
    version = pick.randrange(6)
    group, member = pick.choice(GROUPS), pick.choice(MEMBERS)
    if version < MEMBERS_SINCE:
        request = leave_group.LeaveGroupRequest(group_id=group, member_id=member)
    else:
        leaving = [
            leave_group.MemberIdentity(member_id=pick.choice(MEMBERS), group_instance_id=pick.choice([None, "i", ""]))
            for _ in range(pick.randrange(3))
        ]
        request = leave_group.LeaveGroupRequest(group_id=group, members=leaving)
    return Shot("leave_group", version, lambda ids: request)


def refused_join_shot(pick: random.Random) -> Shot:
    """Joins that nobody can accept, each for a reason or two."""
    version = pick.randrange(10)
    wrong = pick.choice(["group", "session", "member"])
    protocol = join_group.JoinGroupRequestProtocol(name="range", metadata=b"m")
    request = join_group.JoinGroupRequest(
        group_id="" if wrong == "group" else pick.choice(GROUPS),
        session_timeout_ms=pick.choice([5, 2**31 - 1]) if wrong == "session" else 10_000,
        rebalance_timeout_ms=10_000,
        member_id="nobody" if wrong == "member" else "",
        protocol_type="consumer",
        protocols=[protocol],
    )
    return Shot("join_group", version, lambda ids: request)


def refused_consumer_shot(pick: random.Random) -> Shot:
    version = pick.randrange(2)
    epoch = pick.choice([1, 5, -1, -2, -3])
    request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id=pick.choice(GROUPS),
        member_id="nobody" if epoch == GONE_FOR_A_WHILE else pick.choice(["", "nobody"]),
        member_epoch=epoch,
        instance_id=pick.choice([None, None, "i", ""]),
        rack_id=pick.choice([None, "r", ""]),
        subscribed_topic_names=pick.choice([None, ["one"]]),
        server_assignor=pick.choice([None, "uniform", "nonsense"]),
    )
    return Shot("consumer_group_heartbeat", version, lambda ids: request)


GROUP_SHOTS: list[Callable[[random.Random], Shot]] = [
    commit_shot,
    commit_shot,
    commit_shot,
    fetch_shot,
    fetch_shot,
    delete_offset_shot,
    delete_shot,
    describe_shot,
    describe_consumer_shot,
    list_shot,
    heartbeat_shot,
    sync_shot,
    leave_shot,
    refused_join_shot,
    refused_consumer_shot,
]
