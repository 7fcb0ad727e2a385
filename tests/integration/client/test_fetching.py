"""A fetcher on each driver, against a real broker that refuses, drops connections, dawdles and forgets sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.integration.client.drivers import DRIVERS, come_down_to, open_sockets

from lowwater.client.cluster import Cluster
from lowwater.client.fetching.events import AtEnd, Event
from lowwater.client.fetching.fetcher import Fetcher
from lowwater.errors import ErrorCode
from lowwater.testing import Broker
from lowwater.types import TopicPartition

PARTITIONS = 8
ROWS = 3_000
ALL = [TopicPartition("t", number) for number in range(PARTITIONS)]


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker(config={"num.partitions": str(PARTITIONS)}) as broker:
        for one in ALL:
            broker.fill(one.topic, one.partition, next=ROWS)
        yield broker


@pytest.fixture
def broker(shared: Broker) -> Iterator[Broker]:
    yield shared
    shared.faults.clear()


@pytest.fixture(params=DRIVERS, ids=lambda driver: driver.__name__)
def drive(request: pytest.FixtureRequest) -> Iterator[Callable[..., list[Any]]]:
    before = open_sockets()
    yield request.param
    assert come_down_to(before), "every socket is closed again"


def settings(broker: Broker, **more: Any) -> dict[str, Any]:
    """Small answers, so that there are many."""
    given = {"bootstrap.servers": broker.bootstrap, "max.partition.fetch.bytes": 20_000, "fetch.max.bytes": 60_000}
    return given | {name.replace("_", "."): value for name, value in more.items()}


class Reader:
    """Reads everything to its end; `positions` may not jump."""

    def __init__(self) -> None:
        self.positions = dict.fromkeys(ALL, 0)
        self.events: list[Event] = []
        self.answers = 0

    async def __call__(self, cluster: Cluster) -> None:
        fetcher = Fetcher(cluster, tell_ends=True)
        fetcher.add(self.positions)
        while len(self.events) < PARTITIONS:
            await fetcher.fetched()
            for fetched in fetcher.take():
                self.answers += 1
                for one, position in zip(fetched.slices, fetched.positions, strict=True):
                    assert one.fetch_offset == self.positions[one.partition]
                    self.positions[one.partition] = position
                self.events += fetched.events
                fetched.release()
        await fetcher.aclose()

    def check(self) -> None:
        assert self.positions == dict.fromkeys(ALL, ROWS)
        assert sorted(self.events) == [AtEnd(one, ROWS) for one in ALL]


def test_everything_is_read_to_its_end(drive: Callable[..., list[Any]], broker: Broker) -> None:
    reader = Reader()
    drive(settings(broker), reader)
    reader.check()
    assert reader.answers > 8


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ],
    ids=lambda code: code.name,
)
def test_refusals_that_pass_cost_no_row(drive: Callable[..., list[Any]], broker: Broker, code: ErrorCode) -> None:
    broker.faults.fail("Fetch", code, times=3)
    reader = Reader()
    drive(settings(broker, retry_backoff_ms=5), reader)
    reader.check()
    assert broker.faults.left("Fetch") == 0


def test_connections_that_are_dropped_cost_no_row(drive: Callable[..., list[Any]], broker: Broker) -> None:
    broker.faults.drop("Fetch", times=3)
    reader = Reader()
    drive(settings(broker, retry_backoff_ms=5, reconnect_backoff_ms=5), reader)
    reader.check()
    assert broker.faults.left("Fetch") == 0


def test_a_broker_that_dawdles_is_asked_again(drive: Callable[..., list[Any]], broker: Broker) -> None:
    broker.faults.delay("Fetch", 3_000, times=1)
    reader = Reader()
    drive(settings(broker, request_timeout_ms=1_000, retry_backoff_ms=5, reconnect_backoff_ms=5), reader)
    reader.check()
