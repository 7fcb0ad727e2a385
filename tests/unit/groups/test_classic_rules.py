"""What holds beside the table: votes, leaders, sizes, batches, what is logged and what is told."""

from __future__ import annotations

import logging

import pytest
from tests.unit.groups.classic_world import DELAY_MS, REBALANCE_MS, SESSION_MS, WALL_MS, World

from lowwater.errors import ApiError, ErrorCode
from lowwater.groups.classic_history import FREQUENT
from lowwater.groups.classic_rebalance import COMPLETING, EMPTY, PREPARING, STABLE
from lowwater.groups.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    encode_assignment,
    encode_subscription,
)
from lowwater.outcome import Outcome

INCONSISTENT = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.fixture
def world() -> World:
    return World()


def named(*names: str) -> dict[str, tuple[tuple[str, bytes], ...]]:
    return {"protocols": tuple((name, name.encode()) for name in names)}


def subscribed(*topics: str) -> dict[str, tuple[tuple[str, bytes], ...]]:
    return {"protocols": (("range", encode_subscription(ConsumerProtocolSubscription(topics=list(topics)))),)}


# Protocols


def test_the_protocol_is_the_one_most_members_prefer(world):
    world.completing(named("range", "sticky"), named("sticky", "range"), named("sticky", "range"))
    assert world.group.protocol == "sticky"


def test_only_protocols_that_all_know_are_voted_for(world):
    world.completing(named("own", "range"), named("own", "range"), named("range"))
    assert world.group.protocol == "range"


def test_the_leader_is_told_what_members_say_in_the_chosen_protocol(world):
    first = world.join(**named("own", "range"))
    world.join(**named("range", "other"))
    world.wait(2 * DELAY_MS)
    assert [member.metadata for member in world.answers[first].members] == [b"range", b"range"]


def test_a_protocol_named_twice_counts_once(world):
    twice = (("range", b"1"), ("range", b"2"))
    first = world.join(protocols=twice)
    world.join(**named("range"))
    world.wait(2 * DELAY_MS)
    assert world.answers[first].members[0].metadata == b"1"


def test_a_member_without_a_common_protocol_is_refused(world):
    world.stable(named("range", "sticky"), named("range"))
    assert world.error(world.join(**named("sticky"))) == INCONSISTENT
    assert world.waits(world.join(**named("sticky", "range")))


def test_a_member_of_another_type_is_refused(world):
    world.stable()
    assert world.error(world.join(protocol_type="connect")) == INCONSISTENT


def test_protocols_without_a_name_or_type_are_refused(world):
    assert world.error(world.join(protocols=())) == INCONSISTENT
    assert world.error(world.join(protocol_type="")) == INCONSISTENT


def test_an_empty_group_takes_members_of_another_type(world):
    (member,) = world.stable({})
    world.leave(member)
    world.stable({"protocol_type": "connect"})
    assert world.group.protocol_type == "connect"


def test_a_protocol_is_common_again_when_the_one_without_it_has_left(world):
    _leader, follower = world.stable(named("range", "sticky"), named("range"))
    world.leave(follower)
    assert world.waits(world.join(**named("sticky")))


# Generations and leaders


def test_the_generation_grows_when_a_join_completes_and_only_then(world):
    leader, follower = world.stable()
    world.join(leader)
    assert world.generation == 1
    world.join(follower)
    assert world.generation == 2
    world.sync(follower)
    world.sync(leader, {leader: b"0"})
    assert world.generation == 2


def test_the_first_who_came_leads_and_stays_the_leader(world):
    leader, follower = world.stable()
    follower_again = world.join(follower, protocols=(("range", b"new"),))
    world.join(leader)
    assert world.answers[follower_again].leader == leader


def test_when_the_leader_leaves_the_one_who_is_there_longest_leads(world):
    leader, second, third = world.stable({}, {}, {})
    world.leave(leader)
    world.join(third)
    token = world.join(second)
    assert world.answers[token].leader == second


def test_only_the_leader_is_told_who_the_members_are(world):
    tokens = [world.join() for _ in range(3)]
    world.wait(2 * DELAY_MS)
    assert [len(world.answers[token].members) for token in tokens] == [3, 0, 0]


def test_members_that_the_leader_leaves_out_have_an_empty_assignment(world):
    leader, follower = world.completing()
    waiting = world.sync(follower)
    world.sync(leader, {leader: b"0", "stranger": b"?"})
    assert world.answers[waiting].assignment == b""
    assert world.state == STABLE


# Requests that are sent twice


