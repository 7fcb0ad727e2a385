"""Transactions that stay open for too long are aborted; ids that nobody uses are forgotten."""

from __future__ import annotations

import pytest
from tests.unit.transactions.transaction_world import HOUR_MS, OLD, SCAN_MS, TIMEOUT_MS, WEEK_MS, World

from lowwater.errors import ErrorCode
from lowwater.transactions.config import TransactionConfig
from lowwater.transactions.deadlines import FOREVER_MS
from lowwater.transactions.state import State, Transaction
from lowwater.transactions.stored import from_record, to_record


@pytest.fixture
def world() -> World:
    return World()


def test_an_open_transaction_is_aborted_at_the_first_look_after_its_time(world):
    identity = world.in_state(State.ONGOING)
    world.pass_time(TIMEOUT_MS)
    assert world.state() is State.ONGOING
    world.pass_time(SCAN_MS)
    assert world.state() is State.PREPARE_ABORT
    [markers] = world.markers
    assert (markers.commit, markers.producer_epoch) == (False, 1)
    assert str(TIMEOUT_MS) in markers.reason
    assert world.commit(identity, version=OLD) is ErrorCode.PRODUCER_FENCED
    world.finish()
    assert world.state() is State.COMPLETE_ABORT
    assert world.shard.metrics.timed_out == 1


def test_a_producer_that_ran_out_of_time_comes_back_with_its_epoch(world):
    identity = world.in_state(State.ONGOING)
    world.pass_time(TIMEOUT_MS + SCAN_MS)
    world.finish()
    assert world.add(identity) is ErrorCode.PRODUCER_FENCED
    assert world.init(identity=identity) == (identity.producer_id, 1)


def test_below_version_2_a_producer_that_ran_out_of_time_is_fenced():
    world = World(transaction_version=1)
    identity = world.in_state(State.ONGOING, version=OLD)
    world.pass_time(TIMEOUT_MS + SCAN_MS)
    world.finish()
    assert world.init(identity=identity) is ErrorCode.PRODUCER_FENCED


