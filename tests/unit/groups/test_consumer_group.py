"""Epochs, targets and members of a consumer group."""

from __future__ import annotations

import logging

import pytest
from tests.unit.groups.consumer_world import HEARTBEAT_MS, World

from lowwater.errors import ErrorCode
from lowwater.groups.records import decode
from lowwater.outcome import Outcome


@pytest.fixture
def world() -> World:
    return World()


def stable_pair(world: World) -> None:
    """m1 has t-0 and t-1, m2 the others; both are in epoch 3."""
    world.join("m1")
    world.join("m2")
    world.beat("m1", 2)
    world.beat("m1", 2, owned={"t": [0, 1]})
    world.beat("m2", 3)
    assert world.group.state == "Stable"


# Joining


def test_the_first_member_gets_everything_at_once(world):
    response = world.join("m1")
    assert (response.member_id, response.member_epoch, response.heartbeat_interval_ms) == ("m1", 2, HEARTBEAT_MS)
    assert world.assignment(response) == {"t": [0, 1, 2, 3]}
    assert world.epochs() == (2, 2)
    assert world.group.state == "Stable"


def test_a_second_member_waits_until_the_first_gave_up_its_share(world):
    world.join("m1")
    assert world.assignment(world.join("m2")) == {}
    assert world.group.state == "Reconciling"
    told = world.beat("m1", 2)
    assert (told.member_epoch, world.assignment(told)) == (2, {"t": [0, 1]})
    assert world.assignment(world.beat("m2", 3)) is None
    assert world.held() == {"m1": {"t": [0, 1, 2, 3]}, "m2": {}}
    assert world.beat("m1", 2, owned={"t": [0, 1]}).member_epoch == 3
    assert world.assignment(world.beat("m2", 3)) == {"t": [2, 3]}
    assert world.group.state == "Stable"


def test_a_member_that_still_owns_what_it_shall_give_up_stays_in_its_epoch(world):
    world.join("m1")
    world.join("m2")
    world.beat("m1", 2)
    assert world.beat("m1", 2, owned={"t": [0, 1, 2]}).member_epoch == 2
    assert world.beat("m1", 2).member_epoch == 2
    assert world.assignment(world.beat("m2", 3)) is None


def test_a_join_that_is_repeated_is_answered_again(world):
    world.join("m1")
    again = world.join("m1")
    assert (again.member_epoch, world.assignment(again)) == (2, {"t": [0, 1, 2, 3]})
    assert world.written == []
    assert world.epochs() == (2, 2)


def test_who_joins_anew_under_its_old_id_owns_nothing_and_is_believed():
    world = World({"t": 4, "u": 2})
    world.join("m1")
    world.join("m2")
    world.beat("m1", 2)
    again = world.join("m1", topics=["u"])
    assert (again.member_epoch, world.assignment(again)) == (4, {"u": [0, 1]})
    assert world.assignment(world.beat("m2", 3)) == {"t": [0, 1, 2, 3]}


def test_a_member_with_nothing_to_read_is_stable_too(world):
    world.join("m1", topics=["nope"])
    assert world.group.state == "Stable"
    assert world.held() == {"m1": {}}


def test_a_group_begins_in_epoch_1_and_has_its_first_assignment_in_epoch_2(world):
    assert world.join("m1", topics=[]).member_epoch == 1
    assert (world.epochs(), world.group.state) == ((1, 1), "Stable")
    assert world.join("m2").member_epoch == 2


def test_more_members_than_partitions_are_stable_with_empty_hands(world):
    for number in range(6):
        world.join(f"m{number}")
    for _ in range(6):
        for member_id, member in world.members().items():
            held = {one.topic_name: one.partitions for one in member.target_assignment.topic_partitions}
            world.beat(member_id, member.member_epoch, owned=held)
    assert world.group.state == "Stable"
    assert sorted(len(held.get("t", [])) for held in world.held().values()) == [0, 0, 1, 1, 1, 1]


# What is answered


def test_a_quiet_heartbeat_writes_nothing_and_tells_no_assignment(world):
    world.join("m1")
    response = world.beat("m1", 2)
    assert (response.member_epoch, response.assignment) == (2, None)
    assert world.written == []


def test_the_assignment_is_told_to_who_says_everything(world):
    world.join("m1")
    full = {"rebalance_timeout_ms": 60_000, "owned": {"t": [0]}}
    assert world.beat("m1", 2, **full).assignment is None
    assert world.assignment(world.beat("m1", 2, **full, topics=["t"])) == {"t": [0, 1, 2, 3]}
    assert world.written == []


