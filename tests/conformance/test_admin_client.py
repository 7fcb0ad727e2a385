"""Admin and AsyncAdmin against the broker under test: what they say of topics, settings, records, offsets, groups."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from tests.conformance.asking import eventually
from tests.conformance.conftest import NewTopic as Create
from tests.conformance.under_test import UnderTest

from lowwater import Admin, AsyncAdmin, NewTopic
from lowwater.client.admin import ALL, Append, Of, Resource, Subtract
from lowwater.client.admin.configs import Source
from lowwater.client.admin.offsets import Bounds
from lowwater.client.coordinator import Committed
from lowwater.client.errors import BrokerError, ClientError, OffsetOutOfRangeError, UnknownTopicError
from lowwater.errors import ConfigError, ErrorCode
from lowwater.types import TopicPartition

LIMIT_S = 60
# A topic that is missing is missing at once.
SETTINGS = {"topic.metadata.propagation.max.ms": 0}


class AsyncFace:
    """An AsyncAdmin with the calls of Admin: a test says the same of both."""

    def __init__(self, bootstrap: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._admin = self._loop.run_until_complete(self._open(bootstrap))

    @staticmethod
    async def _open(bootstrap: str) -> AsyncAdmin:
        return AsyncAdmin(bootstrap, SETTINGS)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._admin, name)
        return lambda *args, **named: self._loop.run_until_complete(asyncio.wait_for(call(*args, **named), LIMIT_S))

    def close(self) -> None:
        self._loop.run_until_complete(self._admin.close())
        self._loop.close()


@pytest.fixture(scope="module", params=["blocking", "asyncio"])
def admin(request: pytest.FixtureRequest, broker: UnderTest) -> Iterator[Any]:
    face = Admin(broker.bootstrap, SETTINGS) if request.param == "blocking" else AsyncFace(broker.bootstrap)
    yield face
    face.close()


@pytest.fixture
def name(request: pytest.FixtureRequest, fresh_name: str) -> str:
    return f"admin-{fresh_name}"


def write(broker: UnderTest, topic: str, partition: int, count: int, timestamp: int = 0) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(count):
        stamp = {"timestamp": timestamp + number} if timestamp else {}
        producer.produce(topic, f"value-{number}".encode(), partition=partition, **stamp)
    assert producer.flush(LIMIT_S) == 0


def wait_for_partitions(consumer: Consumer, count: int) -> None:
    deadline = time.monotonic() + LIMIT_S
    while len(consumer.assignment()) < count:
        consumer.poll(0.1)
        assert time.monotonic() < deadline, "no partitions were assigned"


def code_of(error: BaseException) -> int:
    assert isinstance(error, BrokerError), error
    return error.code


def test_both_faces_have_the_same_calls() -> None:
    def calls(face: type) -> dict[str, list[str]]:
        members = inspect.getmembers(face, inspect.isfunction)
        return {name: list(inspect.signature(call).parameters) for name, call in members if not name.startswith("_")}

    assert calls(Admin) == calls(AsyncAdmin)


def test_the_cluster_names_its_brokers(admin: Any, broker: UnderTest) -> None:
    info = admin.describe_cluster()
    [node] = info.brokers
    assert (node.host, node.port) == broker.address
    assert info.controller == node.id
    assert info.id


# ---- topics


def test_a_topic_is_made_listed_described_and_deleted(admin: Any, name: str) -> None:
    made = admin.create_topics([NewTopic(name, partitions=3, replication_factor=1)])[name]
    assert (made.partitions, made.replication_factor) == (3, 1)
    eventually(lambda: name in admin.list_topics())
    topic = admin.describe_topics([name])[name]
    assert [one.partition for one in topic.partitions] == [0, 1, 2]
    assert topic.id == made.id
    assert (topic.replication_factor, topic.short_of_replicas, topic.without_leader) == (1, 0, 0)
    assert not topic.is_internal
    assert admin.delete_topics([name]).checked() == {name: None}
    eventually(lambda: name not in admin.list_topics())


def test_defaults_of_the_broker_count_where_nothing_is_said(admin: Any, name: str) -> None:
    made = admin.create_topics([NewTopic(name)])[name]
    assert made.partitions >= 1
    assert made.replication_factor == 1


def test_each_topic_has_its_own_outcome(admin: Any, name: str) -> None:
    outcomes = admin.create_topics(
        [NewTopic(name, 2), NewTopic("no/name", 1), NewTopic(f"{name}-b", 1, config={"x": "1"})]
    )
    assert list(outcomes) == [name]
    assert code_of(outcomes.failed["no/name"]) == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert code_of(outcomes.failed[f"{name}-b"]) == ErrorCode.INVALID_CONFIG
    with pytest.raises(BrokerError, match="INVALID_TOPIC_EXCEPTION"):
        outcomes["no/name"]
    with pytest.raises(BrokerError):
        outcomes.checked()
    again = admin.create_topics([NewTopic(name, 2)])
    assert code_of(again.failed[name]) == ErrorCode.TOPIC_ALREADY_EXISTS


def test_checking_makes_nothing(admin: Any, name: str) -> None:
    assert name in admin.create_topics([NewTopic(name, 2)], validate_only=True)
    assert name not in admin.list_topics()
    assert isinstance(admin.describe_topics([name]).failed[name], UnknownTopicError)


def test_partitions_can_be_placed_by_hand(admin: Any, name: str) -> None:
    [node] = admin.describe_cluster().brokers
    admin.create_topics([NewTopic(name, replicas={0: (node.id,), 1: (node.id,)})]).checked()
    eventually(lambda: name in admin.list_topics())
    assert len(admin.describe_topics([name])[name].partitions) == 2
    assert admin.describe_topics([name])[name].partitions[1].replicas == (node.id,)


def test_a_topic_grows_and_never_shrinks(admin: Any, name: str, new_topic: Create) -> None:
    topic = new_topic(name, partitions=2)
    outcomes = admin.create_partitions({topic: 5, "nowhere": 3})
    assert outcomes[topic] == 5
    assert isinstance(outcomes.failed["nowhere"], UnknownTopicError)
    eventually(lambda: len(admin.describe_topics([topic])[topic].partitions) == 5)
    assert code_of(admin.create_partitions({topic: 3}).failed[topic]) == ErrorCode.INVALID_PARTITIONS


def test_what_is_not_there_cannot_be_deleted(admin: Any, name: str, new_topic: Create) -> None:
    topic = new_topic(name)
    outcomes = admin.delete_topics([topic, "nowhere"])
    assert list(outcomes) == [topic]
    assert isinstance(outcomes.failed["nowhere"], UnknownTopicError)


def test_topics_of_the_brokers_own_are_listed_when_asked_for(admin: Any, name: str, new_topic: Create) -> None:
    topic = new_topic(name)
    admin.alter_group_offsets(f"group-{name}", {TopicPartition(topic, 0): 0}).checked()
    assert "__consumer_offsets" not in admin.list_topics()
    assert admin.list_topics(internal=True)["__consumer_offsets"].is_internal


# ---- settings


def test_settings_are_read_changed_and_set_back(admin: Any, name: str, new_topic: Create) -> None:
    topic = new_topic(name, **{"retention.ms": "1000"})
    resource = Resource(Of.TOPIC, topic)

    def settings() -> dict[str, Any]:
        return admin.describe_configs([topic])[resource]

    assert (settings()["retention.ms"].value, settings()["retention.ms"].source) == ("1000", Source.TOPIC)
    assert not settings()["max.message.bytes"].is_own
    changes = {"retention.ms": None, "max.message.bytes": 2_000_000, "cleanup.policy": Append("compact")}
    assert admin.alter_configs({topic: changes}).checked() == {resource: None}
    eventually(lambda: settings()["max.message.bytes"].value == "2000000")
    assert not settings()["retention.ms"].is_own
    assert settings()["cleanup.policy"].value == "delete,compact"
    admin.alter_configs({topic: {"cleanup.policy": Subtract("delete")}}).checked()
    eventually(lambda: settings()["cleanup.policy"].value == "compact")


def test_only_the_settings_that_were_named_are_told(admin: Any, name: str, new_topic: Create) -> None:
    topic = new_topic(name)
    [entries] = admin.describe_configs([topic], ["retention.ms", "segment.bytes"]).checked().values()
    assert sorted(entries) == ["retention.ms", "segment.bytes"]


def test_settings_of_a_broker_are_its_own_to_tell(admin: Any) -> None:
    [node] = admin.describe_cluster().brokers
    here, elsewhere = Resource(Of.BROKER, str(node.id)), Resource(Of.BROKER, "4711")
    outcomes = admin.describe_configs([here, elsewhere])
    assert outcomes[here]["log.segment.bytes"].value == "1073741824"
    with pytest.raises(ClientError, match=f"no broker 4711; there are {node.id}$"):
        outcomes.checked()


def test_a_setting_that_is_not_one_changes_nothing(admin: Any, name: str, new_topic: Create) -> None:
    topic, other = new_topic(name), new_topic(name)
    outcomes = admin.alter_configs({topic: {"no.such.setting": "1"}, other: {"retention.ms": "5000"}})
    assert code_of(outcomes.failed[Resource(Of.TOPIC, topic)]) == ErrorCode.INVALID_CONFIG
    assert Resource(Of.TOPIC, other) in outcomes


def test_a_check_of_settings_changes_nothing(admin: Any, name: str, new_topic: Create) -> None:
    topic = new_topic(name, **{"retention.ms": "1000"})
    admin.alter_configs({topic: {"retention.ms": "7"}}, validate_only=True).checked()
    assert admin.describe_configs([topic]).checked()[Resource(Of.TOPIC, topic)]["retention.ms"].value == "1000"


# ---- records and offsets


def test_bounds_follow_writes_and_deletions(admin: Any, broker: UnderTest, name: str, new_topic: Create) -> None:
    topic = new_topic(name, partitions=2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    write(broker, topic, 0, 10)
    assert admin.bounds([first, second]).checked() == {first: Bounds(0, 10), second: Bounds(0, 0)}
    assert admin.delete_records({first: 4})[first] == 4
    assert admin.bounds([first])[first] == Bounds(4, 10)
    assert admin.delete_records({first: ALL})[first] == 10
    assert admin.bounds([first])[first].count == 0


def test_a_partition_that_is_not_there_hides_no_other(admin: Any, name: str, new_topic: Create) -> None:
    topic = new_topic(name)
    here = TopicPartition(topic, 0)
    missing = [TopicPartition(topic, 7), TopicPartition("nowhere", 0)]
    outcomes = admin.bounds([*missing, here])
    assert list(outcomes) == [here]
    assert set(outcomes.failed) == set(missing)
    assert all(isinstance(error, UnknownTopicError) for error in outcomes.failed.values())


def test_records_behind_the_end_cannot_be_deleted(admin: Any, broker: UnderTest, name: str, new_topic: Create) -> None:
    topic = new_topic(name, partitions=2)
    write(broker, topic, 0, 3)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    outcomes = admin.delete_records({first: 2, second: 5})
    assert outcomes[first] == 2
    assert isinstance(outcomes.failed[second], OffsetOutOfRangeError)


def test_sizes_grow_with_records(admin: Any, broker: UnderTest, name: str, new_topic: Create) -> None:
    topic = new_topic(name, partitions=2)
    write(broker, topic, 1, 100)
    [[directory]] = admin.log_dirs([topic]).checked().values()
    assert set(directory.sizes) == {TopicPartition(topic, 0), TopicPartition(topic, 1)}
    assert directory.sizes[TopicPartition(topic, 1)] > directory.sizes[TopicPartition(topic, 0)] == 0


def test_start_positions_become_offsets(admin: Any, broker: UnderTest, name: str, new_topic: Create) -> None:
    topic = new_topic(name, partitions=2)
    write(broker, topic, 0, 10, timestamp=1_700_000_000_000)
    here = [TopicPartition(topic, 0), TopicPartition(topic, 1)]

    def at(position: str, **named: Any) -> list[int]:
        found = admin.offsets_at(position, [topic], **named)
        assert list(found) == here
        return list(found.values())

    assert at("earliest") == [0, 0]
    assert at("latest") == [10, 0]
    assert at("-3") == [7, 0]
    assert at("s@1700000000004") == [4, 0]
    assert at("-1h") == [10, 0]
    admin.alter_group_offsets(f"at-{name}", {here[0]: 6}).checked()
    assert at("stored|earliest", group=f"at-{name}") == [6, 0]
    assert at(f"latest,{topic}[1]=0") == [10, 0]


def test_a_position_that_leads_nowhere_is_told(admin: Any, name: str, new_topic: Create) -> None:
    topic = new_topic(name)
    with pytest.raises(ConfigError, match="is not a start position"):
        admin.offsets_at("yesterday", [topic])
    with pytest.raises(ConfigError, match=topic):
        admin.offsets_at("other=5", [topic])
    with pytest.raises(ClientError, match="no committed offset"):
        admin.offsets_at("stored", [topic], group=f"nowhere-{name}")
    with pytest.raises(UnknownTopicError):
        admin.offsets_at("latest", ["nowhere"])


# ---- groups


def test_offsets_of_groups_are_set_read_and_forgotten(admin: Any, name: str, new_topic: Create) -> None:
    topic, group, other = new_topic(name, partitions=2), f"offsets-{name}", f"none-{name}"
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    noted = Committed(7, metadata="by hand")
    outcomes = admin.alter_group_offsets(group, {first: 5, second: noted})
    assert set(outcomes) == {first, second}
    found = admin.group_offsets([group, other]).checked()
    assert found[group] == {first: Committed(5), second: noted}
    assert found[other] == {}
    assert set(admin.delete_group_offsets(group, [first])) == {first}
    assert admin.group_offsets([group])[group] == {second: noted}


def test_an_offset_of_a_topic_that_is_not_there_is_refused_alone(admin: Any, name: str, new_topic: Create) -> None:
    topic, group = new_topic(name), f"partly-{name}"
    here, nowhere = TopicPartition(topic, 0), TopicPartition("nowhere", 3)
    outcomes = admin.alter_group_offsets(group, {here: 2, nowhere: 1})
    assert set(outcomes) == {here}
    assert isinstance(outcomes.failed[nowhere], UnknownTopicError)
    assert admin.group_offsets([group])[group] == {here: Committed(2)}


def test_groups_without_members_are_listed_described_and_deleted(admin: Any, name: str, new_topic: Create) -> None:
    topic, group = new_topic(name), f"empty-{name}"
    admin.alter_group_offsets(group, {TopicPartition(topic, 0): 2}).checked()
    listed = admin.list_groups().checked()[group]
    assert (listed.state, listed.kind) == ("Empty", "classic")
    assert group in admin.list_groups(states=["Empty"]).groups
    assert group not in admin.list_groups(states=["Stable"]).groups
    described = admin.describe_groups([group, f"no-{group}"])
    assert (described[group].state, described[group].members) == ("Empty", ())
    assert code_of(described.failed[f"no-{group}"]) == ErrorCode.GROUP_ID_NOT_FOUND
    deleted = admin.delete_groups([group, f"no-{group}"])
    assert list(deleted) == [group]
    assert code_of(deleted.failed[f"no-{group}"]) == ErrorCode.GROUP_ID_NOT_FOUND
    assert group not in admin.list_groups().groups


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_and_their_partitions_are_told(
    admin: Any, broker: UnderTest, name: str, new_topic: Create, protocol: str
) -> None:
    topic, group = new_topic(name, partitions=2), f"{protocol}-{name}"
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": group, "client.id": "reader-1", "group.protocol": protocol}
    )
    try:
        consumer.subscribe([topic])
        wait_for_partitions(consumer, 2)
        described = admin.describe_groups([group])[group]
        assert (described.state, described.kind, described.protocol) == ("Stable", protocol, "consumer")
        [member] = described.members
        assert member.client_id == "reader-1"
        assert member.topics == (topic,)
        assert member.partitions == (TopicPartition(topic, 0), TopicPartition(topic, 1))
        with pytest.raises(ClientError):
            admin.alter_group_offsets(group, {TopicPartition(topic, 0): 0}).checked()
        assert code_of(admin.delete_groups([group]).failed[group]) == ErrorCode.NON_EMPTY_GROUP
        [refused] = admin.delete_group_offsets(group, [TopicPartition(topic, 0)]).failed.values()
        assert code_of(refused) == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    finally:
        consumer.close()
