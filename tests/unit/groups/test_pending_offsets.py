"""Offsets that are committed in transactions: unseen until the transaction commits, gone when it aborts."""

from __future__ import annotations

import itertools

import pytest
from tests.unit.groups.shard_world import DAY_MS, OK, WEEK_MS, ShardWorld

from lowwater.errors import ErrorCode
from lowwater.groups.commands import Fetch
from lowwater.groups.consumer_protocol import ConsumerProtocolSubscription, encode_subscription
from lowwater.groups.records import read_offset_value
from lowwater.wire.messages.offset_fetch import OffsetFetchRequestGroup

ORDERS = ("orders", 0)


@pytest.fixture
def world() -> ShardWorld:
    return ShardWorld()


# -- seen or not


def test_what_a_transaction_commits_is_seen_when_it_commits_and_not_before(world: ShardWorld) -> None:
    world.commit("g", {ORDERS: 1})
    assert world.commit_in_transaction("g", {ORDERS: 5, ("metrics", 0): 6}) == [OK, OK]
    assert world.fetch_all("g") == {ORDERS: 1}
    world.end_transaction(commit=True)
    assert world.fetch_all("g") == {ORDERS: 5, ("metrics", 0): 6}


def test_what_a_transaction_commits_is_gone_when_it_aborts(world: ShardWorld) -> None:
    world.commit("g", {ORDERS: 1})
    world.commit_in_transaction("g", {ORDERS: 5, ("metrics", 0): 6})
    world.end_transaction(commit=False)
    assert world.fetch_all("g") == {ORDERS: 1}
    world.commit_in_transaction("g", {ORDERS: 7})
    world.end_transaction(commit=True)
    assert world.fetch_all("g") == {ORDERS: 7}


def test_who_wants_what_is_stable_is_told_to_come_again_for_those_partitions_alone(world: ShardWorld) -> None:
    world.commit("g", {ORDERS: 1, ("orders", 1): 2})
    world.commit_in_transaction("g", {ORDERS: 5})
    assert world.is_unstable("g")
    assert not world.is_unstable("g", partition=1)
    assert not world.is_unstable("h")
    world.end_transaction(commit=True)
    assert not world.is_unstable("g")
    world.commit_in_transaction("g", {ORDERS: 6})
    world.end_transaction(commit=False)
    assert not world.is_unstable("g")


def test_everything_that_is_stable_tells_of_committed_partitions_only(world: ShardWorld) -> None:
    world.commit("g", {ORDERS: 1, ("orders", 1): 2})
    world.commit_in_transaction("g", {ORDERS: 5, ("metrics", 0): 6})
    answer = world.ask(Fetch(OffsetFetchRequestGroup(group_id="g", topics=None), False, True))
    told = {(topic.name, one.partition_index): one.error_code for topic in answer.topics for one in topic.partitions}
    assert told == {ORDERS: ErrorCode.UNSTABLE_OFFSET_COMMIT, ("orders", 1): OK}


def test_a_transaction_ends_for_its_producer_alone(world: ShardWorld) -> None:
    world.commit_in_transaction("g", {ORDERS: 5}, producer=7)
    world.commit_in_transaction("g", {("orders", 1): 6}, producer=8)
    world.end_transaction(7, commit=True)
    assert world.fetch_all("g") == {ORDERS: 5}
    assert world.is_unstable("g", partition=1)
    world.end_transaction(8, commit=False)
    assert world.fetch_all("g") == {ORDERS: 5}


def test_the_end_of_a_transaction_without_offsets_changes_nothing(world: ShardWorld) -> None:
    world.commit("g", {ORDERS: 1})
    world.end_transaction(commit=True)
    assert world.fetch_all("g") == {ORDERS: 1}


def test_groups_of_one_transaction_are_all_committed(world: ShardWorld) -> None:
    world.commit_in_transaction("g", {ORDERS: 5})
    world.commit_in_transaction("h", {ORDERS: 6})
    world.end_transaction(commit=True)
    assert (world.fetch("g")[0], world.fetch("h")[0]) == (5, 6)


# -- the last commit of a partition holds, by its place in the log


def test_the_later_of_two_in_one_transaction_holds(world: ShardWorld) -> None:
    world.commit_in_transaction("g", {ORDERS: 5})
    world.commit_in_transaction("g", {ORDERS: 3})
    world.end_transaction(commit=True)
    assert world.fetch("g")[0] == 3


