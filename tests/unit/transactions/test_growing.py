"""AddPartitionsToTxn, and whether a Produce is part of the transaction."""

from __future__ import annotations

import pytest
from tests.unit.transactions.transaction_world import NEW, OLD, World, partitions

from lowwater.errors import ErrorCode
from lowwater.transactions.state import State
from lowwater.types import TopicPartition

COMPLETE = (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
PREPARED = (State.PREPARE_COMMIT, State.PREPARE_ABORT)


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("state", [State.EMPTY, *COMPLETE])
@pytest.mark.parametrize("version", [OLD, NEW])
def test_the_first_partition_opens_the_transaction(world, state, version):
    world.in_state(state, version=version)
    world.pass_time(7)
    assert world.add(world.identity(), "orders-3", version=version) is None
    known = world.describe()
    assert known.state is State.ONGOING
    assert known.partitions == partitions("orders-3")
    assert known.started_ms == world.wall_ms


def test_more_partitions_join_those_that_are_there(world):
    identity = world.begun()
    world.add(identity, "orders-0", "orders-1")
    started_ms = world.wall_ms
    world.pass_time(7)
    world.add(identity, "orders-1", "metrics-0")
    assert world.describe().partitions == partitions("orders-0", "orders-1", "metrics-0")
    assert world.describe().started_ms == started_ms
    assert world.describe().updated_ms == started_ms + 7


def test_partitions_that_are_there_already_are_not_written_again(world):
    identity = world.begun()
    world.add(identity, "orders-0", "orders-1")
    written = len(world.log)
    assert world.add(identity, "orders-1") is None
    assert len(world.log) == written


def test_an_unknown_id_or_another_producer_is_refused(world):
    assert world.add((7, 0)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    identity = world.begun()
    assert world.add((identity.producer_id + 1, 0)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert world.state() is State.EMPTY


@pytest.mark.parametrize("epoch", [4, 6])
@pytest.mark.parametrize("state", [State.EMPTY, State.ONGOING])
def test_another_epoch_is_fenced(world, state, epoch):
    identity = world.in_state(state, epoch=5)
    assert world.add((identity.producer_id, epoch), "metrics-0") is ErrorCode.PRODUCER_FENCED
    assert TopicPartition("metrics", 0) not in world.describe().partitions


@pytest.mark.parametrize("state", PREPARED)
@pytest.mark.parametrize("version", [OLD, NEW])
def test_while_an_end_is_being_written_the_next_transaction_waits(world, state, version):
    world.in_state(state, version=version)
    assert world.add(world.identity(), "metrics-0", version=version) is ErrorCode.CONCURRENT_TRANSACTIONS
    world.finish()
    assert world.add(world.identity(), "metrics-0", version=version) is None
    assert world.describe().partitions == partitions("metrics-0")


@pytest.mark.parametrize("state", PREPARED)
def test_while_an_end_is_being_written_everybody_is_told_to_wait_and_the_others_later_that_they_are_fenced(
    world, state
):
    identity = world.in_state(state, epoch=5)
    other = (identity.producer_id + 1, 5)
    assert world.add(identity) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.add(other) is ErrorCode.CONCURRENT_TRANSACTIONS
    world.finish()
    assert world.add(identity) is ErrorCode.PRODUCER_FENCED
    assert world.add(other) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


# Questions about partitions: by verify_only, and by every transactional batch


def holds(world: World, identity: tuple[int, int], name: str) -> ErrorCode | None:
    [(topic, index)] = partitions(name)
    answer = world.shard.holds("a", *identity, topic, index)
    assert world.verify(identity, name) == {TopicPartition(topic, index): answer or ErrorCode.NONE}
    return answer


def test_a_partition_of_the_open_transaction_is_held(world):
    identity = world.begun()
    world.add(identity, "orders-0")
    assert holds(world, identity, "orders-0") is None
    assert holds(world, identity, "orders-1") is ErrorCode.TRANSACTION_ABORTABLE


@pytest.mark.parametrize("state", [State.EMPTY, *COMPLETE])
def test_outside_a_transaction_nothing_is_held(world, state):
    world.in_state(state)
    assert holds(world, world.identity(), "orders-0") is ErrorCode.TRANSACTION_ABORTABLE


@pytest.mark.parametrize("state", PREPARED)
@pytest.mark.parametrize("version", [OLD, NEW])
def test_an_end_that_is_being_written_lets_nothing_in(world, state, version):
    world.in_state(state, version=version)
    assert holds(world, world.identity(), "orders-0") is ErrorCode.CONCURRENT_TRANSACTIONS


def test_the_wrong_producer_holds_nothing(world):
    assert holds(world, (7, 0), "orders-0") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    identity = world.in_state(State.ONGOING, epoch=5)
    assert holds(world, (identity.producer_id + 1, 5), "orders-0") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert holds(world, (identity.producer_id, 4), "orders-0") is ErrorCode.PRODUCER_FENCED
    assert holds(world, (identity.producer_id, 6), "orders-0") is ErrorCode.PRODUCER_FENCED


def test_a_zombie_holds_nothing_from_the_moment_the_new_instance_came(world):
    zombie = world.in_state(State.ONGOING)
    world.init()
    assert holds(world, zombie, "orders-0") is ErrorCode.PRODUCER_FENCED
    world.finish()
    new = world.init()
    world.add(new, "orders-0")
    assert holds(world, zombie, "orders-0") is ErrorCode.PRODUCER_FENCED
    assert holds(world, new, "orders-0") is None


def test_each_partition_has_its_own_answer(world):
    identity = world.begun()
    world.add(identity, "orders-0")
    assert world.verify(identity, "orders-0", "orders-1") == {
        TopicPartition("orders", 0): ErrorCode.NONE,
        TopicPartition("orders", 1): ErrorCode.TRANSACTION_ABORTABLE,
    }
