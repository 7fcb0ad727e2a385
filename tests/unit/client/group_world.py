"""A group of one member, as its coordinator tells it: two brokers on virtual time, played by the test."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from tests.unit.client.virtual import APIS, LATER, Asked, VirtualDriver, network_of, talking, versions_answer

from lowwater.client.cluster import Cluster
from lowwater.client.config import Address
from lowwater.client.coordinator import Coordinator
from lowwater.client.errors import ClientError
from lowwater.client.flow import Flow
from lowwater.client.group import Member
from lowwater.errors import ErrorCode
from lowwater.groups.consumer_protocol import (
    ConsumerProtocolAssignment,
    encode_assignment,
)
from lowwater.groups.consumer_protocol import (
    TopicPartition as OfTopic,
)
from lowwater.types import TopicPartition
from lowwater.wire.messages import (
    API,
    ApiVersionsResponse,
    ConsumerGroupHeartbeatResponse,
    FindCoordinatorResponse,
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    MetadataResponse,
    OffsetCommitResponse,
    OffsetFetchResponse,
    SyncGroupResponse,
)
from lowwater.wire.messages.consumer_group_heartbeat import Assignment, TopicPartitions
from lowwater.wire.messages.find_coordinator import Coordinator as Found
from lowwater.wire.messages.join_group import JoinGroupResponseMember
from lowwater.wire.messages.metadata import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from lowwater.wire.messages.offset_commit import OffsetCommitResponsePartition, OffsetCommitResponseTopic
from lowwater.wire.messages.offset_fetch import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

T = TypeVar("T")

BROKERS = {1: Address("a", 1), 2: Address("b", 2)}
MEMBER = "member-1"


class GroupWorld:
    """`codes` are errors to answer with, by API, one each time; `held` APIs are answered by the test."""

    def __init__(self, **settings: Any) -> None:
        self.node = 1
        self.generation = 0
        self.members = 0
        self.counts = {"t": 4}
        self.share: dict[str, list[int]] | None = None
        self.told_share: dict[str, list[int]] | None = None
        self.offsets: dict[TopicPartition, int] = {}
        self.codes: dict[str, list[int]] = {}
        self.partition_codes: dict[TopicPartition, list[int]] = {}
        self.held: set[str] = set()
        self.asked: list[Asked] = []
        self.waiting: list[Asked] = []
        self.answers: dict[str, Callable[[Asked, int], Any]] = {
            name: partial(usual, self) for name, usual in _ANSWERS.items()
        }
        self.driver = VirtualDriver(talking({name: self._answering(name) for name in _ANSWERS}))
        usual: dict[str, Any] = {"max_poll_interval_ms": 60_000}
        if settings.get("group_protocol") != "consumer":
            usual |= {"heartbeat_interval_ms": 1000, "session_timeout_ms": 10_000}
        self.cluster = Cluster(network_of(self.driver, **{**usual, **settings}))
        self.coordinator = Coordinator(self.cluster, "g")
        self.heard = Heard()
        self.member = Member(self.coordinator, self.heard, topics=["t"])

    # ---- for tests

    def begin(self, coroutine: Coroutine[Any, Any, T], advance_ms: int = 0) -> Flow[T]:
        flow = Flow(coroutine)
        self.advance(advance_ms)
        return flow

    def do(self, coroutine: Coroutine[Any, Any, T], advance_ms: int = 0) -> T:
        return self.begin(coroutine, advance_ms).result()

    def advance(self, ms: int = 0) -> None:
        self.driver.time.advance(ms)

    def start(self) -> None:
        """The member is in, and its caller waits in a poll."""
        self.member.start()
        self.begin(self.member.enter_poll())

    def said(self, name: str) -> list[Any]:
        """The requests of one API, in order."""
        return [asked.request for asked in self.asked if asked.api.name == name]

    def let_go(self) -> None:
        """Answer what was held."""
        waiting, self.waiting = self.waiting, []
        self.held.clear()
        for asked in waiting:
            asked.answer(self.answers[asked.api.name](asked, 0))
        self.advance()

    def refuse(self, name: str, *codes: int) -> None:
        self.codes.setdefault(name, []).extend(codes)

    # ---- the brokers

    def _answering(self, name: str) -> Any:
        def answer(asked: Asked) -> Any:
            self.asked.append(asked)
            if name in self.held:
                self.waiting.append(asked)
                return LATER
            at_node = next(node for node, address in BROKERS.items() if address == asked.line.address)
            codes = self.codes.get(name, [])
            code = codes.pop(0) if codes else 0
            if at_node != self.node and name not in ("Metadata", "FindCoordinator"):
                code = ErrorCode.NOT_COORDINATOR
            return self.answers[name](asked, code)

        return answer

    def metadata(self, asked: Asked, code: int) -> MetadataResponse:
        wanted = asked.request.topics
        names = sorted(self.counts) if wanted is None else [topic.name for topic in wanted]
        brokers = [MetadataResponseBroker(node_id=node, host=at.host, port=at.port) for node, at in BROKERS.items()]
        return MetadataResponse(
            brokers=brokers, cluster_id="c", controller_id=1, topics=[self._topic(name) for name in names]
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        code = 0 if name in self.counts else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        partitions = [
            MetadataResponsePartition(partition_index=number, leader_id=1, replica_nodes=[1], isr_nodes=[1])
            for number in range(self.counts.get(name, 0))
        ]
        return MetadataResponseTopic(name=name, topic_id=topic_id(name), error_code=code, partitions=partitions)

    def find(self, asked: Asked, code: int) -> FindCoordinatorResponse:
        at = BROKERS[self.node]
        if asked.version < 4:
            return FindCoordinatorResponse(error_code=code, node_id=self.node, host=at.host, port=at.port)
        return FindCoordinatorResponse(
            coordinators=[
                Found(key=key, node_id=self.node, host=at.host, port=at.port, error_code=code)
                for key in asked.request.coordinator_keys
            ]
        )

    def join(self, asked: Asked, code: int) -> JoinGroupResponse:
        request = asked.request
        if code:
            return JoinGroupResponse(error_code=code)
        if not request.member_id and request.group_instance_id is None:
            self.members += 1
            return JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=f"member-{self.members}")
        self.generation += 1
        member_id = request.member_id or "static"
        chosen = request.protocols[0]
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name=chosen.name,
            leader=member_id,
            member_id=member_id,
            members=[JoinGroupResponseMember(member_id=member_id, metadata=chosen.metadata)],
        )

    def sync(self, asked: Asked, code: int) -> SyncGroupResponse:
        if code:
            return SyncGroupResponse(error_code=code)
        if self.share is not None:
            return SyncGroupResponse(assignment=assignment(self.share))
        return SyncGroupResponse(assignment=asked.request.assignments[0].assignment)

    def beat(self, asked: Asked, code: int) -> HeartbeatResponse:
        return HeartbeatResponse(error_code=code)

    def consumer(self, asked: Asked, code: int) -> ConsumerGroupHeartbeatResponse:
        """The coordinator of the consumer protocol: `share` is what the member is to have, told when it changes."""
        request = asked.request
        if code:
            return ConsumerGroupHeartbeatResponse(error_code=code, error_message="so it is")
        if request.member_epoch < 0:
            return ConsumerGroupHeartbeatResponse(member_epoch=request.member_epoch)
        share = {"t": list(range(self.counts["t"]))} if self.share is None else self.share
        is_new = share != self.told_share or request.member_epoch == 0
        if is_new:
            self.generation += 1
            self.told_share = share
        given = [TopicPartitions(topic_id=topic_id(topic), partitions=numbers) for topic, numbers in share.items()]
        return ConsumerGroupHeartbeatResponse(
            member_id=request.member_id or MEMBER,
            member_epoch=self.generation,
            heartbeat_interval_ms=1000,
            assignment=Assignment(topic_partitions=given) if is_new else None,
        )

    def leave(self, asked: Asked, code: int) -> LeaveGroupResponse:
        return LeaveGroupResponse(error_code=code)

    def commit(self, asked: Asked, code: int) -> OffsetCommitResponse:
        topics = []
        for topic in asked.request.topics:
            partitions = []
            for each in topic.partitions:
                one = TopicPartition(topic.name, each.partition_index)
                own = self.partition_codes.get(one, [])
                found = code or (own.pop(0) if own else 0)
                if not found:
                    self.offsets[one] = each.committed_offset
                partitions.append(OffsetCommitResponsePartition(partition_index=one.partition, error_code=found))
            topics.append(OffsetCommitResponseTopic(name=topic.name, partitions=partitions))
        return OffsetCommitResponse(topics=topics)

    def fetch(self, asked: Asked, code: int) -> OffsetFetchResponse:
        if asked.version < 8:
            wanted = asked.request.topics
            topics = [
                OffsetFetchResponseTopic(
                    name=name, partitions=[OffsetFetchResponsePartition(**fields) for fields in partitions]
                )
                for name, partitions in self._fetched(wanted).items()
            ]
            return OffsetFetchResponse(error_code=code, topics=topics)
        [group] = asked.request.groups
        found = [
            OffsetFetchResponseTopics(
                name=name, partitions=[OffsetFetchResponsePartitions(**fields) for fields in partitions]
            )
            for name, partitions in self._fetched(group.topics).items()
        ]
        return OffsetFetchResponse(
            groups=[OffsetFetchResponseGroup(group_id=group.group_id, error_code=code, topics=found)]
        )

    def _fetched(self, wanted: Any) -> dict[str, list[dict[str, Any]]]:
        if wanted is None:
            places = list(self.offsets)
        else:
            places = [TopicPartition(topic.name, number) for topic in wanted for number in topic.partition_indexes]
        found: dict[str, list[dict[str, Any]]] = {}
        for one in places:
            codes = self.partition_codes.get(one, [])
            fields = {
                "partition_index": one.partition,
                "committed_offset": self.offsets.get(one, -1),
                "error_code": codes.pop(0) if codes else 0,
            }
            found.setdefault(one.topic, []).append(fields)
        return found


_ANSWERS: dict[str, Any] = {
    "Metadata": GroupWorld.metadata,
    "FindCoordinator": GroupWorld.find,
    "JoinGroup": GroupWorld.join,
    "SyncGroup": GroupWorld.sync,
    "Heartbeat": GroupWorld.beat,
    "LeaveGroup": GroupWorld.leave,
    "ConsumerGroupHeartbeat": GroupWorld.consumer,
    "OffsetCommit": GroupWorld.commit,
    "OffsetFetch": GroupWorld.fetch,
}


class Heard:
    """What the member told its reader, in order."""

    def __init__(self) -> None:
        self.events: list[tuple[str, list[int]]] = []
        self.failure: ClientError | None = None
        self.on_revoked: Any = None
        self.raises: dict[str, Exception] = {}

    async def assigned(self, partitions: list[TopicPartition]) -> None:
        self._note("assigned", partitions)

    async def revoked(self, partitions: list[TopicPartition]) -> None:
        if self.on_revoked is not None:
            await self.on_revoked(partitions)
        self._note("revoked", partitions)

    async def lost(self, partitions: list[TopicPartition]) -> None:
        self._note("lost", partitions)

    def failed(self, error: ClientError) -> None:
        self.failure = error

    def _note(self, what: str, partitions: list[TopicPartition]) -> None:
        self.events.append((what, [one.partition for one in partitions]))
        if what in self.raises:
            raise self.raises[what]


def assignment(share: dict[str, list[int]]) -> bytes:
    return encode_assignment(
        ConsumerProtocolAssignment(
            assigned_partitions=[OfTopic(topic=topic, partitions=numbers) for topic, numbers in share.items()]
        )
    )


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b"!")


def at(*numbers: int, topic: str = "t") -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in numbers]


def only(world: GroupWorld, name: str, versions: tuple[int, int]) -> None:
    """Brokers know these versions of one API, and all of the others."""
    key = next(key for key, api in API.items() if api.name == name)
    known = {each: (api.version_min, api.version_max) for each, api in APIS.items()} | {key: versions}
    usual = world.driver.answer

    def answer(asked: Asked) -> object:
        usual_answer = usual(asked)
        return versions_answer(known) if isinstance(usual_answer, ApiVersionsResponse) else usual_answer

    world.driver.answer = answer
