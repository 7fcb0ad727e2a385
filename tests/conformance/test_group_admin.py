"""Listing, describing and deleting groups and their offsets, with every admin client that has the calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.conformance.clients.base import ClientError
from tests.conformance.groups.admins import ADMINS, Can, Described, GroupAdmin
from tests.conformance.groups.raw_member import RawMember
from tests.conformance.groups.stage import Stage, eventually
from tests.conformance.raw import Wire
from tests.conformance.under_test import UnderTest

from lowwater.errors import ErrorCode
from lowwater.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


def admins(*needs: Can) -> pytest.MarkDecorator:
    able = [each for each in ADMINS.values() if each.can.issuperset(needs)]
    chosen = [pytest.param(each.name, marks=pytest.mark.peer(each.peer), id=each.name) for each in able]
    return pytest.mark.parametrize("admin", chosen, indirect=True)


@pytest.fixture(scope="session")
def admins_of(group_broker: UnderTest) -> Iterator[Callable[[str], GroupAdmin]]:
    """By name, each started at its first use."""
    running: dict[str, GroupAdmin] = {}

    def of(name: str) -> GroupAdmin:
        if name not in running:
            running[name] = ADMINS[name](group_broker.bootstrap)
        return running[name]

    yield of
    for each in running.values():
        each.close()


@pytest.fixture
def admin(request: pytest.FixtureRequest, admins_of: Callable[[str], GroupAdmin]) -> GroupAdmin:
    return admins_of(request.param)


@pytest.fixture
def topic(stage: Stage) -> str:
    return stage.topic(partitions=3)


@pytest.fixture
def member(stage: Stage, topic: str) -> RawMember:
    """The one member of a Stable classic group."""
    only = stage.raw_member([topic])
    assert only.join().error_code == 0
    assert only.sync({only.member_id: {topic: [0, 2]}}).error_code == 0
    return only


@pytest.fixture
def consumer_member(stage: Stage, topic: str) -> Iterator[Any]:
    """The one member of a group of the consumer protocol."""
    request = ConsumerGroupHeartbeatRequest(
        group_id=stage.group,
        member_id="only-member",
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )
    with Wire(stage.broker.address) as wire:
        answer = wire.ask(request)
        assert answer.error_code == 0, answer
        yield answer


def refusal(call: Callable[[], object]) -> ErrorCode:
    with pytest.raises(ClientError) as refused:
        call()
    return refused.value.code


@admins()
def test_groups_are_listed(stage: Stage, admin: GroupAdmin, topic: str, member: RawMember) -> None:
    stage.commit(topic, 0, 1, group=f"{stage.group}-simple")
    listed = admin.groups()
    assert stage.group in listed
    assert f"{stage.group}-simple" in listed
    assert f"{stage.group}-other" not in listed


@admins(Can.FILTER_STATES)
def test_groups_are_listed_by_state(stage: Stage, admin: GroupAdmin, topic: str, member: RawMember) -> None:
    stage.commit(topic, 0, 1, group=f"{stage.group}-simple")
    assert stage.group in admin.groups(states=["Stable"])
    assert stage.group not in admin.groups(states=["Empty"])
    assert stage.group in admin.groups(states=["Stable", "Empty"])
    assert f"{stage.group}-simple" in admin.groups(states=["Empty"])
    member.leave()
    assert stage.group in admin.groups(states=["Empty"])


@admins(Can.FILTER_TYPES)
def test_groups_are_listed_by_type(stage: Stage, admin: GroupAdmin, topic: str, consumer_member: Any) -> None:
    stage.commit(topic, 0, 1, group=f"{stage.group}-simple")
    assert stage.group in admin.groups(types=["consumer"])
    assert stage.group not in admin.groups(types=["classic"])
    assert f"{stage.group}-simple" in admin.groups(types=["classic"])
    assert f"{stage.group}-simple" not in admin.groups(types=["consumer"])


@admins()
def test_a_classic_group_is_described(stage: Stage, admin: GroupAdmin, topic: str, member: RawMember) -> None:
    assert admin.describe(stage.group) == Described("stable", {"raw": {(topic, 0), (topic, 2)}})
    member.leave()
    assert admin.describe(stage.group) == Described("empty", {})


@admins(Can.DESCRIBE_CONSUMER)
def test_a_group_of_the_consumer_protocol_is_described(
    stage: Stage, admin: GroupAdmin, topic: str, consumer_member: Any
) -> None:
    described = admin.describe(stage.group)
    assert described.state in ("stable", "reconciling")
    assert list(described.members) == ["raw"]


@admins()
def test_committed_offsets_are_listed(stage: Stage, admin: GroupAdmin, topic: str) -> None:
    stage.commit(topic, 0, 17)
    stage.commit(topic, 2, 4)
    assert admin.offsets(stage.group, topic) == {0: 17, 2: 4}
    stage.commit(topic, 0, 3)
    assert admin.offsets(stage.group, topic) == {0: 3, 2: 4}


@admins(Can.ALTER_OFFSETS)
def test_offsets_of_an_empty_group_are_altered(stage: Stage, admin: GroupAdmin, topic: str) -> None:
    stage.fill(topic, 3, each=20)
    stage.commit(topic, 0, 17)
    admin.alter(stage.group, topic, {0: 5, 1: 9})
    assert admin.offsets(stage.group, topic) == {0: 5, 1: 9}


@admins(Can.ALTER_OFFSETS)
def test_offsets_of_a_group_with_members_are_not_altered(
    stage: Stage, admin: GroupAdmin, topic: str, member: RawMember
) -> None:
    if admin.name == "kafkajs":
        # It looks at the group first and refuses by itself.
        with pytest.raises(RuntimeError, match="must have no running instances"):
            admin.alter(stage.group, topic, {0: 5})
    else:
        assert refusal(lambda: admin.alter(stage.group, topic, {0: 5})) == ErrorCode.UNKNOWN_MEMBER_ID
    assert admin.offsets(stage.group, topic) == {}


@admins(Can.DELETE_OFFSETS)
def test_offsets_are_deleted(stage: Stage, admin: GroupAdmin, topic: str) -> None:
    stage.commit(topic, 0, 17)
    stage.commit(topic, 1, 18)
    admin.delete_offsets(stage.group, topic, [0])
    assert admin.offsets(stage.group, topic) == {1: 18}


@admins(Can.DELETE_OFFSETS)
def test_offsets_of_a_subscribed_topic_are_not_deleted(
    stage: Stage, admin: GroupAdmin, topic: str, member: RawMember
) -> None:
    other = stage.topic(partitions=1)
    assert refusal(lambda: admin.delete_offsets(stage.group, topic, [0])) == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    admin.delete_offsets(stage.group, other, [0])


@admins(Can.DELETE)
def test_an_empty_group_is_deleted_with_its_offsets(stage: Stage, admin: GroupAdmin, topic: str) -> None:
    stage.commit(topic, 0, 17)
    admin.delete(stage.group)
    eventually(lambda: stage.group not in admin.groups(), "the group is gone")
    assert stage.committed(topic) == -1
    assert refusal(lambda: admin.delete(stage.group)) == ErrorCode.GROUP_ID_NOT_FOUND


@admins(Can.DELETE)
def test_a_group_with_members_is_not_deleted(stage: Stage, admin: GroupAdmin, topic: str, member: RawMember) -> None:
    assert refusal(lambda: admin.delete(stage.group)) == ErrorCode.NON_EMPTY_GROUP
    member.leave()
    admin.delete(stage.group)
    assert stage.group not in admin.groups()