def test_a_commit_after_that_of_a_transaction_holds_also_when_the_transaction_commits_later(world: ShardWorld) -> None:
    world.commit_in_transaction("g", {ORDERS: 5, ("orders", 1): 5})
    world.commit("g", {ORDERS: 2})
    assert world.is_unstable("g")
    world.end_transaction(commit=True)
    assert world.fetch_all("g") == {ORDERS: 2, ("orders", 1): 5}


@pytest.mark.parametrize("ends", list(itertools.permutations((7, 8, 9))))
def test_of_several_transactions_the_last_to_commit_an_offset_holds_whatever_ends_first(
    world: ShardWorld, ends: tuple[int, ...]
) -> None:
    for producer in (7, 8, 9):
        world.commit_in_transaction("g", {ORDERS: producer}, producer=producer)
    for producer in ends:
        world.end_transaction(producer, commit=True)
    assert world.fetch("g")[0] == 9


@pytest.mark.parametrize("ends", list(itertools.permutations((7, 8, 9))))
def test_an_aborted_transaction_overtakes_nobody(world: ShardWorld, ends: tuple[int, ...]) -> None:
    for producer in (7, 8, 9):
        world.commit_in_transaction("g", {ORDERS: producer}, producer=producer)
    for producer in ends:
        world.end_transaction(producer, commit=producer != 9)
    assert world.fetch("g")[0] == 8


# -- after a restart


@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("commit", [False, True])
def test_a_restart_in_the_middle_changes_nothing(world: ShardWorld, commit: bool, is_compacted: bool) -> None:
    world.commit("g", {ORDERS: 1, ("orders", 1): 1})
    world.commit_in_transaction("g", {ORDERS: 5, ("orders", 1): 5})
    world.commit("g", {("orders", 1): 2})
    world.restart(world.compacted() if is_compacted else None)
    assert world.fetch_all("g") == {ORDERS: 1, ("orders", 1): 2}
    assert world.is_unstable("g")
    world.end_transaction(commit=commit)
    expected = {ORDERS: 5 if commit else 1, ("orders", 1): 2}
    assert world.fetch_all("g") == expected
    world.restart(world.compacted() if is_compacted else None)
    assert world.fetch_all("g") == expected
    assert not world.is_unstable("g")


def test_a_group_whose_only_offsets_are_pending_is_there_after_a_restart(world: ShardWorld) -> None:
    world.commit_in_transaction("g", {ORDERS: 5})
    assert world.list_groups() == {"g": ("Empty", "classic", "")}
    world.restart()
    assert world.list_groups() == {"g": ("Empty", "classic", "")}
    world.end_transaction(commit=True)
    assert world.fetch_all("g") == {ORDERS: 5}


# -- forgetting


def test_pending_offsets_keep_their_group_and_what_they_replace(world: ShardWorld) -> None:
    world.commit("g", {ORDERS: 1, ("orders", 1): 1})
    world.commit_in_transaction("g", {ORDERS: 5})
    world.pass_time(WEEK_MS)
    world.expire()
    assert world.fetch_all("g") == {ORDERS: 1}
    world.end_transaction(commit=False)
    world.expire()
    assert world.list_groups() == {}


def test_a_group_with_nothing_but_pending_offsets_does_not_expire(world: ShardWorld) -> None:
    world.commit_in_transaction("g", {ORDERS: 5})
    world.pass_time(WEEK_MS)
    assert not world.expire().records
    world.end_transaction(commit=False)
    world.expire()
    assert world.list_groups() == {}


def test_an_offset_of_a_transaction_ages_from_its_commit_not_from_the_end_of_the_transaction(world: ShardWorld) -> None:
    world.commit_in_transaction("g", {ORDERS: 5})
    world.pass_time(6 * DAY_MS)
    world.commit("g", {("orders", 1): 6})
    world.expire()
    world.end_transaction(commit=True)
    world.pass_time(DAY_MS)
    world.expire()
    assert world.fetch_all("g") == {("orders", 1): 6}


def test_a_deleted_offset_is_gone_with_what_would_replace_it(world: ShardWorld) -> None:
    world.commit("g", {("orders", 1): 1})
    world.commit_in_transaction("g", {ORDERS: 5, ("orders", 1): 5})
    assert world.delete_offsets("g", "orders", 0, 1) == [OK, OK]
    assert not world.is_unstable("g")
    world.commit_in_transaction("g", {("orders", 2): 7})
    world.end_transaction(commit=True)
    assert world.fetch_all("g") == {("orders", 2): 7}
    world.restart()
    assert world.fetch_all("g") == {("orders", 2): 7}


