"""Apache Kafka's own tools for groups, and what they and plain consumers read in the internal topic."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.conformance.clients import DRIVERS
from tests.conformance.clients.base import EARLIEST
from tests.conformance.groups.offsets_topic import OFFSETS_TOPIC
from tests.conformance.groups.stage import SharedHosts, Stage, wait_for_coordinator
from tests.conformance.test_console_tools import Tools
from tests.conformance.under_test import UnderTest

from lowwater.groups import records
from lowwater.outcome import StateRecord

pytestmark = pytest.mark.peer("kafka")

GROUPS = ("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "--timeout", "60000")
CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
FORMATTERS = "org.apache.kafka.tools.consumer"
COMMITS = {0: 5, 1: 17, 2: 3}


@pytest.mark.together
def test_kafka_consumer_groups_lists_describes_and_deletes(stage: Stage) -> None:
    tools, topic = Tools(stage.broker), stage.topic(partitions=2)
    stage.fill(topic, 2, each=10)
    stage.commit(topic, 0, 4)
    listed = tools.run(*GROUPS, "--list", "--state")
    assert [stage.group, "Empty"] in [line.split() for line in listed.splitlines()]
    described = tools.run(*GROUPS, "--describe", "--group", stage.group, "--offsets")
    [row] = [line.split() for line in described.splitlines() if line.startswith(stage.group)]
    assert row[:6] == [stage.group, topic, "0", "4", "10", "6"]
    tools.run(*GROUPS, "--delete-offsets", "--group", stage.group, "--topic", topic)
    assert stage.committed(topic) == -1
    stage.commit(topic, 1, 1)
    assert "was successful" in tools.run(*GROUPS, "--delete", "--group", stage.group)
    assert stage.committed(topic, 1) == -1


@pytest.mark.together
def test_kafka_consumer_groups_resets_offsets(stage: Stage) -> None:
    tools, topic = Tools(stage.broker), stage.topic(partitions=2)
    stage.fill(topic, 2, each=10)
    stage.commit(topic, 0, 4)
    stage.commit(topic, 1, 4)
    wish = ("--reset-offsets", "--group", stage.group, "--topic", topic)
    assert stage.group in tools.run(*GROUPS, *wish, "--shift-by", "2", "--dry-run")
    assert stage.committed(topic) == 4
    tools.run(*GROUPS, *wish, "--to-latest", "--execute")
    assert [stage.committed(topic, index) for index in (0, 1)] == [10, 10]
    tools.run(*GROUPS, *wish, "--shift-by", "-3", "--execute")
    assert [stage.committed(topic, index) for index in (0, 1)] == [7, 7]


@pytest.mark.together
def test_kafka_consumer_groups_describes_members(stage: Stage) -> None:
    tools, topic = Tools(stage.broker), stage.topic(partitions=3)
    member = stage.raw_member([topic], session_timeout_ms=600_000)
    assert member.join().error_code == 0
    assert member.sync({member.member_id: {topic: [0, 2]}}).error_code == 0
    described = tools.run(*GROUPS, "--describe", "--group", stage.group, "--members", "--verbose")
    assert member.member_id in described
    assert f"{topic}(0,2)" in described or f"{topic}:0,2" in described, described
    state = tools.run(*GROUPS, "--describe", "--group", stage.group, "--state")
    assert "Stable" in state
    assert "range" in state


@pytest.fixture
def committed(own_broker: Callable[..., UnderTest]) -> UnderTest:
    """A broker in whose internal topic nothing stands but three commits of one group."""
    broker = own_broker({"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"})
    wait_for_coordinator(broker.address)
    stage = Stage(broker, SharedHosts())
    topic = stage.topic(partitions=3, name="read")
    for partition, offset in COMMITS.items():
        stage.commit(topic, partition, offset, group="readers")
    return broker


def shown(broker: UnderTest, formatter: str, count: int) -> list[dict[str, dict[str, object]]]:
    where = ("--topic", OFFSETS_TOPIC, "--from-beginning", "--max-messages", str(count), "--timeout-ms", "30000")
    text = Tools(broker).run(CONSOLE, *where, "--formatter", f"{FORMATTERS}.{formatter}").strip()
    found, decoder = [], json.JSONDecoder()
    while text:  # One object after the other, with nothing in between.
        one, end = decoder.raw_decode(text)
        found.append(one)
        text = text[end:].lstrip()
    return found


def test_kafkas_formatter_reads_the_committed_offsets(committed: UnderTest) -> None:
    found = shown(committed, "OffsetsMessageFormatter", len(COMMITS))
    read = {each["key"]["data"]["partition"]: each["value"]["data"]["offset"] for each in found}  # type: ignore[index]
    assert read == COMMITS
    assert {each["key"]["data"]["group"] for each in found} == {"readers"}  # type: ignore[index]


def test_kafkas_formatter_reads_the_groups(committed: UnderTest) -> None:
    with Stage(committed, SharedHosts()) as stage:
        member = stage.raw_member(["read"])
        assert member.join().error_code == 0
        assert member.sync({member.member_id: {"read": [0, 1, 2]}}).error_code == 0
        # Both brokers write two records here: Kafka also the empty group, ours also the generation without assignments.
        [*_, found] = shown(committed, "GroupMetadataMessageFormatter", len(COMMITS) + 2)
        assert found["key"]["data"] == {"group": stage.group}
        value = found["value"]["data"]
        assert (value["generation"], value["protocol"], value["leader"]) == (1, "range", member.member_id)  # type: ignore[index]


@pytest.mark.parametrize("library", ["confluent", "kafka_python", "aiokafka"])
def test_a_plain_consumer_reads_the_internal_topic(committed: UnderTest, library: str) -> None:
    driver = DRIVERS[library](committed.bootstrap)
    received = driver.consume(OFFSETS_TOPIC, len(COMMITS), start=EARLIEST)
    driver.close()
    read = [records.decode(StateRecord(each.record.key or b"", each.record.value)) for each in received]
    assert {key.partition: value.offset for key, value in read} == COMMITS  # type: ignore[misc]