def test_a_join_sent_again_takes_the_place_of_the_one_that_waits(world):
    leader, follower = world.stable()
    first = world.join(leader)
    second = world.join(leader)
    assert world.error(first) == ErrorCode.REBALANCE_IN_PROGRESS
    world.join(follower)
    assert world.error(second) == ErrorCode.NONE


def test_a_sync_sent_again_takes_the_place_of_the_one_that_waits(world):
    leader, follower = world.completing()
    first, second = world.sync(follower), world.sync(follower)
    assert world.error(first) == ErrorCode.REBALANCE_IN_PROGRESS
    world.sync(leader, {follower: b"1"})
    assert world.answers[second].assignment == b"1"


# Leaving


def test_many_leave_at_once_with_an_answer_each_and_one_rebalance(world):
    leader, second, third = world.stable({}, {}, {})
    assert world.leave(second, "stranger", third) == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE]
    assert world.state == PREPARING
    world.join(leader)
    assert world.generation == 2


def test_a_batch_in_which_nobody_leaves_changes_nothing(world):
    world.stable()
    assert world.leave("stranger", ("", None)) == [ErrorCode.UNKNOWN_MEMBER_ID] * 2
    assert world.state == STABLE


def test_an_admin_removes_a_static_member_by_its_instance(world):
    leader, _follower = world.stable({"instance_id": "a"}, {"instance_id": "b"})
    assert world.leave(("", "b"), ("", "stranger")) == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert list(world.group.roster.members) == [leader]


def test_whoever_waits_is_answered_when_removed(world):
    _leader, follower = world.completing()
    sync = world.sync(follower)
    world.leave(follower)
    assert world.error(sync) == ErrorCode.UNKNOWN_MEMBER_ID
    new = world.handed_out()
    join = world.join(new)
    world.leave(new)
    assert world.error(join) == ErrorCode.UNKNOWN_MEMBER_ID


def test_when_all_leave_the_group_is_empty_and_its_generation_goes_on(world):
    leader, follower = world.stable()
    world.wait(5)
    world.leave(leader, follower)
    assert world.state == EMPTY
    value = world.values[-1]
    assert (value.generation, value.protocol, value.leader, value.members) == (2, None, None, [])
    assert value.protocol_type == "consumer"
    assert world.group.empty_since_ms == WALL_MS + int(world.now_ms)
    assert world.completing({})
    assert world.generation == 3


def test_an_id_that_was_handed_out_does_not_keep_an_abandoned_group_alive(world):
    (member,) = world.stable({})
    world.handed_out()
    world.leave(member)
    assert world.state == EMPTY


def test_a_group_that_changes_its_protocol_lets_go_of_everyone(world):
    leader, follower = world.completing()
    world.handed_out()
    sync, out = world.sync(follower), Outcome()
    world.group.send_away(out)
    assert [(token, answer.error_code) for token, answer in out.replies] == [(sync, ErrorCode.REBALANCE_IN_PROGRESS)]
    assert world.metrics.total_members == 0
    assert world.heartbeat(leader) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.wait(10 * REBALANCE_MS)
    assert world.timers.next_deadline_ms is None


def test_who_waits_to_join_a_group_that_changes_its_protocol_joins_again_under_its_id(world):
    leader, _ = world.stable()
    join, out = world.join(leader), Outcome()
    world.group.send_away(out)
    [(token, answer)] = out.replies
    assert (token, answer.error_code, answer.member_id) == (join, ErrorCode.REBALANCE_IN_PROGRESS, leader)


# Static members


def test_two_clients_with_one_instance_id_fence_each_other(world):
    (first,) = world.stable({"instance_id": "a"})
    second = world.member_id(world.join(instance_id="a"))
    assert world.heartbeat(first, "a") == ErrorCode.FENCED_INSTANCE_ID
    assert world.heartbeat(first) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.error(world.join(first, "a")) == ErrorCode.FENCED_INSTANCE_ID
    assert world.error(world.sync(first, instance_id="a")) == ErrorCode.FENCED_INSTANCE_ID
    assert world.commit(first, 1, "a") == ErrorCode.FENCED_INSTANCE_ID
    assert world.leave((first, "a")) == [ErrorCode.FENCED_INSTANCE_ID]
    assert world.heartbeat(second, "a") == ErrorCode.NONE


def test_a_static_member_may_leave_its_instance_out_of_a_request(world):
    (member,) = world.stable({"instance_id": "a"})
    assert world.heartbeat(member) == ErrorCode.NONE
    assert world.commit(member, 1) == ErrorCode.NONE