def test_a_member_whose_answer_was_lost_goes_on_from_the_epoch_before(world):
    stable_pair(world)
    world.beat("m2", -1)
    world.beat("m1", 3)
    again = world.beat("m1", 3, owned={"t": [0, 1]}, topics=["t"], rebalance_timeout_ms=60_000)
    assert (again.member_epoch, world.assignment(again)) == (4, {"t": [0, 1, 2, 3]})


def test_what_a_member_says_of_an_older_epoch_gives_up_nothing(world):
    """Such a heartbeat may have been sent before the member was given more."""
    stable_pair(world)
    world.beat("m2", -1)
    world.beat("m1", 3)
    world.join("m3")
    assert world.beat("m1", 3, owned={"t": [0]}).member_epoch == 4
    assert world.assignment(world.beat("m3", 5)) is None
    held = world.target()["m1"]["t"]
    assert world.beat("m1", 4, owned={"t": held}).member_epoch == 5
    assert world.beat("m3", 5).assignment is not None


def test_a_new_client_id_is_stored(world):
    world.join("m1")
    world.beat("m1", 2, client_id="renamed")
    assert world.members()["m1"].client_id == "renamed"
    assert world.epochs() == (2, 2)


# Leaving


def test_who_leaves_frees_its_partitions_at_once(world):
    stable_pair(world)
    response = world.beat("m2", -1)
    assert (response.member_id, response.member_epoch, response.heartbeat_interval_ms) == ("m2", -1, 0)
    assert world.group.state == "Assigning"
    assert world.epochs() == (4, 3)
    assert world.assignment(world.beat("m1", 3)) == {"t": [0, 1, 2, 3]}
    assert world.group.state == "Stable"


def test_a_group_that_everybody_left_is_empty_and_goes_on_from_its_epoch(world):
    stable_pair(world)
    world.beat("m1", -1)
    world.beat("m2", -1)
    assert (world.group.state, world.group.is_empty) == ("Empty", True)
    assert world.join("m3").member_epoch == 6


def test_who_leaves_goes_from_the_log_too(world):
    world.join("m1")
    world.beat("m1", -1)
    world.reload()
    assert world.members() == {}
    assert world.metrics.total_members == 0


# Subscriptions


def test_a_changed_subscription_begins_a_new_epoch():
    world = World({"t": 4, "u": 2})
    world.join("m1")
    told = world.beat("m1", 2, topics=["u"])
    assert (told.member_epoch, world.assignment(told)) == (2, {})
    told = world.beat("m1", 2, owned={})
    assert (told.member_epoch, world.assignment(told)) == (3, {"u": [0, 1]})


def test_the_same_subscription_in_another_order_is_no_change():
    world = World({"t": 4, "u": 2})
    world.join("m1", topics=["t", "u"])
    world.beat("m1", 2, topics=["u", "t", "u"])
    assert (world.written, world.epochs()) == ([], (2, 2))


def test_who_unsubscribes_from_everything_is_told_to_give_it_up(world):
    world.join("m1")
    assert world.assignment(world.beat("m1", 2, topics=[])) == {}
    assert world.beat("m1", 2, owned={}).member_epoch == 3
    assert world.held() == {"m1": {}}


def test_a_group_says_to_what_it_subscribes():
    world = World({"t": 1, "u1": 1, "u2": 1, "v": 1})
    world.join("m1")
    world.join("m2", pattern="u.*")
    assert [world.group.subscribes_to(name) for name in ("t", "u1", "u2", "v")] == [True, True, True, False]
    world.beat("m2", -1)
    assert not world.group.subscribes_to("u1")


# Topics


def test_a_topic_that_grows_is_noticed_at_the_next_heartbeat(world):
    world.join("m1")
    world.topics.grow("t", 6)
    told = world.beat("m1", 2)
    assert (told.member_epoch, world.assignment(told)) == (3, {"t": [0, 1, 2, 3, 4, 5]})


def test_a_topic_that_is_made_is_given_to_who_waits_for_it(world):
    world.join("m1", topics=["later"])
    world.topics.create("later", 2)
    assert world.assignment(world.beat("m1", 2)) == {"later": [0, 1]}


def test_a_topic_that_is_deleted_is_taken_away(world):
    world.join("m1")
    world.topics.delete("t")
    told = world.beat("m1", 2)
    assert (told.member_epoch, told.assignment.topic_partitions) == (2, [])
    assert world.beat("m1", 2, owned={}).member_epoch == 3
    assert world.group.state == "Stable"


