"""Committed offsets: what is stored, what is refused, what is forgotten and when. Ids are those of the requirements."""

from __future__ import annotations

import pytest
from tests.unit.groups.shard_world import DAY_MS, OK, WEEK_MS, ShardWorld

from lowwater.errors import ErrorCode
from lowwater.groups import offsets
from lowwater.groups.commands import ConsumerHeartbeat, Fetch
from lowwater.groups.consumer_protocol import ConsumerProtocolSubscription, encode_subscription
from lowwater.groups.records import read_offset_value
from lowwater.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from lowwater.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics

SUBSCRIBES_TO_ORDERS = encode_subscription(ConsumerProtocolSubscription(topics=["orders"], user_data=None))


@pytest.fixture
def world() -> ShardWorld:
    return ShardWorld()


# -- storing (S0-1 to S0-4, S0-10, S0-14)


def test_a_commit_is_fetched_again(world: ShardWorld) -> None:
    assert world.commit("g", {("orders", 0): 105}, metadata="so far") == [OK]
    assert world.fetch("g") == (105, "so far")


@pytest.mark.parametrize("place", [("nothing", 0), ("orders", 3), ("orders", -1)])
def test_an_unknown_topic_or_partition_is_an_error_there_and_nothing_is_stored(
    world: ShardWorld, place: tuple[str, int]
) -> None:
    assert world.commit("g", {place: 5}) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert not world.log
    assert world.list_groups() == {}


def test_the_known_partitions_of_a_commit_are_stored_beside_unknown_ones(world: ShardWorld) -> None:
    codes = world.commit("g", {("orders", 0): 1, ("orders", 9): 2, ("metrics", 0): 3})
    assert codes == [OK, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, OK]
    assert world.fetch_all("g") == {("orders", 0): 1, ("metrics", 0): 3}


def test_what_was_never_committed_is_none_and_not_zero(world: ShardWorld) -> None:
    assert world.fetch("g") == (-1, "")
    world.commit("g", {("orders", 0): 0})
    assert world.fetch("g") == (0, "")
    assert world.fetch("g", partition=1) == (-1, "")


def test_groups_topics_and_partitions_are_isolated(world: ShardWorld) -> None:
    world.commit("a", {("orders", 0): 1, ("orders", 1): 2, ("metrics", 0): 3})
    world.commit("b", {("orders", 0): 4})
    assert world.fetch_all("a") == {("orders", 0): 1, ("orders", 1): 2, ("metrics", 0): 3}
    assert world.fetch_all("b") == {("orders", 0): 4}


def test_a_commit_replaces_the_one_before_also_backwards(world: ShardWorld) -> None:
    for offset in (7, 7, 9, 3):
        world.commit("g", {("orders", 0): offset})
    assert world.fetch("g") == (3, "")
    assert world.fetch_all("g") == {("orders", 0): 3}


def test_the_later_of_two_entries_for_one_partition_holds(world: ShardWorld) -> None:
    world.commit("g", {("orders", 0): 5})
    world.commit("g", {("orders", 0): 6, ("orders", 1): 1})
    assert world.fetch("g") == (6, "")


def test_a_long_text_is_refused_for_its_partition(world: ShardWorld) -> None:
    assert world.commit("g", {("orders", 0): 5}, metadata="é" * 4096) == [OK]
    assert world.commit("g", {("orders", 0): 6}, metadata="e" * 4097) == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
    assert world.fetch("g")[0] == 5


def test_no_text_is_an_empty_text(world: ShardWorld) -> None:
    world.commit("g", {("orders", 0): 5}, metadata=None)
    assert world.fetch("g") == (5, "")


# -- topics by id


def test_a_commit_by_topic_id_is_that_of_the_topic(world: ShardWorld) -> None:
    assert world.commit("g", {("orders", 0): 5}, by_id=True) == [OK]
    assert world.fetch("g") == (5, "")


def test_an_unknown_topic_id_is_an_error_at_each_partition(world: ShardWorld) -> None:
    assert world.commit("g", {("gone", 0): 5}, by_id=True) == [ErrorCode.UNKNOWN_TOPIC_ID]
    topics = [OffsetFetchRequestTopics(topic_id=b"?" * 16, partition_indexes=[0, 1])]
    answer = world.ask(Fetch(OffsetFetchRequestGroup(group_id="g", topics=topics), True, False))
    assert [one.error_code for one in answer.topics[0].partitions] == [ErrorCode.UNKNOWN_TOPIC_ID] * 2


