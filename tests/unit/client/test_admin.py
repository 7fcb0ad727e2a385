"""What the admin flows do with brokers that are old, away, elsewhere or in doubt; on virtual time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.unit.client.virtual import APIS, LATER, Asked, VirtualDriver, network_of, refused, versions_answer

from lowwater.client.admin.configs import Of, Resource, alter_configs, describe_configs
from lowwater.client.admin.group_members import describe_groups
from lowwater.client.admin.group_offsets import group_offsets
from lowwater.client.admin.groups import list_groups
from lowwater.client.admin.offsets import bounds
from lowwater.client.admin.outcomes import settle
from lowwater.client.admin.records import delete_records, sizes
from lowwater.client.admin.topic_changes import NewTopic, create_partitions, create_topics, delete_topics
from lowwater.client.admin.topics import describe_topics, list_topics
from lowwater.client.cluster import Cluster
from lowwater.client.config import Address
from lowwater.client.coordinator import Committed
from lowwater.client.errors import BrokerError, ClientError, ConnectError, UnknownTopicError
from lowwater.client.flow import Flow
from lowwater.errors import ConfigError, ErrorCode
from lowwater.types import TopicPartition
from lowwater.wire.messages import (
    CreateTopicsResponse,
    DeleteRecordsResponse,
    DeleteTopicsResponse,
    DescribeConfigsResponse,
    DescribeGroupsResponse,
    DescribeLogDirsResponse,
    FindCoordinatorResponse,
    IncrementalAlterConfigsResponse,
    ListGroupsResponse,
    ListOffsetsResponse,
    MetadataResponse,
    OffsetFetchResponse,
)
from lowwater.wire.messages.create_topics import CreatableTopicResult
from lowwater.wire.messages.delete_records import DeleteRecordsPartitionResult, DeleteRecordsTopicResult
from lowwater.wire.messages.delete_topics import DeletableTopicResult
from lowwater.wire.messages.describe_configs import DescribeConfigsResult
from lowwater.wire.messages.describe_groups import DescribedGroup
from lowwater.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from lowwater.wire.messages.find_coordinator import Coordinator
from lowwater.wire.messages.incremental_alter_configs import AlterConfigsResourceResponse
from lowwater.wire.messages.list_groups import ListedGroup
from lowwater.wire.messages.list_offsets import ListOffsetsPartitionResponse, ListOffsetsTopicResponse
from lowwater.wire.messages.metadata import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from lowwater.wire.messages.offset_fetch import (
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

A, B = Address("a", 1), Address("b", 2)
TIMEOUT_MS = 60_000
KEYS = {api.name: key for key, api in APIS.items()}


class World:
    """Two brokers; `t` has partitions on both. What is asked beside metadata is answered by `answers`."""

    def __init__(self, **answers: Callable[[Asked], Any]) -> None:
        self.brokers = {1: A, 2: B}
        self.controller = 1
        self.leaders: dict[str, list[int]] = {"t": [1, 2]}
        self.versions: dict[str, tuple[int, int]] = {}
        self.unserved: set[str] = set()
        self.answers: dict[str, Callable[[Asked], Any]] = {"Metadata": self._metadata, **answers}
        self.driver = VirtualDriver(self._answer)
        self.cluster = Cluster(network_of(self.driver, bootstrap_servers="a:1"))

    def _answer(self, asked: Asked) -> Any:
        if asked.api.name == "ApiVersions":
            known = {key: (api.version_min, api.version_max) for key, api in APIS.items()}
            known |= {KEYS[name]: versions for name, versions in self.versions.items()}
            return versions_answer({key: found for key, found in known.items() if APIS[key].name not in self.unserved})
        return self.answers[asked.api.name](asked)

    def _metadata(self, asked: Asked) -> MetadataResponse:
        wanted = asked.request.topics
        names = sorted(self.leaders) if wanted is None else [topic.name for topic in wanted]
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=node, host=b.host, port=b.port) for node, b in self.brokers.items()
            ],
            cluster_id="c",
            controller_id=self.controller,
            topics=[self._topic(name) for name in names],
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        if name not in self.leaders:
            return MetadataResponseTopic(name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, partitions=[])
        partitions = [
            MetadataResponsePartition(
                partition_index=index, leader_id=leader, leader_epoch=1, replica_nodes=[1, 2], isr_nodes=[leader]
            )
            for index, leader in enumerate(self.leaders[name])
        ]
        return MetadataResponseTopic(name=name, topic_id=name.encode().ljust(16, b"!"), partitions=partitions)

    def do(self, coroutine: Any, advance_ms: int = 2 * TIMEOUT_MS) -> Any:
        flow = Flow(coroutine)
        self.driver.time.advance(advance_ms)
        return flow.result()

    def asked(self, name: str) -> list[Asked]:
        return self.driver.requests(name)


def in_turn(*answers: Any) -> Callable[[Asked], Any]:
    """One answer after the other, the last one for ever; a function makes it of the request."""
    left = list(answers)

    def answer(asked: Asked) -> Any:
        given = left.pop(0) if len(left) > 1 else left[0]
        return given(asked) if callable(given) else given

    return answer


def drop(asked: Asked) -> object:
    """Served perhaps, but the answer never comes."""
    asked.line.drop()
    return LATER


def code_of(error: object) -> int:
    assert isinstance(error, BrokerError)
    return error.code


# ---- items


def test_an_error_that_passes_is_asked_about_again_alone() -> None:
    world = World()
    rounds: list[list[str]] = []

    async def attempt(left: list[str], _: float) -> Mapping[str, int | ClientError]:
        rounds.append(left)
        busy = BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return {item: busy if item == "b" and len(rounds) < 3 else len(rounds) for item in left}

    outcomes = world.do(settle(world.cluster, ["a", "b", "a"], attempt))
    assert (dict(outcomes), outcomes.failed) == ({"a": 1, "b": 3}, {})
    assert rounds == [["a", "b"], ["b"], ["b"]]


def test_an_error_that_does_not_pass_says_how_often_it_was_tried() -> None:
    world = World()

    async def attempt(left: list[str], _: float) -> Mapping[str, int | ClientError]:
        return {item: BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) if item == "b" else 1 for item in left}

    outcomes = world.do(settle(world.cluster, ["a", "b"], attempt))
    assert list(outcomes) == ["a"]
    assert outcomes.failed["b"].tries > 10
    assert "tried" in str(outcomes.failed["b"])


def test_when_nobody_answers_that_is_the_error_of_the_call_and_later_that_of_what_is_left() -> None:
    world = World()

    async def nobody(left: list[str], _: float) -> Mapping[str, int | ClientError]:
        raise ConnectError("nobody is there")

    with pytest.raises(ConnectError, match="nobody is there; tried"):
        world.do(settle(world.cluster, ["a"], nobody))
    rounds = iter([{"a": 1, "b": BrokerError(ErrorCode.NOT_CONTROLLER)}])

    async def gone(left: list[str], _: float) -> Mapping[str, int | ClientError]:
        for answers in rounds:
            return answers
        raise ConnectError("nobody is there")

    outcomes = world.do(settle(world.cluster, ["a", "b"], gone))
    assert dict(outcomes) == {"a": 1}
    assert code_of(outcomes.failed["b"]) == ErrorCode.NOT_CONTROLLER


def test_nothing_is_asked_for_nothing() -> None:
    world = World()
    assert not world.do(create_topics(world.cluster, []))
    assert not world.do(bounds(world.cluster, []))
    assert not world.do(describe_groups(world.cluster, []))
    assert world.driver.lines == []


# ---- topics


@pytest.mark.parametrize(
    ("topics", "says"),
    [
        ([NewTopic("n", partitions="3")], "partitions of n is a whole number, not '3'"),  # type: ignore[arg-type]
        ([NewTopic("n", replication_factor=1.0)], "replication_factor of n is a whole"),  # type: ignore[arg-type]
        ([NewTopic("n", config="a=1")], "config of n is a mapping of settings, not 'a=1'"),  # type: ignore[arg-type]
        ([NewTopic(b"n")], "the name of a topic is text, not b'n'"),  # type: ignore[arg-type]
        (["n"], r"each of topics is a NewTopic, NewTopic\('orders', partitions=3\), not 'n'"),
        ("n", "topics is a list of NewTopic, .* not 'n'"),
        (NewTopic("n"), r"topics is a list of NewTopic, .* not NewTopic\("),
    ],
)
def test_a_new_topic_that_cannot_be_asked_for_is_refused_before_anybody_is_asked(topics: Any, says: str) -> None:
    world = World()
    with pytest.raises(ConfigError, match=says):
        world.do(create_topics(world.cluster, topics))
    assert world.driver.lines == []


def test_so_many_partitions_is_a_number() -> None:
    world = World()
    with pytest.raises(ConfigError, match="the number of partitions of n is a whole number, not '3'"):
        world.do(create_partitions(world.cluster, {"n": "3"}))  # type: ignore[dict-item]


def created(name: str, code: int = 0) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[CreatableTopicResult(name=name, error_code=code)])


def test_the_controller_is_asked_and_found_again_when_it_moved() -> None:
    world = World(CreateTopics=lambda asked: created("n", 0 if asked.line.address == B else ErrorCode.NOT_CONTROLLER))

    def answer(asked: Asked) -> CreateTopicsResponse:
        world.controller = 2
        return created("n", 0 if asked.line.address == B else ErrorCode.NOT_CONTROLLER)

    world.answers["CreateTopics"] = answer
    assert "n" in world.do(create_topics(world.cluster, [NewTopic("n")]))
    assert [asked.line.address for asked in world.asked("CreateTopics")] == [A, B]


def test_another_controller_is_looked_for_when_it_does_not_answer() -> None:
    world = World(CreateTopics=lambda _: created("n"))
    world.do(world.cluster.brokers())
    world.controller = 2
    world.driver.unreachable[A] = refused(A)
    for line in world.driver.open_lines:
        line.drop()
    assert "n" in world.do(create_topics(world.cluster, [NewTopic("n")]))
    assert [asked.line.address for asked in world.asked("CreateTopics")] == [B]


def test_a_cluster_without_controller_is_waited_for() -> None:
    world = World(CreateTopics=lambda _: created("n"))
    world.controller = -1
    flow = Flow(create_topics(world.cluster, [NewTopic("n")]))
    world.driver.time.advance(5_000)
    assert not flow.done
    world.controller = 2
    world.driver.time.advance(5_000)
    assert "n" in flow.result()


def test_a_topic_that_an_earlier_try_may_have_made_is_told_as_such() -> None:
    world = World(CreateTopics=in_turn(drop, created("n", ErrorCode.TOPIC_ALREADY_EXISTS)))
    outcomes = world.do(create_topics(world.cluster, [NewTopic("n")]))
    assert code_of(outcomes.failed["n"]) == ErrorCode.TOPIC_ALREADY_EXISTS
    assert "perhaps made by an earlier try" in str(outcomes.failed["n"])


def test_a_topic_that_was_there_before_is_not_in_doubt() -> None:
    world = World(CreateTopics=in_turn(created("n", ErrorCode.TOPIC_ALREADY_EXISTS)))
    outcomes = world.do(create_topics(world.cluster, [NewTopic("n")]))
    assert "perhaps" not in str(outcomes.failed["n"])
    assert len(world.asked("CreateTopics")) == 1


def test_topics_are_deleted_by_name_also_at_brokers_that_know_no_ids() -> None:
    def answer(asked: Asked) -> DeleteTopicsResponse:
        names = asked.request.topic_names if asked.version < 6 else [each.name for each in asked.request.topics]
        return DeleteTopicsResponse(responses=[DeletableTopicResult(name=name) for name in names])

    for versions in ((1, 5), (1, 6)):
        world = World(DeleteTopics=answer)
        world.versions["DeleteTopics"] = versions
        assert list(world.do(delete_topics(world.cluster, ["t", "u"]))) == ["t", "u"]


def test_a_topic_that_is_not_there_may_still_appear_for_a_while() -> None:
    world = World()
    flow = Flow(describe_topics(world.cluster, ["t", "late"]))
    world.driver.time.advance(1000)
    assert not flow.done
    world.leaders["late"] = [2]
    world.driver.time.advance(2000)
    assert set(flow.result()) == {"t", "late"}
    missing = world.do(describe_topics(world.cluster, ["never"]), 20_000).failed["never"]
    assert isinstance(missing, UnknownTopicError)
    assert missing.elapsed_ms < 10_000


def test_looking_never_makes_a_topic() -> None:
    world = World()
    world.do(list_topics(world.cluster))
    world.do(describe_topics(world.cluster, ["t"]))
    assert [asked.request.allow_auto_topic_creation for asked in world.asked("Metadata")] == [False, False]


def test_what_is_wrong_with_replicas_and_leaders_is_counted() -> None:
    world = World()
    world.leaders["t"] = [1, -1, 2]
    topic = world.do(list_topics(world.cluster))["t"]
    assert (topic.replication_factor, topic.short_of_replicas, topic.without_leader) == (2, 3, 1)


# ---- settings


def test_settings_of_a_broker_are_asked_of_that_broker() -> None:
    def answer(asked: Asked) -> DescribeConfigsResponse:
        rows = [
            DescribeConfigsResult(resource_type=each.resource_type, resource_name=each.resource_name, configs=[])
            for each in asked.request.resources
        ]
        return DescribeConfigsResponse(results=rows)

    world = World(DescribeConfigs=answer)
    wanted = [Resource(Of.BROKER, "2"), "t", Resource(Of.BROKER, "")]
    assert len(world.do(describe_configs(world.cluster, wanted)).checked()) == 3
    places = {
        (asked.line.address, each.resource_name)
        for asked in world.asked("DescribeConfigs")
        for each in asked.request.resources
    }
    assert places == {(B, "2"), (A, "t"), (A, "")}


def test_changes_say_what_is_set_unset_and_added() -> None:
    def answer(asked: Asked) -> IncrementalAlterConfigsResponse:
        row = AlterConfigsResourceResponse(resource_type=2, resource_name="t")
        return IncrementalAlterConfigsResponse(responses=[row])

    world = World(IncrementalAlterConfigs=answer)
    world.do(alter_configs(world.cluster, {"t": {"a": 1, "b": None, "c": True}})).checked()
    [asked] = world.asked("IncrementalAlterConfigs")
    [resource] = asked.request.resources
    assert [(each.name, each.config_operation, each.value) for each in resource.configs] == [
        ("a", 0, "1"),
        ("b", 1, None),
        ("c", 0, "true"),
    ]


# ---- partitions


def offsets(asked: Asked, fails: Mapping[int, int] | None = None) -> ListOffsetsResponse:
    topics = [
        ListOffsetsTopicResponse(
            name=topic.name,
            partitions=[
                ListOffsetsPartitionResponse(
                    partition_index=each.partition_index,
                    error_code=(fails or {}).get(each.partition_index, 0),
                    offset=7 if each.timestamp == -1 else 3,
                )
                for each in topic.partitions
            ],
        )
        for topic in asked.request.topics
    ]
    return ListOffsetsResponse(topics=topics)


def test_a_partition_without_leader_is_not_waited_for_and_hides_no_other() -> None:
    world = World(ListOffsets=offsets)
    world.leaders["t"] = [1, -1, 2]
    partitions = [TopicPartition("t", number) for number in range(3)]
    outcomes = world.do(bounds(world.cluster, partitions), 5_000)
    assert {one.partition: (each.start, each.end) for one, each in outcomes.items()} == {0: (3, 7), 2: (3, 7)}
    assert code_of(outcomes.failed[partitions[1]]) == ErrorCode.LEADER_NOT_AVAILABLE
    assert len(world.asked("ListOffsets")) == 4  # two for each leader


def test_a_partition_whose_log_is_down_hides_no_other() -> None:
    world = World(ListOffsets=lambda asked: offsets(asked, {1: ErrorCode.KAFKA_STORAGE_ERROR}))
    outcomes = world.do(bounds(world.cluster, [TopicPartition("t", 0), TopicPartition("t", 1)]))
    assert list(outcomes) == [TopicPartition("t", 0)]
    assert code_of(outcomes.failed[TopicPartition("t", 1)]) == ErrorCode.KAFKA_STORAGE_ERROR


def test_records_are_deleted_at_the_leader_and_at_the_next_one_when_it_moved() -> None:
    def answer(asked: Asked) -> DeleteRecordsResponse:
        [topic] = asked.request.topics
        right = asked.line.address == B
        rows = [
            DeleteRecordsPartitionResult(
                partition_index=each.partition_index,
                low_watermark=each.offset,
                error_code=0 if right else ErrorCode.NOT_LEADER_OR_FOLLOWER,
            )
            for each in topic.partitions
        ]
        world.leaders["t"] = [2, 2]
        return DeleteRecordsResponse(topics=[DeleteRecordsTopicResult(name="t", partitions=rows)])

    world = World(DeleteRecords=answer)
    before = {TopicPartition("t", 0): 4, TopicPartition("t", 1): 5}
    assert world.do(delete_records(world.cluster, before)).checked() == before


def test_records_are_deleted_at_another_leader_when_the_first_one_is_gone() -> None:
    def answer(asked: Asked) -> DeleteRecordsResponse:
        rows = [DeleteRecordsPartitionResult(partition_index=0, low_watermark=4)]
        return DeleteRecordsResponse(topics=[DeleteRecordsTopicResult(name="t", partitions=rows)])

    world = World(DeleteRecords=answer)
    one = TopicPartition("t", 0)
    world.do(world.cluster.leaders([one]))
    world.leaders["t"] = [2, 2]
    world.driver.unreachable[A] = refused(A)
    for line in world.driver.open_lines:
        line.drop()
    assert world.do(delete_records(world.cluster, {one: 4})).checked() == {one: 4}
    assert [asked.line.address for asked in world.asked("DeleteRecords")] == [B]


def test_sizes_are_those_of_the_largest_replica_and_of_brokers_that_answer() -> None:
    def answer(asked: Asked) -> DescribeLogDirsResponse:
        size = 10 if asked.line.address == A else 12
        partition = DescribeLogDirsPartition(partition_index=0, partition_size=size, offset_lag=0)
        moving = DescribeLogDirsPartition(partition_index=0, partition_size=99, offset_lag=0, is_future_key=True)
        topic = DescribeLogDirsTopic(name="t", partitions=[partition, moving])
        return DescribeLogDirsResponse(results=[DescribeLogDirsResult(log_dir="/d", topics=[topic])])

    world = World(DescribeLogDirs=answer)
    assert world.do(sizes(world.cluster)) == {TopicPartition("t", 0): 12}
    world = World(DescribeLogDirs=answer)
    world.driver.unreachable[B] = refused(B)
    assert world.do(sizes(world.cluster)) == {TopicPartition("t", 0): 10}


# ---- groups


def coordinator(asked: Asked) -> FindCoordinatorResponse:
    """Groups that begin with b are coordinated by broker 2."""
    if asked.version < 4:
        return FindCoordinatorResponse(node_id=2 if asked.request.key.startswith("b") else 1, host="", port=1)
    rows = [
        Coordinator(key=key, node_id=2 if key.startswith("b") else 1, host="", port=1)
        for key in asked.request.coordinator_keys
    ]
    return FindCoordinatorResponse(coordinators=rows)


def test_groups_of_brokers_that_do_not_answer_are_missing_by_name() -> None:
    world = World(ListGroups=lambda _: ListGroupsResponse(groups=[ListedGroup(group_id="a", protocol_type="consumer")]))
    world.driver.unreachable[B] = refused(B)
    found = world.do(list_groups(world.cluster))
    assert list(found.groups) == ["a"]
    assert isinstance(found.failed[2], ConnectError)
    with pytest.raises(ConnectError):
        found.checked()


def test_brokers_that_know_no_filters_are_filtered_here() -> None:
    rows = [ListedGroup(group_id="a", protocol_type="consumer"), ListedGroup(group_id="b", protocol_type="")]
    world = World(ListGroups=lambda _: ListGroupsResponse(groups=rows))
    world.versions["ListGroups"] = (0, 3)
    assert list(world.do(list_groups(world.cluster)).groups) == ["a", "b"]
    assert list(world.do(list_groups(world.cluster, states=["Stable"])).groups) == []


def test_older_brokers_describe_classic_groups_and_say_dead_for_none() -> None:
    def answer(asked: Asked) -> DescribeGroupsResponse:
        states = {"a": "Empty", "b": "Dead"}
        groups = [DescribedGroup(group_id=name, group_state=states[name]) for name in asked.request.groups]
        return DescribeGroupsResponse(groups=groups)

    world = World(FindCoordinator=coordinator, DescribeGroups=answer)
    world.unserved = {"ConsumerGroupDescribe"}
    world.versions |= {"FindCoordinator": (0, 3), "DescribeGroups": (0, 5)}
    outcomes = world.do(describe_groups(world.cluster, ["a", "b"]))
    assert (outcomes["a"].state, outcomes["a"].kind, outcomes["a"].coordinator) == ("Empty", "classic", 1)
    assert code_of(outcomes.failed["b"]) == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_of_many_groups_take_one_request_per_coordinator() -> None:
    def answer(asked: Asked) -> OffsetFetchResponse:
        from lowwater.wire.messages.offset_fetch import OffsetFetchResponseGroup

        return OffsetFetchResponse(
            groups=[OffsetFetchResponseGroup(group_id=each.group_id, topics=[]) for each in asked.request.groups]
        )

    world = World(FindCoordinator=coordinator, OffsetFetch=answer)
    groups = [f"{first}{number}" for first in "ab" for number in range(500)]
    assert set(world.do(group_offsets(world.cluster, groups)).checked()) == set(groups)
    assert len(world.asked("FindCoordinator")) == 1
    assert len(world.asked("OffsetFetch")) == 2


def test_older_brokers_are_asked_group_by_group() -> None:
    def answer(asked: Asked) -> OffsetFetchResponse:
        row = OffsetFetchResponsePartition(partition_index=0, committed_offset=len(asked.request.group_id))
        return OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name="t", partitions=[row])])

    world = World(FindCoordinator=coordinator, OffsetFetch=answer)
    world.versions |= {"OffsetFetch": (1, 7), "FindCoordinator": (0, 3)}
    found = world.do(group_offsets(world.cluster, ["a", "bb"])).checked()
    assert found == {group: {TopicPartition("t", 0): Committed(len(group))} for group in ("a", "bb")}
