"""Who is waited for, for how long, and what happens then."""

from __future__ import annotations

import pytest
from tests.unit.groups.classic_world import DELAY_MS, REBALANCE_MS, SESSION_MS, World

from lowwater.errors import ErrorCode
from lowwater.groups.classic_rebalance import COMPLETING, EMPTY, PREPARING, STABLE

JOIN_TIMEOUT_MS = 300_000


@pytest.fixture
def world() -> World:
    return World()


# The first rebalance


def test_a_member_that_arrives_in_the_initial_delay_extends_it_once(world):
    first = world.join()
    world.wait(DELAY_MS - 1)
    world.join()
    world.wait(1)
    assert world.waits(first)
    world.wait(DELAY_MS - 1)
    assert world.waits(first)
    world.wait(1)
    assert world.state == COMPLETING
    assert len(world.answers[first].members) == 2


def test_the_initial_delay_is_extended_up_to_the_rebalance_timeout(world):
    first = world.join(rebalance_ms=7_000)
    for _ in range(6):
        world.wait(1000)
        world.join()
    world.wait(999)
    assert world.waits(first)
    world.wait(1)
    assert world.state == COMPLETING
    assert len(world.answers[first].members) == 7


def test_an_initial_delay_longer_than_the_rebalance_timeout_is_waited_for():
    world = World(initial_rebalance_delay_ms=10_000)
    first = world.join(rebalance_ms=7_000)
    world.wait(5000)
    world.join()
    world.wait(4999)
    assert world.waits(first)
    world.wait(1)
    assert world.state == COMPLETING


def test_without_an_initial_delay_the_first_member_is_answered_at_once():
    world = World(initial_rebalance_delay_ms=0)
    assert world.error(world.join()) == ErrorCode.NONE
    assert world.state == COMPLETING


def test_the_initial_delay_is_not_cut_short_by_those_who_leave(world):
    first = world.join()
    second = world.handed_out()
    world.join(second)
    world.leave(second)
    world.wait(DELAY_MS - 1)
    assert world.waits(first)


def test_when_all_leave_in_the_initial_delay_the_group_is_empty_again(world):
    member = world.handed_out()
    token = world.join(member)
    assert world.leave(member) == [ErrorCode.NONE]
    assert world.error(token) == ErrorCode.UNKNOWN_MEMBER_ID
    world.wait(DELAY_MS)
    assert world.state == EMPTY


def test_the_initial_delay_does_not_wait_for_ids_that_were_handed_out(world):
    token = world.join()
    world.handed_out()
    world.wait(DELAY_MS)
    assert world.error(token) == ErrorCode.NONE


# Later rebalances


def test_a_rebalance_ends_when_all_have_joined(world):
    leader, follower = world.stable()
    first = world.join(leader)
    world.wait(1)
    world.join(follower)
    assert world.answers[first].generation_id == 2


def test_a_rebalance_waits_for_ids_that_were_handed_out(world):
    leader, follower = world.stable()
    new = world.handed_out()
    world.join(leader)
    last = world.join(follower)
    assert world.waits(last)
    world.join(new)
    assert world.answers[last].generation_id == 2