def test_everything_by_id_names_the_topics_by_id(world: ShardWorld) -> None:
    world.commit("g", {("orders", 0): 5})
    answer = world.ask(Fetch(OffsetFetchRequestGroup(group_id="g", topics=None), True, False))
    assert [topic.topic_id for topic in answer.topics] == [world.topics.topic_id("orders")]


# -- who may commit


def test_a_commit_without_a_member_makes_a_simple_group(world: ShardWorld) -> None:
    world.commit("g", {("orders", 0): 5})
    assert world.list_groups() == {"g": ("Empty", "classic", "")}


def test_a_commit_of_a_member_of_no_group_is_refused(world: ShardWorld) -> None:
    codes = world.commit("g", {("orders", 0): 5, ("orders", 9): 5}, member_id="m", generation=3)
    assert codes == [ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert world.list_groups() == {}


def test_a_member_commits_in_its_generation_only(world: ShardWorld) -> None:
    member_id, generation = world.join("g")
    assert world.commit("g", {("orders", 0): 5}, member_id=member_id, generation=generation) == [OK]
    stale = world.commit("g", {("orders", 0): 9}, member_id=member_id, generation=generation - 1)
    assert stale == [ErrorCode.ILLEGAL_GENERATION]
    assert world.commit("g", {("orders", 0): 9}) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert world.fetch("g")[0] == 5


def beat(world: ShardWorld, member_id: str, epoch: int, owned: list[int]) -> ConsumerGroupHeartbeatResponse:
    topic_id = world.topics.topic_id("orders") or b""
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["orders"],
        topic_partitions=[TopicPartitions(topic_id=topic_id, partitions=owned)] if owned else [],
    )
    answer: ConsumerGroupHeartbeatResponse = world.ask(ConsumerHeartbeat(request, "client", "/host", False))
    return answer


