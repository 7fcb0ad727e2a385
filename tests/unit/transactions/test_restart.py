"""A restart replays the log: the same ids in the same states, and what was decided is carried out."""

from __future__ import annotations

import pytest
from tests.unit.transactions.transaction_world import COORDINATOR_EPOCH, LAST_EPOCH, NEW, OLD, World

from lowwater.errors import ErrorCode, WireError
from lowwater.outcome import Outcome, StateRecord
from lowwater.transactions.commands import InitProducer
from lowwater.transactions.records import TransactionLogValue, encode
from lowwater.transactions.state import State, Transaction
from lowwater.transactions.stored import from_record, to_record
from lowwater.types import TopicPartition

LIVING = tuple(state for state in State if state is not State.DEAD)


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("state", LIVING)
@pytest.mark.parametrize("version", [OLD, NEW])
@pytest.mark.parametrize("epoch", [0, LAST_EPOCH])
def test_every_state_survives_as_it_was(world, state, version, epoch):
    world.in_state(state, version=version, epoch=epoch)
    before = dict(world.shard.transactions)
    world.restart()
    assert world.shard.transactions == before
    assert (world.shard.metrics.active_ids, world.shard.metrics.ongoing) == (1, int(state is State.ONGOING))


@pytest.mark.parametrize("state", LIVING)
def test_a_compacted_log_tells_the_same(world, state):
    world.in_state(state)
    before = dict(world.shard.transactions)
    world.restart(world.log[-1:])
    assert world.shard.transactions == before


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", [OLD, NEW])
def test_markers_that_may_be_missing_are_written_again(world, commit, version):
    world.in_state(State.PREPARE_COMMIT if commit else State.PREPARE_ABORT, version=version)
    [before] = world.markers
    for _ in range(2):
        world.restart()
        [again] = world.markers
        assert again[:7] == before[:7]
    world.finish()
    assert world.state() is (State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT)


@pytest.mark.parametrize("state", [State.EMPTY, State.ONGOING, State.COMPLETE_COMMIT, State.COMPLETE_ABORT])
def test_nothing_is_written_where_nothing_was_decided(world, state):
    world.in_state(state)
    written = len(world.log)
    world.restart()
    assert world.markers == []
    assert len(world.log) == written


def test_an_open_transaction_goes_on_after_a_restart(world):
    identity = world.in_state(State.ONGOING)
    world.restart()
    assert world.shard.holds("a", *identity, "orders", 0) is None
    world.add(identity, "orders-1")
    assert world.commit(identity) == (identity.producer_id, 1)


@pytest.mark.parametrize("commit", [True, False])
def test_an_end_whose_answer_was_lost_with_the_broker_can_be_repeated(world, commit):
    identity = world.in_state(State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT)
    world.restart()
    assert (world.commit(identity) if commit else world.abort(identity)) == (identity.producer_id, 1)


def test_a_zombie_stays_fenced_after_a_restart(world):
    zombie = world.begun()
    world.init()
    world.restart()
    assert world.add(zombie) is ErrorCode.PRODUCER_FENCED
    assert world.init(identity=zombie) is ErrorCode.PRODUCER_FENCED


def test_a_decided_end_without_partitions_is_completed_at_the_restart(world):
    """Apache Kafka writes such a record; this broker writes only what comes after it."""
    known = Transaction("a", 7, 3, 1000, State.PREPARE_ABORT, frozenset(), 5, 5, 7, 9, NEW)
    world.restart([to_record(known, NEW)])
    assert world.state() is State.COMPLETE_ABORT
    assert world.identity() == (9, 0)
    assert world.markers == []


def test_the_epoch_of_the_coordinator_is_that_of_this_life(world):
    world.in_state(State.PREPARE_COMMIT)
    assert world.markers[0].coordinator_epoch == COORDINATOR_EPOCH


def test_what_is_replayed_is_what_is_in_the_record_whatever_was_decided(world):
    decided = world.shard.decide(InitProducer("a", 1000, spare_producer_id=7), "token", world.now)
    other = Transaction("a", 9, 3, 1000, State.EMPTY, frozenset(), -1, 6, 9, -1, 2)
    world.shard.replay(to_record(other, NEW))
    assert world.shard.transactions["a"] == other
    world.shard.replay(decided.records[0])
    assert world.identity() == (7, 0)


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("version", [OLD, NEW])
def test_life_knows_what_a_restart_finds(level, version):
    world = World(transaction_version=level)
    identity = world.begun()
    for commit in (True, False):
        world.add(identity, version=version)
        identity = (world.commit if commit else world.abort)(identity, version=version)
        assert from_record(world.log[-1]) == ("a", world.shard.transactions["a"])
        world.finish()
        assert from_record(world.log[-1]) == ("a", world.shard.transactions["a"])


# What is stored


def test_what_is_stored_can_be_read_again():
    whole = Transaction(
        "a",
        7,
        3,
        1000,
        State.PREPARE_COMMIT,
        frozenset({TopicPartition("b", 2), TopicPartition("a", 1)}),
        5,
        6,
        8,
        9,
        2,
    )
    assert from_record(to_record(whole, NEW)) == ("a", whole)
    assert from_record(to_record(whole, 1)) == ("a", whole)


def test_at_level_0_only_what_older_brokers_read_is_stored():
    known = Transaction("a", 7, 3, 1000, State.COMPLETE_ABORT, frozenset(), 5, 6, 8, -1, 2)
    record = to_record(known, OLD)
    assert record.value is not None
    assert record.value[:2] == b"\0\0"
    read = from_record(record)
    assert read is not None
    stored = read[1]
    assert stored is not None
    assert (stored.previous_producer_id, stored.client_version) == (-1, 0)
    assert (stored.producer_id, stored.producer_epoch, stored.state) == (7, 3, State.COMPLETE_ABORT)


def test_at_level_0_the_next_producer_id_is_not_lost():
    known = Transaction("a", 7, 3, 1000, State.PREPARE_ABORT, frozenset(), 5, 6, 7, 9, 2)
    assert from_record(to_record(known, OLD)) == ("a", known)


def test_a_state_that_nobody_knows_cannot_be_read(world):
    value = TransactionLogValue(
        producer_id=7,
        producer_epoch=0,
        transaction_timeout_ms=1000,
        transaction_status=7,
        transaction_partitions=[],
        transaction_last_update_timestamp_ms=5,
        transaction_start_timestamp_ms=5,
    )
    with pytest.raises(WireError):
        world.shard.replay(encode("a", value))
    assert world.shard.transactions == {}


def test_keys_of_other_kinds_are_skipped(world):
    world.shard.replay(StateRecord(b"\0\7whatever", b"\0\0"))
    assert world.shard.transactions == {}


def test_an_id_that_is_dead_is_not_there(world):
    world.begun()
    dead = Transaction("a", 7, 3, 1000, State.DEAD, frozenset(), 5, 6)
    out = Outcome()
    out.records.append(to_record(dead, NEW))
    world.do(out)
    assert world.shard.transactions == {}
