"""Members of groups against a real broker, under each driver: work that takes long, and connections that break."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.integration.client.drivers import come_down_to, open_sockets

from lowwater.client.aio import AioDriver
from lowwater.client.cluster import Cluster
from lowwater.client.config import ClientConfig
from lowwater.client.coordinator import Coordinator
from lowwater.client.driver import Driver, sleep
from lowwater.client.errors import ClientError
from lowwater.client.group import Member
from lowwater.client.network import Network
from lowwater.client.threaded import ThreadedDriver
from lowwater.errors import ErrorCode
from lowwater.testing import Broker
from lowwater.types import TopicPartition

LIMIT_MS = 60_000
LIMIT_S = LIMIT_MS / 1000
PARTITIONS = [TopicPartition("t", number) for number in range(6)]
PROTOCOLS = ["classic", "consumer"]
SESSION_MS = 15_000
HEARTBEATS = 10
BEATS = {"classic": "Heartbeat", "consumer": "ConsumerGroupHeartbeat"}
CONFIG = {
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.heartbeat.interval.ms": "100",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(CONFIG) as running:
        for one in PARTITIONS:
            running.fill(one.topic, one.partition, next=10)
        yield running


def settings(broker: Broker, protocol: str) -> dict[str, Any]:
    given: dict[str, Any] = {"bootstrap.servers": broker.bootstrap, "group.protocol": protocol}
    if protocol == "classic":
        given |= {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 100}
        given |= {"partition.assignment.strategy": "cooperative-sticky"}
    return given


class Reading:
    """A member, and the commits that a reader makes when partitions go."""

    def __init__(self, config: ClientConfig, driver: Driver, group: str) -> None:
        self.driver = driver
        self.network = Network(config, driver)
        self.coordinator = Coordinator(Cluster(self.network), group)
        self.member = Member(self.coordinator, self, topics=["t"])
        self.lost_any = False
        self.failure: ClientError | None = None

    async def assigned(self, partitions: list[TopicPartition]) -> None:
        pass

    async def revoked(self, partitions: list[TopicPartition]) -> None:
        await self.member.commit(dict.fromkeys(partitions, 5))

    async def lost(self, partitions: list[TopicPartition]) -> None:
        self.lost_any = True

    def failed(self, error: ClientError) -> None:
        self.failure = error

    async def begin(self) -> None:
        self.member.start()
        await self.member.enter_poll()

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await sleep(self.driver, 5)

    async def until_it_has(self, count: int) -> None:
        await self.until(lambda: len(self.member.assignment) == count)

    async def close(self) -> None:
        await self.member.close()
        self.network.close()


class Threaded:
    """A member in a thread of its own."""

    def __init__(self, broker: Broker, protocol: str, group: str) -> None:
        config = ClientConfig(settings(broker, protocol))
        self.driver = ThreadedDriver(config)
        self.reading = Reading(config, self.driver, group)
        self.run(self.reading.begin())

    def run(self, coroutine: Any) -> Any:
        return self.driver.run(coroutine, LIMIT_MS)

    def until_it_has(self, count: int) -> None:
        self.run(self.reading.until_it_has(count))

    def close(self) -> None:
        self.run(self.reading.close())
        self.driver.close()


def until(holds: Callable[[], bool]) -> None:
    deadline, pause = time.monotonic() + LIMIT_S, threading.Event()
    while not holds():
        assert time.monotonic() < deadline
        pause.wait(0.01)


def beats(broker: Broker, protocol: str) -> int:
    return broker.requests().get(BEATS[protocol], 0)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_member_says_that_it_is_there_while_its_caller_works(broker: Broker, protocol: str) -> None:
    member = Threaded(broker, protocol, f"busy-{protocol}")
    member.until_it_has(6)
    member.run(_exit(member.reading))
    before = beats(broker, protocol)
    until(lambda: beats(broker, protocol) > before + HEARTBEATS)
    assert len(member.reading.member.assignment) == 6
    assert not member.reading.lost_any
    member.close()


async def _exit(reading: Reading) -> None:
    reading.member.exit_poll()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_member_says_that_it_is_there_while_its_task_does_something_else(broker: Broker, protocol: str) -> None:
    async def main() -> None:
        config = ClientConfig(settings(broker, protocol))
        driver = AioDriver(config)
        reading = Reading(config, driver, f"aio-{protocol}")
        await driver.run(reading.begin(), LIMIT_MS)
        await driver.run(reading.until_it_has(6), LIMIT_MS)
        reading.member.exit_poll()
        loop = asyncio.get_running_loop()
        before = beats(broker, protocol)
        await loop.run_in_executor(None, until, lambda: beats(broker, protocol) > before + HEARTBEATS)
        assert not reading.lost_any
        await driver.run(reading.close(), LIMIT_MS)
        await driver.close()

    sockets = open_sockets()
    asyncio.run(main())
    assert come_down_to(sockets)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_members_find_their_share_whatever_breaks(broker: Broker, protocol: str) -> None:
    """Connections that break and coordinators that are not ready, at every request of a group, while members come."""
    apis = ["FindCoordinator", "OffsetCommit", BEATS[protocol]]
    apis += ["JoinGroup", "SyncGroup"] if protocol == "classic" else []
    members = []
    for count in (1, 2, 3):
        for api in apis:
            broker.faults.drop(api, 1)
            broker.faults.fail(api, ErrorCode.COORDINATOR_NOT_AVAILABLE, 1)
        members.append(Threaded(broker, protocol, f"broken-{protocol}"))
        for member in members:
            member.until_it_has(6 // count)
    shares = [member.reading.member.assignment for member in members]
    assert sorted(one for share in shares for one in share) == PARTITIONS
    members.pop(0).close()
    for member in members:
        member.until_it_has(3)
    broker.faults.clear()
    offsets = members[0].run(members[0].reading.coordinator.committed(PARTITIONS))
    assert {one: offsets[one] for one in shares[0]} == dict.fromkeys(shares[0], 5), "committed before they went"
    for member in members:
        assert member.reading.failure is None
        member.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_commit_by_a_member_that_is_out_is_refused(broker: Broker, protocol: str) -> None:
    member = Threaded(broker, protocol, f"out-{protocol}")
    member.until_it_has(6)
    identity = member.reading.member.identity
    member.run(member.reading.member.close())
    with pytest.raises(ClientError):
        member.run(member.reading.coordinator.commit({PARTITIONS[0]: 9}, identity))
    offsets = member.run(member.reading.coordinator.committed(PARTITIONS))
    assert set(offsets.values()) == {5}
    member.close()
