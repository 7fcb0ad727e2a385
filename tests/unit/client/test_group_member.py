"""A member's life in a classic group, on virtual time."""

from __future__ import annotations

import pytest
from tests.unit.client.group_world import MEMBER, GroupWorld, at, only
from tests.unit.client.virtual import Asked

from lowwater.client.coordinator import NOBODY, Identity
from lowwater.client.errors import (
    AuthorizationError,
    BrokerError,
    ClientError,
    CommitError,
    ConnectError,
    FencedInstanceError,
    GroupError,
    NotMemberError,
    UnsupportedError,
)
from lowwater.client.group import Member, State
from lowwater.errors import ConfigError, ErrorCode
from lowwater.groups.consumer_protocol import decode_subscription
from lowwater.wire.messages import JoinGroupResponse

COOPERATIVE = {"partition_assignment_strategy": "cooperative-sticky"}
ALL = ("assigned", [0, 1, 2, 3])


def started(**settings: object) -> GroupWorld:
    world = GroupWorld(**settings)
    world.start()
    world.advance()
    assert world.member.state is State.STABLE
    return world


def follow(world: GroupWorld, share: dict[str, list[int]]) -> None:
    """Another member leads, and gives this one its share."""

    def join(asked: Asked, code: int) -> JoinGroupResponse:
        response = world.join(asked, code)
        response.leader, response.members = "other", []
        return response

    world.answers["JoinGroup"] = join
    world.share = share


def joined(world: GroupWorld) -> list[str]:
    return [request.member_id for request in world.said("JoinGroup")]


# ---- joining


def test_a_member_is_named_by_the_coordinator_and_then_given_its_share() -> None:
    world = started()
    assert joined(world) == ["", MEMBER]
    assert world.heard.events == [ALL]
    assert world.member.assignment == frozenset(at(0, 1, 2, 3))
    assert world.member.identity == Identity(MEMBER, 1, None)


def test_a_share_of_nothing_is_told_too() -> None:
    world = GroupWorld()
    world.share = {}
    world.start()
    world.advance()
    assert world.heard.events == [("assigned", [])]


def test_what_the_settings_say_is_what_the_group_hears() -> None:
    world = started(session_timeout_ms=9_000, max_poll_interval_ms=70_000, client_rack="r1")
    request = world.said("JoinGroup")[-1]
    assert (request.session_timeout_ms, request.rebalance_timeout_ms) == (9_000, 70_000)
    subscription = decode_subscription(request.protocols[0].metadata)
    assert subscription is not None
    assert (subscription.topics, subscription.rack_id) == (["t"], "r1")


def test_joining_goes_on_until_the_coordinator_is_ready() -> None:
    world = GroupWorld()
    world.refuse("JoinGroup", *[ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 3)
    world.start()
    world.advance()
    assert isinstance(world.member.trouble, ClientError)
    world.advance(5_000)
    assert world.heard.events == [ALL]
    assert world.member.trouble is None


def test_a_share_that_is_refused_because_the_group_rebalances_again_is_asked_for_again() -> None:
    world = GroupWorld()
    world.refuse("SyncGroup", ErrorCode.REBALANCE_IN_PROGRESS)
    world.start()
    world.advance()
    assert world.heard.events == [ALL]
    assert joined(world) == ["", MEMBER, MEMBER]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, GroupError),
        (ErrorCode.INVALID_SESSION_TIMEOUT, GroupError),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, AuthorizationError),
        (ErrorCode.FENCED_INSTANCE_ID, FencedInstanceError),
    ],
)
def test_a_refusal_for_good_ends_the_member_with_that_error(code: ErrorCode, kind: type[ClientError]) -> None:
    world = GroupWorld()
    world.refuse("JoinGroup", code)
    world.start()
    world.advance(60_000)
    assert isinstance(world.heard.failure, kind)
    assert world.member.failure is world.heard.failure
    assert "'g'" in str(world.heard.failure)
    assert world.member.state is State.OVER
    assert len(world.said("JoinGroup")) == 1


def test_a_leader_that_is_excused_hands_in_nothing() -> None:
    world = GroupWorld(group_instance_id="i")

    def excused(asked: Asked, code: int) -> JoinGroupResponse:
        response = world.join(asked, code)
        response.skip_assignment = True
        return response

    world.share = {"t": [2]}
    world.answers["JoinGroup"] = excused
    world.start()
    world.advance()
    assert world.said("SyncGroup")[0].assignments == []
    assert world.heard.events == [("assigned", [2])]


