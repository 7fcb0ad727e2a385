"""InitProducerId with a transactional id: who gets which identity, and who is fenced."""

from __future__ import annotations

import pytest
from tests.unit.transactions.transaction_world import FIRST_ID, LAST_EPOCH, NEW, OLD, TIMEOUT_MS, World

from lowwater.errors import ErrorCode
from lowwater.transactions.commands import InitProducer
from lowwater.transactions.state import State

COMPLETE = (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
PREPARED = (State.PREPARE_COMMIT, State.PREPARE_ABORT)


@pytest.fixture
def world() -> World:
    return World()


def test_a_new_id_gets_the_spare_producer_id_at_epoch_0(world):
    assert world.init() == (FIRST_ID, 0)
    assert world.state() is State.EMPTY


def test_a_new_id_without_a_spare_producer_id_tries_again(world):
    assert world.ask(InitProducer("a", TIMEOUT_MS)) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.log == []


def test_a_new_id_takes_in_a_producer_that_had_an_identity(world):
    """It expired here; the producer's own is of no use to anybody."""
    assert world.init(identity=(77, 4)) == (FIRST_ID, 0)


@pytest.mark.parametrize("state", [State.EMPTY, *COMPLETE])
@pytest.mark.parametrize("version", [OLD, NEW])
def test_between_transactions_every_instance_gets_the_next_epoch(world, state, version):
    world.in_state(state, version=version)
    before = world.identity()
    assert world.init() == (before.producer_id, before.producer_epoch + 1)
    assert world.init() == (before.producer_id, before.producer_epoch + 2)
    assert world.state() is State.EMPTY


def test_a_producer_that_says_who_it_is_gets_its_next_epoch(world):
    first = world.begun()
    assert world.init(identity=first) == (first.producer_id, 1)


def test_the_request_of_a_producer_that_missed_its_answer_gets_the_same_epoch_again(world):
    first = world.begun()
    second = world.init(identity=first)
    assert world.init(identity=first) == second
    assert world.init(identity=first) == second
    assert world.init(identity=second) == (first.producer_id, 2)
    assert world.init(identity=first) is ErrorCode.PRODUCER_FENCED


def test_after_another_instance_began_nobody_repeats_an_older_request(world):
    first = world.begun()
    world.init(identity=first)
    world.init()
    assert world.init(identity=first) is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("state", [State.EMPTY, *COMPLETE])
def test_an_old_epoch_is_fenced(world, state):
    world.in_state(state, epoch=5)
    assert world.init(identity=(world.identity().producer_id, 3)) is ErrorCode.PRODUCER_FENCED


def test_an_epoch_from_the_future_is_fenced(world):
    first = world.begun()
    assert world.init(identity=(first.producer_id, 9)) is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("state", [State.EMPTY, State.ONGOING, *COMPLETE])
def test_another_producer_id_is_fenced(world, state):
    world.in_state(state)
    assert world.init(identity=(77, 0)) is ErrorCode.PRODUCER_FENCED
    assert world.init(identity=(77, LAST_EPOCH)) is ErrorCode.PRODUCER_FENCED
    assert world.state() is state


@pytest.mark.parametrize("state", PREPARED)
def test_while_an_end_is_being_written_the_new_instance_tries_again(world, state):
    world.in_state(state)
    assert world.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.init(identity=(77, 0)) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.state() is state
    world.finish()
    assert world.init() == (FIRST_ID, 2)


@pytest.mark.parametrize("level", [1, 2])
def test_an_open_transaction_is_aborted_by_an_epoch_of_its_own_and_the_retry_succeeds(level):
    world = World(transaction_version=level)
    zombie = world.in_state(State.ONGOING, version=level if level == NEW else OLD)
    assert world.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.state() is State.PREPARE_ABORT
    [markers] = world.markers
    assert (markers.producer_id, markers.producer_epoch, markers.commit) == (zombie.producer_id, 1, False)
    assert markers.epoch_bumped is (level == NEW)
    world.finish()
    assert world.add(zombie) is ErrorCode.PRODUCER_FENCED
    assert world.init() == (zombie.producer_id, 2)


def test_whoever_says_who_it_is_ends_the_open_transaction_too(world):
    identity = world.in_state(State.ONGOING)
    assert world.init(identity=identity) is ErrorCode.CONCURRENT_TRANSACTIONS
    world.finish()
    assert world.init(identity=identity) == (identity.producer_id, 1)


def test_below_version_2_a_producer_whose_transaction_was_fenced_is_out(world):
    world = World(transaction_version=1)
    zombie = world.in_state(State.ONGOING, version=OLD)
    world.init()
    world.finish()
    assert world.init(identity=zombie) is ErrorCode.PRODUCER_FENCED
    assert world.init() == (zombie.producer_id, 2)


def test_a_zombie_that_comes_back_first_is_fenced_by_the_new_instance_all_the_same(world):
    zombie = world.in_state(State.ONGOING)
    world.init()
    world.finish()
    back = world.init(identity=zombie)
    new = world.init()
    assert new.producer_epoch > back.producer_epoch
    assert world.add(back) is ErrorCode.PRODUCER_FENCED
    assert world.init(identity=back) is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_outside_the_limits_is_refused(world, timeout_ms):
    assert world.init(timeout_ms=timeout_ms) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert world.log == []


def test_the_longest_timeout_is_accepted_and_each_instance_has_its_own(world):
    world.init(timeout_ms=900_000)
    assert world.describe().timeout_ms == 900_000
    world.init(timeout_ms=1)
    assert world.describe().timeout_ms == 1


def test_ids_do_not_know_of_each_other(world):
    one, other = world.begun("a"), world.begun("b")
    assert one.producer_id != other.producer_id
    world.add(one, name="a")
    assert world.init("b") == (other.producer_id, 1)
    assert world.state("a") is State.ONGOING
