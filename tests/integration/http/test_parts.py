"""A cluster of three brokers, one of which dies: the others are told of, and the part that is missing is named."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from peers.kafka import KafkaCluster
from tests.integration.http.served import Cluster, Served, group_path, until

pytestmark = [pytest.mark.peer("kafka"), pytest.mark.only_against("kafka"), pytest.mark.timeout(300)]

SETTINGS = {
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "6",
    "default.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
}
PARTITIONS, GROUPS = 6, tuple("abcdef")


@pytest.fixture
def kafka() -> Iterator[KafkaCluster]:
    with KafkaCluster(SETTINGS, brokers=3) as running:
        cluster = Cluster(running.bootstrap)
        cluster.create("t", PARTITIONS)
        for partition in range(PARTITIONS):
            cluster.write("t", [b"x"] * 10, partition=partition)
        for group in GROUPS:
            cluster.commit(group, "t", dict.fromkeys(range(PARTITIONS), 3))
        yield running


def test_what_the_others_know_is_told_and_the_rest_is_named(kafka: KafkaCluster) -> None:
    one = Served("dashboard", "-b", kafka.bootstrap, "--port", "0", "-X", "default.api.timeout.ms=4000")
    try:
        until(lambda: one.get("/consumer-groups")["total"] == len(GROUPS), "all groups are seen")
        assert {each["lag"] for each in one.get("/consumer-groups")["groups"]} == {7 * PARTITIONS}
        kafka.nodes[2].kill()
        until(lambda: one.get("/consumer-groups")["errors"], "what is missing is named")
        assert "broker 3" in {each["what"] for each in one.get("/consumer-groups")["errors"]}
        topics = one.get("/topics")
        lost = {each["what"] for each in topics["errors"]}
        assert lost
        assert lost < {f"t-{partition}" for partition in range(PARTITIONS)}
        left = PARTITIONS - len(lost)
        browsed = one.get("/topics/t/records?start=earliest&limit=200")
        assert len(browsed["records"]) == 10 * left
        assert {each["what"] for each in browsed["errors"]} == lost
        answers = [one.ask("GET", group_path(group, "/lag")) for group in GROUPS]
        told = [answer.body for answer in answers if answer.status == 200]
        assert told
        assert {answer.status for answer in answers} <= {200, 503}
        for report in told:
            unknown = [each for each in report["partitions"] if each["lag"] is None]
            assert {f"t-{each['partition']}" for each in unknown} == lost
            assert {each["problem"] for each in unknown} == {"unreachable"}
    finally:
        one.close()
