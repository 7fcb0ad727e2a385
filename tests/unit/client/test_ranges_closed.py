"""A reading of ranges that is done with."""

from __future__ import annotations

from typing import Any

from tests.unit.client.fetching.played import PlayedCluster

from lowwater.client.flow import Flow
from lowwater.client.ranges import OffsetRange, RangeReading
from lowwater.types import TopicPartition

T0 = TopicPartition("t", 0)


def run(played: PlayedCluster, coroutine: Any) -> Any:
    flow = Flow(coroutine)
    played.time.advance(100)
    return flow.result()


def test_it_can_be_closed_twice() -> None:
    played = PlayedCluster()
    played.create("t", 1)
    played.append(T0, 10)
    reading = RangeReading(played.cluster, [OffsetRange(T0, 0, 10, played.ids["t"])], on_lost=lambda _: None)
    assert run(played, reading.next()).num_rows == 10
    run(played, reading.close())
    run(played, reading.close())