def test_a_topic_that_is_not_there_is_given_to_nobody() -> None:
    world = GroupWorld()
    world.member = Member(world.coordinator, world.heard, topics=["t", "missing"])
    world.start()
    world.advance()
    assert world.heard.events == [ALL]


# ---- staying


def test_heartbeats_are_sent_at_the_interval() -> None:
    world = started(heartbeat_interval_ms=500)
    world.advance(5_000)
    assert len(world.said("Heartbeat")) == 10
    assert {request.generation_id for request in world.said("Heartbeat")} == {1}


def test_a_heartbeat_without_an_answer_is_tried_again_at_another_coordinator_and_nothing_is_lost() -> None:
    world = started()
    world.node = 2
    world.advance(3_000)
    assert len(world.said("FindCoordinator")) == 2
    assert world.heard.events == [ALL]
    assert world.member.state is State.STABLE


def test_heartbeats_as_slow_as_the_session_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"heartbeat\.interval\.ms"):
        GroupWorld(heartbeat_interval_ms=10_000, session_timeout_ms=10_000)


def test_an_unknown_strategy_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match="range, roundrobin, sticky, cooperative-sticky"):
        GroupWorld(partition_assignment_strategy="fair")


# ---- rebalances


def test_a_rebalance_gives_everything_up_and_takes_a_new_share() -> None:
    world = started()
    world.share = {"t": [1, 3]}
    world.refuse("Heartbeat", ErrorCode.REBALANCE_IN_PROGRESS)
    world.advance(1_000)
    assert world.heard.events == [ALL, ("revoked", [0, 1, 2, 3]), ("assigned", [1, 3])]
    assert joined(world) == ["", MEMBER, MEMBER]


def test_a_cooperative_rebalance_gives_up_only_what_goes_and_joins_again() -> None:
    world = started(**COOPERATIVE)
    world.share = {"t": [1, 3]}
    world.refuse("Heartbeat", ErrorCode.REBALANCE_IN_PROGRESS)
    world.advance(1_000)
    assert world.heard.events == [ALL, ("revoked", [0, 2]), ("assigned", []), ("assigned", [])]
    assert world.generation == 3
    subscription = decode_subscription(world.said("JoinGroup")[-1].protocols[0].metadata)
    assert subscription is not None
    assert [(each.topic, each.partitions) for each in subscription.owned_partitions] == [("t", [1, 3])]
    assert subscription.generation_id == 2


def test_partitions_are_not_taken_while_the_caller_works_on_them() -> None:
    world = started()
    world.member.exit_poll()
    world.refuse("Heartbeat", *[ErrorCode.REBALANCE_IN_PROGRESS] * 100)
    world.advance(30_000)
    assert world.heard.events == [ALL]
    assert len(world.said("Heartbeat")) == 30, "it stays known meanwhile"
    world.codes.clear()
    world.begin(world.member.enter_poll())
    world.advance()
    assert world.heard.events == [ALL, ("revoked", [0, 1, 2, 3]), ALL]


def test_a_poll_that_is_over_at_once_lets_the_rebalance_begin() -> None:
    world = started()
    world.member.exit_poll()
    world.refuse("Heartbeat", ErrorCode.REBALANCE_IN_PROGRESS)
    world.advance(1_000)

    async def poll() -> list[tuple[str, list[int]]]:
        await world.member.enter_poll()
        world.member.exit_poll()
        return list(world.heard.events)

    polling = world.begin(poll())
    world.advance()
    assert polling.result() == [ALL, ("revoked", [0, 1, 2, 3])], "given up when the poll goes on"


def test_what_is_done_is_committed_before_it_is_given_up() -> None:
    world = started()
    world.heard.on_revoked = lambda partitions: world.member.commit(dict.fromkeys(partitions, 9))
    world.refuse("Heartbeat", ErrorCode.REBALANCE_IN_PROGRESS)
    world.advance(1_000)
    assert world.offsets == dict.fromkeys(at(0, 1, 2, 3), 9)
    [commit] = world.said("OffsetCommit")
    assert (commit.member_id, commit.generation_id_or_member_epoch) == (MEMBER, 1)
    assert world.member.identity.generation == 2


def test_heartbeats_go_on_while_partitions_are_given_up() -> None:
    world = started()
    world.held.add("OffsetCommit")
    world.heard.on_revoked = lambda partitions: world.member.commit(dict.fromkeys(partitions, 9))
    world.refuse("Heartbeat", ErrorCode.REBALANCE_IN_PROGRESS)
    world.advance(5_000)
    assert len(world.said("Heartbeat")) == 5
    world.let_go()
    assert world.heard.events[-1] == ALL