def test_a_static_member_is_not_asked_to_join_twice(world):
    token = world.join(instance_id="a", asks=True)
    assert world.waits(token)
    world.wait(DELAY_MS)
    assert world.member_id(token).startswith("a-")


def test_the_return_of_a_static_member_is_logged_before_it_is_answered(world):
    leader, follower = world.stable({"instance_id": "a"}, {"instance_id": "b"})
    new = world.member_id(world.join(instance_id="b"))
    value = world.values[-1]
    assert value.generation == 1
    assert {member.member_id: member.assignment for member in value.members} == {
        leader: leader.encode(),
        new: follower.encode(),
    }


def test_a_static_member_that_returns_has_a_session_of_its_own(world):
    leader, _follower = world.stable({"instance_id": "a"}, {"instance_id": "b"})
    world.wait(SESSION_MS - 1)
    world.heartbeat(leader, "a")
    new = world.member_id(world.join(instance_id="b"))
    world.wait_alive(SESSION_MS - 1, leader)
    assert new in world.group.roster.members
    world.wait(1)
    assert new not in world.group.roster.members


def test_a_static_member_that_returns_before_it_had_synced_is_not_waited_for_under_its_old_id(world):
    leader, follower = world.completing({"instance_id": "a"}, {"instance_id": "b"})
    world.sync(leader, {leader: b"0", follower: b"1"}, "a")
    new = world.member_id(world.join(instance_id="b"))
    world.wait_alive(2 * REBALANCE_MS, leader, new)
    assert world.state == STABLE


# Sizes


def test_a_full_group_takes_no_more_but_keeps_its_own():
    world = World(group_size_max=2)
    _leader, follower = world.stable()
    assert world.error(world.join()) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.error(world.join(follower)) == ErrorCode.NONE
    assert world.state == STABLE


def test_a_rebalance_takes_no_more_than_the_group_may_have():
    world = World(group_size_max=2)
    leader, follower = world.preparing()
    world.join(follower)
    assert world.state == COMPLETING
    leader_again = world.join(leader, protocols=(("range", b"new"),))
    new = world.join()
    assert world.waits(leader_again)
    assert world.waits(new)
    assert world.error(world.join(follower)) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.error(new) == ErrorCode.NONE
    assert len(world.group.roster.members) == 2


def test_an_id_that_does_not_fit_is_forgotten():
    world = World(group_size_max=1)
    first, second = world.handed_out(), world.handed_out()
    world.join(first)
    assert world.error(world.join(second)) == ErrorCode.GROUP_MAX_SIZE_REACHED
    world.wait(DELAY_MS)
    assert world.error(world.join(second)) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert not world.group.roster.handed_out


def test_a_static_member_finds_its_place_in_a_full_group():
    world = World(group_size_max=1)
    world.stable({"instance_id": "a"})
    assert world.error(world.join(instance_id="a")) == ErrorCode.NONE


def test_members_are_counted_in_and_out(world):
    _leader, follower = world.stable()
    assert world.metrics.total_members == 2
    world.leave(follower)
    assert world.metrics.total_members == 1
    world.crash()
    assert world.metrics.total_members == 2


# What is told


def test_a_stable_group_is_described_with_what_its_members_do(world):
    leader, _follower = world.stable({"instance_id": "a"}, {})
    described = world.group.describe()
    assert (described.group_state, described.protocol_type, described.protocol_data) == (STABLE, "consumer", "range")
    member = described.members[0]
    assert (member.member_id, member.group_instance_id, member.client_id, member.client_host) == (
        leader,
        "a",
        "client",
        "host",
    )
    assert (member.member_metadata, member.member_assignment) == (b"r", leader.encode())


def test_a_rebalancing_group_is_described_with_what_its_members_were_given(world):
    leader, follower = world.preparing()
    described = world.group.describe()
    assert (described.group_state, described.protocol_data) == (PREPARING, "")
    assert {member.member_assignment for member in described.members} == {leader.encode(), follower.encode()}
    assert {member.member_metadata for member in described.members} == {b""}


def held(world):
    return {member.member_id: member.member_assignment for member in world.group.describe().members}


def test_members_are_described_with_what_they_hold_until_the_leader_has_assigned(world):
    leader, follower = world.preparing()
    world.join(follower)
    assert world.state == COMPLETING
    assert held(world) == {leader: leader.encode(), follower: follower.encode()}
    world.sync(leader, {leader: b"all"})
    assert held(world) == {leader: b"all", follower: b""}


def test_a_rebalance_that_interrupts_another_leaves_nobody_anything(world):
    leader, follower = world.preparing()
    world.join(follower)
    world.leave(follower)
    assert held(world) == {leader: b""}


