"""Producers that nobody closes: rows are written before the interpreter ends, or it is said that they were not."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

import lowwater
from lowwater import AsyncProducer, Producer
from lowwater.client.producing.forgotten import forget
from lowwater.testing import Broker

NOBODY = "127.0.0.1:1"
QUICKLY = {"delivery.timeout.ms": 1_500, "request.timeout.ms": 1_000, "linger.ms": 100}
PATIENCE_S = 180
SCRIPT = """
import sys
from lowwater import Producer

producer = Producer(sys.argv[1], {"linger.ms": 5_000})
for number in range(1_000):
    producer.send("forgotten", b"%d" % number)
"""


def test_what_was_sent_is_written_before_the_interpreter_ends() -> None:
    with Broker() as broker:
        line = [sys.executable, "-c", SCRIPT, broker.bootstrap]
        done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0
        assert "error" not in done.stderr.lower(), done.stderr
        with lowwater.read("forgotten", bootstrap=broker.bootstrap, stop="latest", order="partition") as reader:
            values = [int(value) for value in reader.to_table().column("value").to_pylist()]
    assert values == [*range(1_000)]


def test_rows_that_cannot_be_written_are_told_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    producer = Producer(NOBODY, QUICKLY)
    producer.send("t", b"v")
    producer.send("t", b"v")
    producer._leave_at_exit()
    [*_, error] = caplog.records
    assert error.levelname == "ERROR"
    assert "2 of 2 rows were not written" in error.message
    assert "refuses connections" in error.message
    producer.close(raise_failures=False)


def test_rows_that_failed_before_and_that_nobody_asked_about_are_told_as_well(caplog: pytest.LogCaptureFixture) -> None:
    with Broker({"auto.create.topics.enable": "false"}) as broker:
        asked, unasked = (Producer(broker.bootstrap, {"topic.metadata.propagation.max.ms": 200}) for _ in range(2))
        asked.send("nowhere", b"v").wait(PATIENCE_S * 1000)
        report = unasked.send("nowhere", b"v")
        unasked._driver.wait(report.settled, PATIENCE_S * 1000)
        for producer in (asked, unasked):
            producer._leave_at_exit()
            producer.close(raise_failures=False)
    [told] = [each.message for each in caplog.records]
    assert "1 of 1 rows were not written" in told


def test_one_that_has_nothing_left_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with Broker() as broker:
        producer = Producer(broker.bootstrap)
        producer.send("t", b"v")
        producer.flush()
        producer._leave_at_exit()
        producer.close()
    assert caplog.records == []


def test_an_async_one_can_only_say_that_it_was_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    async def forgetting() -> AsyncProducer:
        producer = AsyncProducer(NOBODY, QUICKLY)
        await producer.send("t", b"v")
        return producer

    producer = asyncio.run(forgetting())
    producer._leave_at_exit()
    forget(producer)
    [told] = caplog.records
    assert (told.levelname, "use async with" in told.message) == ("ERROR", True)