def test_the_members_subscription_may_change() -> None:
    world = started()
    world.counts["u"] = 1
    world.member.subscribe(["u"])
    world.advance()
    assert world.member.assignment == frozenset(at(0, topic="u"))
    assert world.said("JoinGroup")[-1].reason == "the subscription has changed"


def test_partitions_that_are_added_are_shared_out() -> None:
    world = started(metadata_max_age_ms=10_000)
    world.counts["t"] = 6
    world.advance(10_000)
    assert world.heard.events == [ALL, ("revoked", [0, 1, 2, 3]), ("assigned", [0, 1, 2, 3, 4, 5])]


def test_topics_that_match_later_are_joined() -> None:
    world = GroupWorld(metadata_max_age_ms=10_000)
    world.member = Member(world.coordinator, world.heard, pattern="t.*")
    world.start()
    world.advance()
    assert {one.topic for one in world.member.assignment} == {"t"}
    world.counts |= {"t2": 1, "other": 1}
    world.advance(10_000)
    assert {one.topic for one in world.member.assignment} == {"t", "t2"}


def test_nothing_new_causes_no_rebalance() -> None:
    world = started(metadata_max_age_ms=10_000)
    world.advance(60_000 - 1)
    assert world.generation == 1


def test_partitions_newer_than_what_is_known_are_looked_up_before_they_are_handed_on() -> None:
    world = started()
    world.counts["t"] = 6
    world.share = {"t": [5]}
    world.refuse("Heartbeat", ErrorCode.REBALANCE_IN_PROGRESS)
    world.advance(1_000)
    assert world.heard.events[-1] == ("assigned", [5])
    known = world.cluster.known("t")
    assert known is not None
    assert 5 in known.partitions


# ---- losing the place


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_member_that_is_not_known_any_more_has_lost_its_partitions_and_joins_anew(strategy: str) -> None:
    world = started(partition_assignment_strategy=strategy)
    world.refuse("Heartbeat", ErrorCode.UNKNOWN_MEMBER_ID)
    world.advance(1_000)
    assert world.heard.events == [ALL, ("lost", [0, 1, 2, 3]), ALL]
    assert joined(world) == ["", MEMBER, "", "member-2"]


def test_a_member_of_an_old_generation_joins_again_under_its_name() -> None:
    world = started()
    world.refuse("Heartbeat", ErrorCode.ILLEGAL_GENERATION)
    world.advance(1_000)
    assert world.heard.events == [ALL, ("lost", [0, 1, 2, 3]), ALL]
    assert joined(world) == ["", MEMBER, MEMBER]


def test_what_was_heard_before_a_rebalance_is_not_held_against_the_next_generation() -> None:
    world = started()
    world.held.add("OffsetCommit")
    world.heard.on_revoked = lambda partitions: world.member.commit(dict.fromkeys(partitions, 9), is_retried=False)
    world.refuse("Heartbeat", ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID)
    world.advance(2_000)
    world.let_go()
    world.heard.on_revoked = None
    world.advance(5_000)
    assert [what for what, _ in world.heard.events] == ["assigned", "revoked", "assigned"]
    assert world.member.state is State.STABLE


def test_a_fenced_member_is_over_and_does_not_take_the_place_back() -> None:
    world = started(group_instance_id="i")
    world.refuse("Heartbeat", ErrorCode.FENCED_INSTANCE_ID)
    world.advance(60_000)
    assert isinstance(world.heard.failure, FencedInstanceError)
    assert world.heard.events == [ALL, ("lost", [0, 1, 2, 3])]
    assert len(world.said("JoinGroup")) == 1
    assert not world.said("LeaveGroup")


def test_a_caller_that_does_not_come_back_in_time_loses_its_partitions() -> None:
    world = started(max_poll_interval_ms=20_000)
    world.member.exit_poll()
    world.advance(19_999)
    assert world.heard.events == [ALL]
    world.advance(1)
    assert world.heard.events == [ALL, ("lost", [0, 1, 2, 3])]
    [leaving] = world.said("LeaveGroup")
    assert (leaving.members[0].member_id, leaving.members[0].reason) == (MEMBER, "no poll for 20000 ms")
    beats = len(world.said("Heartbeat"))
    world.advance(60_000)
    assert len(world.said("Heartbeat")) == beats
    world.begin(world.member.enter_poll())
    world.advance()
    assert world.heard.events == [ALL, ("lost", [0, 1, 2, 3]), ALL]