@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_commit_of_an_older_epoch_is_taken_for_what_the_member_still_has_and_refused_with_anything_else(
    world: ShardWorld, in_transaction: bool
) -> None:
    beat(world, "a", 0, [])
    beat(world, "b", 0, [])
    told = beat(world, "a", 2, [0, 1, 2])
    assert told.assignment is not None
    [kept] = told.assignment.topic_partitions
    assert beat(world, "a", 2, kept.partitions).member_epoch == 3
    lost = next(one for one in range(3) if one not in kept.partitions)
    commit = world.commit_in_transaction if in_transaction else world.commit
    stale = ErrorCode.ILLEGAL_GENERATION if in_transaction else ErrorCode.STALE_MEMBER_EPOCH
    both = {("orders", kept.partitions[0]): 5, ("orders", lost): 6, ("orders", 9): 7}
    codes = commit("g", both, member_id="a", generation=2)
    assert codes == [stale, stale, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    own = {("orders", kept.partitions[0]): 5}
    assert commit("g", own, member_id="a", generation=2) == [OK]
    world.end_transaction(commit=True)
    assert world.fetch_all("g") == own


def test_the_empty_group_id_can_commit_and_fetch(world: ShardWorld) -> None:
    assert world.commit("", {("orders", 0): 5}) == [OK]
    assert world.fetch("") == (5, "")


# -- after a restart (S0-15)


def test_a_restart_finds_every_offset_and_group_again(world: ShardWorld) -> None:
    world.commit("g", {("orders", 0): 5, ("metrics", 0): 6}, metadata="note")
    world.commit("h", {("orders", 2): 7})
    world.commit("g", {("orders", 0): 8}, metadata="later")
    world.restart()
    assert world.fetch("g") == (8, "later")
    assert world.fetch_all("g") == {("orders", 0): 8, ("metrics", 0): 6}
    assert world.fetch_all("h") == {("orders", 2): 7}
    assert set(world.list_groups()) == {"g", "h"}


def test_a_compacted_log_gives_the_same_state(world: ShardWorld) -> None:
    for offset in range(50):
        world.commit("g", {("orders", offset % 3): offset})
        world.commit(f"h{offset % 5}", {("metrics", 0): offset})
    world.delete_group("h1")
    world.delete_offsets("g", "orders", 1)
    before = {group: world.fetch_all(group) for group in world.list_groups()}
    assert len(world.compacted()) < len(world.log)
    world.restart(world.compacted())
    assert {group: world.fetch_all(group) for group in world.list_groups()} == before


# -- forgetting


def test_deleted_offsets_are_gone_also_after_a_restart(world: ShardWorld) -> None:
    world.commit("g", {("orders", 0): 5, ("orders", 1): 6})
    codes = world.delete_offsets("g", "orders", 0, 2, 9)
    assert codes == [OK, OK, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    world.restart()
    assert world.fetch_all("g") == {("orders", 1): 6}


def test_offsets_of_an_unknown_group_or_topic_cannot_be_deleted(world: ShardWorld) -> None:
    assert world.delete_offsets("g", "orders", 0) == ErrorCode.GROUP_ID_NOT_FOUND
    world.commit("g", {("orders", 0): 5})
    assert world.delete_offsets("g", "nothing", 0) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_offsets_of_a_topic_that_is_still_read_cannot_be_deleted(world: ShardWorld) -> None:
    member_id, generation = world.join("g", SUBSCRIBES_TO_ORDERS)
    world.commit("g", {("orders", 0): 5, ("metrics", 0): 6}, member_id=member_id, generation=generation)
    assert world.delete_offsets("g", "orders", 0) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
    assert world.delete_offsets("g", "metrics", 0) == [OK]
    assert world.fetch_all("g") == {("orders", 0): 5}


def test_offsets_of_a_living_group_of_another_protocol_cannot_be_deleted(world: ShardWorld) -> None:
    world.join("g", protocol_type="connect")
    assert world.delete_offsets("g", "orders", 0) == ErrorCode.NON_EMPTY_GROUP


def test_a_deleted_group_is_gone_with_its_offsets(world: ShardWorld) -> None:
    world.commit("g", {("orders", 0): 5})
    assert world.delete_group("g") == OK
    assert world.delete_group("g") == ErrorCode.GROUP_ID_NOT_FOUND
    world.restart()
    assert world.fetch("g") == (-1, "")
    assert world.list_groups() == {}


def test_a_group_with_members_is_not_deleted(world: ShardWorld) -> None:
    world.join("g")
    assert world.delete_group("g") == ErrorCode.NON_EMPTY_GROUP


def test_a_deleted_topic_drops_its_offsets(world: ShardWorld) -> None:
    world.commit("g", {("orders", 0): 5, ("metrics", 0): 6})
    world.topics.delete("orders")
    world.do(world.shard.topic_deleted("orders", ["g"]))
    world.topics.create("orders", 3)
    assert world.fetch_all("g") == {("metrics", 0): 6}
    world.restart()
    assert world.fetch_all("g") == {("metrics", 0): 6}


@pytest.mark.parametrize("comes_back", [True, False])
def test_offsets_of_a_topic_that_went_while_nobody_looked_do_not_rise_again(
    world: ShardWorld, comes_back: bool
) -> None:
    world.commit("g", {("orders", 0): 5, ("metrics", 0): 6})
    world.topics.delete("orders")
    if comes_back:
        world.topics.create("orders", 3)
        assert world.fetch("g") == (-1, "")
    world.restart()
    if not comes_back:
        world.topics.create("orders", 3)
    assert world.fetch_all("g") == {("metrics", 0): 6}
    assert len(world.shard.offsets) == 1


# -- retention (S0-18)


def test_offsets_of_a_simple_group_age_from_their_commits_and_the_group_goes_with_the_last(world: ShardWorld) -> None:
    world.commit("g", {("orders", 0): 5})
    world.pass_time(DAY_MS)
    world.commit("g", {("orders", 1): 6})
    world.pass_time(6 * DAY_MS - 1)
    world.expire()
    assert world.fetch_all("g") == {("orders", 0): 5, ("orders", 1): 6}
    world.pass_time(1)
    world.expire()
    assert world.fetch_all("g") == {("orders", 1): 6}
    world.pass_time(DAY_MS)
    world.expire()
    assert world.list_groups() == {}
    world.restart()
    assert world.list_groups() == {}


def test_offsets_of_a_group_that_had_members_age_from_the_moment_it_became_empty(world: ShardWorld) -> None:
    member_id, generation = world.join("g", SUBSCRIBES_TO_ORDERS)
    world.commit("g", {("orders", 0): 5}, member_id=member_id, generation=generation)
    world.pass_time(5_000)
    world.leave("g", member_id)
    world.pass_time(WEEK_MS - 1)
    world.expire()
    assert world.fetch_all("g") == {("orders", 0): 5}
    world.restart()
    world.pass_time(1)
    world.expire()
    assert world.list_groups() == {}


def test_a_living_group_keeps_what_it_reads_and_loses_what_it_does_not_read_any_more() -> None:
    world = ShardWorld(session_timeout_max_ms=2**31 - 1)
    member_id, generation = world.join("g", SUBSCRIBES_TO_ORDERS)
    world.commit("g", {("orders", 0): 5, ("metrics", 0): 6}, member_id=member_id, generation=generation)
    world.wall_ms += 2 * WEEK_MS  # no heartbeat is due: the clock of timers stands still
    world.expire()
    assert world.fetch_all("g") == {("orders", 0): 5}


def test_a_group_loses_nothing_while_it_rebalances(world: ShardWorld) -> None:
    """What its members read is certain only when all have joined."""
    member_id, generation = world.join("g", SUBSCRIBES_TO_ORDERS)
    world.commit("g", {("metrics", 0): 6}, member_id=member_id, generation=generation)
    assert world.begin_join("g", SUBSCRIBES_TO_ORDERS) is None
    world.wall_ms += 2 * WEEK_MS
    world.expire()
    assert world.fetch_all("g") == {("metrics", 0): 6}
    rejoined = world.begin_join("g", SUBSCRIBES_TO_ORDERS, member_id=member_id)
    world.expire()
    assert world.fetch_all("g") == {("metrics", 0): 6}
    world.sync("g", member_id, rejoined.generation_id)
    world.expire()
    assert world.fetch_all("g") == {}


def test_a_living_group_of_another_protocol_keeps_everything(world: ShardWorld) -> None:
    member_id, generation = world.join("g", protocol_type="connect")
    world.commit("g", {("orders", 0): 5}, member_id=member_id, generation=generation)
    world.wall_ms += 2 * WEEK_MS
    assert not world.expire().records


def test_a_retention_of_the_client_goes_before_that_of_the_broker(world: ShardWorld) -> None:
    world.commit("g", {("orders", 0): 5}, expire_after_ms=1000)
    world.commit("g", {("orders", 1): 6}, expire_after_ms=2 * WEEK_MS)
    world.pass_time(999)
    assert not world.expire().records
    world.pass_time(1)
    world.expire()
    assert world.fetch_all("g") == {("orders", 1): 6}
    world.pass_time(WEEK_MS)
    assert not world.expire().records


def test_a_group_that_never_stored_anything_is_forgotten_with_the_next_look(world: ShardWorld) -> None:
    member_id, _ = world.join("g")
    world.expire()
    assert "g" in world.list_groups()
    world.leave("g", member_id)
    world.expire()
    assert world.list_groups() == {}


def test_what_is_stored_says_when_it_was_committed_and_for_which_topic(world: ShardWorld) -> None:
    world.commit("g", {("orders", 0): 5})
    [record] = world.log
    assert record.value is not None
    stored = read_offset_value(record.value)
    assert (stored.commit_timestamp, stored.expire_timestamp) == (world.wall_ms, -1)
    assert stored.topic_id == world.topics.topic_id("orders")


def test_a_clock_that_jumps_back_expires_nothing(world: ShardWorld) -> None:
    world.commit("g", {("orders", 0): 5})
    world.wall_ms -= 3650 * DAY_MS
    assert not world.expire().records


def test_a_group_is_looked_at_when_its_first_offset_can_expire_and_not_before(
    world: ShardWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []
    monkeypatch.setattr(offsets, "read_offset_value", lambda value: reads.append(value) or read_offset_value(value))
    world.commit("g", {("orders", 0): 5, ("orders", 1): 6})
    world.expire()
    assert len(reads) == 2
    world.pass_time(WEEK_MS - 1)
    world.commit("g", {("orders", 1): 7})
    world.expire()
    assert len(reads) == 2
    world.pass_time(1)
    world.expire()
    assert len(reads) == 4
    assert world.fetch_all("g") == {("orders", 1): 7}


def test_a_short_retention_of_the_client_is_noticed_by_a_group_that_was_looked_at(world: ShardWorld) -> None:
    world.commit("g", {("orders", 0): 5})
    world.expire()
    world.commit("g", {("orders", 1): 6}, expire_after_ms=1000)
    world.pass_time(1000)
    world.expire()
    assert world.fetch_all("g") == {("orders", 0): 5}


def test_a_group_that_comes_back_and_goes_again_ages_from_its_last_end(world: ShardWorld) -> None:
    for _ in range(2):
        member_id, generation = world.join("g", SUBSCRIBES_TO_ORDERS)
        world.commit("g", {("orders", 0): 5}, member_id=member_id, generation=generation)
        world.leave("g", member_id)
        world.expire()
        world.pass_time(6 * DAY_MS)
    world.expire()
    assert world.fetch_all("g") == {("orders", 0): 5}
    world.pass_time(DAY_MS)
    world.expire()
    assert world.list_groups() == {}
