"""Every cell of the table in spec/groups.md, as Apache Kafka answers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.groups.classic_world import DELAY_MS, SESSION_MS, World

from lowwater.errors import ApiError, ErrorCode
from lowwater.groups.classic_rebalance import COMPLETING, DEAD, EMPTY, PREPARING, STABLE
from lowwater.groups.classic_table import STATES, TABLE

NO_ID = "Join, no id, dynamic"
NEW = "Join, new"
RETURNING = "Join, no id, known instance"
KNOWN = "Join, known id"
STATIC = ({"instance_id": "a"}, {"instance_id": "b"})
OTHER = (("range", b"other"),)

covered: set[tuple[str, str]] = set()


def cell(request: str, *states: str) -> Callable[[Any], Any]:
    """Marks what a test shows."""
    covered.update((request, state) for state in states)
    return lambda test: test


@pytest.fixture
def world() -> World:
    return World()


def test_every_cell_of_the_table_has_a_test():
    assert covered == {(request, state) for request, row in TABLE.items() for state in row}


def test_the_table_has_every_state_but_for_static_members_of_a_group_without_members():
    missing = {(request, state) for request, row in TABLE.items() for state in STATES if state not in row}
    assert missing == {(RETURNING, EMPTY)}


# Join of a new dynamic member that can be told an id


def in_state(world: World, state: str) -> list[str]:
    return {EMPTY: list, PREPARING: world.preparing, COMPLETING: world.completing, STABLE: world.stable}[state]()


@pytest.mark.parametrize("state", STATES)
@cell(NO_ID, *STATES)
def test_a_new_client_is_handed_an_id_and_the_group_does_not_notice(world, state):
    in_state(world, state)
    token = world.join(asks=True)
    assert world.error(token) == ErrorCode.MEMBER_ID_REQUIRED
    assert world.member_id(token).startswith("client-")
    assert world.state == state
    assert world.member_id(token) not in world.group.roster.members


# Join of a new member


@cell(NEW, EMPTY)
def test_the_first_member_of_an_empty_group_waits_for_others(world):
    token = world.join()
    assert world.state == PREPARING
    world.wait(DELAY_MS - 1)
    assert world.waits(token)
    world.wait(1)
    assert world.state == COMPLETING
    assert world.answers[token].generation_id == 1
    assert world.answers[token].leader == world.member_id(token)


@cell(NEW, EMPTY)
@pytest.mark.parametrize("who", ["an id that was handed out", "a new instance", "no id of an old client"])
def test_new_members_of_all_kinds_begin_the_first_rebalance(world, who):
    join = {
        "an id that was handed out": lambda: world.join(world.handed_out()),
        "a new instance": lambda: world.join(instance_id="a", asks=True),
        "no id of an old client": lambda: world.join(asks=False),
    }[who]
    token = join()
    assert world.state == PREPARING
    world.wait(DELAY_MS)
    assert world.error(token) == ErrorCode.NONE


@cell(NEW, PREPARING)
def test_a_new_member_joins_a_rebalance_and_ends_it_when_all_are_in(world):
    _leader, follower = world.preparing()
    new = world.join()
    assert world.waits(new)
    last = world.join(follower)
    assert world.state == COMPLETING
    assert {world.answers[token].generation_id for token in (new, last)} == {2}


@cell(NEW, COMPLETING)
def test_a_new_member_interrupts_those_who_sync(world):
    _leader, follower = world.completing()
    sync = world.sync(follower)
    assert world.waits(sync)
    new = world.join()
    assert world.state == PREPARING
    assert world.error(sync) == ErrorCode.REBALANCE_IN_PROGRESS
    assert world.waits(new)


@cell(NEW, STABLE)
def test_a_new_member_of_a_stable_group_brings_a_rebalance(world):
    leader, follower = world.stable()
    new = world.join()
    assert world.state == PREPARING
    world.join(follower)
    world.join(leader)
    assert world.state == COMPLETING
    assert world.answers[new].generation_id == 2
    assert world.answers[new].leader == leader


# Join of a static member that has restarted


@cell(RETURNING, PREPARING)
def test_a_static_member_that_returns_in_a_rebalance_takes_the_place_of_its_old_id(world):
    leader, follower = world.stable(*STATIC)
    old = world.join(leader, "a")
    new = world.join(instance_id="a")
    assert world.error(old) == ErrorCode.FENCED_INSTANCE_ID
    assert world.member_id(old) == leader
    assert world.waits(new)
    world.join(follower, "b")
    assert world.error(new) == ErrorCode.NONE
    assert world.member_id(new) != leader
    assert world.answers[new].leader == world.member_id(new)
    assert {member.member_id for member in world.answers[new].members} == {world.member_id(new), follower}


@cell(RETURNING, COMPLETING)
def test_a_static_member_that_returns_while_others_sync_brings_a_rebalance(world):
    leader, follower = world.completing(*STATIC)
    old = world.sync(follower, instance_id="b")
    new = world.join(instance_id="b")
    assert world.error(old) == ErrorCode.FENCED_INSTANCE_ID
    assert world.state == PREPARING
    assert world.waits(new)
    world.join(leader, "a")
    assert world.answers[new].generation_id == 2


@cell(RETURNING, STABLE)
def test_a_static_member_that_returns_with_the_same_protocol_changes_nothing_for_the_others(world):
    leader, follower = world.stable(*STATIC)
    new = world.join(instance_id="b")
    assert world.state == STABLE
    assert world.answers[new].generation_id == 1
    assert world.answers[new].leader == leader
    assert not world.answers[new].skip_assignment
    assert world.answers[new].members == []
    sync = world.sync(world.member_id(new), instance_id="b")
    assert world.answers[sync].assignment == follower.encode()
    assert world.heartbeat(leader, "a") == ErrorCode.NONE


@cell(RETURNING, STABLE)
def test_a_leader_that_returns_is_told_that_nothing_is_to_be_assigned(world):
    leader, follower = world.stable(*STATIC)
    new = world.join(instance_id="a", skips=True)
    answer = world.answers[new]
    assert answer.skip_assignment
    assert answer.leader == answer.member_id != leader
    assert {member.member_id for member in answer.members} == {answer.member_id, follower}


@cell(RETURNING, STABLE)
def test_a_leader_that_returns_and_cannot_skip_believes_to_follow_its_old_self(world):
    leader, _ = world.stable(*STATIC)
    answer = world.answers[world.join(instance_id="a", skips=False)]
    assert answer.leader == leader != answer.member_id
    assert answer.members == []
    assert not answer.skip_assignment
    assert world.group.leader == answer.member_id


@cell(RETURNING, STABLE)
def test_a_static_member_that_returns_with_another_vote_brings_a_rebalance(world):
    both = (("range", b"r"), ("sticky", b"s"))
    joins = ({"instance_id": "a", "protocols": both}, {"instance_id": "b", "protocols": both})
    world.stable(*joins)
    new = world.join(instance_id="b", protocols=(("sticky", b"s"),))
    assert world.state == PREPARING
    assert world.waits(new)


# Join of a member


@cell(KNOWN, EMPTY)
def test_a_member_of_the_past_is_unknown_to_an_empty_group(world):
    (member,) = world.stable({})
    world.leave(member)
    assert world.state == EMPTY
    assert world.error(world.join(member)) == ErrorCode.UNKNOWN_MEMBER_ID


@cell(KNOWN, PREPARING)
def test_a_member_joins_again_with_what_it_knows_now(world):
    _leader, follower = world.preparing()
    token = world.join(follower, protocols=OTHER)
    assert world.error(token) == ErrorCode.NONE
    assert world.group.roster.members[follower].protocols == OTHER


@cell(KNOWN, COMPLETING)
def test_a_member_whose_answer_was_lost_gets_it_again(world):
    leader, follower = world.completing()
    again = world.join(leader)
    assert world.state == COMPLETING
    assert world.answers[again].generation_id == 1
    assert {member.member_id for member in world.answers[again].members} == {leader, follower}
    assert world.answers[world.join(follower)].members == []


@cell(KNOWN, COMPLETING)
def test_a_member_that_changes_while_others_sync_brings_a_rebalance(world):
    leader, follower = world.completing()
    sync = world.sync(follower)
    token = world.join(leader, protocols=OTHER)
    assert world.error(sync) == ErrorCode.REBALANCE_IN_PROGRESS
    assert world.state == PREPARING
    assert world.waits(token)


@cell(KNOWN, STABLE)
def test_the_leader_of_a_stable_group_can_ask_for_a_rebalance(world):
    leader, _follower = world.stable()
    assert world.waits(world.join(leader))
    assert world.state == PREPARING


@cell(KNOWN, STABLE)
def test_a_follower_that_changes_brings_a_rebalance(world):
    _leader, follower = world.stable()
    assert world.waits(world.join(follower, protocols=OTHER))
    assert world.state == PREPARING


@cell(KNOWN, STABLE)
def test_a_follower_that_did_not_change_is_told_the_generation_again(world):
    leader, follower = world.stable()
    answer = world.answers[world.join(follower)]
    assert world.state == STABLE
    assert (answer.generation_id, answer.leader, answer.members) == (1, leader, [])


# Sync


@cell("Sync", EMPTY)
def test_a_sync_with_an_empty_group_is_of_an_unknown_member(world):
    (member,) = world.stable({})
    world.leave(member)
    assert world.error(world.sync(member)) == ErrorCode.UNKNOWN_MEMBER_ID


@cell("Sync", PREPARING)
def test_a_sync_during_a_rebalance_is_sent_to_join_again(world):
    _, follower = world.preparing()
    assert world.error(world.sync(follower)) == ErrorCode.REBALANCE_IN_PROGRESS


@cell("Sync", COMPLETING)
def test_followers_wait_for_the_leader_and_then_all_have_their_assignments(world):
    leader, follower = world.completing()
    waiting = world.sync(follower)
    assert world.waits(waiting)
    logged = len(world.log)
    token = world.sync(leader, {leader: b"0", follower: b"1"})
    assert world.state == STABLE
    assert (world.answers[token].assignment, world.answers[waiting].assignment) == (b"0", b"1")
    assert world.answers[token].protocol_name == "range"
    assert world.answers[token].protocol_type == "consumer"
    assert len(world.log) == logged + 1


@cell("Sync", STABLE)
def test_a_late_sync_gets_its_own_assignment(world):
    leader, follower = world.completing()
    world.sync(leader, {leader: b"0", follower: b"1"})
    answer = world.answers[world.sync(follower)]
    assert (answer.assignment, answer.protocol_name, answer.protocol_type) == (b"1", "range", "consumer")


# Heartbeat


@cell("Heartbeat", EMPTY)
def test_a_heartbeat_to_an_empty_group_is_of_an_unknown_member(world):
    (member,) = world.stable({})
    world.leave(member)
    assert world.heartbeat(member) == ErrorCode.UNKNOWN_MEMBER_ID


@cell("Heartbeat", PREPARING)
def test_a_heartbeat_during_a_rebalance_counts_and_asks_to_join_again(world):
    _, follower = world.preparing()
    world.wait(SESSION_MS - 1)
    assert world.heartbeat(follower) == ErrorCode.REBALANCE_IN_PROGRESS
    world.wait(SESSION_MS - 1)
    assert follower in world.group.roster.members
    world.wait(1)
    assert follower not in world.group.roster.members


@pytest.mark.parametrize("state", [COMPLETING, STABLE])
@cell("Heartbeat", COMPLETING, STABLE)
def test_a_heartbeat_keeps_the_session(world, state):
    _, follower = in_state(world, state)
    world.wait(SESSION_MS - 1)
    assert world.heartbeat(follower) == ErrorCode.NONE
    world.wait(SESSION_MS - 1)
    assert follower in world.group.roster.members


# Leave


@cell("Leave", EMPTY)
def test_nobody_can_leave_an_empty_group(world):
    (member,) = world.stable({})
    world.leave(member)
    assert world.leave(member, "other", ("", "instance")) == [ErrorCode.UNKNOWN_MEMBER_ID] * 3
    assert world.state == EMPTY


@cell("Leave", EMPTY)
def test_an_id_that_was_handed_out_may_be_given_back_to_an_empty_group(world):
    member = world.handed_out()
    assert world.leave(member, member) == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert world.error(world.join(member)) == ErrorCode.UNKNOWN_MEMBER_ID


@cell("Leave", PREPARING)
def test_the_last_who_was_waited_for_leaves_and_the_rebalance_ends(world):
    leader, follower = world.preparing()
    assert world.leave(follower) == [ErrorCode.NONE]
    assert world.state == COMPLETING
    assert list(world.group.roster.members) == [leader]


@cell("Leave", PREPARING)
def test_a_rebalance_goes_on_without_one_who_left_until_all_others_are_in(world):
    leader, second, third = world.stable({}, {}, {})
    world.join(leader)
    world.leave(second)
    assert world.state == PREPARING
    world.join(third)
    assert world.state == COMPLETING


@pytest.mark.parametrize("state", [COMPLETING, STABLE])
@cell("Leave", COMPLETING, STABLE)
def test_a_member_that_leaves_brings_a_rebalance(world, state):
    leader, follower = in_state(world, state)
    assert world.leave(follower) == [ErrorCode.NONE]
    assert world.state == PREPARING
    assert world.heartbeat(leader) == ErrorCode.REBALANCE_IN_PROGRESS


# OffsetCommit


@cell("OffsetCommit, member", EMPTY)
def test_a_member_of_the_past_cannot_commit_to_an_empty_group(world):
    (member,) = world.stable({})
    world.leave(member)
    assert world.commit(member, 1) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("state", [PREPARING, STABLE])
@cell("OffsetCommit, member", PREPARING, STABLE)
def test_a_commit_of_a_member_is_accepted_and_counts_as_a_heartbeat(world, state):
    _, follower = in_state(world, state)
    world.wait(SESSION_MS - 1)
    assert world.commit(follower, 1) == ErrorCode.NONE
    world.wait(SESSION_MS - 1)
    assert follower in world.group.roster.members


@cell("OffsetCommit, member", COMPLETING)
def test_a_commit_between_join_and_sync_is_sent_to_the_rebalance(world):
    _, follower = world.completing()
    assert world.commit(follower, 1) == ErrorCode.REBALANCE_IN_PROGRESS


@cell("OffsetCommit, no member", EMPTY)
def test_anyone_may_commit_to_an_empty_group(world):
    assert world.commit() == ErrorCode.NONE


@pytest.mark.parametrize("state", [PREPARING, COMPLETING, STABLE])
@cell("OffsetCommit, no member", PREPARING, COMPLETING, STABLE)
def test_nobody_but_members_may_commit_to_a_group_that_has_some(world, state):
    in_state(world, state)
    assert world.commit() == ErrorCode.UNKNOWN_MEMBER_ID


# TxnOffsetCommit


@pytest.mark.parametrize("state", STATES)
@cell("TxnOffsetCommit, no member", *STATES)
def test_a_transaction_that_names_no_member_may_commit_always(world, state):
    in_state(world, state)
    assert world.txn_commit() == ErrorCode.NONE


@cell("TxnOffsetCommit, member", EMPTY)
def test_a_transaction_of_a_member_of_the_past_is_refused(world):
    (member,) = world.stable({})
    world.leave(member)
    assert world.txn_commit(member, 1) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("state", [PREPARING, COMPLETING, STABLE])
@cell("TxnOffsetCommit, member", PREPARING, COMPLETING, STABLE)
def test_a_transaction_of_a_member_is_accepted_if_all_it_names_is_right(world, state):
    _, follower = in_state(world, state)
    assert world.txn_commit(follower, 1) == ErrorCode.NONE
    assert world.txn_commit(follower, 0) == ErrorCode.ILLEGAL_GENERATION
    assert world.txn_commit("stranger", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.txn_commit(follower, 1, "instance") == ErrorCode.UNKNOWN_MEMBER_ID


# DeleteGroups


@cell("DeleteGroups", EMPTY)
def test_an_empty_group_can_be_deleted(world):
    assert world.delete() == ErrorCode.NONE


@pytest.mark.parametrize("state", [PREPARING, COMPLETING, STABLE])
@cell("DeleteGroups", PREPARING, COMPLETING, STABLE)
def test_a_group_with_members_cannot_be_deleted(world, state):
    in_state(world, state)
    assert world.delete() == ErrorCode.NON_EMPTY_GROUP


# Checks before the table, and their order


def test_dead_is_final(world):
    (member,) = world.stable({})
    world.group.die()
    away = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.state == DEAD
    assert world.error(world.join()) == away
    assert world.error(world.sync(member)) == away
    assert world.heartbeat(member) == away
    assert world.leave(member) == [away]
    assert world.commit() == away
    assert world.txn_commit() == away
    assert world.delete() == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_join_is_refused_before_its_group_is_looked_up():
    world = World(session_timeout_min_ms=6000, session_timeout_max_ms=30_000)
    for session_ms in (5999, 30_001):
        with pytest.raises(ApiError) as refusal:
            world.join(session_ms=session_ms)
        assert refusal.value.code == ErrorCode.INVALID_SESSION_TIMEOUT
    world.join(session_ms=6000)
    world.join(session_ms=30_000)


def test_a_full_group_refuses_before_it_looks_at_protocols():
    world = World(group_size_max=1)
    world.stable({})
    assert world.error(world.join(protocols=(("other", b""),))) == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_protocols_are_looked_at_before_the_member(world):
    world.stable()
    inconsistent = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.error(world.join("stranger", protocols=(("other", b""),))) == inconsistent
    assert world.error(world.join("stranger", "instance", protocols=(("other", b""),))) == inconsistent


def test_an_unknown_instance_comes_before_everything_else_about_a_member(world):
    member, _ = world.stable(*STATIC)
    unknown, fenced = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID
    assert world.error(world.join(member, "stranger")) == unknown
    assert world.error(world.sync(member, instance_id="stranger", generation=7)) == unknown
    assert world.heartbeat(member, "stranger", 7) == unknown
    assert world.heartbeat(member, "stranger") == unknown
    assert world.heartbeat(member, "b") == fenced
    assert world.commit(member, 7, "stranger") == unknown
    assert world.error(world.join("stranger", "a")) == fenced
    assert world.error(world.sync("stranger", instance_id="a", generation=7)) == fenced
    assert world.heartbeat("stranger", "a", 7) == fenced
    assert world.commit("stranger", 7, "a") == fenced
    assert world.leave(("stranger", "a"), (member, "stranger")) == [fenced, unknown]


def test_an_id_that_was_handed_out_is_not_that_of_a_static_member(world):
    member = world.handed_out()
    assert world.error(world.join(member, "a")) == ErrorCode.UNKNOWN_MEMBER_ID


def test_whoever_commits_to_an_empty_group_without_a_generation_is_not_looked_at(world):
    assert world.commit("stranger") == ErrorCode.NONE
    assert world.commit(instance_id="stranger") == ErrorCode.NONE
    assert world.txn_commit("stranger") == ErrorCode.NONE
    world.stable()
    assert world.commit("stranger") == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.txn_commit("stranger") == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_absent_member_comes_before_a_wrong_generation(world):
    member, _ = world.stable()
    assert world.error(world.sync("stranger", generation=7)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat("stranger", generation=7) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.commit("stranger", 7) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.error(world.sync(member, generation=7)) == ErrorCode.ILLEGAL_GENERATION
    assert world.heartbeat(member, generation=7) == ErrorCode.ILLEGAL_GENERATION
    assert world.commit(member, 7) == ErrorCode.ILLEGAL_GENERATION


def test_a_sync_says_its_protocol_and_is_refused_when_it_is_another_but_after_the_generation(world):
    member, _ = world.stable()
    inconsistent = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.error(world.sync(member, protocol_type="connect")) == inconsistent
    assert world.error(world.sync(member, protocol="sticky")) == inconsistent
    assert world.error(world.sync(member, protocol="sticky", generation=7)) == ErrorCode.ILLEGAL_GENERATION
    assert world.error(world.sync(member, protocol_type="consumer", protocol="range")) == ErrorCode.NONE


def test_a_sync_before_a_protocol_was_chosen_is_too_early(world):
    member = world.handed_out()
    world.join(member)
    too_early = ErrorCode.REBALANCE_IN_PROGRESS
    assert world.error(world.sync(member, protocol_type="consumer", protocol="range")) == too_early


def test_a_generation_is_looked_at_before_the_state(world):
    _, follower = world.preparing()
    assert world.error(world.sync(follower, generation=7)) == ErrorCode.ILLEGAL_GENERATION
    assert world.heartbeat(follower, generation=7) == ErrorCode.ILLEGAL_GENERATION
