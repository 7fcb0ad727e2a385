"""What a broker counts of itself."""

from __future__ import annotations

from tests.unit.broker.conftest import BrokerInMemory

from lowwater.broker.metrics import BUCKETS_MS, Durations, describe
from lowwater.wire.messages import CreateTopicsRequest, FetchRequest, MetadataRequest
from lowwater.wire.messages.create_topics import CreatableTopic
from lowwater.wire.messages.fetch import FetchPartition, FetchTopic


def create(node: BrokerInMemory, name: str) -> None:
    node.ask(CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)]))


def test_a_duration_falls_into_the_bucket_that_it_does_not_exceed() -> None:
    took = Durations()
    for one in (0.0, BUCKETS_MS[0], BUCKETS_MS[0] + 0.01, BUCKETS_MS[-1] + 1):
        took.add(one)
    assert took.buckets[:2] == [2, 1]
    assert took.buckets[-1] == 1
    assert sum(took.buckets) == 4
    assert took.as_json()["sum_ms"] == sum((0.0, BUCKETS_MS[0], BUCKETS_MS[0] + 0.01, BUCKETS_MS[-1] + 1))


def test_each_answered_request_has_its_duration_whatever_its_version(node: BrokerInMemory) -> None:
    for version in (0, 5, 5):
        node.ask(MetadataRequest(topics=[]), version)
    assert sum(node.router.took_by_api()["Metadata"].buckets) == 3


def test_a_parked_request_counts_with_the_time_it_waited(node: BrokerInMemory) -> None:
    create(node, "t")
    wanted = [FetchTopic(topic="t", partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)])]
    waiting = node.begin(FetchRequest(topics=wanted, max_wait_ms=10_000, min_bytes=1), 11)
    assert sum(node.router.took_by_api()["Fetch"].buckets) == 0
    node.clock.advance(700)
    node.append("t", 1)
    node.scheduler.turn()
    assert waiting.done
    took = node.router.took_by_api()["Fetch"]
    assert took.sum_ms == 700


def test_logs_are_described_with_their_sizes_and_bounds(node: BrokerInMemory) -> None:
    create(node, "t")
    node.append("t", 3)
    [log] = [one for one in describe(node.broker)["logs"] if one["topic"] == "t"]
    assert log == {
        "topic": "t",
        "partition": 0,
        "bytes": node.broker.partition("t", 0).log.size_bytes,
        "start": 0,
        "end": 3,
        "offline": None,
    }


def test_describing_a_broker_makes_no_coordinators(node: BrokerInMemory) -> None:
    told = describe(node.broker)
    assert told["groups"]["active"] == 0
    assert told["transactions"]["ongoing"] == 0
    assert node.broker._groups is None
    assert node.broker._transactions is None
