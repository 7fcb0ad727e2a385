"""When nothing fails any more: every group is Stable, all its live members work, and nobody waits."""

from __future__ import annotations

from typing import Any

from tests.sim.groups.classic_member import ClassicMember, Phase, decode_places
from tests.sim.groups.consumer_member import ConsumerMember
from tests.sim.groups.judge import CLASSIC, kind_of
from tests.sim.groups.network import Exchange
from tests.sim.groups.transactions import TRANSACTION_TIMEOUT_MS
from tests.sim.groups.world import Member, World

from lowwater.errors import ErrorCode
from lowwater.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from lowwater.wire.messages.describe_groups import DescribeGroupsRequest
from lowwater.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics

SETTLE_MS = 200
TIMEOUT_SLACK_MS = 3_000


def judge_end(world: World) -> None:
    for client in world.onlookers:
        client.die()
    for group in world.groups:
        alive = [one for one in world.members if one.group == group and one.is_alive]
        speaks_new = any(isinstance(one, ConsumerMember) for one in alive)
        if kind_of(group) == CLASSIC or (alive and not speaks_new):
            _judge_classic(world, group)
        else:
            _judge_consumer(world, group)
    _end_transactions(world)
    _read_everything(world)
    for exchange in world.judge.waiting:
        since = world.events.now_ms - exchange.delivered_ms
        if since > SETTLE_MS:
            world.judge.report(f"{exchange} still waits after {since:.0f} ms")


def ask(world: World, request: Any, version: int) -> Any:
    """Ask the broker itself, without a network between."""
    exchange = Exchange(None, request, version)
    world.node.deliver(exchange)
    world.events.run_until(world.events.now_ms + SETTLE_MS)
    if exchange.response is None:
        world.judge.report(f"{exchange} was not answered")
    return exchange.response


def _judge_classic(world: World, group: str) -> None:
    alive = [one for one in world.members if one.group == group and one.is_alive and isinstance(one, ClassicMember)]
    _judge_failures(world, group)
    described = ask(world, DescribeGroupsRequest(groups=[group]), 5).groups[0]
    expected = ("Stable",) if alive else ("Empty", "Dead")
    if described.group_state not in expected:
        world.judge.report(f"{group} is {described.group_state}, {[one.name for one in alive]} are alive")
    found = {one.member_id for one in described.members}
    if found != {one.member_id for one in alive}:
        world.judge.report(f"{group} has members {sorted(found)}, alive are {[one.member_id for one in alive]}")
    stuck = [f"{one.name} is {one.phase.name}" for one in alive if one.phase is not Phase.STABLE]
    if stuck:
        world.judge.report(f"{group}: {', '.join(stuck)}")
    if len({one.generation for one in alive}) > 1:
        world.judge.report(f"{group} lives in generations {[one.generation for one in alive]}")
    stored = {one.member_id: decode_places(one.member_assignment) for one in described.members}
    differing = [one.name for one in alive if one.owned != stored.get(one.member_id)]
    if differing:
        world.judge.report(f"{group}: {differing} own something else than the group says")


def _judge_failures(world: World, group: str) -> None:
    """Members that died of an error after everything was well. Two of one instance fence each other, before."""
    failed = [one for one in world.members if one.group == group and one.failure and one.instance_id is None]
    if failed:
        world.judge.report(f"{group}: {[(one.name, one.failure) for one in failed]} gave up")


def _judge_consumer(world: World, group: str) -> None:
    """Classic members of the group, too, are to have what it says they have."""
    alive = [one for one in world.members if one.group == group and one.is_alive]
    _judge_failures(world, group)
    described = ask(world, ConsumerGroupDescribeRequest(group_ids=[group]), 1).groups[0]
    if not alive:
        if described.members:
            world.judge.report(f"{group} still has {[one.member_id for one in described.members]}, nobody is alive")
        return
    if described.group_state != "Stable":
        world.judge.report(f"{group} is {described.group_state}, {[one.name for one in alive]} are alive")
    members = {one.member_id: one for one in described.members}
    if members.keys() != {one.member_id for one in alive}:
        world.judge.report(f"{group} has members {sorted(members)}, alive are {[one.member_id for one in alive]}")
        return
    for one in alive:
        row = members[one.member_id]
        epoch = one.epoch if isinstance(one, ConsumerMember) else one.generation
        if not epoch == row.member_epoch == described.group_epoch == described.assignment_epoch:
            world.judge.report(f"{one.name} is in epoch {epoch}, described {row.member_epoch}, {described.group_epoch}")
        owned = _owned(world, one)
        if owned != _held(row.assignment) or owned != _held(row.target_assignment):
            world.judge.report(f"{one.name} owns {sorted(owned)}, described {sorted(_held(row.assignment))}")
    _judge_complete(world, group, alive)


def _owned(world: World, member: Member) -> set[tuple[bytes, int]]:
    if isinstance(member, ConsumerMember):
        return member.owned
    return {(world.topics[topic].id, at) for topic, at in member.owned if topic in world.topics}


def _judge_complete(world: World, group: str, alive: list[Member]) -> None:
    owned = [held for one in alive for held in _owned(world, one)]
    if len(owned) != len(set(owned)):
        world.judge.report(f"{group}: a partition has two owners")
    wanted = set().union(*(_wishes(world, one) for one in alive))
    if missing := wanted - set(owned):
        world.judge.report(f"{group}: nobody owns {sorted(missing)}")


def _wishes(world: World, member: Member) -> set[tuple[bytes, int]]:
    matched = {"red", "green"} if isinstance(member, ConsumerMember) and member.regex else set()
    return {
        (facts.id, at)
        for name, facts in world.topics.items()
        if name in member.topics | matched
        for at in range(facts.partitions)
    }


def _held(assignment: Any) -> set[tuple[bytes, int]]:
    return {(topic.topic_id, index) for topic in assignment.topic_partitions for index in topic.partitions}


def _end_transactions(world: World) -> None:
    """Nobody begins another one, and what is left open times out."""
    for member in world.members:
        member.die()
    world.events.run_until(world.events.now_ms + TRANSACTION_TIMEOUT_MS + TIMEOUT_SLACK_MS)


def _read_everything(world: World) -> None:
    """A last look at every committed offset."""
    topics = [
        OffsetFetchRequestTopics(name=name, partition_indexes=list(range(facts.partitions)))
        for name, facts in world.topics.items()
    ]
    for group in (*world.groups, "simple-0"):
        wanted = OffsetFetchRequestGroup(group_id=group, topics=topics)
        answer = ask(world, OffsetFetchRequest(groups=[wanted], require_stable=True), 9)
        codes = {one.error_code for topic in answer.groups[0].topics for one in topic.partitions}
        if codes - {ErrorCode.NONE}:
            world.judge.report(f"{group}: offsets cannot be read in the end: {[ErrorCode(one).name for one in codes]}")
