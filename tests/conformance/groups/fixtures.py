"""The broker of the group suites, with times short enough for tests, and what members run in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.conformance.groups.stage import SharedHosts, Stage, wait_for_coordinator
from tests.conformance.under_test import UnderTest, running

# A consumer of the new protocol cannot choose its own session timeout.
CONSUMER_SESSION_TIMEOUT_MS = 6000
GROUP_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(CONSUMER_SESSION_TIMEOUT_MS),
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.regex.refresh.interval.ms": "10000",
}


@pytest.fixture(scope="session")
def group_broker(against: str) -> Iterator[UnderTest]:
    with running(against, GROUP_SETTINGS, apart=True) as under_test:
        wait_for_coordinator(under_test.address)
        yield under_test


@pytest.fixture(scope="session")
def shared_hosts() -> Iterator[SharedHosts]:
    hosts = SharedHosts()
    yield hosts
    hosts.close()


@pytest.fixture
def stage(group_broker: UnderTest, shared_hosts: SharedHosts) -> Iterator[Stage]:
    with Stage(group_broker, shared_hosts) as under_lights:
        yield under_lights
