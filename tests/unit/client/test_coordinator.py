"""Finding a coordinator, following it, and the offsets it keeps."""

from __future__ import annotations

import pytest
from tests.unit.client.group_world import GroupWorld, at, only
from tests.unit.client.virtual import refused

from lowwater.client.config import Address
from lowwater.client.coordinator import TRANSACTION, Committed, Identity, NodeOf, coordinators
from lowwater.client.errors import (
    AuthorizationError,
    BrokerError,
    ClientError,
    CommitError,
    ConnectError,
    FencedInstanceError,
    NotMemberError,
    RebalancingError,
    UnknownTopicError,
)
from lowwater.errors import ErrorCode
from lowwater.wire.messages import API

ONE, TWO = at(0, 1)


def versions_of(name: str) -> list[int]:
    api = next(api for api in API.values() if api.name == name)
    return list(range(api.version_min, api.version_max + 1))


# ---- finding


def test_the_coordinator_is_looked_up_once_by_all_who_ask_at_the_same_time() -> None:
    world = GroupWorld()
    flows = [world.begin(world.coordinator.node()) for _ in range(3)]
    world.advance()
    assert [flow.result() for flow in flows] == [1, 1, 1]
    world.do(world.coordinator.committed([ONE]))
    assert len(world.said("FindCoordinator")) == 1


def test_who_gives_up_does_not_take_the_answer_from_the_others() -> None:
    world = GroupWorld()
    world.held.add("FindCoordinator")
    hasty, patient = world.begin(world.coordinator.node()), world.begin(world.coordinator.node())
    world.advance()
    hasty.cancel()
    world.let_go()
    assert patient.result() == 1
    assert len(world.said("FindCoordinator")) == 1


@pytest.mark.parametrize("version", versions_of("FindCoordinator"))
def test_every_version_of_the_question_is_spoken(version: int) -> None:
    world = GroupWorld()
    only(world, "FindCoordinator", (version, version))
    assert world.do(world.coordinator.node()) == 1
    if version:
        assert world.do(NodeOf(world.cluster, "tx", TRANSACTION).node()) == 1
        assert [request.key_type for request in world.said("FindCoordinator")] == [0, 1]


def test_a_coordinator_that_is_not_there_yet_is_asked_for_again() -> None:
    world = GroupWorld()
    world.refuse("FindCoordinator", *[ErrorCode.COORDINATOR_NOT_AVAILABLE] * 3)
    assert world.do(world.coordinator.node(), advance_ms=5_000) == 1
    assert len(world.said("FindCoordinator")) == 4


def test_a_refusal_for_good_is_raised_at_once() -> None:
    world = GroupWorld()
    world.refuse("FindCoordinator", ErrorCode.GROUP_AUTHORIZATION_FAILED)
    with pytest.raises(AuthorizationError, match="'g'"):
        world.do(world.coordinator.node())


def test_many_keys_are_asked_for_at_once() -> None:
    world = GroupWorld()
    assert world.do(coordinators(world.cluster, ["b", "a", "b"])) == {"a": 1, "b": 1}
    assert [request.coordinator_keys for request in world.said("FindCoordinator")] == [["a", "b"]]


def test_many_keys_are_asked_for_one_by_one_where_brokers_do_not_know_better() -> None:
    world = GroupWorld()
    only(world, "FindCoordinator", (0, 3))
    assert world.do(coordinators(world.cluster, ["a", "b"])) == {"a": 1, "b": 1}
    assert [request.key for request in world.said("FindCoordinator")] == ["a", "b"]


def test_of_many_keys_each_has_its_own_error() -> None:
    world = GroupWorld()
    world.refuse("FindCoordinator", ErrorCode.GROUP_AUTHORIZATION_FAILED)
    found = world.do(coordinators(world.cluster, ["a"]))
    assert isinstance(found["a"], AuthorizationError)


# ---- following


def test_a_coordinator_that_moves_is_followed() -> None:
    world = GroupWorld()
    world.offsets[ONE] = 7
    assert world.do(world.coordinator.committed([ONE])) == {ONE: 7}
    world.node = 2
    assert world.do(world.coordinator.committed([ONE]), advance_ms=1_000) == {ONE: 7}
    assert len(world.said("FindCoordinator")) == 2