def test_a_caller_that_polls_in_time_keeps_its_partitions() -> None:
    world = started(max_poll_interval_ms=20_000)
    for _ in range(5):
        world.member.exit_poll()
        world.advance(15_000)
        world.begin(world.member.enter_poll())
    assert world.heard.events == [ALL]
    world.advance(100_000)
    assert world.heard.events == [ALL], "one that waits in a poll is there"


def test_a_caller_that_is_back_before_the_group_has_noticed_keeps_its_place() -> None:
    world = started(max_poll_interval_ms=20_000, **COOPERATIVE)
    world.held.add("JoinGroup")
    world.refuse("Heartbeat", ErrorCode.REBALANCE_IN_PROGRESS)
    world.advance(1_000)
    world.member.exit_poll()
    world.advance(22_000)
    world.begin(world.member.enter_poll())
    world.let_go()
    assert world.heard.events == [ALL, ("assigned", [])]
    assert not world.said("LeaveGroup")


def test_a_connection_that_is_refused_for_good_ends_the_member() -> None:
    world = started()
    only(world, "Heartbeat", (90, 91))
    for line in world.driver.open_lines:
        line.drop()
    world.advance(5_000)
    assert isinstance(world.heard.failure, UnsupportedError)


# ---- commits


def test_a_commit_waits_until_shares_are_handed_out() -> None:
    world = started()
    world.refuse("OffsetCommit", *[ErrorCode.REBALANCE_IN_PROGRESS] * 2)
    world.do(world.member.commit({at(0)[0]: 5}), advance_ms=2_000)
    assert world.offsets == {at(0)[0]: 5}


def test_partitions_of_others_are_not_committed_and_named() -> None:
    world = GroupWorld()
    world.share = {"t": [1]}
    world.start()
    world.advance()
    mine, theirs = at(1, 2)
    with pytest.raises(CommitError, match="partition 2") as caught:
        world.do(world.member.commit({mine: 5, theirs: 6}))
    assert isinstance(caught.value.errors[theirs], NotMemberError)
    assert caught.value.committed == {mine}
    assert world.offsets == {mine: 5}


def test_a_commit_that_is_tried_again_leaves_out_what_was_lost_meanwhile() -> None:
    world = started()
    world.share = {"t": [1]}
    world.refuse("OffsetCommit", *[ErrorCode.REBALANCE_IN_PROGRESS] * 4)
    world.refuse("Heartbeat", ErrorCode.REBALANCE_IN_PROGRESS)
    kept, gone = at(1, 0)
    commit = world.begin(world.member.commit({kept: 5, gone: 6}), advance_ms=10_000)
    with pytest.raises(CommitError):
        commit.result()
    assert world.offsets == {kept: 5}


def test_a_commit_that_is_not_retried_is_tried_once() -> None:
    world = started()
    world.refuse("OffsetCommit", ErrorCode.COORDINATOR_NOT_AVAILABLE)
    with pytest.raises(BrokerError) as caught:
        world.do(world.member.commit({at(0)[0]: 5}, is_retried=False))
    assert caught.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert len(world.said("OffsetCommit")) == 1


@pytest.mark.parametrize("is_retried", [True, False])
def test_a_commit_that_the_next_generation_overtakes_is_made_in_that(is_retried: bool) -> None:
    world = GroupWorld(**COOPERATIVE)
    follow(world, {"t": [0, 1, 2, 3]})
    world.start()
    world.advance()
    world.held.add("OffsetCommit")
    commit = world.begin(world.member.commit({at(0)[0]: 5}, is_retried=is_retried))
    world.refuse("Heartbeat", ErrorCode.REBALANCE_IN_PROGRESS)
    world.advance(1_000)
    assert world.member.identity.generation == 2
    [late], world.waiting = world.waiting, []
    late.answer(world.answers["OffsetCommit"](late, ErrorCode.ILLEGAL_GENERATION))
    world.held.clear()
    world.advance(1_000)
    assert commit.result() is None
    assert [each.generation_id_or_member_epoch for each in world.said("OffsetCommit")] == [1, 2]
    assert world.offsets == {at(0)[0]: 5}


def test_a_commit_in_a_generation_that_is_over_is_refused_for_good() -> None:
    world = started()
    world.refuse("OffsetCommit", ErrorCode.ILLEGAL_GENERATION)
    with pytest.raises(NotMemberError):
        world.do(world.member.commit({at(0)[0]: 5}))


# ---- the end


