"""A broker of their own for tests of what Spark's driver side and workers do, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.conformance.under_test import NO_RETENTION_RUNS
from tests.reader.writing import Writer

from lowwater.spark.options import SourceOptions
from lowwater.spark.stream_planner import StreamPlanner
from lowwater.testing import Broker

Planning = Callable[..., StreamPlanner]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config=NO_RETENTION_RUNS) as broker:
        yield broker


@pytest.fixture(scope="module")
def writer(broker: Broker) -> Iterator[Writer]:
    writer = Writer(broker.bootstrap)
    yield writer
    writer.close()


@pytest.fixture
def options(broker: Broker) -> Callable[..., SourceOptions]:
    """`kafka_isolation_level` stands for `kafka.isolation.level`."""

    def parse(*, streaming: bool = True, **given: Any) -> SourceOptions:
        named = {name.replace("_", "."): str(value) for name, value in given.items()}
        quick = {"kafka.topic.metadata.propagation.max.ms": "200"}
        return SourceOptions.parse({"kafka.bootstrap.servers": broker.bootstrap, **quick, **named}, streaming=streaming)

    return parse


@pytest.fixture
def planning(options: Callable[..., SourceOptions]) -> Iterator[Planning]:
    """Makes planners, as a process of Spark's would; they are closed with the test."""
    made: list[StreamPlanner] = []

    def make(*, finished: Any = None, **given: Any) -> StreamPlanner:
        made.append(StreamPlanner(options(**given), finished=finished))
        return made[-1]

    yield make
    for planner in made:
        planner.close()