def test_a_coordinator_that_loads_is_asked_again_without_looking_it_up() -> None:
    world = GroupWorld()
    world.refuse("OffsetFetch", *[ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 2)
    assert world.do(world.coordinator.committed([ONE]), advance_ms=2_000) == {ONE: None}
    assert len(world.said("FindCoordinator")) == 1
    assert len(world.said("OffsetFetch")) == 3


def test_a_coordinator_that_cannot_be_reached_is_looked_up_again() -> None:
    world = GroupWorld()
    world.do(world.coordinator.node())
    world.driver.unreachable[Address("a", 1)] = refused(Address("a", 1))
    for line in world.driver.open_lines:
        line.drop()
    world.node = 2
    assert world.do(world.coordinator.committed([ONE]), advance_ms=5_000) == {ONE: None}


def test_the_error_at_the_end_says_how_often_it_was_tried() -> None:
    world = GroupWorld(default_api_timeout_ms=3_000)
    world.refuse("OffsetFetch", *[ErrorCode.NOT_COORDINATOR] * 100)
    with pytest.raises(BrokerError, match=r"the coordinator of 'g' .* tried \d+ times"):
        world.do(world.coordinator.committed([ONE]), advance_ms=10_000)


def test_asking_once_raises_at_once_and_has_forgotten_the_coordinator() -> None:
    world = GroupWorld()
    world.do(world.coordinator.node())
    world.node = 2
    with pytest.raises(BrokerError):
        world.do(world.coordinator.commit({ONE: 1}, is_retried=False))
    assert world.do(world.coordinator.node()) == 2


# ---- committed offsets


@pytest.mark.parametrize("version", [version for version in versions_of("OffsetFetch") if version < 10])
def test_committed_offsets_are_read_in_every_version(version: int) -> None:
    world = GroupWorld()
    only(world, "OffsetFetch", (version, version))
    world.offsets = {ONE: 0, at(3, topic="u")[0]: 9}
    assert world.do(world.coordinator.committed([ONE, TWO, *at(3, topic="u")])) == {
        ONE: 0,
        TWO: None,
        at(3, topic="u")[0]: 9,
    }
    assert len(world.said("OffsetFetch")) == 1


def test_everything_that_a_group_has_committed_is_read_at_once() -> None:
    world = GroupWorld()
    world.offsets = {ONE: 5, TWO: 6}
    assert world.do(world.coordinator.committed_in_full()) == {ONE: Committed(5), TWO: Committed(6)}


def test_no_partitions_need_no_request() -> None:
    world = GroupWorld()
    assert world.do(world.coordinator.committed([])) == {}
    world.do(world.coordinator.commit({}))
    assert not world.said("FindCoordinator")


@pytest.mark.parametrize(("isolation", "expected"), [("read_committed", True), ("read_uncommitted", False)])
def test_open_transactions_are_waited_for_under_read_committed(isolation: str, expected: bool) -> None:
    world = GroupWorld(isolation_level=isolation)
    world.partition_codes[ONE] = [ErrorCode.UNSTABLE_OFFSET_COMMIT] * 2
    world.offsets[ONE] = 4
    assert world.do(world.coordinator.committed([ONE]), advance_ms=2_000) == {ONE: 4}
    assert {request.require_stable for request in world.said("OffsetFetch")} == {expected}


def test_an_error_of_one_partition_is_raised_and_never_read_as_nothing_committed() -> None:
    world = GroupWorld()
    world.partition_codes[TWO] = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    with pytest.raises(AuthorizationError) as caught:
        world.do(world.coordinator.committed([ONE, TWO]))
    assert (caught.value.topic, caught.value.partition) == ("t", 1)


def test_a_group_whose_offsets_may_not_be_read_says_so() -> None:
    world = GroupWorld()
    world.refuse("OffsetFetch", ErrorCode.GROUP_AUTHORIZATION_FAILED)
    with pytest.raises(AuthorizationError, match="'g'"):
        world.do(world.coordinator.committed([ONE]))


# ---- committing


def test_what_is_committed_carries_its_epoch_and_its_note() -> None:
    world = GroupWorld()
    world.do(world.coordinator.commit({ONE: 5, TWO: Committed(6, 3, "by hand")}, Identity("m", 7, "i")))
    [request] = world.said("OffsetCommit")
    [topic] = request.topics
    assert [
        (each.committed_offset, each.committed_leader_epoch, each.committed_metadata) for each in topic.partitions
    ] == [(5, -1, ""), (6, 3, "by hand")]
    assert (request.member_id, request.generation_id_or_member_epoch, request.group_instance_id) == ("m", 7, "i")


@pytest.mark.parametrize("version", [version for version in versions_of("OffsetCommit") if version < 10])
def test_offsets_are_committed_in_every_version(version: int) -> None:
    world = GroupWorld()
    only(world, "OffsetCommit", (version, version))
    world.do(world.coordinator.commit({ONE: 5}, Identity("m", 7)))
    assert world.offsets == {ONE: 5}


def test_only_partitions_that_failed_are_committed_again() -> None:
    world = GroupWorld()
    world.partition_codes[TWO] = [ErrorCode.REQUEST_TIMED_OUT]
    world.do(world.coordinator.commit({ONE: 5, TWO: 6}), advance_ms=1_000)
    assert world.offsets == {ONE: 5, TWO: 6}
    tried = [request.topics[0].partitions for request in world.said("OffsetCommit")]
    assert [[each.partition_index for each in partitions] for partitions in tried] == [[0, 1], [1]]


def test_a_partition_that_fails_for_good_is_named_and_the_others_are_committed() -> None:
    world = GroupWorld()
    world.partition_codes = {ONE: [ErrorCode.OFFSET_METADATA_TOO_LARGE], TWO: [ErrorCode.REQUEST_TIMED_OUT]}
    with pytest.raises(CommitError, match="'t' partition 0") as caught:
        world.do(world.coordinator.commit({ONE: 5, TWO: 6}), advance_ms=1_000)
    assert caught.value.errors.keys() == {ONE}
    assert caught.value.committed == {TWO}
    assert world.offsets == {TWO: 6}


def test_a_partition_that_does_not_appear_soon_is_an_error() -> None:
    world = GroupWorld(topic_metadata_propagation_max_ms=2_000)
    world.partition_codes[ONE] = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 100
    flow = world.begin(world.coordinator.commit({ONE: 5}), advance_ms=1_000)
    assert not flow.done
    world.advance(3_000)
    with pytest.raises(CommitError) as caught:
        flow.result()
    assert isinstance(caught.value.errors[ONE], UnknownTopicError)


def test_a_commit_that_is_not_retried_fails_at_the_first_try() -> None:
    world = GroupWorld()
    world.partition_codes[ONE] = [ErrorCode.REQUEST_TIMED_OUT]
    with pytest.raises(CommitError) as caught:
        world.do(world.coordinator.commit({ONE: 5, TWO: 6}, is_retried=False))
    assert caught.value.committed == {TWO}
    assert len(world.said("OffsetCommit")) == 1


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.ILLEGAL_GENERATION, NotMemberError),
        (ErrorCode.UNKNOWN_MEMBER_ID, NotMemberError),
        (ErrorCode.FENCED_INSTANCE_ID, FencedInstanceError),
        (ErrorCode.REBALANCE_IN_PROGRESS, RebalancingError),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, AuthorizationError),
    ],
)
def test_a_group_that_refuses_is_told_by_the_kind_of_error(code: ErrorCode, kind: type[ClientError]) -> None:
    world = GroupWorld()
    world.refuse("OffsetCommit", code)
    with pytest.raises(kind, match="group 'g' refuses the commit"):
        world.do(world.coordinator.commit({ONE: 5, TWO: 6}, Identity("m", 1)))
    assert not world.offsets


def test_a_network_that_is_closed_says_so() -> None:
    world = GroupWorld()
    world.do(world.coordinator.node())
    world.cluster.network.close()
    with pytest.raises(ClientError, match="closed"):
        world.do(world.coordinator.committed([ONE]), advance_ms=1_000)


def test_a_coordinator_out_of_reach_is_a_connect_error_in_the_end() -> None:
    world = GroupWorld(default_api_timeout_ms=2_000)
    world.driver.unreachable = {address: refused(address) for address in (Address("a", 1), Address("b", 2))}
    with pytest.raises(ConnectError, match="tried"):
        world.do(world.coordinator.committed([ONE]), advance_ms=10_000)
