"""EndTxn: every state, both ends, both paths of the protocol, the producer's own epoch and the one before it."""

from __future__ import annotations

import pytest
from tests.unit.transactions.transaction_world import COORDINATOR_EPOCH, NEW, OLD, World

from lowwater.errors import ErrorCode
from lowwater.transactions.state import State
from lowwater.transactions.table import END_KEEPING_EPOCH, END_MOVING_ON, END_REPEATED
from lowwater.types import TopicPartition

EMPTY, ONGOING = State.EMPTY, State.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = State.PREPARE_COMMIT, State.PREPARE_ABORT
COMPLETE_COMMIT, COMPLETE_ABORT = State.COMPLETE_COMMIT, State.COMPLETE_ABORT
LIVING = (EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT)
NONE, BUSY, REFUSED = ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_TXN_STATE
FENCED, UNKNOWN = ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.fixture
def world() -> World:
    return World()


def end(world: World, commit: bool, identity: tuple[int, int], version: int) -> ErrorCode:
    reply = world.commit(identity, version=version) if commit else world.abort(identity, version=version)
    return reply if isinstance(reply, ErrorCode) else NONE


def test_the_tables_know_every_state_an_id_can_be_in():
    cells = {(state, event) for state in LIVING for event in ("commit", "abort")}
    assert set(END_KEEPING_EPOCH) == cells
    settled = {cell for cell in cells if cell[0] not in (PREPARE_COMMIT, PREPARE_ABORT)}
    assert set(END_MOVING_ON) == set(END_REPEATED) == settled


# The open transaction


@pytest.mark.parametrize(("version", "bump"), [(OLD, 0), (NEW, 1)])
@pytest.mark.parametrize("commit", [True, False])
def test_an_open_transaction_ends_as_asked_and_the_answer_says_how_to_go_on(world, commit, version, bump):
    identity = world.in_state(ONGOING, version=version)
    reply = world.commit(identity, version=version) if commit else world.abort(identity, version=version)
    assert reply == (identity.producer_id, bump)
    assert world.state() is (PREPARE_COMMIT if commit else PREPARE_ABORT)
    [markers] = world.markers
    assert markers[:6] == ("a", identity.producer_id, bump, commit, COORDINATOR_EPOCH, (TopicPartition("orders", 0),))
    assert markers.epoch_bumped is (version == NEW)
    world.finish()
    assert world.state() is (COMPLETE_COMMIT if commit else COMPLETE_ABORT)
    assert world.identity() == reply
    assert world.describe().partitions == frozenset()


def test_markers_go_to_every_partition(world):
    identity = world.begun()
    world.add(identity, "orders-1", "orders-0")
    world.add(identity, "__consumer_offsets-4")
    world.commit(identity)
    assert [str(one) for one in world.markers[0].partitions] == ["__consumer_offsets-4", "orders-0", "orders-1"]


@pytest.mark.parametrize("version", [OLD, NEW])
def test_a_producer_goes_from_transaction_to_transaction(world, version):
    identity = world.begun()
    for commit in (True, False, True):
        world.add(identity, version=version)
        end_it = world.commit if commit else world.abort
        identity = end_it(identity, version=version)
        world.finish()
    assert identity == (identity.producer_id, 3 if version == NEW else 0)


# The older path, by the producer's own epoch


@pytest.mark.parametrize(
    ("state", "commit", "code"),
    [
        (EMPTY, True, REFUSED),
        (EMPTY, False, REFUSED),
        (PREPARE_COMMIT, True, BUSY),
        (PREPARE_COMMIT, False, BUSY),
        (PREPARE_ABORT, True, BUSY),
        (PREPARE_ABORT, False, BUSY),
        (COMPLETE_COMMIT, True, NONE),
        (COMPLETE_COMMIT, False, REFUSED),
        (COMPLETE_ABORT, True, REFUSED),
        (COMPLETE_ABORT, False, NONE),
    ],
)
def test_the_older_path_outside_an_open_transaction(world, state, commit, code):
    world.in_state(state, version=OLD)
    assert end(world, commit, world.identity(), OLD) is code
    assert world.state() is state


@pytest.mark.parametrize("state", LIVING)
@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("by", [-1, +1])
def test_the_older_path_fences_every_other_epoch(world, state, commit, by):
    world.in_state(state, version=OLD, epoch=5)
    producer_id, epoch = world.identity()
    assert end(world, commit, (producer_id, epoch + by), OLD) is FENCED
    assert world.state() is state


# Version 2, by the producer's own epoch


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (EMPTY, REFUSED),
        (PREPARE_COMMIT, BUSY),
        (PREPARE_ABORT, BUSY),
        (COMPLETE_COMMIT, REFUSED),
        (COMPLETE_ABORT, REFUSED),
    ],
)
def test_version_2_has_nothing_to_commit_outside_an_open_transaction(world, state, code):
    world.in_state(state)
    assert end(world, True, world.identity(), NEW) is code
    assert world.state() is state


