"""Fixtures of the conformance suites: clients, topics, raw connections."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.conformance.clients import DRIVERS
from tests.conformance.clients.base import Driver
from tests.conformance.creating import create_topic
from tests.conformance.groups.fixtures import group_broker, shared_hosts, stage
from tests.conformance.groups.together import pytest_pyfunc_call
from tests.conformance.raw import Wire
from tests.conformance.transactions.fixtures import scene, transaction_broker
from tests.conformance.under_test import UnderTest
from tests.fresh import fresh

__all__ = ["create_topic", "group_broker", "pytest_pyfunc_call", "scene", "shared_hosts", "stage", "transaction_broker"]

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
        name = fresh(label)
        create_topic(broker.address, name, partitions=partitions, **config)
        return name

    return create


@pytest.fixture
def fresh_name() -> str:
    """A topic name that nobody has used."""
    return fresh("fresh")
