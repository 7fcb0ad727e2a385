"""A Kafka Streams application with exactly_once_v2 runs on the broker, and survives the broker's kills and its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.creating import create_topic
from tests.conformance.streams import INPUT, OUTPUT, PARTITIONS, SETTINGS, Application, Feed, Tail, each_counted_once
from tests.conformance.under_test import running
from tests.crash.broker_process import BrokerProcess

pytestmark = [pytest.mark.peer("streams"), pytest.mark.peer("confluent"), pytest.mark.timeout(240)]

LINES = 120
BLOWS = ("broker", "application", "broker", "application", "broker")


def _create_topics(bootstrap: str) -> None:
    host, _, port = bootstrap.rpartition(":")
    for topic in (INPUT, OUTPUT):
        create_topic((host, int(port)), topic, partitions=PARTITIONS)


@contextlib.contextmanager
def _broker_to_kill(folder: Path) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(folder, SETTINGS)
    broker.start()
    try:
        yield broker
    finally:
        if broker.is_running():
            broker.kill()


@pytest.mark.only_against("kafka")
def test_a_streams_application_counts_every_word_once(against: str, tmp_path: Path) -> None:
    with running(against, SETTINGS) as broker:
        _create_topics(broker.bootstrap)
        feed, tail = Feed(broker.bootstrap, 1), Tail(broker.bootstrap)
        with Application(broker.bootstrap, tmp_path) as application:
            for _ in range(2):
                feed.send(LINES)
                tail.until(feed.sent.total, application.complaints)
        tail.stop()
        each_counted_once(feed, tail)


@pytest.mark.only_against("lowwater")
def test_a_streams_application_counts_every_word_once_under_kills(tmp_path: Path) -> None:
    with _broker_to_kill(tmp_path / "data") as broker:
        _create_topics(broker.bootstrap)
        feed, tail = Feed(broker.bootstrap, 2), Tail(broker.bootstrap)
        with Application(broker.bootstrap, tmp_path / "state") as application:
            for blow in BLOWS:
                feed.send(LINES)
                halfway = (tail.total + feed.sent.total()) // 2
                tail.until(lambda halfway=halfway: halfway, application.complaints)  # type: ignore[misc]
                victim = broker if blow == "broker" else application
                victim.kill()
                victim.start()
            tail.until(feed.sent.total, lambda: f"{application.complaints()}\n{broker.log_tail()}")
        tail.stop()
    each_counted_once(feed, tail)