@pytest.mark.parametrize("state", [EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT])
def test_version_2_aborts_nothing_by_moving_on_to_the_next_epoch(world, state):
    world.in_state(state)
    producer_id, epoch = world.identity()
    world.pass_time(5)
    assert world.abort((producer_id, epoch)) == (producer_id, epoch + 1)
    assert world.state() is COMPLETE_ABORT
    assert world.describe().started_ms == world.wall_ms
    assert world.markers == []
    assert world.add((producer_id, epoch)) is FENCED
    assert world.add((producer_id, epoch + 1)) is None


@pytest.mark.parametrize("state", [PREPARE_COMMIT, PREPARE_ABORT])
def test_version_2_aborts_nothing_while_an_end_is_being_written(world, state):
    world.in_state(state)
    assert end(world, False, world.identity(), NEW) is BUSY
    assert world.state() is state


# Version 2, by the epoch before: the answer to an end was lost


@pytest.mark.parametrize(
    ("state", "commit", "code"),
    [
        (PREPARE_COMMIT, True, BUSY),
        (PREPARE_COMMIT, False, BUSY),
        (PREPARE_ABORT, True, BUSY),
        (PREPARE_ABORT, False, BUSY),
        (COMPLETE_COMMIT, True, NONE),
        (COMPLETE_COMMIT, False, REFUSED),
        (COMPLETE_ABORT, True, REFUSED),
        (COMPLETE_ABORT, False, NONE),
    ],
)
def test_version_2_repeats_an_end_whose_answer_was_lost(world, state, commit, code):
    identity = world.in_state(state)
    after = world.identity()
    reply = world.commit(identity) if commit else world.abort(identity)
    assert reply == (after if code is NONE else code)
    assert world.state() is state
    assert world.identity() == after


@pytest.mark.parametrize("commit", [True, False])
def test_version_2_an_end_by_the_epoch_before_a_new_instance_is_fenced(world, commit):
    first = world.begun()
    world.init()
    assert end(world, commit, first, NEW) is FENCED
    assert world.state() is EMPTY


@pytest.mark.parametrize("commit", [True, False])
def test_version_2_a_late_end_of_the_last_transaction_does_not_end_this_one(world, commit):
    identity = world.in_state(COMPLETE_COMMIT)
    world.add(world.identity())
    assert end(world, commit, identity, NEW) is FENCED
    assert world.state() is ONGOING


@pytest.mark.parametrize("state", LIVING)
@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("by", [-2, +1])
def test_version_2_fences_every_other_epoch_and_lets_it_wait_for_an_end_that_is_being_written(world, state, commit, by):
    world.in_state(state, epoch=5)
    producer_id, epoch = world.identity()
    code = BUSY if state in (PREPARE_COMMIT, PREPARE_ABORT) else FENCED
    assert end(world, commit, (producer_id, epoch + by), NEW) is code
    assert world.state() is state


# Somebody else


@pytest.mark.parametrize("version", [OLD, NEW])
def test_an_unknown_id_ends_nothing(world, version):
    assert world.commit((7, 0), version=version) is UNKNOWN
    assert world.abort((7, 0), version=version) is UNKNOWN


@pytest.mark.parametrize("version", [OLD, NEW])
@pytest.mark.parametrize("state", LIVING)
def test_another_producer_ends_nothing(world, state, version):
    world.in_state(state, version=version)
    producer_id, epoch = world.identity()
    code = BUSY if version == NEW and state in (PREPARE_COMMIT, PREPARE_ABORT) else UNKNOWN
    assert end(world, True, (producer_id + 1, epoch), version) is code
    assert end(world, False, (producer_id + 1, epoch), version) is code
    assert world.state() is state


# Markers


def test_markers_of_an_end_that_is_complete_mean_nothing(world):
    world.in_state(PREPARE_COMMIT, version=OLD)
    again = list(world.markers)
    world.finish()
    world.add(world.identity(), "metrics-0", version=OLD)
    world.markers = again
    world.finish()
    assert world.state() is ONGOING


def test_markers_of_the_transaction_before_do_not_complete_this_one(world):
    identity = world.begun()
    world.add(identity)
    identity = world.commit(identity)
    late = list(world.markers)
    world.finish()
    world.add(identity, "metrics-0")
    world.abort(identity)
    this = list(world.markers)
    world.markers = late
    world.finish()
    assert world.state() is PREPARE_ABORT
    world.markers = this
    world.finish()
    assert world.state() is COMPLETE_ABORT


def test_markers_of_an_id_that_is_gone_mean_nothing(world):
    world.in_state(PREPARE_COMMIT)
    [late] = world.markers
    fresh = World()
    fresh.markers = [late]
    fresh.finish()
    assert fresh.log == []