def test_a_topic_that_is_made_anew_is_another_topic(world):
    world.join("m1")
    old_id = world.topics.topic_id("t")
    world.topics.delete("t")
    world.topics.create("t", 2)
    world.beat("m1", 2)
    told = world.beat("m1", 2, owned={})
    (given,) = told.assignment.topic_partitions
    assert (given.topic_id != old_id, given.partitions) == (True, [0, 1])


def test_other_topics_are_nobodys_concern(world):
    world.join("m1")
    world.topics.create("other", 3)
    world.beat("m1", 2)
    assert (world.written, world.epochs()) == ([], (2, 2))


# Assignors


def test_most_wishes_decide_on_the_assignor(world):
    world.join("m1", server_assignor="range")
    assert world.group.describe().assignor_name == "range"
    world.join("m2", server_assignor="uniform")
    world.join("m3", server_assignor="uniform")
    assert world.group.describe().assignor_name == "uniform"
    world.beat("m2", -1)
    assert world.group.describe().assignor_name == "uniform"
    world.beat("m3", -1)
    assert world.group.describe().assignor_name == "range"


def test_without_wishes_the_first_of_the_settings_assigns():
    world = World(consumer_assignors=("range", "uniform"))
    world.join("m1")
    assert world.group.describe().assignor_name == "range"


def test_the_wished_assignor_is_the_one_that_assigns():
    world = World({"t": 3, "u": 3})
    world.join("m1", topics=["t", "u"], server_assignor="range")
    world.join("m2", topics=["t", "u"], server_assignor="range")
    assert world.target() == {"m1": {"t": [0, 1], "u": [0, 1]}, "m2": {"t": [2], "u": [2]}}


def test_an_assignor_that_fails_is_told_and_nothing_is_written(world):
    world = World(consumer_assignors=("no such one",))
    assert world.refused("m1", 0, topics=["t"], owned={}, rebalance_timeout_ms=1) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.group.is_empty


# Description and the end


def test_a_group_is_described_with_what_its_members_have_and_shall_have(world):
    world.join("m1", rack_id="r1")
    world.join("m2", instance_id="i2")
    world.beat("m1", 2)
    first, second = world.group.describe().members
    assert (first.member_id, first.rack_id, first.instance_id, first.member_epoch) == ("m1", "r1", None, 2)
    assert (first.client_id, first.client_host, first.member_type) == ("client", "/1.2.3.4", 1)
    assert (first.subscribed_topic_names, first.subscribed_topic_regex) == (["t"], "")
    assert [one.partitions for one in first.assignment.topic_partitions] == [[0, 1, 2, 3]]
    assert [one.partitions for one in first.target_assignment.topic_partitions] == [[0, 1]]
    assert (second.instance_id, second.member_epoch, second.assignment.topic_partitions) == ("i2", 3, [])


def test_a_forgotten_group_leaves_nothing_in_the_log():
    world = World({"t": 4, "u": 1})
    world.join("m1")
    world.join("m2", pattern="u.*", instance_id="i")
    world.beat("m2", -2, instance_id="i")
    out = Outcome()
    world.group.forget(out)
    living = {record.key: record.value for record in [*world.log, *out.records]}
    assert set(living.values()) == {None}
    key, _ = decode(out.records[-1])
    assert type(key).__name__ == "ConsumerGroupMetadataKey"


def test_rebalances_are_counted_with_their_duration(world):
    world.join("m1")
    assert (world.metrics.rebalances_total, world.metrics.rebalance_duration_ms_sum) == (1, 0)
    world.join("m2")
    world.wait(1_000)
    world.beat("m1", 2)
    world.beat("m1", 2, owned={"t": [0, 1]})
    world.wait(500)
    assert world.metrics.rebalances_total == 1
    world.beat("m2", 3)
    assert (world.metrics.rebalances_total, world.metrics.rebalance_duration_ms_sum) == (2, 1_500)
    assert world.metrics.total_members == 2


def test_an_id_of_a_member_cannot_forge_a_line_of_the_log(world, caplog):
    caplog.set_level(logging.INFO, "lowwater.groups")
    world.join("one\ntwo")
    world.beat("one\ntwo", -1)
    assert len(caplog.messages) >= 2
    assert not any("\n" in message for message in caplog.messages)
    assert any("one\\ntwo" in message for message in caplog.messages)