def test_a_deleted_group_is_gone_with_its_pending_offsets(world: ShardWorld) -> None:
    world.commit("g", {("orders", 1): 1})
    world.commit_in_transaction("g", {ORDERS: 5, ("orders", 1): 5})
    assert world.delete_group("g") == OK
    world.end_transaction(commit=True)
    assert world.list_groups() == {}
    world.restart()
    assert world.list_groups() == {}


@pytest.mark.parametrize("is_noticed", [True, False])
def test_pending_offsets_go_with_their_topic(world: ShardWorld, is_noticed: bool) -> None:
    world.commit_in_transaction("g", {ORDERS: 5, ("metrics", 0): 6})
    world.commit_in_transaction("h", {ORDERS: 5}, producer=8)
    world.topics.delete("orders")
    if is_noticed:
        world.do(world.shard.topic_deleted("orders", world.shard.offsets.groups_of("orders")))
    else:
        world.restart()
    world.topics.create("orders", 3)
    world.end_transaction(commit=True)
    world.end_transaction(8, commit=True)
    assert (world.fetch_all("g"), world.fetch_all("h")) == ({("metrics", 0): 6}, {})
    assert len(world.shard.offsets) == 1


def test_offsets_for_the_topic_of_now_survive_those_of_its_namesake(world: ShardWorld) -> None:
    world.commit("g", {ORDERS: 1})
    world.topics.delete("orders")
    world.topics.create("orders", 3)
    world.commit_in_transaction("g", {ORDERS: 5})
    world.restart()
    assert world.fetch_all("g") == {}
    world.end_transaction(commit=True)
    assert world.fetch_all("g") == {ORDERS: 5}


# -- what is stored, and what is refused


def test_what_is_stored_is_an_offset_like_any_other_in_the_transaction_of_its_producer(world: ShardWorld) -> None:
    world.commit_in_transaction("g", {ORDERS: 5}, metadata="so far")
    [entry] = world.log
    stored = read_offset_value(entry.record.value)
    assert entry.producer == (7, 0)
    assert (stored.offset, stored.metadata, stored.commit_timestamp) == (5, "so far", world.wall_ms)
    assert stored.topic_id == world.topics.topic_id("orders")
    assert world.shard.metrics.offset_commits_total == 1


def test_the_known_partitions_are_stored_beside_unknown_ones(world: ShardWorld) -> None:
    codes = world.commit_in_transaction("g", {("orders", 9): 1, ORDERS: 2, ("nothing", 0): 3})
    assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, OK, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    world.end_transaction(commit=True)
    assert world.fetch_all("g") == {ORDERS: 2}


def test_a_long_text_is_refused_for_its_partition(world: ShardWorld) -> None:
    codes = world.commit_in_transaction("g", {ORDERS: 2}, metadata="e" * 4097)
    assert codes == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
    assert not world.log


def test_an_empty_group_id_is_refused(world: ShardWorld) -> None:
    assert world.commit_in_transaction("", {ORDERS: 2}) == [ErrorCode.INVALID_GROUP_ID]
    assert not world.log


def test_a_generation_of_no_group_is_refused(world: ShardWorld) -> None:
    codes = world.commit_in_transaction("g", {ORDERS: 2}, member_id="m", generation=1)
    assert codes == [ErrorCode.ILLEGAL_GENERATION]
    assert world.list_groups() == {}


def test_a_member_commits_in_its_generation_and_a_producer_that_names_none_always(world: ShardWorld) -> None:
    subscription = encode_subscription(ConsumerProtocolSubscription(topics=["orders"], user_data=None))
    member_id, generation = world.join("g", subscription)
    commit = world.commit_in_transaction
    assert commit("g", {ORDERS: 1}, member_id=member_id, generation=generation) == [OK]
    assert commit("g", {ORDERS: 2}, member_id=member_id, generation=generation - 1) == [ErrorCode.ILLEGAL_GENERATION]
    assert commit("g", {ORDERS: 3}, member_id="?", generation=generation) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert commit("g", {ORDERS: 4}, instance_id="?") == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert commit("g", {ORDERS: 5}) == [OK]
    world.end_transaction(commit=True)
    assert world.fetch("g")[0] == 5
