"""A group takes over what it has just written without reading it; a start reads it. Both come to the same state."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.unit.groups.shard_world import ShardWorld

from lowwater.groups.classic import ClassicGroup
from lowwater.groups.commands import Join
from lowwater.groups.shard import GroupShard
from lowwater.outcome import Outcome, StateRecord
from lowwater.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from lowwater.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from lowwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

GROUP = "grüppe"


class WorldWithReader(ShardWorld):
    """Beside the shard that decides, one that has nothing but the bytes of its records."""

    def __init__(self) -> None:
        super().__init__()
        self.reader = GroupShard(self.config, self.ids, self.topics)
        self.compared = 0

    def do(self, out: Outcome) -> Outcome:
        for record in out.records:
            self.shard.replay(record)
            self.reader.replay(StateRecord(copied(record.key), None if record.value is None else copied(record.value)))
            self.compare()
        self.replies.update(out.replies)
        return out

    def compare(self) -> None:
        live, read = self.shard.groups.get(GROUP), self.reader.groups.get(GROUP)
        assert isinstance(live, ClassicGroup)
        assert isinstance(read, ClassicGroup)
        assert durable(live, list(read.roster.members)) == durable(read, list(read.roster.members))
        self.compared += 1


def copied(data: bytes) -> bytes:
    return bytes(bytearray(data))


def durable(group: ClassicGroup, member_ids: list[str]) -> Any:
    """What a record tells; the one that decides may have members beside those."""
    members = [group.roster.members[member_id] for member_id in member_ids]
    told = [
        (
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.session_timeout_ms,
            member.rebalance_timeout_ms,
            member.metadata(group.protocol),
            member.assignment,
        )
        for member in members
    ]
    return group.generation, group.protocol, group.leader, group.since_ms, group.sync_answer(b""), told


def join(rng: random.Random, member_id: str) -> Join:
    names = rng.sample(["range", "roundrobin", "clÉ"], rng.randint(1, 2))
    return Join(
        JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=rng.choice([6_000, 30_000]),
            rebalance_timeout_ms=rng.choice([1_000, 60_000]),
            member_id=member_id,
            group_instance_id=None if member_id else rng.choice([None, "static-1", "static-2"]),
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=each, metadata=rng.randbytes(3)) for each in [*names, "all"]],
        ),
        rng.choice(["client", ""]),
        "/host",
        asks_for_member_id=rng.random() < 0.5,
        knows_skip_assignment=True,
    )


def act(rng: random.Random, world: WorldWithReader) -> None:
    group = world.shard.groups.get(GROUP)
    assert group is None or isinstance(group, ClassicGroup)
    known = [*group.roster.members, *group.roster.handed_out] if group is not None else []
    member_id = rng.choice([*known, ""]) if known else ""
    match rng.randint(0, 5):
        case 0 | 1 | 2:
            world.ask(join(rng, member_id))
        case 3 | 4 if group is not None:
            assignments = [SyncGroupRequestAssignment(member_id=each, assignment=rng.randbytes(4)) for each in known]
            leader = group.leader or member_id
            world.ask(
                SyncGroupRequest(
                    group_id=GROUP, generation_id=group.generation, member_id=leader, assignments=assignments
                )
            )
        case _ if rng.random() < 0.3:
            world.ask(LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id=member_id)]))
        case _:
            world.pass_time(rng.choice([10, 1_000, 7_000]))


@pytest.mark.parametrize("seed", range(20))
def test_what_was_just_written_comes_to_the_same_as_what_is_read(seed: int) -> None:
    rng, world = random.Random(seed), WorldWithReader()
    for _ in range(150):
        act(rng, world)
    assert world.compared >= 5


def test_a_group_knows_only_the_very_bytes_it_wrote_last() -> None:
    world = ShardWorld()
    out = world.shard.decide(join(random.Random(1), ""), object(), world.now)
    while not out.records:
        out = world.shard.decide(join(random.Random(2), next(iter(handed_out(world)))), object(), world.now)
    (record,) = out.records
    group = world.shard.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    assert record.value is not None
    assert group.just_written(copied(record.value)) is None
    assert group.just_written(record.value) is None


def handed_out(world: ShardWorld) -> dict[str, Any]:
    group = world.shard.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    return dict(group.roster.handed_out)