def test_closing_gives_up_and_leaves() -> None:
    world = started()
    world.heard.on_revoked = lambda partitions: world.member.commit(dict.fromkeys(partitions, 9))
    world.do(world.member.close())
    assert world.heard.events == [ALL, ("revoked", [0, 1, 2, 3])]
    assert world.offsets == dict.fromkeys(at(0, 1, 2, 3), 9)
    assert [each.member_id for each in world.said("LeaveGroup")[0].members] == [MEMBER]
    beats = len(world.said("Heartbeat"))
    world.advance(600_000)
    assert len(world.said("Heartbeat")) == beats
    assert world.member.state is State.OVER
    assert world.member.identity == NOBODY


def test_older_coordinators_are_left_in_their_own_words() -> None:
    world = GroupWorld()
    only(world, "LeaveGroup", (0, 2))
    world.start()
    world.advance()
    world.do(world.member.close())
    assert [request.member_id for request in world.said("LeaveGroup")] == [MEMBER]


def test_a_static_member_keeps_its_place_when_it_is_closed() -> None:
    world = started(group_instance_id="i")
    assert joined(world) == [""], "it is known by its instance"
    world.do(world.member.close())
    assert world.heard.events[-1] == ("revoked", [0, 1, 2, 3])
    assert not world.said("LeaveGroup")


def test_a_member_that_waits_for_the_others_can_be_closed() -> None:
    world = GroupWorld()
    world.held.add("SyncGroup")
    world.start()
    world.advance()
    world.do(world.member.close())
    assert len(world.said("LeaveGroup")) == 1
    assert world.heard.events == []


def test_a_member_that_is_closed_while_it_is_named_leaves_under_that_name() -> None:
    world = GroupWorld()
    world.held.add("JoinGroup")
    world.start()
    closing = world.begin(world.member.close())
    assert not closing.done
    world.let_go()
    assert closing.done
    assert [each.member_id for each in world.said("LeaveGroup")[0].members] == [MEMBER]
    assert len(world.said("JoinGroup")) == 1


def test_closing_does_not_wait_for_ever_for_a_name() -> None:
    world = GroupWorld()
    world.held.add("JoinGroup")
    world.start()
    closing = world.begin(world.member.close(), advance_ms=5_000)
    assert closing.result() is None
    assert not world.said("LeaveGroup")


def test_closing_does_not_wait_for_ever_for_a_coordinator_that_is_gone() -> None:
    world = started()
    world.held.add("LeaveGroup")
    closing = world.begin(world.member.close(), advance_ms=4_000)
    assert not closing.done
    world.advance(2_000)
    assert closing.result() is None


def test_a_member_closed_twice_leaves_once() -> None:
    world = started()
    world.do(world.member.close())
    world.do(world.member.close())
    assert len(world.said("LeaveGroup")) == 1


@pytest.mark.parametrize("error", [ValueError("a bug"), ClientError("no start")])
def test_a_hook_that_fails_ends_the_member_and_lets_the_others_have_its_partitions(error: Exception) -> None:
    world = GroupWorld()
    world.heard.raises["assigned"] = error
    world.start()
    world.advance()
    assert str(error) in str(world.heard.failure)
    assert world.heard.events == [ALL, ("lost", [0, 1, 2, 3])]
    assert len(world.said("LeaveGroup")) == 1


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_partitions_that_could_not_be_taken_over_are_taken_over_in_the_next_round(strategy: str) -> None:
    world = GroupWorld(partition_assignment_strategy=strategy)
    world.heard.raises["assigned"] = ConnectError("no broker tells where they begin")
    world.start()
    world.advance()
    assert world.heard.events[0] == ALL
    assert world.member.assignment == frozenset()
    world.heard.raises.clear()
    world.advance(1_000)
    assert world.heard.events[-1] == ALL
    assert world.member.assignment == frozenset(at(0, 1, 2, 3))
    assert world.heard.failure is None


def test_of_those_that_could_not_be_taken_over_only_these_are_told_again() -> None:
    world = GroupWorld(**COOPERATIVE)
    follow(world, {"t": [0]})
    world.start()
    world.advance()
    world.share = {"t": [0, 1]}
    world.heard.raises["assigned"] = ConnectError("no broker tells where it begins")
    world.refuse("Heartbeat", ErrorCode.REBALANCE_IN_PROGRESS)
    world.advance(1_000)
    assert world.member.assignment == frozenset(at(0))
    world.heard.raises.clear()
    world.advance(1_000)
    assert world.heard.events[0] == ("assigned", [0])
    assert world.heard.events[-1] == ("assigned", [1])
    assert world.member.assignment == frozenset(at(0, 1))
