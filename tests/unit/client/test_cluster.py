"""Topics, leaders, and what is done when they are not what they were."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.client.virtual import LATER, Asked, VirtualDriver, network_of, refused, talking, versions_answer

from lowwater.client.cluster import NO_LEADER, Cluster
from lowwater.client.config import Address
from lowwater.client.errors import AuthorizationError, BrokerError, ConnectError, UnknownTopicError
from lowwater.client.flow import Flow
from lowwater.errors import ErrorCode
from lowwater.types import TopicPartition
from lowwater.wire.messages import MetadataResponse
from lowwater.wire.messages.metadata import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

A, B = Address("a", 1), Address("b", 2)


class World:
    """A cluster as its brokers tell it."""

    def __init__(self) -> None:
        self.brokers = {1: A, 2: B}
        self.leaders: dict[str, list[int]] = {"t": [1, 2, 1]}
        self.errors: dict[str, int] = {}
        self.driver = VirtualDriver(talking({"Metadata": self.metadata}))
        self.cluster = Cluster(network_of(self.driver, bootstrap_servers="a:1"))

    def metadata(self, asked: Asked) -> MetadataResponse:
        wanted = asked.request.topics
        names = sorted(self.leaders) if wanted is None else [topic.name for topic in wanted]
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=node, host=b.host, port=b.port) for node, b in self.brokers.items()
            ],
            cluster_id="c",
            controller_id=1,
            topics=[self._topic(name) for name in names],
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        if name in self.errors or name not in self.leaders:
            code = self.errors.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return MetadataResponseTopic(name=name, error_code=code, partitions=[])
        partitions = [
            MetadataResponsePartition(
                partition_index=index, leader_id=leader, leader_epoch=5, replica_nodes=[1, 2], isr_nodes=[leader]
            )
            for index, leader in enumerate(self.leaders[name])
        ]
        topic_id = name.encode().ljust(16, b"!")
        return MetadataResponseTopic(
            name=name, topic_id=topic_id, is_internal=name == "__orders", partitions=partitions
        )

    def do(self, coroutine: Any, advance_ms: int = 0) -> Any:
        flow = Flow(coroutine)
        self.driver.time.advance(advance_ms)
        return flow.result()

    @property
    def asked(self) -> int:
        return len(self.driver.requests("Metadata"))


def partitions(*numbers: int, topic: str = "t") -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in numbers]


def test_topics_are_asked_for_once_and_kept() -> None:
    world = World()
    topic = world.do(world.cluster.topics(["t"]))["t"]
    assert [one.leader for one in topic.partitions.values()] == [1, 2, 1]
    assert world.cluster.name_of(topic.id) == "t"
    world.do(world.cluster.topics(["t"]))
    assert world.asked == 1
    assert world.cluster.network.nodes == {1: A, 2: B}


def test_metadata_grows_old() -> None:
    world = World()
    world.do(world.cluster.topics(["t"]))
    world.leaders["t"] = [1, 2, 1, 2]
    world.driver.time.advance(300_001)
    assert len(world.do(world.cluster.topics(["t"]))["t"].partitions) == 4


def test_partitions_are_found_by_leader_in_one_question() -> None:
    world = World()
    assert world.do(world.cluster.leaders(partitions(0, 1, 2))) == {1: partitions(0, 2), 2: partitions(1)}
    assert world.asked == 1


def test_those_who_ask_the_same_at_the_same_time_share_one_request() -> None:
    world = World()
    world.driver.answer = talking({"Metadata": LATER})
    flows = [Flow(world.cluster.topics(["t"])) for _ in range(5)]
    world.driver.time.settle()
    flows[0].cancel()
    (asked,) = world.driver.requests("Metadata")
    asked.answer(world.metadata(asked))
    world.driver.time.settle()
    assert all(flow.result()["t"].name == "t" for flow in flows[1:])


def test_a_partition_without_a_leader_is_waited_for() -> None:
    world = World()
    world.leaders["t"] = [NO_LEADER]
    flow = Flow(world.cluster.leaders(partitions(0)))
    world.driver.time.advance(1_000)
    assert not flow.done
    world.leaders["t"] = [2]
    world.driver.time.advance(2_000)
    assert flow.result() == {2: partitions(0)}


def test_waiting_for_a_leader_ends_and_says_where() -> None:
    world = World()
    world.leaders["t"] = [NO_LEADER]
    with pytest.raises(BrokerError, match=r"'t' partition 0: LEADER_NOT_AVAILABLE.*tried \d+ times"):
        world.do(world.cluster.leaders(partitions(0), timeout_ms=3_000), advance_ms=3_000)


def test_a_topic_that_is_not_there_may_still_appear_but_not_for_ever() -> None:
    world = World()
    flow = Flow(world.cluster.topics(["new"]))
    world.driver.time.advance(2_000)
    assert not flow.done
    world.leaders["new"] = [1]
    world.driver.time.advance(2_000)
    assert flow.result()["new"].name == "new"
    missing = Flow(world.cluster.topics(["missing"]))
    world.driver.time.advance(8_000)
    with pytest.raises(UnknownTopicError, match="'missing'"):
        missing.result()


def test_a_partition_that_is_not_there_is_an_error_at_once() -> None:
    world = World()
    with pytest.raises(UnknownTopicError, match=r"'t' partition 9: .*; the topic has 3 partitions"):
        world.do(world.cluster.leaders(partitions(9)))


def test_what_may_not_be_seen_is_an_error_at_once() -> None:
    world = World()
    world.errors["secret"] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(AuthorizationError, match="'secret'"):
        world.do(world.cluster.topics(["t", "secret"]))


def test_an_outdated_topic_is_asked_for_again() -> None:
    world = World()
    world.do(world.cluster.leaders(partitions(0)))
    world.leaders["t"] = [2, 2, 2]
    world.cluster.outdate(["t"])
    assert world.cluster.leader(TopicPartition("t", 0)) == NO_LEADER
    assert world.do(world.cluster.leaders(partitions(0))) == {2: partitions(0)}


def test_a_leader_that_a_broker_names_is_believed_when_its_epoch_is_newer() -> None:
    world = World()
    world.do(world.cluster.topics(["t"]))
    one = TopicPartition("t", 0)
    assert not world.cluster.moved(one, 2, 5)
    assert not world.cluster.moved(one, 99, 6)
    assert world.cluster.moved(one, 2, 6)
    assert (world.cluster.leader(one), world.cluster.epoch(one)) == (2, 6)


def test_topics_are_found_by_pattern_and_internal_ones_are_not() -> None:
    world = World()
    world.leaders |= {"orders.eu": [1], "orders.us": [2], "__orders": [1], "other": [1]}
    assert sorted(world.do(world.cluster.matching(r"_*orders.*"))) == ["orders.eu", "orders.us"]


def test_topics_that_tools_write_to_meanwhile_are_found_by_their_own_beginning_only() -> None:
    world = World()
    world.leaders |= {"orders": [1], "__lowwater_losses": [1], "my__lowwater_x": [1]}
    assert {"orders", "my__lowwater_x"} == world.do(world.cluster.matching("[^t].*")).keys()
    for pattern in ("__lowwater_.*", "^__lowwater_lo.*"):
        assert {"__lowwater_losses"} == world.do(world.cluster.matching(pattern)).keys()


def test_a_broker_that_is_away_does_not_keep_metadata_away() -> None:
    world = World()
    world.do(world.cluster.topics(["t"]))
    world.driver.unreachable = {A: refused(A)}
    for line in world.driver.open_lines:
        line.drop()
    world.cluster.outdate(["t"])
    assert world.do(world.cluster.topics(["t"]), advance_ms=1_000)["t"].name == "t"
    assert world.driver.open_lines[0].address == B


def test_without_any_broker_the_error_says_how_long_it_was_tried() -> None:
    world = World()
    world.driver.unreachable = {A: refused(A)}
    with pytest.raises(ConnectError, match=r"a:1 refuses connections; tried \d+ times in \d+\.\d s"):
        world.do(world.cluster.topics(["t"], timeout_ms=5_000), advance_ms=5_000)


@pytest.mark.parametrize("version", range(4, 14))
def test_brokers_of_every_age_are_understood(version: int) -> None:
    world = World()
    known = versions_answer({3: (0, version), 18: (0, 3)})
    world.driver.answer = talking({"Metadata": world.metadata, "ApiVersions": lambda asked: known})
    topic = world.do(world.cluster.topics(["t"]))["t"]
    assert [one.leader for one in topic.partitions.values()] == [1, 2, 1]
    assert world.driver.requests("Metadata")[0].version == version
