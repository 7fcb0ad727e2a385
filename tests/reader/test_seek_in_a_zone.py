"""A reader's zone counts wherever it is given a date."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from lowwater import AsyncReader, ConsumerManager, PositionError, Reader, SourceTopic, TopicPartition
from lowwater.testing import Broker
from lowwater.wire.records import Record

HOUR_MS = 3_600_000
MIDNIGHT_IN_BERLIN_MS = 1_793_487_600_000  # 2026-11-01T00:00+01:00
DAYS0 = TopicPartition("days", 0)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """Offset 1 is stamped with midnight in Berlin, offset 2 with that of UTC."""
    with Broker() as running:
        first_ms = MIDNIGHT_IN_BERLIN_MS - HOUR_MS
        running.fill("days", next=4, generate=lambda at: Record(at, first_ms + at * HOUR_MS, None, b""))
        yield running


def test_seek_knows_the_zone_of_its_reader(broker: Broker) -> None:
    with Reader("days", bootstrap=broker.bootstrap, zone="Europe/Berlin") as reader:
        reader.seek("days", 0, "@2026-11-01")
        assert reader.to_table()["offset"].to_pylist() == [1, 2, 3]
    with Reader("days", bootstrap=broker.bootstrap, zone="UTC") as reader:
        reader.seek("days", 0, "@2026-11-01")
        assert reader.to_table()["offset"].to_pylist() == [2, 3]
    with Reader("days", bootstrap=broker.bootstrap) as reader, pytest.raises(PositionError, match="no time zone"):
        reader.seek("days", 0, "@2026-11-01")


def test_a_manager_reads_positions_in_its_zone(broker: Broker) -> None:
    config = {"bootstrap.servers": broker.bootstrap}
    topics = [SourceTopic.from_position("days", "@2026-11-01")]
    for zone, begins in (("Europe/Berlin", 1), ("UTC", 2)):
        with ConsumerManager(config, topics, zone=zone) as manager:
            assert manager.reader.positions[DAYS0] == begins
    with pytest.raises(PositionError, match=r"no time zone.*the argument zone"):
        ConsumerManager(config, topics)


def test_a_position_that_nobody_can_read_is_refused_before_there_is_a_manager() -> None:
    with pytest.raises(PositionError, match="yesterdy"):
        SourceTopic.from_position("days", "yesterdy")


def test_seek_knows_the_zone_of_its_reader_in_asyncio_too(broker: Broker) -> None:
    async def read() -> list[int]:
        async with AsyncReader("days", bootstrap=broker.bootstrap, zone="Europe/Berlin") as reader:
            await reader.seek("days", 0, "@2026-11-01")
            assert reader.positions[DAYS0] == 1
            return (await reader.to_table())["offset"].to_pylist()  # type: ignore[no-any-return]

    assert asyncio.run(read()) == [1, 2, 3]
