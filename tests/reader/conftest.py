"""Topics with rows in them, on the broker under test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.conformance.under_test import UnderTest
from tests.fresh import fresh
from tests.reader.writing import Writer

from lowwater import TopicPartition


@pytest.fixture(scope="session")
def writer(broker: UnderTest) -> Iterator[Writer]:
    writer = Writer(broker.bootstrap)
    yield writer
    writer.close()


@pytest.fixture
def topic_of(writer: Writer) -> Callable[..., str]:
    """`topic_of([100, 200], [150])` makes a topic of two partitions with records of these times."""

    def make(*logs: list[Any], **config: str) -> str:
        name = fresh("topic")
        writer.create(name, len(logs), config)
        for number, things in enumerate(logs):
            writer.write(TopicPartition(name, number), things)
        return name

    return make
