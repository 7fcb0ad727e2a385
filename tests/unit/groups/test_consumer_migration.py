"""Groups whose members change from one protocol to the other while they run."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.groups.classic_world import WALL_MS, CountedIds
from tests.unit.groups.consumer_world import FakeTopics

from lowwater.errors import ApiError, ErrorCode
from lowwater.groups.commands import ConsumerHeartbeat, DescribeConsumerGroup, Join
from lowwater.groups.config import GroupConfig
from lowwater.groups.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from lowwater.groups.shard import GroupShard
from lowwater.outcome import Now, Outcome, StateRecord
from lowwater.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from lowwater.wire.messages.heartbeat import HeartbeatRequest
from lowwater.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from lowwater.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from lowwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

OK, REBALANCE = ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS
SESSION_MS, REBALANCE_MS = 10_000, 30_000


class World:
    """A shard, its log, and clients of both protocols."""

    def __init__(self, **config: Any) -> None:
        self.topics = FakeTopics(t=4)
        self.config = GroupConfig(**{"initial_rebalance_delay_ms": 0, **config})
        self.ids = CountedIds()
        self.now_ms = 0.0
        self.log: list[StateRecord] = []
        self.answers: dict[int, Any] = {}
        self.tokens = 0
        self.shard = GroupShard(self.config, self.ids, self.topics)

    @property
    def now(self) -> Now:
        return Now(WALL_MS, self.now_ms)

    def ask(self, command: Any) -> int:
        self.tokens += 1
        self.carry_out(self.shard.decide(command, self.tokens, self.now))
        return self.tokens

    def carry_out(self, out: Outcome) -> None:
        self.log += out.records
        for record in out.records:
            self.shard.replay(record)
        self.answers.update(out.replies)

    def wait(self, ms: float) -> None:
        end_ms = self.now_ms + ms
        while (deadline_ms := self.shard.next_deadline_ms) is not None and deadline_ms <= end_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            self.carry_out(self.shard.tick(self.now))
        self.now_ms = end_ms

    def reload(self) -> None:
        self.shard = GroupShard(self.config, self.ids, self.topics)
        for record in self.log:
            self.shard.replay(record)
        self.carry_out(self.shard.loaded(self.now))

    # -- classic clients

    def join(self, member_id: str = "", owned: list[int] | None = None, protocols=("range",), **said: Any) -> int:
        told = [TopicPartition(topic="t", partitions=owned)] if owned else []
        metadata = encode_subscription(ConsumerProtocolSubscription(topics=["t"], owned_partitions=told), 1)
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=member_id,
            protocol_type=said.pop("protocol_type", "consumer"),
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name in protocols],
            group_instance_id=said.pop("instance_id", None),
        )
        return self.ask(Join(request, "classic", "/1.1.1.1", said.pop("asks_for_member_id", False), True))

    def sync(self, member_id: str, generation: int, given: dict[str, list[int]] | None = None) -> int:
        assignments = [
            SyncGroupRequestAssignment(member_id=one, assignment=assignment(partitions))
            for one, partitions in (given or {}).items()
        ]
        return self.ask(
            SyncGroupRequest(group_id="g", generation_id=generation, member_id=member_id, assignments=assignments)
        )

    def given(self, token: int) -> list[int]:
        """What a Sync was answered with."""
        answer = self.answers[token]
        assert code_of(answer) is OK
        decoded = decode_assignment(answer.assignment)
        return [partition for topic in decoded.assigned_partitions for partition in topic.partitions]

    def heartbeat(self, member_id: str, generation: int) -> ErrorCode:
        request = HeartbeatRequest(group_id="g", generation_id=generation, member_id=member_id)
        return code_of(self.answers[self.ask(request)])

    def leave(self, *identities: MemberIdentity) -> list[ErrorCode]:
        answer = self.answers[self.ask(LeaveGroupRequest(group_id="g", members=list(identities)))]
        return [ErrorCode(one.error_code) for one in answer.members]

    # -- clients of the new protocol

    def beat(self, member_id: str, epoch: int, owned: list[int] | None = None, **said: Any) -> Any:
        if epoch == 0:
            said = {"subscribed_topic_names": ["t"], "rebalance_timeout_ms": REBALANCE_MS, **said}
            owned = []
        partitions = None if owned is None else [self._partitions(owned)] if owned else []
        request = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=member_id, member_epoch=epoch, topic_partitions=partitions, **said
        )
        return self.answers[self.ask(ConsumerHeartbeat(request, "new", "/2.2.2.2", False))]

    def _partitions(self, owned: list[int]) -> TopicPartitions:
        return TopicPartitions(topic_id=self.topics.topic_id("t"), partitions=owned)

    def assigned(self, response: Any) -> list[int] | None:
        if response.assignment is None:
            return None
        return [partition for topic in response.assignment.topic_partitions for partition in topic.partitions]

    # -- what is to be seen

    def assigned_of(self, member_id: str) -> list[int]:
        [row] = [one for one in self.group.describe().members if one.member_id == member_id]
        return [partition for topic in row.assignment.topic_partitions for partition in topic.partitions]

    @property
    def group(self) -> Any:
        return self.shard.groups["g"]

    def described(self) -> dict[str, Any]:
        answer = self.answers[self.ask(DescribeConsumerGroup("g"))]
        return {member.member_id: member for member in answer.members}

    def classic_pair(self, shares: tuple[list[int], list[int]] = ([0, 1], [2, 3])) -> tuple[str, str]:
        """A Stable classic group in generation 2."""
        first = self.join()
        a = self.answers[first].member_id
        self.sync(a, 1, {a: [0, 1, 2, 3]})
        second = self.join()
        again = self.join(a)
        b = self.answers[second].member_id
        assert self.answers[again].generation_id == 2
        self.sync(a, 2, {a: shares[0], b: shares[1]})
        self.sync(b, 2)
        assert self.group.state == "Stable"
        return a, b


def assignment(partitions: list[int], user_data: bytes | None = None) -> bytes:
    told = [TopicPartition(topic="t", partitions=partitions)] if partitions else []
    return encode_assignment(ConsumerProtocolAssignment(assigned_partitions=told, user_data=user_data), 1)


def code_of(answer: Any) -> ErrorCode:
    return answer.code if isinstance(answer, ApiError) else ErrorCode(answer.error_code)


@pytest.fixture
def world() -> World:
    return World()


# Empty groups


def test_an_empty_classic_group_becomes_a_consumer_group(world):
    a = world.answers[world.join()].member_id
    world.leave(MemberIdentity(member_id=a))
    assert world.beat("n", 0).member_epoch == 2
    assert world.group.kind == "consumer"
    world.reload()
    assert world.group.kind == "consumer"
    assert len(world.shard.groups) == world.shard.metrics.active_groups == 1


def test_an_empty_consumer_group_becomes_a_classic_group(world):
    world.beat("n", 0)
    world.beat("n", -1)
    assert code_of(world.answers[world.join()]) is OK
    assert world.group.kind == "classic"
    world.reload()
    assert world.group.kind == "classic"


# Classic to consumer


def test_a_member_of_the_new_protocol_turns_a_classic_group_into_a_consumer_group(world):
    a, b = world.classic_pair()
    response = world.beat("n", 0)
    assert (response.member_epoch, world.assigned(response)) == (3, [])
    members = world.described()
    assert {member_id: member.member_epoch for member_id, member in members.items()} == {a: 2, b: 2, "n": 3}
    assert {member_id: member.member_type for member_id, member in members.items()} == {a: 0, b: 0, "n": 1}
    assert world.shard.metrics.total_members == 3


def test_nobody_loses_a_partition_before_it_is_asked_to(world):
    a, b = world.classic_pair()
    world.beat("n", 0)
    held = {
        one: [p for t in member.assignment.topic_partitions for p in t.partitions]
        for one, member in world.described().items()
    }
    assert held == {a: [0, 1], b: [2, 3], "n": []}


def test_classic_members_join_again_and_are_given_what_the_coordinator_assigned(world):
    a, b = world.classic_pair()
    world.beat("n", 0)
    shares = {}
    for member_id in (a, b):
        assert world.heartbeat(member_id, 2) is REBALANCE
        joined = world.answers[world.join(member_id)]
        assert (joined.generation_id, joined.protocol_name, joined.leader, joined.members) == (3, "range", "", [])
        shares[member_id] = world.given(world.sync(member_id, 3))
        assert world.heartbeat(member_id, 3) is OK
    shares["n"] = world.assigned(world.beat("n", 3))
    assert sorted(partition for share in shares.values() for partition in share) == [0, 1, 2, 3]
    assert world.group.state == "Stable"


def test_a_cooperative_member_keeps_reading_what_it_keeps(world):
    a, b = world.classic_pair()
    world.beat("n", 0)
    owned = {a: [0, 1], b: [2, 3]}
    for member_id, own in owned.items():
        world.join(member_id, owned=own)
        generation = world.described()[member_id].member_epoch
        kept = world.given(world.sync(member_id, generation))
        assert set(kept) <= set(own)
        if generation == 2:
            assert world.assigned(world.beat("n", 3)) is None
            assert world.heartbeat(member_id, 2) is REBALANCE
            joined = world.answers[world.join(member_id, owned=kept)]
            assert world.given(world.sync(member_id, joined.generation_id)) == kept
    assert len(world.assigned(world.beat("n", 3))) == 1
    assert world.group.state == "Stable"


def test_who_waits_in_the_classic_group_is_told_to_join_again(world):
    a, _ = world.classic_pair()
    parked = world.join(a)
    world.beat("n", 0)
    assert code_of(world.answers[parked]) is REBALANCE
    assert world.answers[parked].member_id == a
    assert world.answers[world.join(a)].generation_id == 3


def test_the_group_is_the_same_after_a_restart(world):
    world.classic_pair()
    world.beat("n", 0)
    before = world.described()
    world.reload()
    assert world.described() == before
    assert world.shard.metrics.total_members == 3


def test_a_group_that_is_not_of_consumers_stays_classic(world):
    a = world.answers[world.join(protocol_type="connect")].member_id
    assert code_of(world.beat("n", 0)) is ErrorCode.GROUP_ID_NOT_FOUND
    assert (world.group.kind, world.group.state) == ("classic", "CompletingRebalance")
    assert world.heartbeat(a, 1) is OK


@pytest.mark.parametrize(
    ("protocol", "given", "kind"),
    [
        ("mine", assignment([0], b"more"), "classic"),
        ("mine", assignment([0]), "consumer"),
        ("cooperative-sticky", assignment([0], b"more"), "consumer"),
        ("range", b"\x00", "classic"),
    ],
)
def test_a_group_whose_assignments_cannot_be_read_or_kept_stays_classic(world, protocol, given, kind):
    a = world.answers[world.join(protocols=(protocol,))].member_id
    told = [SyncGroupRequestAssignment(member_id=a, assignment=given)]
    world.ask(SyncGroupRequest(group_id="g", generation_id=1, member_id=a, assignments=told))
    written = len(world.log)
    code = ErrorCode.GROUP_ID_NOT_FOUND if kind == "classic" else OK
    assert code_of(world.beat("n", 0)) is code
    assert (world.group.kind, len(world.log) > written) == (kind, kind == "consumer")


def test_a_group_whose_leader_gave_a_partition_twice_stays_classic(world):
    world.classic_pair(([0, 1], [1, 2]))
    assert code_of(world.beat("n", 0)) is ErrorCode.GROUP_ID_NOT_FOUND
    assert (world.group.kind, world.group.state) == ("classic", "Stable")


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_the_policy_may_forbid_it(policy):
    world = World(consumer_migration_policy=policy)
    world.classic_pair()
    assert code_of(world.beat("n", 0)) is ErrorCode.GROUP_ID_NOT_FOUND
    assert world.shard.metrics.total_members == 2


def test_a_refused_member_changes_nothing(world):
    a, _ = world.classic_pair()
    written = len(world.log)
    answer = world.beat("n", 0, subscribed_topic_regex="[")
    assert code_of(answer) is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert (world.group.kind, len(world.log), world.shard.metrics.total_members) == ("classic", written, 2)
    assert world.heartbeat(a, 2) is OK


# Classic members of a consumer group


def test_a_classic_member_may_join_a_consumer_group(world):
    world.beat("n", 0)
    asked = world.answers[world.join(asks_for_member_id=True)]
    assert code_of(asked) is ErrorCode.MEMBER_ID_REQUIRED
    joined = world.answers[world.join(asked.member_id)]
    assert (joined.member_id, joined.generation_id) == (asked.member_id, 3)
    assert world.given(world.sync(joined.member_id, 3)) == []
    kept = world.assigned(world.beat("n", 2))
    world.beat("n", 2, owned=kept)
    assert world.heartbeat(joined.member_id, 3) is REBALANCE
    world.join(joined.member_id)
    assert sorted(world.given(world.sync(joined.member_id, 3)) + kept) == [0, 1, 2, 3]
    assert world.heartbeat(joined.member_id, 3) is OK


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": ("roundrobin",)}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": ("roundrobin", "range")}, OK),
        ({"member_id": "known to nobody"}, OK),
        ({"member_id": "x", "instance_id": "nobody's"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_joins_are_checked(world, said, code):
    world.beat("n", 0)
    world.join("a", protocols=("range", "sticky"))
    assert code_of(world.answers[world.join(**said)]) is code


def test_a_classic_member_that_joins_again_keeps_a_protocol_it_had_also_when_it_is_the_only_one(world):
    world.beat("n", 0)
    world.join("a", protocols=("range", "sticky"))
    refused = world.answers[world.join("a", protocols=("roundrobin",))]
    assert code_of(refused) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert code_of(world.answers[world.join("a", protocols=("roundrobin", "sticky"))]) is OK


def test_requests_of_classic_members_are_checked(world):
    world.beat("n", 0)
    world.join("a")
    assert world.heartbeat("a", 9) is ErrorCode.ILLEGAL_GENERATION
    assert world.heartbeat("x", 3) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat("n", 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert code_of(world.answers[world.sync("a", 9)]) is ErrorCode.ILLEGAL_GENERATION
    world.beat("m", 0)
    assert code_of(world.answers[world.sync("a", 3)]) is REBALANCE


def test_a_classic_member_commits_in_its_generation(world):
    world.beat("n", 0)
    world.join("a")
    assert world.group.check_commit("a", None, 3, world.now) is None
    with pytest.raises(ApiError) as refusal:
        world.group.check_commit("a", None, 4, world.now)
    assert refusal.value.code is ErrorCode.ILLEGAL_GENERATION


def test_a_classic_member_that_does_not_sync_is_put_out(world):
    world.beat("n", 0)
    world.join("a")
    for _ in range(3):
        world.wait(SESSION_MS - 1)
        world.heartbeat("a", 3)
        world.beat("n", 2)
    world.wait(3)
    assert list(world.described()) == ["n"]


def test_a_classic_member_that_does_not_join_again_is_put_out(world):
    world.beat("n", 0)
    world.join("a")
    world.sync("a", 3)
    world.wait(SESSION_MS - 1)
    world.beat("m", 0)
    for _ in range(3):
        assert world.heartbeat("a", 3) is REBALANCE
        world.wait(SESSION_MS)
        if "a" not in world.described():
            break
    assert set(world.described()) == {"n", "m"}


def test_a_silent_classic_member_is_gone_after_its_own_session(world):
    world.beat("n", 0)
    world.join("a")
    world.sync("a", 3)
    world.wait(SESSION_MS)
    assert list(world.described()) == ["n"]


def test_a_classic_member_notices_that_a_topic_grew(world):
    world.beat("n", 0)
    world.join("a")
    world.sync("a", 3)
    world.beat("n", 2, owned=world.assigned(world.beat("n", 2)))
    world.join("a")
    world.sync("a", 3)
    assert world.heartbeat("a", 3) is OK
    world.topics.grow("t", 6)
    assert world.heartbeat("a", 3) is REBALANCE
    assert world.answers[world.join("a")].generation_id == 4


def test_leave_removes_members_of_both_protocols(world):
    world.beat("n", 0)
    world.beat("s", 0, instance_id="i")
    world.join("a")
    codes = world.leave(
        MemberIdentity(member_id="a"),
        MemberIdentity(member_id="n"),
        MemberIdentity(member_id="", group_instance_id="i"),
        MemberIdentity(member_id="x"),
    )
    assert codes == [OK, OK, OK, ErrorCode.UNKNOWN_MEMBER_ID]
    assert world.group.is_empty


def test_a_static_classic_member_is_taken_over_by_one_of_the_new_protocol(world):
    world.beat("n", 0)
    a = world.answers[world.join(instance_id="i")].member_id
    response = world.beat("s", 0, instance_id="i")
    assert code_of(response) is OK
    assert set(world.described()) == {"n", "s"}
    assert world.heartbeat(a, 3) is ErrorCode.UNKNOWN_MEMBER_ID


# Consumer to classic


def mixed(world: World) -> tuple[str, str]:
    a, b = world.classic_pair()
    world.beat("n", 0)
    for member_id in (a, b):
        world.join(member_id)
        world.sync(member_id, 3)
    world.beat("n", 3)
    return a, b


def test_when_the_last_member_of_the_new_protocol_leaves_the_group_is_classic_again(world):
    a, b = mixed(world)
    world.beat("n", -1)
    assert world.heartbeat(a, 3) is REBALANCE
    assert (world.group.kind, world.group.state) == ("classic", "PreparingRebalance")
    first, second = world.join(a), world.join(b)
    assert (world.answers[first].generation_id, world.answers[first].leader) == (4, a)
    world.sync(a, 4, {a: [0, 1], b: [2, 3]})
    assert world.given(world.sync(b, 4)) == [2, 3]
    assert world.answers[second].generation_id == 4
    assert world.shard.metrics.total_members == 2


def test_a_group_that_changes_to_and_fro_gives_nobody_what_a_classic_member_still_has(world):
    a, b = mixed(world)
    has = {one: world.given(world.sync(one, 3)) for one in (a, b)}
    world.beat("n", -1)
    assert world.heartbeat(a, 3) is REBALANCE
    assert world.group.kind == "classic"
    taken = world.assigned(world.beat("m", 0))
    assert world.group.kind == "consumer"
    assert not set(taken) & {*has[a], *has[b]}
    assert {one: world.assigned_of(one) for one in (a, b)} == has


def test_the_classic_group_is_there_after_a_restart(world):
    a, b = mixed(world)
    world.beat("n", -1)
    world.heartbeat(a, 3)
    world.reload()
    assert (world.group.kind, world.group.state, world.group.generation) == ("classic", "PreparingRebalance", 3)
    assert set(world.group.roster.members) == {a, b}
    first = world.join(a)
    world.join(b)
    assert world.answers[first].generation_id == 4


def test_a_crash_before_it_is_classic_again_changes_nothing(world):
    a, b = mixed(world)
    world.beat("n", -1)
    world.reload()
    assert world.group.kind == "consumer"
    first = world.join(a)
    world.join(b)
    assert (world.group.kind, world.answers[first].generation_id) == ("classic", 4)


def test_a_silent_member_of_the_new_protocol_is_enough(world):
    a, b = mixed(world)
    for _ in range(5):
        world.wait(SESSION_MS - 1)
        world.heartbeat(a, 3)
        world.heartbeat(b, 3)
    assert world.group.kind == "classic"


def test_the_policy_may_keep_it_a_consumer_group():
    world = World(consumer_migration_policy="upgrade")
    a, b = mixed(world)
    world.beat("n", -1)
    assert world.heartbeat(a, 3) is REBALANCE
    shares = []
    for member_id in (a, b):
        assert world.answers[world.join(member_id)].generation_id == 4
        shares += world.given(world.sync(member_id, 4))
    assert sorted(shares) == [0, 1, 2, 3]
    assert world.group.kind == "consumer"


def test_from_classic_to_new_and_back_no_generation_is_used_twice(world):
    a, b = world.classic_pair()
    seen = [2]
    for number in range(3):
        member_id = f"n{number}"
        response = world.beat(member_id, 0)
        seen.append(response.member_epoch)
        for one in (a, b):
            world.join(one)
            world.sync(one, response.member_epoch)
        world.beat(member_id, response.member_epoch)
        world.beat(member_id, -1)
        first = world.join(a)
        world.join(b)
        generation = world.answers[first].generation_id
        seen.append(generation)
        world.sync(a, generation, {a: [0, 1], b: [2, 3]})
        world.sync(b, generation)
    assert seen == sorted(set(seen))


@pytest.mark.parametrize("instance_id", [None, "s"])
def test_a_new_member_may_be_the_one_that_makes_it_a_classic_group_again(world, instance_id):
    a, b = world.classic_pair()
    world.beat("n", 0)
    world.beat("n", -1)
    new = world.join(instance_id=instance_id)
    world.join(a)
    world.join(b)
    answer = world.answers[new]
    assert (world.group.kind, code_of(answer)) == ("classic", OK)
    assert list(world.group.roster.members) == [a, b, answer.member_id]


def test_a_member_that_leaves_may_be_the_one_that_makes_it_a_classic_group_again(world):
    a, b = world.classic_pair()
    world.beat("n", 0)
    world.beat("n", -1)
    assert world.leave(MemberIdentity(member_id=a)) == [OK]
    assert (world.group.kind, list(world.group.roster.members)) == ("classic", [b])
    joined = world.answers[world.join(b)]
    assert (joined.leader, [member.member_id for member in joined.members]) == (b, [b])
