"""The shard: which group a request is for, what an unknown one answers, both protocols side by side, replay."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.groups.shard_world import OK, WEEK_MS, ShardWorld

from lowwater.errors import ApiError, ErrorCode
from lowwater.groups.commands import ConsumerHeartbeat, DescribeConsumerGroup, DescribeGroup, Join
from lowwater.outcome import StateRecord
from lowwater.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from lowwater.wire.messages.heartbeat import HeartbeatRequest
from lowwater.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from lowwater.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from lowwater.wire.messages.sync_group import SyncGroupRequest


@pytest.fixture
def world() -> ShardWorld:
    return ShardWorld()


def join_request(
    group: str, member_id: str = "", session_timeout_ms: int = 10_000, *, asks_for_member_id: bool = False
) -> Join:
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    return Join(request, "client", "/host", asks_for_member_id, True)


def consumer_heartbeat(group: str, member_id: str = "m", epoch: int = 0) -> ConsumerHeartbeat:
    joins = epoch == 0
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=60_000 if joins else -1,
        subscribed_topic_names=["orders"] if joins else None,
        topic_partitions=[] if joins else None,
    )
    return ConsumerHeartbeat(request, "client", "/host", False)


def refusal(answer: Any) -> ErrorCode:
    assert isinstance(answer, ApiError), answer
    return answer.code


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (join_request(""), ErrorCode.INVALID_GROUP_ID),
        (join_request("g", session_timeout_ms=1), ErrorCode.INVALID_SESSION_TIMEOUT),
        (join_request("g", member_id="m"), ErrorCode.UNKNOWN_MEMBER_ID),
        (SyncGroupRequest(group_id="g", generation_id=1, member_id="m", assignments=[]), ErrorCode.UNKNOWN_MEMBER_ID),
        (SyncGroupRequest(group_id="", generation_id=1, member_id="m", assignments=[]), ErrorCode.INVALID_GROUP_ID),
        (HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), ErrorCode.UNKNOWN_MEMBER_ID),
        (HeartbeatRequest(group_id="", generation_id=1, member_id="m"), ErrorCode.INVALID_GROUP_ID),
        (LeaveGroupRequest(group_id="", members=[MemberIdentity(member_id="m")]), ErrorCode.INVALID_GROUP_ID),
        (consumer_heartbeat("g", epoch=3), ErrorCode.GROUP_ID_NOT_FOUND),
        (consumer_heartbeat("g", epoch=-1), ErrorCode.GROUP_ID_NOT_FOUND),
        (consumer_heartbeat(""), ErrorCode.INVALID_REQUEST),
        (DescribeGroup("g", True), ErrorCode.GROUP_ID_NOT_FOUND),
        (DescribeConsumerGroup("g"), ErrorCode.GROUP_ID_NOT_FOUND),
        (DescribeConsumerGroup(""), ErrorCode.INVALID_GROUP_ID),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, ErrorCode) else value.name,
)
def test_a_group_that_is_not_there_is_refused_and_not_made(world: ShardWorld, command: Any, code: ErrorCode) -> None:
    assert refusal(world.ask(command)) == code
    assert not world.shard.groups
    assert not world.log


def test_old_clients_are_told_that_an_unknown_group_is_dead(world: ShardWorld) -> None:
    described = world.ask(DescribeGroup("g", False))
    assert (described.error_code, described.group_state) == (OK, "Dead")


def test_a_classic_group_turns_into_a_consumer_group_when_it_is_empty(world: ShardWorld) -> None:
    member_id, generation = world.join("g")
    world.commit("g", {("orders", 0): 5}, member_id=member_id, generation=generation)
    world.leave("g", member_id)
    answer = world.ask(consumer_heartbeat("g"))
    assert answer.error_code == OK
    assert world.list_groups()["g"][1] == "consumer"
    world.restart()
    assert world.list_groups()["g"][1] == "consumer"
    assert world.fetch("g") == (5, "")


def test_a_consumer_group_turns_into_a_classic_group_when_it_is_empty(world: ShardWorld) -> None:
    world.ask(consumer_heartbeat("g"))
    world.ask(consumer_heartbeat("g", epoch=-1))
    world.commit("g", {("orders", 0): 5})
    world.join("g")
    assert world.list_groups()["g"] == ("Stable", "classic", "consumer")
    world.restart()
    assert world.list_groups()["g"][1] == "classic"
    assert world.fetch("g") == (5, "")


def test_offsets_of_a_group_that_nobody_joined_after_it_changed_its_protocol_are_listed_and_expire(
    world: ShardWorld,
) -> None:
    world.ask(consumer_heartbeat("g"))
    world.ask(consumer_heartbeat("g", epoch=-1))
    world.commit("g", {("orders", 0): 5})
    told = world.ask(join_request("g", asks_for_member_id=True))
    assert told.error_code == ErrorCode.MEMBER_ID_REQUIRED
    world.restart()
    assert world.list_groups()["g"][0] == "Empty"
    assert world.fetch("g") == (5, "")
    world.pass_time(WEEK_MS)
    world.expire()
    assert world.fetch("g")[0] == -1
    assert world.list_groups() == {}


def test_a_refused_change_of_protocol_leaves_the_group_as_it_was(world: ShardWorld) -> None:
    world.commit("g", {("orders", 0): 5})
    before = list(world.log)
    wish = consumer_heartbeat("g")
    wish.request.server_assignor = "none such"
    assert refusal(world.ask(wish)) == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert world.list_groups()["g"][1] == "classic"
    assert world.log == before


def test_members_of_one_protocol_keep_the_other_out(world: ShardWorld) -> None:
    world.join("classic")
    world.ask(consumer_heartbeat("new"))
    assert refusal(world.ask(consumer_heartbeat("classic", member_id="other"))) == ErrorCode.GROUP_ID_NOT_FOUND
    assert refusal(world.ask(join_request("new"))) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_member_that_is_not_heard_of_is_taken_out(world: ShardWorld) -> None:
    world.join("g")
    world.pass_time(9_999)
    assert world.list_groups()["g"][0] == "Stable"
    world.pass_time(1)
    assert world.list_groups()["g"][0] == "Empty"
    assert world.shard.metrics.member_timeouts == 1
    assert world.shard.metrics.total_members == 0


def test_a_wall_clock_that_jumps_takes_nobody_out(world: ShardWorld) -> None:
    world.join("g")
    for jump_ms in (10 * 365 * 86_400_000, -20 * 365 * 86_400_000):
        world.wall_ms += jump_ms
        world.tick()
    assert world.list_groups()["g"][0] == "Stable"


def test_members_of_a_restarted_shard_have_their_full_time_again(world: ShardWorld) -> None:
    member_id, generation = world.join("g")
    world.pass_time(9_000)
    world.restart()
    assert world.shard.metrics.total_members == 1
    world.pass_time(9_000)
    beat = world.ask(HeartbeatRequest(group_id="g", generation_id=generation, member_id=member_id))
    assert beat.error_code == OK


def test_groups_are_listed_by_state_and_type_in_any_case(world: ShardWorld) -> None:
    world.commit("simple", {("orders", 0): 1})
    world.join("classic")
    world.ask(consumer_heartbeat("new"))
    assert set(world.list_groups()) == {"simple", "classic", "new"}
    assert set(world.list_groups(states=["empty"])) == {"simple"}
    assert set(world.list_groups(states=["STABLE", "Empty"], types=["Classic"])) == {"simple", "classic"}
    assert set(world.list_groups(types=["CONSUMER"])) == {"new"}
    assert world.list_groups(states=["no such"]) == {}


def test_records_of_unknown_kinds_are_skipped(world: ShardWorld) -> None:
    world.commit("g", {("orders", 0): 5})
    foreign = [StateRecord(b"\x00\x63more", b"value"), StateRecord(b"\x7f\xff", None), StateRecord(b"", b"x")]
    world.restart([*foreign, *world.log])
    assert world.fetch("g") == (5, "")


def test_a_tick_stops_at_the_first_decision_that_writes(world: ShardWorld) -> None:
    world.join("a")
    world.join("b")
    world.elapsed_ms += 60_000
    assert world.shard.next_deadline_ms is not None
    first = world.do(world.shard.tick(world.now))
    assert first.records
    assert sorted(state for state, _, _ in world.list_groups().values()) == ["Empty", "Stable"]
    world.tick()
    assert [state for state, _, _ in world.list_groups().values()] == ["Empty", "Empty"]


@pytest.mark.parametrize(("knows", "code"), [(True, OK), (False, ErrorCode.UNSUPPORTED_VERSION)])
def test_a_member_of_a_consumer_group_commits_with_a_version_that_knows_of_them(
    world: ShardWorld, knows: bool, code: ErrorCode
) -> None:
    joined = world.ask(consumer_heartbeat("g"))
    codes = world.commit(
        "g",
        {("orders", 0): 5},
        member_id="m",
        generation=joined.member_epoch,
        knows_consumer_groups=knows,
    )
    assert codes == [code]


@pytest.mark.parametrize(
    ("knows", "code"), [(True, ErrorCode.STALE_MEMBER_EPOCH), (False, ErrorCode.UNSUPPORTED_VERSION)]
)
def test_a_commit_with_an_epoch_that_is_not_the_members_is_stale(
    world: ShardWorld, knows: bool, code: ErrorCode
) -> None:
    joined = world.ask(consumer_heartbeat("g"))
    codes = world.commit(
        "g",
        {("orders", 0): 5},
        member_id="m",
        generation=joined.member_epoch + 1,
        knows_consumer_groups=knows,
    )
    assert codes == [code]


@pytest.mark.parametrize("epoch", [3, -1])
def test_a_member_of_a_consumer_group_is_not_looked_for_in_a_classic_one(world: ShardWorld, epoch: int) -> None:
    world.commit("g", {("orders", 0): 5})
    assert refusal(world.ask(consumer_heartbeat("g", epoch=epoch))) == ErrorCode.GROUP_ID_NOT_FOUND
