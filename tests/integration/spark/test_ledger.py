"""Losses found by tasks and by the driver, and where they are kept. With a real broker, without Spark."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.fresh import fresh
from tests.integration.spark.conftest import Planning
from tests.reader.writing import Writer

from lowwater import TopicPartition
from lowwater.client.admin.configs import Of, Resource
from lowwater.client.releasing import Lost
from lowwater.errors import ErrorCode
from lowwater.spark import losses
from lowwater.spark.data_loss import Skipping
from lowwater.spark.ledger import enter
from lowwater.spark.limits import Why
from lowwater.spark.loss_records import Loss
from lowwater.spark.offsets import Offset
from lowwater.testing import Broker


@pytest.fixture
def ledger() -> str:
    return fresh("ledger")


@pytest.fixture
def topic(broker: Broker, writer: Writer) -> str:
    name = fresh("lost")
    writer.create(name, 2)
    broker.fill(name, 0, next=100)
    return name


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    with caplog.at_level(logging.WARNING, "lowwater.spark"):
        yield lambda: [record.getMessage() for record in caplog.records if record.name == "lowwater.spark"]


def test_a_cluster_without_a_ledger_has_lost_nothing(broker, ledger) -> None:
    assert losses(broker.bootstrap, ledger=ledger) == []


def test_what_is_entered_can_be_read(broker, ledger) -> None:
    settings = {"bootstrap.servers": broker.bootstrap}
    one, other = Loss("a", 0, 3, 8, "x", 1000, "5f2c9a1e"), Loss("b", 7, 0, None, "y", 2000)
    enter(settings, [one], ledger)
    enter(settings, [other, one], ledger)
    assert losses(broker.bootstrap, ledger=ledger) == [one, other]


def test_the_ledger_keeps_what_it_has(broker, ledger, writer) -> None:
    enter({"bootstrap.servers": broker.bootstrap}, [Loss("a", 0, 3, 8, "x", 1000)], ledger)
    [described] = writer.admin.describe_topics([ledger]).checked().values()
    assert len(described.partitions) == 1
    [settings] = writer.admin.describe_configs([Resource(Of.TOPIC, ledger)]).checked().values()
    assert settings["retention.ms"].value == "-1"
    assert settings["cleanup.policy"].value == "delete"


def test_a_task_writes_down_what_it_could_not_read(options, broker, ledger, topic, warnings) -> None:
    skipping = Skipping(options(subscribe=topic, group="g", failOnDataLoss="false", lossLedger=ledger), "5f2c9a1e")
    skipping(Lost(topic, 0, 20, 60))
    skipping(Lost(topic, 0, 70, 80, is_truncated=True))
    assert ["[20, 60) are gone" in warnings()[0], "[70, 80) are gone" in warnings()[1]] == [True, True]
    assert losses(broker.bootstrap, ledger=ledger) == []
    skipping.write_down()
    skipping.write_down()
    found = losses(broker.bootstrap, ledger=ledger)
    assert [(one.topic, one.partition, one.first, one.behind, one.why) for one in found] == [
        (topic, 0, 20, 60, Why.EXPIRED.value),
        (topic, 0, 70, 80, Why.TRUNCATED.value),
    ]
    assert {(one.lineage, one.group) for one in found} == {("5f2c9a1e", "g")}


def test_a_driver_writes_down_partitions_that_are_gone(planning: Planning, broker, writer, ledger, topic) -> None:
    other = f"{topic}-other"
    writer.create(other, 1)
    broker.fill(other, 0, next=5)
    wide: dict[str, Any] = {"subscribePattern": f"{topic}.*", "startingOffsets": "earliest"}
    before = planning(**wide)
    end = before.latest_offset(before.initial_offset(), None)
    writer.admin.delete_topics([other]).checked()
    planner = planning(**wide, failOnDataLoss="false", lossLedger=ledger)
    for _ in range(3):
        planner.latest_offset(end, None)
    [found] = losses(broker.bootstrap, ledger=ledger)
    assert (found.topic, found.partition, found.first, found.behind) == (other, 0, 5, None)
    assert found.why == Why.REMOVED.value
    assert found.lineage == Offset.parse(end).lineage


def test_what_has_expired_is_left_to_the_task_that_finds_it(planning: Planning, broker, writer, ledger, topic) -> None:
    planner = planning(subscribe=topic, startingOffsets="earliest")
    end = planner.latest_offset(planner.initial_offset(), 30)
    writer.admin.delete_records({TopicPartition(topic, 0): 60})
    planning(subscribe=topic, failOnDataLoss="false", lossLedger=ledger).latest_offset(end, None)
    assert losses(broker.bootstrap, ledger=ledger) == []


def test_a_ledger_that_cannot_be_written_stops_nobody(broker, ledger, warnings) -> None:
    broker.faults.fail("CreateTopics", ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    enter({"bootstrap.servers": broker.bootstrap}, [Loss("a", 0, 3, 8, "x", 1000)], ledger)
    [warning] = warnings()
    assert f"could not be written into {ledger}" in warning


def test_without_a_ledger_losses_are_only_logged(options, topic, warnings, broker) -> None:
    broker.faults.fail("CreateTopics", ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    skipping = Skipping(options(subscribe=topic, failOnDataLoss="false", lossLedger=""), "")
    skipping(Lost(topic, 0, 20, 60))
    skipping.write_down()
    assert broker.faults.left("CreateTopics") == 1
    broker.faults.clear()
    assert len(warnings()) == 1


def test_other_records_in_the_topic_are_passed_over(broker, ledger, writer) -> None:
    enter({"bootstrap.servers": broker.bootstrap}, [Loss("a", 0, 3, 8, "x", 1000)], ledger)
    writer.write(TopicPartition(ledger, 0), [1_700_000_000_000])
    assert len(losses(broker.bootstrap, ledger=ledger)) == 1
