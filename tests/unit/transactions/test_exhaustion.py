"""The epochs of a producer id come to an end: another id takes over, and no epoch is ever given out twice."""

from __future__ import annotations

import pytest
from tests.unit.transactions.transaction_world import LAST_EPOCH, NEW, OLD, SCAN_MS, TIMEOUT_MS, World

from lowwater.errors import ErrorCode
from lowwater.transactions.commands import EndTransaction, InitProducer
from lowwater.transactions.state import PRODUCER_EPOCH_MAX, State


@pytest.fixture
def world() -> World:
    return World()


def test_a_spare_producer_id_is_asked_for_only_when_it_may_be_needed(world):
    assert world.shard.needs_producer_id("a")
    world.at_epoch(LAST_EPOCH - 1)
    assert not world.shard.needs_producer_id("a")
    world.at_epoch(LAST_EPOCH)
    assert world.shard.needs_producer_id("a")


def test_the_last_epoch_is_given_out_and_after_it_comes_a_new_producer_id(world):
    world.at_epoch(LAST_EPOCH - 1)
    old = world.identity().producer_id
    assert world.init() == (old, LAST_EPOCH)
    new = world.init()
    assert new.producer_epoch == 0
    assert new.producer_id > old
    assert world.init() == (new.producer_id, 1)


def test_without_a_spare_producer_id_the_producer_tries_again(world):
    world.at_epoch(LAST_EPOCH)
    assert world.ask(InitProducer("a", TIMEOUT_MS)) is ErrorCode.CONCURRENT_TRANSACTIONS
    world.add(world.identity())
    end = EndTransaction("a", *world.identity(), True, NEW)
    assert world.ask(end) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.state() is State.ONGOING


def test_a_producer_that_missed_the_change_of_its_id_gets_the_same_answer_again(world):
    world.at_epoch(LAST_EPOCH)
    old = world.identity()
    new = world.init(identity=old)
    assert new.producer_epoch == 0
    assert world.init(identity=old) == new
    assert world.init(identity=(old.producer_id, LAST_EPOCH - 1)) is ErrorCode.PRODUCER_FENCED


def test_who_had_the_old_producer_id_is_fenced_when_another_instance_changed_it(world):
    world.at_epoch(LAST_EPOCH)
    old = world.identity()
    world.init()
    assert world.init(identity=old) is ErrorCode.PRODUCER_FENCED
    assert world.add(old) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_an_older_epoch_does_not_change_the_id(world):
    world.at_epoch(LAST_EPOCH)
    old = world.identity()
    assert world.init(identity=(old.producer_id, 12)) is ErrorCode.PRODUCER_FENCED
    assert world.identity() == old


@pytest.mark.parametrize("commit", [True, False])
def test_the_last_epoch_s_transaction_ends_under_its_own_id_and_goes_on_with_the_next(world, commit):
    old = world.in_state(State.ONGOING, epoch=LAST_EPOCH)
    new = world.commit(old) if commit else world.abort(old)
    assert new.producer_epoch == 0
    assert new.producer_id > old.producer_id
    [markers] = world.markers
    assert (markers.producer_id, markers.producer_epoch) == (old.producer_id, PRODUCER_EPOCH_MAX)
    assert world.identity() == (old.producer_id, PRODUCER_EPOCH_MAX)
    world.finish()
    assert world.identity() == new
    assert world.add(new) is None


@pytest.mark.parametrize("restarts", [False, True])
def test_the_end_that_changed_the_id_can_be_repeated(world, restarts):
    old = world.in_state(State.ONGOING, epoch=LAST_EPOCH)
    new = world.commit(old)
    if restarts:
        world.restart()
    assert world.commit(old) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.add(new) is ErrorCode.CONCURRENT_TRANSACTIONS
    world.finish()
    if restarts:
        world.restart()
    assert world.commit(old) == new
    assert world.abort(old) is ErrorCode.INVALID_TXN_STATE
    world.add(new)
    assert world.commit(old) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert world.state() is State.ONGOING


def test_only_the_last_epoch_of_the_id_before_repeats_an_end(world):
    old = world.in_state(State.ONGOING, epoch=LAST_EPOCH)
    world.commit(old)
    world.finish()
    earlier = (old.producer_id, LAST_EPOCH - 1)
    assert world.commit(earlier) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert world.commit(old, version=OLD) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_an_abort_of_nothing_by_the_last_epoch_changes_the_id_too(world):
    world.at_epoch(LAST_EPOCH)
    old = world.identity()
    new = world.abort(old)
    assert new.producer_epoch == 0
    assert world.identity() == new
    assert world.abort(old) == new


def test_on_the_older_path_the_last_epoch_goes_on_for_ever(world):
    identity = world.in_state(State.ONGOING, version=OLD, epoch=LAST_EPOCH)
    assert world.commit(identity, version=OLD) == identity
    world.finish()
    assert world.add(identity, version=OLD) is None


@pytest.mark.parametrize("level", [1, 2])
def test_the_very_last_epoch_is_the_coordinator_s_which_fences_with_it(level):
    world = World(transaction_version=level)
    old = world.in_state(State.ONGOING, version=level if level == NEW else OLD, epoch=LAST_EPOCH)
    assert world.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.markers[0].producer_epoch == PRODUCER_EPOCH_MAX
    world.finish()
    new = world.init()
    assert new.producer_epoch == 0
    assert new.producer_id > old.producer_id


def test_a_producer_whose_last_transaction_was_fenced_is_never_given_the_coordinator_s_epoch(world):
    old = world.in_state(State.ONGOING, epoch=LAST_EPOCH)
    world.init()
    world.finish()
    back = world.init(identity=old)
    assert back.producer_epoch == 0
    assert back.producer_id > old.producer_id


@pytest.mark.parametrize("level", [1, 2])
def test_nor_is_it_told_to_one_that_aborts_what_the_coordinator_aborted(level):
    world = World(transaction_version=level)
    old = world.in_state(State.ONGOING, epoch=LAST_EPOCH)
    world.pass_time(TIMEOUT_MS + SCAN_MS)
    world.finish()
    assert world.abort(old) is ErrorCode.PRODUCER_FENCED
    assert world.init().producer_epoch == 0