def test_adding_partitions_does_not_buy_time(world):
    identity = world.in_state(State.ONGOING)
    for index in range(1, 6):
        world.pass_time(TIMEOUT_MS // 5)
        assert world.add(identity, f"orders-{index}") is None
    world.pass_time(SCAN_MS)
    assert world.state() is State.PREPARE_ABORT


def test_each_transaction_has_its_time(world):
    identity = world.begun()
    for _ in range(10):
        world.add(identity)
        world.pass_time(TIMEOUT_MS // 2)
        identity = world.commit(identity)
        world.finish()
    assert identity.producer_epoch == 10


def test_an_end_that_is_being_written_is_not_ended_again(world):
    world.in_state(State.PREPARE_COMMIT)
    world.pass_time(10 * TIMEOUT_MS)
    assert world.state() is State.PREPARE_COMMIT
    assert len(world.markers) == 1


def test_a_wall_clock_that_jumps_ends_no_transaction(world):
    world.in_state(State.ONGOING)
    world.wall_ms += 1000 * HOUR_MS
    world.pass_time(SCAN_MS)
    assert world.state() is State.ONGOING
    world.wall_ms -= 5000 * HOUR_MS
    world.pass_time(TIMEOUT_MS)
    assert world.state() is State.PREPARE_ABORT


def test_after_a_restart_a_transaction_has_the_rest_of_its_time(world):
    world.in_state(State.ONGOING)
    world.pass_time(TIMEOUT_MS // 2)
    world.restart()
    world.pass_time(TIMEOUT_MS // 2)
    assert world.state() is State.ONGOING
    world.pass_time(SCAN_MS)
    assert world.state() is State.PREPARE_ABORT


def test_a_transaction_that_ran_out_of_time_while_nobody_looked_is_aborted_after_the_restart(world):
    world.in_state(State.ONGOING)
    world.wall_ms += 10 * TIMEOUT_MS
    world.restart()
    assert world.state() is State.ONGOING
    world.pass_time(SCAN_MS)
    assert world.state() is State.PREPARE_ABORT


def test_a_restart_under_a_clock_set_back_gives_no_more_than_the_whole_time(world):
    world.in_state(State.ONGOING)
    world.wall_ms -= 1000 * HOUR_MS
    world.restart()
    world.pass_time(TIMEOUT_MS + SCAN_MS)
    assert world.state() is State.PREPARE_ABORT


def test_many_transactions_run_out_of_time_a_portion_at_a_time(world):
    for number in range(250):
        world.add(world.begun(f"id-{number}"), name=f"id-{number}")
    world.wall_ms += TIMEOUT_MS + SCAN_MS
    world.elapsed_ms += TIMEOUT_MS + SCAN_MS
    portions = []
    while (due_ms := world.shard.next_deadline_ms) is not None and due_ms <= world.elapsed_ms:
        portions.append(len(world.do(world.shard.tick(world.now)).records))
    assert sum(portions) == 250
    assert max(portions) <= 100
    assert len({one.transactional_id for one in world.markers}) == 250


def test_a_transaction_that_ends_before_its_portion_comes_is_left_alone(world):
    for number in range(250):
        world.add(world.begun(f"id-{number}"), name=f"id-{number}")
    world.wall_ms += TIMEOUT_MS + SCAN_MS
    world.elapsed_ms += TIMEOUT_MS + SCAN_MS
    world.do(world.shard.tick(world.now))
    done = world.commit(world.identity("id-7"), name="id-7")
    world.finish()
    world.add(done, name="id-7")
    world.tick()
    assert world.state("id-7") is State.ONGOING
    assert world.state("id-8") is State.PREPARE_ABORT


def test_nothing_wakes_a_shard_without_ids(world):
    assert world.shard.next_deadline_ms is None


def test_without_open_transactions_only_expiry_wakes_the_shard(world):
    world.begun()
    world.tick()
    due_ms = world.shard.next_deadline_ms
    assert due_ms == world.elapsed_ms + HOUR_MS


@pytest.mark.parametrize("restarts", [False, True])
def test_a_transaction_without_a_timeout_is_ended_only_by_its_producer(world, restarts):
    """Apache Kafka stores such a one for producers that decide together with another system."""
    known = Transaction("a", 7, 0, FOREVER_MS, State.EMPTY, frozenset(), -1, world.wall_ms, 7)
    world.log.append(to_record(known, 2))
    world.restart()
    world.add((7, 0))
    if restarts:
        world.restart()
    world.pass_time(FOREVER_MS + SCAN_MS)
    assert world.state() is State.ONGOING


# Ids that nobody uses


@pytest.mark.parametrize("state", [State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT])
def test_an_id_that_nobody_uses_is_forgotten(world, state):
    world.in_state(state)
    world.pass_time(WEEK_MS - 1)
    assert "a" in world.shard.transactions
    world.pass_time(HOUR_MS)
    assert "a" not in world.shard.transactions
    assert from_record(world.log[-1]) == ("a", None)
    assert world.shard.metrics.expired_ids == 1
    assert world.shard.metrics.active_ids == 0


@pytest.mark.parametrize("state", [State.PREPARE_COMMIT, State.PREPARE_ABORT])
def test_an_id_is_never_forgotten_in_a_transaction(world, state):
    world.in_state(state)
    world.pass_time(2 * WEEK_MS)
    assert world.state() is state


def test_an_open_transaction_that_may_last_is_never_forgotten():
    world = World(id_expiration_ms=1_000)
    world.in_state(State.ONGOING)
    world.pass_time(TIMEOUT_MS - 1)
    world.pass_time(HOUR_MS - TIMEOUT_MS)
    assert "a" in world.shard.transactions


def test_an_id_that_is_used_is_kept(world):
    identity = world.begun()
    for _ in range(5):
        world.pass_time(WEEK_MS // 2)
        world.add(identity)
        identity = world.commit(identity)
        world.finish()
    assert world.identity() == identity


def test_a_producer_whose_id_was_forgotten_is_told_so_and_begins_anew(world):
    identity = world.begun()
    world.pass_time(WEEK_MS + HOUR_MS)
    assert world.add(identity) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert world.commit(identity) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    again = world.init(identity=identity)
    assert again.producer_epoch == 0
    assert again.producer_id > identity.producer_id


def test_a_forgotten_id_stays_forgotten_after_a_restart(world):
    world.begun()
    world.pass_time(WEEK_MS + HOUR_MS)
    world.restart()
    assert world.shard.transactions == {}


def test_settings_hold_from_the_moment_they_are_altered(world):
    world.begun()
    world.shard.config = TransactionConfig(id_expiration_ms=HOUR_MS, timeout_max_ms=10)
    assert world.init(timeout_ms=11) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    world.pass_time(2 * HOUR_MS)
    assert world.shard.transactions == {}
