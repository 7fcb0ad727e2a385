"""A broker whose disk lost the end of a log while it was down: readers that have read it are told, exactly."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.under_test import UnderTest
from tests.reader.writing import PATIENCE_S, Writer

import lowwater
from lowwater import Lost, Reader, TopicPartition
from lowwater.client.errors import ClientError, LogTruncatedError
from lowwater.wire.records import BatchHeader

ONE = TopicPartition("cut", 0)


@pytest.fixture
def broker(own_broker: Callable[..., UnderTest]) -> UnderTest:
    return own_broker()


@pytest.fixture
def writer(broker: UnderTest) -> Iterator[Writer]:
    writer = Writer(broker.bootstrap)
    writer.create(ONE.topic, 1)
    writer.write(ONE, [100, 200, 300, 400, 500])
    yield writer
    writer.close()


def restart_without_the_end(broker: UnderTest, *, batches: int) -> None:
    """Only so many batches are left of the log."""
    is_ours = broker.name == "lowwater"
    running: Any = broker.process
    process = running if is_ours else running.nodes[0]
    process.kill()
    folder = "topics/cut-*/0" if is_ours else "cut-0"
    [segment] = Path(broker.data_dir).glob(f"{folder}/{0:020}.log")
    data, end = segment.read_bytes(), 0
    for _ in range(batches):
        end += BatchHeader.parse(data, end).size
    segment.write_bytes(data[:end])
    process.start() if is_ours else process.launch()


def read_times(reader: Reader, count: int) -> list[int]:
    found: list[int] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < deadline:
        try:
            found += reader.poll(500).column("timestamp").cast("int64").to_pylist()
        except ClientError as error:
            if not error.retriable:
                raise
    return found


def test_what_was_returned_and_is_gone_is_an_error_that_names_it(broker: UnderTest, writer: Writer) -> None:
    with lowwater.read(ONE.topic, bootstrap=broker.bootstrap) as reader:
        assert read_times(reader, 5) == [100, 200, 300, 400, 500]
        restart_without_the_end(broker, batches=3)
        writer.write(ONE, [401, 501, 601])
        with pytest.raises(LogTruncatedError) as raised:
            read_times(reader, 1)
        assert (raised.value.topic, raised.value.partition) == ONE
        assert (raised.value.first, raised.value.behind) == (3, 5)
        reader.seek(*ONE, 3)
        assert read_times(reader, 3) == [401, 501, 601]


def test_with_on_lost_what_stands_there_now_is_read(broker: UnderTest, writer: Writer) -> None:
    with lowwater.read(ONE.topic, bootstrap=broker.bootstrap, on_lost="latest") as reader:
        assert read_times(reader, 5) == [100, 200, 300, 400, 500]
        restart_without_the_end(broker, batches=4)
        assert reader.poll(0).num_rows == 0
        writer.write(ONE, [501, 601])
        assert read_times(reader, 2) == [501, 601]
        assert reader.lost == [Lost(*ONE, 4, 5, is_truncated=True)]
        assert reader.stats.lost_offsets == 1


def test_what_a_group_has_read_and_is_gone_is_told_to_whoever_goes_on_for_it(broker: UnderTest, writer: Writer) -> None:
    as_group: Any = {"bootstrap": broker.bootstrap, "group": "goes-on", "join": False}
    with lowwater.read(ONE.topic, **as_group) as reader:
        assert read_times(reader, 5) == [100, 200, 300, 400, 500]
        reader.commit()
    restart_without_the_end(broker, batches=3)
    writer.write(ONE, [401, 501, 601, 701])
    with lowwater.read(ONE.topic, **as_group) as reader:
        with pytest.raises(LogTruncatedError) as raised:
            read_times(reader, 1)
        assert (raised.value.first, raised.value.behind) == (3, 5)
        reader.seek(*ONE, 3)
        assert read_times(reader, 4) == [401, 501, 601, 701]
        reader.commit()
    with lowwater.read(ONE.topic, stop="latest", **as_group) as reader:
        assert reader.to_table().num_rows == 0, "what was committed now is in the log"