def test_an_id_that_was_handed_out_is_waited_for_no_longer_than_its_session(world):
    leader, follower = world.stable()
    new = world.handed_out()
    world.join(leader)
    last = world.join(follower)
    world.wait(SESSION_MS - 1)
    assert world.waits(last)
    world.wait(1)
    assert world.error(last) == ErrorCode.NONE
    assert world.error(world.join(new)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_id_that_leaves_is_not_waited_for(world):
    leader, follower = world.stable()
    new = world.handed_out()
    world.join(leader)
    last = world.join(follower)
    assert world.leave(new) == [ErrorCode.NONE]
    assert world.error(last) == ErrorCode.NONE


def test_at_the_rebalance_timeout_absent_members_are_dropped(world):
    leader, follower = world.stable()
    token = world.join(leader)
    world.wait_alive(REBALANCE_MS - 1, follower)
    assert world.waits(token)
    world.wait(1)
    assert world.answers[token].generation_id == 2
    assert list(world.group.roster.members) == [leader]
    assert world.heartbeat(follower) == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_rebalance_timeout_is_that_of_the_slowest_member(world):
    leader, follower = world.stable({}, {"rebalance_ms": 2 * REBALANCE_MS})
    token = world.join(leader)
    world.wait_alive(2 * REBALANCE_MS - 1, follower)
    assert world.waits(token)
    world.wait(1)
    assert world.error(token) == ErrorCode.NONE


def test_members_that_join_later_do_not_put_off_the_end_of_a_rebalance(world):
    leader, follower = world.stable()
    token = world.join(leader)
    world.wait_alive(REBALANCE_MS - 1, follower)
    world.join()
    world.wait(1)
    assert world.error(token) == ErrorCode.NONE


def test_at_the_rebalance_timeout_static_members_are_kept(world):
    leader, follower = world.stable({"instance_id": "a"}, {"instance_id": "b", "session_ms": 1_800_000})
    token = world.join(leader, "a")
    world.wait(REBALANCE_MS)
    assert world.error(token) == ErrorCode.NONE
    assert {member.member_id for member in world.answers[token].members} == {leader, follower}


def test_with_only_absent_static_members_a_rebalance_waits_for_them_until_their_sessions_end(world):
    session_ms = 5 * REBALANCE_MS
    _leader, _follower = world.stable(
        {"instance_id": "a", "session_ms": session_ms}, {"instance_id": "b", "session_ms": session_ms}
    )
    new = world.join()
    world.leave(world.member_id(new) if not world.waits(new) else list(world.group.roster.members)[-1])
    world.wait(4 * REBALANCE_MS)
    assert world.state == PREPARING
    world.wait(REBALANCE_MS)
    assert world.state == EMPTY


def test_an_absent_static_member_with_a_rebalance_timeout_of_zero_is_waited_for_without_a_rush(world):
    session_ms = 5 * REBALANCE_MS
    _static, other = world.stable({"instance_id": "a", "session_ms": session_ms, "rebalance_ms": 0}, {})
    world.leave(other)
    world.wait(0)
    assert world.state == PREPARING
    assert world.timers.next_deadline_ms > world.now_ms
    world.wait(session_ms)
    assert world.state == EMPTY


def test_a_static_member_that_returns_does_not_wait_for_the_session_of_another(world):
    session_ms = 30 * REBALANCE_MS
    world.completing({"instance_id": "a", "session_ms": session_ms}, {"instance_id": "b", "session_ms": session_ms})
    world.crash()
    world.wait(REBALANCE_MS)
    assert world.state == PREPARING
    token = world.join(instance_id="a", session_ms=session_ms)
    world.wait(REBALANCE_MS - 1)
    assert world.waits(token)
    world.wait(1)
    assert world.error(token) == ErrorCode.NONE


def test_a_leader_that_does_not_join_in_time_is_replaced(world):
    leader, follower = world.stable()
    token = world.join(follower, protocols=(("range", b"new"),))
    world.wait_alive(REBALANCE_MS, leader)
    answer = world.answers[token]
    assert answer.leader == follower
    assert [member.member_id for member in answer.members] == [follower]


def test_an_absent_static_leader_keeps_its_place_but_not_its_office(world):
    _leader, follower = world.stable({"instance_id": "a", "session_ms": 1_800_000}, {"instance_id": "b"})
    token = world.join(follower, "b", (("range", b"new"),))
    world.wait(REBALANCE_MS)
    assert world.answers[token].leader == follower
    assert len(world.answers[token].members) == 2


# Sessions


def test_a_silent_member_is_dropped_at_the_end_of_its_session(world):
    leader, _follower = world.stable()
    world.wait_alive(SESSION_MS - 1, leader)
    assert world.state == STABLE
    world.wait(1)
    assert world.state == PREPARING
    assert list(world.group.roster.members) == [leader]
    assert world.metrics.member_timeouts == 1


def test_the_group_of_a_last_member_that_falls_silent_is_empty(world):
    world.stable({})
    world.wait(SESSION_MS)
    assert world.state == EMPTY
    assert world.generation == 2
    assert world.values[-1].members == []


def test_a_wall_clock_that_jumps_ends_no_session(world):
    _leader, _ = world.stable()
    for years in (10, -10):
        world.wall_ms += years * 365 * 86_400_000
        world.wait(SESSION_MS - 1)
        assert world.state == STABLE
        for member in list(world.group.roster.members):
            assert world.heartbeat(member) == ErrorCode.NONE


def test_a_member_that_waits_in_join_does_not_lose_its_session(world):
    leader, follower = world.stable()
    token = world.join(leader)
    world.wait_alive(REBALANCE_MS - 1, follower)
    assert world.waits(token)
    assert leader in world.group.roster.members


def test_a_member_that_waits_in_sync_does_not_lose_its_session(world):
    leader, follower = world.completing()
    token = world.sync(follower)
    world.wait_alive(REBALANCE_MS - 1, leader)
    assert world.waits(token)
    assert follower in world.group.roster.members


def test_the_session_begins_anew_when_a_join_is_answered(world):
    leader, follower = world.stable()
    world.join(leader)
    world.wait_alive(30_000, follower)
    world.join(follower)
    world.wait(SESSION_MS - 1)
    assert set(world.group.roster.members) == {leader, follower}
    world.wait(1)
    assert world.state == EMPTY


def test_the_session_begins_anew_when_a_sync_is_answered(world):
    leader, follower = world.completing()
    world.sync(follower)
    world.wait_alive(30_000, leader)
    world.sync(leader, {follower: b"1"})
    world.wait(SESSION_MS - 1)
    assert set(world.group.roster.members) == {leader, follower}


def test_a_shorter_session_holds_from_the_next_answer_on(world):
    leader, follower = world.stable({"session_ms": 60_000}, {"session_ms": 60_000})
    world.join(leader, session_ms=6000)
    world.join(follower, session_ms=60_000)
    world.wait(6000)
    assert leader not in world.group.roster.members


def test_a_new_member_is_waited_with_for_five_minutes_and_then_told_to_begin_again(world):
    leader, follower = world.stable({"rebalance_ms": 600_000}, {"rebalance_ms": 600_000})
    new = world.join()
    world.wait_alive(JOIN_TIMEOUT_MS - 1, leader, follower)
    assert world.waits(new)
    world.wait(1)
    assert world.error(new) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.member_id(new) == ""
    assert set(world.group.roster.members) == {leader, follower}


def test_the_last_to_wait_for_is_a_new_member_that_gives_up(world):
    leader, follower = world.stable({"rebalance_ms": 600_000}, {"rebalance_ms": 600_000})
    late = world.handed_out(session_ms=600_000)
    world.join()
    world.join(leader)
    last = world.join(follower)
    world.wait(JOIN_TIMEOUT_MS)
    assert world.waits(last)
    world.leave(late)
    assert world.error(last) == ErrorCode.NONE
    assert len(world.group.roster.members) == 2


# Syncs that do not come


def test_a_member_that_never_syncs_is_dropped_at_the_rebalance_timeout(world):
    leader, follower = world.completing()
    world.sync(leader, {leader: b"0", follower: b"1"})
    world.wait_alive(REBALANCE_MS - 1, leader, follower)
    assert world.state == STABLE
    world.wait(1)
    assert world.state == PREPARING
    assert list(world.group.roster.members) == [leader]
    assert world.heartbeat(follower) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_leader_that_never_syncs_is_dropped_and_another_leads_the_next_generation(world):
    leader, follower = world.completing()
    waiting = world.sync(follower)
    world.wait_alive(REBALANCE_MS, leader)
    assert world.error(waiting) == ErrorCode.REBALANCE_IN_PROGRESS
    answer = world.answers[world.join(follower)]
    assert (answer.generation_id, answer.leader) == (2, follower)


def test_a_leader_that_dies_before_it_syncs_is_replaced(world):
    _leader, follower = world.completing()
    waiting = world.sync(follower)
    world.wait(SESSION_MS)
    assert world.error(waiting) == ErrorCode.REBALANCE_IN_PROGRESS
    answer = world.answers[world.join(follower)]
    assert (answer.generation_id, answer.leader) == (2, follower)


def test_once_all_have_synced_nothing_ends_at_the_rebalance_timeout(world):
    leader, follower = world.stable()
    world.wait_alive(3 * REBALANCE_MS, leader, follower)
    assert world.state == STABLE
    assert world.generation == 1


def test_a_late_sync_is_in_time_and_counts_as_a_heartbeat(world):
    leader, follower = world.completing()
    world.sync(leader, {leader: b"0", follower: b"1"})
    world.wait_alive(9000, leader)
    world.sync(follower)
    world.wait_alive(9000, leader)
    assert world.state == STABLE
    world.wait_alive(2 * REBALANCE_MS, leader, follower)
    assert world.state == STABLE


def test_when_nobody_syncs_the_group_empties_in_time(world):
    leader, follower = world.completing()
    world.wait_alive(REBALANCE_MS, leader, follower)
    assert world.state == EMPTY


# Two deadlines at once


def test_members_that_fall_silent_at_the_same_time_make_one_new_generation_after_the_other(world):
    world.stable({}, {}, {})
    world.wait(SESSION_MS)
    assert world.state == EMPTY
    generations = [value.generation for value in world.values]
    assert generations == sorted(generations)
    assert world.generation == 2
