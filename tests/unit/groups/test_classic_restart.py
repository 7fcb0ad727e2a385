"""A broker that stopped at any moment: what its groups know after a start, and how members go on."""

from __future__ import annotations

import pytest
from tests.unit.groups.classic_world import REBALANCE_MS, SESSION_MS, World

from lowwater.errors import ErrorCode
from lowwater.groups.classic_rebalance import COMPLETING, EMPTY, PREPARING, STABLE


@pytest.fixture
def world() -> World:
    return World()


def test_members_of_a_stable_group_go_on_as_if_nothing_had_happened(world):
    leader, follower = world.stable({"instance_id": "a"}, {})
    world.crash()
    assert world.state == STABLE
    assert world.heartbeat(leader, "a") == ErrorCode.NONE
    assert world.heartbeat(follower) == ErrorCode.NONE
    assert world.commit(follower, 1) == ErrorCode.NONE
    assert world.answers[world.sync(follower)].assignment == follower.encode()
    assert world.group.leader == leader


def test_members_have_their_full_session_after_a_start(world):
    _leader, _follower = world.stable()
    world.wait(SESSION_MS - 1)
    world.crash()
    world.wait(SESSION_MS - 1)
    assert world.state == STABLE


def test_a_member_that_went_down_with_the_broker_is_dropped_in_time(world):
    leader, _follower = world.stable()
    world.crash()
    world.wait_alive(SESSION_MS, leader)
    assert world.state == PREPARING
    assert list(world.group.roster.members) == [leader]
    assert world.answers[world.join(leader)].generation_id == 2


def test_a_group_whose_members_all_went_down_is_empty_in_time(world):
    world.stable()
    world.crash()
    world.wait(SESSION_MS)
    assert world.state == EMPTY


def test_a_generation_is_logged_before_its_members_hear_of_it(world):
    leader, _follower = world.completing()
    value = world.values[-1]
    assert value.generation == 1
    assert (value.protocol, value.leader) == ("range", leader)
    assert [(member.subscription, member.assignment) for member in value.members] == [(b"r", b"")] * 2


def test_a_generation_that_was_not_assigned_is_left_and_never_given_again(world):
    leader, follower = world.completing()
    world.crash()
    assert world.state == PREPARING
    assert world.generation == 1
    assert world.heartbeat(leader) == ErrorCode.REBALANCE_IN_PROGRESS
    assert world.error(world.sync(follower)) == ErrorCode.REBALANCE_IN_PROGRESS
    world.join(leader)
    assert world.answers[world.join(follower)].generation_id == 2


def test_who_did_not_hear_of_the_new_generation_before_the_stop_joins_again_with_its_id(world):
    leader, follower = world.stable()
    world.join(leader)
    world.join(follower)
    world.crash()
    assert world.heartbeat(follower, generation=1) == ErrorCode.ILLEGAL_GENERATION
    world.join(follower)
    assert world.answers[world.join(leader)].generation_id == 3


def test_members_that_do_not_return_to_a_broken_rebalance_are_not_waited_for_beyond_its_timeout(world):
    leader, _follower = world.completing({}, {"session_ms": 1_800_000})
    world.crash()
    token = world.join(leader)
    world.wait(REBALANCE_MS - 1)
    assert world.waits(token)
    world.wait(1)
    assert world.answers[token].generation_id == 2
    assert list(world.group.roster.members) == [leader]


def test_a_rebalance_that_had_only_begun_is_forgotten(world):
    leader, follower = world.preparing()
    world.crash()
    assert world.state == STABLE
    assert world.heartbeat(follower) == ErrorCode.NONE
    world.join(leader)
    assert world.heartbeat(follower) == ErrorCode.REBALANCE_IN_PROGRESS


def test_an_id_that_was_handed_out_before_a_stop_is_unknown(world):
    world.stable()
    new = world.handed_out()
    world.crash()
    assert world.error(world.join(new)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_left_in_a_rebalance_that_did_not_end_is_dropped_again(world):
    leader, follower = world.stable()
    world.leave(follower)
    world.crash()
    assert follower in world.group.roster.members
    world.wait_alive(SESSION_MS, leader)
    assert follower not in world.group.roster.members


def test_an_empty_group_keeps_its_generation_and_since_when_it_is_empty(world):
    (member,) = world.stable({})
    world.leave(member)
    since_ms = world.group.empty_since_ms
    world.wait(1000)
    world.crash()
    assert world.state == EMPTY
    assert world.generation == 2
    assert world.group.empty_since_ms == since_ms
    world.completing({})
    assert world.generation == 3


def test_a_static_member_returns_after_a_restart_of_the_broker_without_a_rebalance(world):
    _leader, follower = world.stable({"instance_id": "a"}, {"instance_id": "b"})
    world.crash()
    new = world.join(instance_id="b")
    assert world.state == STABLE
    assert world.answers[new].generation_id == 1
    world.crash()
    assert world.heartbeat(follower, "b") == ErrorCode.FENCED_INSTANCE_ID
    assert world.answers[world.sync(world.member_id(new), instance_id="b")].assignment == follower.encode()


def test_a_member_that_changed_before_the_stop_has_what_was_logged_last(world):
    (leader,) = world.stable({})
    world.join(leader, protocols=(("range", b"new"),), session_ms=20_000, rebalance_ms=30_000)
    world.sync(leader, {leader: b"0"})
    world.crash()
    member = world.group.roster.members[leader]
    assert member.protocols == (("range", b"new"),)
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (20_000, 30_000)


def test_a_group_that_is_larger_than_now_allowed_is_rebalanced(world):
    leader, follower = world.stable()
    world.config = type(world.config)(group_size_max=1)
    world.crash()
    assert world.state == PREPARING
    first = world.join(leader)
    assert world.error(world.join(follower)) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.error(first) == ErrorCode.NONE
    assert world.state == COMPLETING


def test_what_an_old_broker_logged_has_the_session_timeout_for_rebalances_too(world):
    world.stable({})
    value = world.values[-1]
    value.members[0].rebalance_timeout = -1
    world.group.replay_metadata(value)
    assert next(iter(world.group.roster.members.values())).rebalance_timeout_ms == SESSION_MS
