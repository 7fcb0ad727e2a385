"""Fixtures of the conformance suites: clients, topics, raw connections."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator

import pytest
from tests.conformance.clients import DRIVERS
from tests.conformance.clients.base import Driver
from tests.conformance.raw import Wire
from tests.conformance.under_test import UnderTest

from lowwater.wire.messages import CreateTopicsRequest, ListOffsetsRequest, MetadataRequest
from lowwater.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig
from lowwater.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from lowwater.wire.messages.metadata import MetadataRequestTopic

READY_TIMEOUT_S = 10
_numbers = itertools.count(1)

NewTopic = Callable[..., str]


@pytest.fixture(scope="session")
def drivers(broker: UnderTest) -> Iterator[Callable[[str], Driver]]:
    """Drivers by name, each started at its first use and kept for the session."""
    running: dict[str, Driver] = {}

    def driver(name: str) -> Driver:
        if name not in running:
            running[name] = DRIVERS[name](broker.bootstrap)
        return running[name]

    yield driver
    for each in running.values():
        each.close()


@pytest.fixture
def client(request: pytest.FixtureRequest, drivers: Callable[[str], Driver]) -> Driver:
    return drivers(request.param)


@pytest.fixture
def wire(broker: UnderTest) -> Iterator[Wire]:
    with Wire(broker.address) as connection:
        yield connection


@pytest.fixture(scope="session")
def new_topic(broker: UnderTest) -> NewTopic:
    """`new_topic(partitions=3, **{"retention.ms": "1"})` creates a topic of a fresh name, ready for use."""

    def create(label: str = "topic", *, partitions: int = 1, **config: str) -> str:
        name = f"{label}-{next(_numbers)}"
        create_topic(broker.address, name, partitions=partitions, **config)
        return name

    return create


@pytest.fixture
def fresh_name() -> str:
    """A topic name that nobody has used."""
    return f"fresh-{next(_numbers)}"


def create_topic(address: tuple[str, int], name: str, *, partitions: int = 1, **config: str) -> None:
    settings = [CreatableTopicConfig(name=key, value=value) for key, value in config.items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=settings)
    with Wire(address) as connection:
        [answer] = connection.ask(CreateTopicsRequest(topics=[topic])).topics
        assert answer.error_code == 0, f"{name}: {answer.error_code} {answer.error_message}"
        _wait_for_leaders(connection, name, partitions)


def _wait_for_leaders(connection: Wire, name: str, partitions: int) -> None:
    """Apache Kafka answers a creation before the topic is in its metadata, and shows that before its logs exist."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
        [topic] = connection.ask(request).topics
        led = [each for each in topic.partitions if each.error_code == 0 and each.leader_id >= 0]
        if topic.error_code == 0 and len(led) == partitions and _have_logs(connection, name, partitions):
            return
    raise TimeoutError(f"{name} did not become ready")


def _have_logs(connection: Wire, name: str, partitions: int) -> bool:
    wishes = [ListOffsetsPartition(partition_index=each, timestamp=-1) for each in range(partitions)]
    [answer] = connection.ask(ListOffsetsRequest(topics=[ListOffsetsTopic(name=name, partitions=wishes)])).topics
    return all(each.error_code == 0 for each in answer.partitions)
