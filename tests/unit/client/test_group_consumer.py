"""A member's life in a group of the consumer protocol (KIP-848), on virtual time."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.client.group_world import MEMBER, GroupWorld, at, only, topic_id

from lowwater.client.errors import (
    BrokerError,
    ClientError,
    ConnectError,
    FencedInstanceError,
    GroupError,
    UnsupportedError,
)
from lowwater.client.group import Member, State
from lowwater.errors import ConfigError, ErrorCode

ALL = ("assigned", [0, 1, 2, 3])
LOST = ("lost", [0, 1, 2, 3])
BEAT = "ConsumerGroupHeartbeat"


def started(**settings: Any) -> GroupWorld:
    world = GroupWorld(group_protocol="consumer", **settings)
    world.start()
    world.advance()
    assert world.member.state is State.STABLE
    return world


def owned(request: Any) -> dict[bytes, list[int]] | None:
    if request.topic_partitions is None:
        return None
    return {each.topic_id: each.partitions for each in request.topic_partitions}


def test_a_member_joins_with_everything_and_takes_over_what_it_is_given() -> None:
    world = started(client_rack="r", group_remote_assignor="range")
    joining, confirming = world.said(BEAT)
    assert (joining.member_epoch, joining.subscribed_topic_names, owned(joining)) == (0, ["t"], {})
    assert (joining.rebalance_timeout_ms, joining.rack_id, joining.server_assignor) == (60_000, "r", "range")
    assert joining.member_id, "it names itself"
    assert world.heard.events == [ALL]
    assert (confirming.member_epoch, owned(confirming)) == (1, {topic_id("t"): [0, 1, 2, 3]})
    assert (confirming.subscribed_topic_names, confirming.rebalance_timeout_ms) == (None, -1), "only what has changed"


def test_older_coordinators_name_the_member() -> None:
    world = GroupWorld(group_protocol="consumer")
    only(world, BEAT, (0, 0))
    world.start()
    world.advance()
    assert [request.member_id for request in world.said(BEAT)] == ["", MEMBER]
    assert world.member.identity.member_id == MEMBER


def test_heartbeats_come_at_the_interval_that_the_coordinator_says_and_repeat_nothing() -> None:
    world = started()
    before = len(world.said(BEAT))
    world.advance(5_000)
    beats = world.said(BEAT)[before:]
    assert len(beats) == 5
    assert {owned(request) is None and request.subscribed_topic_names is None for request in beats} == {True}


def test_what_goes_to_others_is_given_up_first_and_told_at_once() -> None:
    world = started()
    world.share = {"t": [1, 3]}
    world.advance(1_000)
    assert world.heard.events == [ALL, ("revoked", [0, 2]), ("assigned", [])]
    assert owned(world.said(BEAT)[-1]) == {topic_id("t"): [1, 3]}
    assert world.said(BEAT)[-1].member_epoch == 2


def test_nothing_is_given_up_while_the_caller_works_on_it_and_heartbeats_go_on() -> None:
    world = started()
    world.member.exit_poll()
    world.share = {"t": [1]}
    before = len(world.said(BEAT))
    world.advance(10_000)
    assert world.heard.events == [ALL]
    assert len(world.said(BEAT)) == before + 10
    world.begin(world.member.enter_poll())
    world.advance()
    assert world.heard.events == [ALL, ("revoked", [0, 2, 3]), ("assigned", [])]


def test_a_heartbeat_without_an_answer_is_followed_by_one_that_says_everything() -> None:
    world = started()
    world.node = 2
    world.advance(3_000)
    assert world.heard.events == [ALL]
    full = next(request for request in world.said(BEAT)[2:] if request.subscribed_topic_names is not None)
    assert (owned(full), full.member_epoch) == ({topic_id("t"): [0, 1, 2, 3]}, 1)
    assert world.member.state is State.STABLE


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH])
def test_a_member_that_was_put_out_has_lost_its_partitions_and_joins_again(code: ErrorCode) -> None:
    world = started()
    world.refuse(BEAT, code)
    world.advance(1_000)
    assert world.heard.events == [ALL, LOST, ALL]
    assert [request.member_epoch for request in world.said(BEAT)].count(0) == 2


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.UNRELEASED_INSTANCE_ID, FencedInstanceError),
        (ErrorCode.FENCED_INSTANCE_ID, FencedInstanceError),
        (ErrorCode.GROUP_MAX_SIZE_REACHED, GroupError),
        (ErrorCode.UNSUPPORTED_ASSIGNOR, BrokerError),
    ],
)
def test_a_refusal_for_good_ends_the_member(code: ErrorCode, kind: type[ClientError]) -> None:
    world = GroupWorld(group_protocol="consumer", group_instance_id="i")
    world.refuse(BEAT, code)
    world.start()
    world.advance(60_000)
    assert isinstance(world.heard.failure, kind)
    assert world.member.state is State.OVER


def test_a_broker_that_does_not_know_the_protocol_is_told_with_a_way_out() -> None:
    world = GroupWorld(group_protocol="consumer")
    only(world, BEAT, (7, 9))
    world.start()
    world.advance()
    assert isinstance(world.heard.failure, UnsupportedError)
    assert "use group.protocol=classic" in str(world.heard.failure)


def test_a_caller_that_does_not_come_back_in_time_leaves_and_joins_when_it_does() -> None:
    world = started()
    world.member.exit_poll()
    world.advance(60_000)
    assert world.heard.events == [ALL, LOST]
    assert world.said(BEAT)[-1].member_epoch == -1
    before = len(world.said(BEAT))
    world.advance(60_000)
    assert len(world.said(BEAT)) == before
    world.begin(world.member.enter_poll())
    world.advance()
    assert world.heard.events == [ALL, LOST, ALL]


def test_closing_gives_up_and_leaves() -> None:
    world = started()
    world.heard.on_revoked = lambda partitions: world.member.commit(dict.fromkeys(partitions, 9))
    world.do(world.member.close())
    assert world.offsets == dict.fromkeys(at(0, 1, 2, 3), 9)
    assert world.heard.events == [ALL, ("revoked", [0, 1, 2, 3])]
    assert world.said(BEAT)[-1].member_epoch == -1
    before = len(world.said(BEAT))
    world.advance(600_000)
    assert len(world.said(BEAT)) == before


def test_a_static_member_goes_for_a_while() -> None:
    world = started(group_instance_id="i")
    world.do(world.member.close())
    leaving = world.said(BEAT)[-1]
    assert (leaving.member_epoch, leaving.instance_id) == (-2, "i")


def test_a_commit_in_an_epoch_that_has_just_moved_is_tried_again() -> None:
    world = started()
    world.refuse("OffsetCommit", ErrorCode.STALE_MEMBER_EPOCH)
    world.do(world.member.commit({at(0)[0]: 5}), advance_ms=1_000)
    assert world.offsets == {at(0)[0]: 5}
    assert [request.generation_id_or_member_epoch for request in world.said("OffsetCommit")] == [1, 1]


def test_the_subscription_may_change() -> None:
    world = started()
    world.counts["u"] = 1
    world.member.subscribe(["t", "u"])
    world.share = {"t": [0], "u": [0]}
    world.advance()
    assert world.said(BEAT)[-2].subscribed_topic_names == ["t", "u"]
    assert world.member.assignment == frozenset([*at(0), *at(0, topic="u")])


def test_a_subscription_that_changes_while_a_heartbeat_is_under_way_is_told_with_the_next() -> None:
    world = started()
    world.held.add(BEAT)
    world.advance(1_000)
    world.member.subscribe(["t", "u"])
    world.advance()
    world.let_go()
    assert world.said(BEAT)[-1].subscribed_topic_names == ["t", "u"]


def test_topics_that_match_later_are_subscribed_to() -> None:
    world = GroupWorld(group_protocol="consumer", metadata_max_age_ms=10_000)
    world.member = Member(world.coordinator, world.heard, pattern="t.*")
    world.start()
    world.advance()
    world.counts |= {"t2": 1, "other": 1}
    world.advance(10_000)
    names = [request.subscribed_topic_names for request in world.said(BEAT) if request.subscribed_topic_names]
    assert names == [["t"], ["t", "t2"]]


def test_a_topic_whose_name_is_not_known_yet_is_taken_over_when_it_is() -> None:
    world = GroupWorld(group_protocol="consumer")
    world.member = Member(world.coordinator, world.heard, topics=["t", "late"])
    world.share = {"t": [0], "late": [0]}
    world.start()
    world.advance(2_000)
    assert world.member.assignment == frozenset(at(0))
    world.counts["late"] = 1
    world.advance(2_000)
    assert world.member.assignment == frozenset([*at(0), *at(0, topic="late")])


@pytest.mark.parametrize(
    "given", [{"session_timeout_ms": 5_000}, {"heartbeat_interval_ms": 500}, {"partition_assignment_strategy": "range"}]
)
def test_settings_that_the_broker_decides_about_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"group\.protocol=consumer"):
        GroupWorld(group_protocol="consumer", **given)


def test_partitions_that_could_not_be_taken_over_are_taken_over_later_by_the_same_member() -> None:
    world = GroupWorld(group_protocol="consumer")
    world.share = {"t": [0]}
    world.start()
    world.advance()
    world.share = {"t": [0, 1]}
    world.heard.raises["assigned"] = ConnectError("no broker tells where it begins")
    world.advance(2_000)
    assert world.heard.events[:2] == [("assigned", [0]), ("assigned", [1])]
    assert world.member.assignment == frozenset(at(0))
    world.heard.raises.clear()
    world.advance(2_000)
    assert world.heard.events[-1] == ("assigned", [1])
    assert world.member.assignment == frozenset(at(0, 1))
    assert world.member.state is State.STABLE
    assert [request.member_epoch for request in world.said(BEAT)].count(0) == 1, "who joins anew must own nothing"


def test_a_member_whose_first_share_went_to_others_before_it_could_take_it_over_knows_that_it_has_none() -> None:
    world = GroupWorld(group_protocol="consumer")
    world.share = {"t": [0]}
    world.heard.raises["assigned"] = ConnectError("no broker tells where it begins")
    world.start()
    world.advance(1_000)
    assert world.member.state is not State.STABLE
    world.share = {}
    world.advance(10_000)  # it is told, and cannot even take over nothing
    world.heard.raises.clear()
    world.advance(10_000)
    assert world.heard.events[-1] == ("assigned", [])
    assert world.member.assignment == frozenset()
    assert world.member.state is State.STABLE