def test_a_static_member_that_returns_holds_what_it_held(world):
    leader, follower = world.preparing({"instance_id": "a"}, {"instance_id": "b"})
    new = world.member_id(world.join(instance_id="b"))
    assert held(world) == {leader: leader.encode(), new: follower.encode()}


def test_consumers_subscribe_to_the_topics_they_name(world):
    _leader, follower = world.stable(subscribed("orders"), subscribed("metrics"))
    assert world.group.subscribes_to("orders")
    assert world.group.subscribes_to("metrics")
    assert not world.group.subscribes_to("else")
    world.leave(follower)
    assert not world.group.subscribes_to("metrics")


def test_members_that_are_no_consumers_may_read_anything(world):
    world.stable({"protocol_type": "connect"})
    assert world.group.subscribes_to("orders")
    with pytest.raises(ApiError) as refusal:
        world.group.check_offset_delete()
    assert refusal.value.code == ErrorCode.NON_EMPTY_GROUP


def test_a_group_is_of_the_type_of_its_members_and_then_of_those_it_had(world):
    assert world.group.protocol_type == ""
    member = world.handed_out()
    assert world.group.protocol_type == ""
    world.join(member)
    assert world.group.describe().protocol_type == "consumer"
    world.leave(member)
    world.wait(DELAY_MS)
    assert (world.state, world.group.protocol_type) == (EMPTY, "consumer")


def test_a_group_without_members_subscribes_to_nothing(world):
    assert not world.group.subscribes_to("orders")
    world.group.check_offset_delete()


def test_a_group_is_forgotten_by_a_tombstone(world):
    world.stable()
    out = Outcome()
    world.group.forget(out)
    assert out.records == [(world.log[0].key, None)]


def test_a_group_that_never_had_members_is_not_empty_since_any_time(world):
    assert world.group.is_empty
    assert world.group.empty_since_ms is None


# The log of the broker


def assigned(*partitions: int) -> bytes:
    topics = [TopicPartition(topic="t", partitions=list(partitions))]
    return encode_assignment(ConsumerProtocolAssignment(assigned_partitions=topics))


def test_each_rebalance_is_one_line_with_reason_members_partitions_and_generation(world, caplog):
    caplog.set_level(logging.INFO, "lowwater.groups")
    leader, follower = world.completing()
    world.sync(follower)
    world.sync(leader, {leader: assigned(0, 1), follower: assigned(2)})
    (line,) = caplog.messages
    assert line.startswith("group 'g' is in generation 1 after 6000 ms: 2 members, 3 partitions; ")
    assert "joins" in line


def test_a_reason_of_a_client_is_told_but_cannot_forge_a_line(world, caplog):
    caplog.set_level(logging.INFO, "lowwater.groups")
    (member,) = world.stable({"reason": "one\ntwo" + "x" * 1000})
    world.leave(member, reason="three\nfour")
    assert [message.count("\n") for message in caplog.messages] == [0, 0]
    assert "one\\ntwo" in caplog.messages[0]
    assert len(caplog.messages[0]) < 500
    assert "three\\nfour" in caplog.messages[1]
    assert caplog.messages[1].startswith("group 'g' is empty in generation 2: 0 members, 0 partitions; ")


def test_rebalances_are_counted_with_the_time_they_took(world):
    leader, follower = world.stable()
    before_ms = world.metrics.rebalance_duration_ms_sum
    world.join(leader)
    world.wait(1234)
    world.join(follower)
    world.sync(leader, {leader: b"0"})
    assert world.metrics.rebalances_total == 2
    assert world.metrics.rebalance_duration_ms_sum == before_ms + 1234


def test_frequent_rebalances_are_warned_of_once_with_a_longer_session(world, caplog):
    (leader,) = world.stable({})
    for _ in range(2 * FREQUENT):
        world.join(leader)
        world.sync(leader, {leader: b"0"})
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "session timeout of 30000 ms (the longest is 10000 ms)" in warnings[0]


def test_rare_rebalances_are_not_warned_of(world, caplog):
    (leader,) = world.stable({})
    for _ in range(2 * FREQUENT):
        world.wait_alive(120_000, leader)
        world.join(leader)
        world.sync(leader, {leader: b"0"})
    assert not [record for record in caplog.records if record.levelno == logging.WARNING]


def test_a_name_as_long_as_names_can_be_makes_a_member_id_that_can_be_written(world):
    (member_id,) = world.stable({"instance_id": "i" * 0x7FFF})
    assert len(member_id) < 0x7FFF
    world.crash()
    assert world.heartbeat(member_id) == ErrorCode.NONE
