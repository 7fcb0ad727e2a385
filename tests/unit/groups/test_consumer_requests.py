"""Heartbeats of the consumer protocol that are refused: as Apache Kafka 4.3 answered them."""

from __future__ import annotations

import pytest
from tests.unit.groups.consumer_world import World

from lowwater.errors import ApiError, ErrorCode

OK, INVALID = ErrorCode.NONE, ErrorCode.INVALID_REQUEST
FULL = {"rebalance_timeout_ms": 1000, "topics": ["t"], "owned": {}}


@pytest.fixture
def world() -> World:
    """m1 is in epoch 3 (before: 2) with t-0 and t-1, m2 in epoch 3 with the others."""
    world = World()
    world.join("m1")
    world.join("m2")
    world.beat("m1", 2)
    world.beat("m1", 2, owned={"t": [0, 1]})
    world.beat("m2", 3)
    assert world.held() == {"m1": {"t": [0, 1]}, "m2": {"t": [2, 3]}}
    return world


@pytest.mark.parametrize(
    ("member_id", "epoch", "said", "code"),
    [
        ("m1", 99, {}, ErrorCode.FENCED_MEMBER_EPOCH),
        ("m1", 1, {"owned": {}}, ErrorCode.FENCED_MEMBER_EPOCH),
        ("m1", 2, {}, ErrorCode.FENCED_MEMBER_EPOCH),
        ("m1", 2, {"owned": {"t": [0, 2]}}, ErrorCode.FENCED_MEMBER_EPOCH),
        ("m1", 2, {"owned": {"t": [0]}}, OK),
        ("m1", 0, FULL, OK),
        ("mx", 3, {}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("mx", -1, {}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", 0, FULL, INVALID),
        ("", 0, {**FULL, "generates_member_id": True}, OK),
        ("", 3, {"generates_member_id": True}, INVALID),
        ("", -1, {"generates_member_id": True, "instance_id": "i9"}, INVALID),
        ("", -2, {"generates_member_id": True}, INVALID),
        ("", -2, {"generates_member_id": True, "instance_id": "i9"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -2, {"instance_id": "i9"}, INVALID),
        ("m1", -3, {}, INVALID),
        ("m1", -2, {}, INVALID),
        ("m9", 0, {**FULL, "rebalance_timeout_ms": -1}, INVALID),
        ("m9", 0, {**FULL, "owned": {"t": [0]}}, INVALID),
        ("m9", 0, {**FULL, "owned": None}, INVALID),
        ("m9", 0, {**FULL, "topics": None}, INVALID),
        ("m9", 0, {**FULL, "topics": None, "pattern": ""}, OK),
        ("m9", 0, {**FULL, "instance_id": ""}, INVALID),
        ("m9", 0, {**FULL, "rack_id": ""}, INVALID),
        ("m9", 0, {**FULL, "server_assignor": "foo"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ("m9", 0, {**FULL, "topics": None, "pattern": "[a"}, ErrorCode.INVALID_REGULAR_EXPRESSION),
        ("m9", 0, {**FULL, "pattern": "(?=a)"}, ErrorCode.INVALID_REGULAR_EXPRESSION),
        ("m9", 0, {**FULL, "topics": ["t", "t", "nope"]}, OK),
        ("m1", 3, {"owned": {"no such topic": [0]}}, OK),
        ("m9", 5, {"instance_id": "i9"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("m9", -1, {"instance_id": "i9"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_heartbeat_is_answered_as_by_kafka(world, member_id, epoch, said, code):
    assert world.refused(member_id, epoch, **said) is code


def test_a_refused_heartbeat_changes_nothing(world):
    before = world.group.describe()
    world.refused("m9", 0, rebalance_timeout_ms=1000, pattern="[a", owned={})
    assert world.group.describe() == before
    assert world.refused("m9", 3) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_of_version_0_is_given_an_id(world):
    response = world.beat("", 0, **FULL, generates_member_id=True)
    assert response.member_id == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert response.member_id in world.members()


def test_a_full_group_takes_nobody_more_but_serves_its_members():
    world = World(consumer_group_size_max=1)
    world.join("m1")
    assert world.refused("m2", 0, **FULL) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.refused("m1", 0, **FULL) is OK
    assert world.beat("m1", 2).member_epoch == 2


def test_commits_are_taken_of_what_the_member_had_at_their_epoch(world):
    world.beat("m2", -1)
    world.beat("m1", 3)
    assert world.held() == {"m1": {"t": [0, 1, 2, 3]}}
    check = world.group.check_commit
    assert check("m1", None, 4, world.now) is None
    may = check("m1", None, 3, world.now)
    assert [may("t", partition) for partition in range(4)] == [True, True, False, False]
    may = check("m1", None, 1, world.now)
    assert not may("t", 0)
    assert not may("unknown", 0)


@pytest.mark.parametrize(
    ("member_id", "epoch", "code"),
    [
        ("m1", 3, OK),
        ("m1", 4, ErrorCode.STALE_MEMBER_EPOCH),
        ("m1", -1, ErrorCode.STALE_MEMBER_EPOCH),
        ("mx", 3, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_commits_of_others_and_of_other_epochs_are_refused(world, member_id, epoch, code):
    assert _code(world.group.check_commit, member_id, None, epoch, world.now) is code


def test_anyone_may_commit_to_an_empty_group(world):
    world.beat("m1", -1)
    world.beat("m2", -1)
    assert world.group.check_commit("", None, -1, world.now) is None
    assert _code(world.group.check_commit, "m1", None, 3, world.now) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_transaction_without_a_member_may_commit(world):
    assert world.group.check_txn_commit("", None, -1, world.now) is None
    assert _code(world.group.check_txn_commit, "mx", None, 3, world.now) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("member_id", "epoch", "code"),
    [
        (None, -1, OK),
        ("m1", 3, OK),
        ("m1", 2, ErrorCode.STALE_MEMBER_EPOCH),
        ("mx", 3, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_member_reads_offsets_in_its_epoch_only(world, member_id, epoch, code):
    assert _code(world.group.check_fetch, member_id, epoch) is code


def test_a_group_with_members_cannot_be_deleted(world):
    assert _code(world.group.check_delete) is ErrorCode.NON_EMPTY_GROUP
    world.beat("m1", -1)
    world.beat("m2", -1)
    assert _code(world.group.check_delete) is OK


def _code(check, *arguments) -> ErrorCode:
    try:
        check(*arguments)
    except ApiError as refusal:
        return refusal.code
    return OK
