"""Calls with arguments that cannot be understood say which, before anything is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from enum import StrEnum
from typing import Any

import numpy as np
import pytest

from lowwater import AsyncProducer, AsyncReader, ConfigError, Producer, Reader
from lowwater.client.admin.opening import config_of
from lowwater.client.arguments import check_timeout, check_topic

NOWHERE = "localhost:1"
NO_TOPICS = [
    (b"x1", "topic is a name, as text, not b'x1'"),
    (5, "topic is a name, as text, not 5"),
    (["x1"], r"topic is a name, as text, not \['x1'\]"),
    ("", "a topic name cannot be empty"),
    ("x 1", "topic name 'x 1' has characters other than"),
]
NO_RECORDS = [
    ({"timestamp": "now"}, "timestamp is a datetime or whole milliseconds, not 'now'"),
    ({"timestamp": 1.5}, "timestamp is a datetime or whole milliseconds, not 1.5"),
    ({"timestamp": -5}, "timestamp -5 is no time"),
    ({"headers": "a=1"}, "headers are a mapping, or pairs of a name and a value, not 'a=1'"),
]


class Names(StrEnum):
    ORDERS = "orders"


@pytest.mark.parametrize(("topic", "says"), [*NO_TOPICS, (None, "topic is a name, as text, not None")])
def test_a_record_for_what_is_no_topic_is_refused(topic: Any, says: str) -> None:
    with Producer(NOWHERE) as producer, pytest.raises(ConfigError, match=says):
        producer.send(topic, "v")
    with pytest.raises(ConfigError, match=says):
        asyncio.run(sending(lambda producer: producer.send(topic, "v")))


@pytest.mark.parametrize(("topic", "says"), NO_TOPICS)
def test_a_table_for_what_is_no_topic_is_refused(topic: Any, says: str) -> None:
    with Producer(NOWHERE) as producer, pytest.raises(ConfigError, match=says):
        producer.send_table(topic, None)
    with pytest.raises(ConfigError, match=says):
        asyncio.run(sending(lambda producer: producer.send_table(topic, None)))


@pytest.mark.parametrize(("fields", "says"), NO_RECORDS)
def test_a_record_with_fields_of_another_kind_is_refused(fields: Any, says: str) -> None:
    with Producer(NOWHERE) as producer, pytest.raises(ConfigError, match=says):
        producer.send("orders", "v", **fields)
    with pytest.raises(ConfigError, match=says):
        asyncio.run(sending(lambda producer: producer.send("orders", "v", **fields)))


async def sending(send: Any) -> None:
    async with AsyncProducer(NOWHERE) as producer:
        call: Coroutine[Any, Any, Any] = send(producer)
        await call


def test_a_name_may_be_any_kind_of_text() -> None:
    check_topic(Names.ORDERS)


def test_settings_are_a_mapping() -> None:
    for connect in (Producer, config_of):
        with pytest.raises(ConfigError, match=r"config is a mapping, .* not str$"):
            connect(NOWHERE, "acks=1")  # type: ignore[arg-type]


def test_the_time_of_a_poll_is_a_number() -> None:
    says = "timeout_ms is a number of milliseconds or None, not '3'"
    with pytest.raises(ConfigError, match=says):
        Reader.__new__(Reader).poll("3")
    with pytest.raises(ConfigError, match=says):
        asyncio.run(AsyncReader("orders").poll("3"))
    for timeout_ms in (None, 0, 1.5, np.int64(3), np.float32(0.5)):
        check_timeout(timeout_ms)
