"""Rows of ranges, from brokers that do not answer everything at once."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.client.fetching.played import PlayedCluster

from lowwater.client.errors import ClientError
from lowwater.client.flow import Flow
from lowwater.client.read_rows import read_rows
from lowwater.types import TopicPartition

T0, T1 = (TopicPartition("t", number) for number in range(2))


def cluster() -> PlayedCluster:
    played = PlayedCluster()
    for one in played.create("t", 1, 1):
        played.append(one, 10)
    return played


def reading(played: PlayedCluster) -> Flow[Any]:
    return Flow(read_rows(played.cluster, {T0: (0, 10), T1: (2, 5)}))


def test_a_broker_whose_quota_is_used_up_is_asked_again_when_it_listens() -> None:
    played = cluster()
    played.throttle_ms = 50
    flow = reading(played)
    played.time.advance(2_000)
    assert not flow.done
    played.throttle_ms = 0
    played.time.advance(2_000)
    found = flow.result().checked()
    assert {one: [row.offset for row in rows] for one, rows in found.items()} == {T0: [*range(10)], T1: [2, 3, 4]}


def test_one_that_brings_nothing_does_not_take_the_rows_of_others_along() -> None:
    played = cluster()
    piece = played.logs[T0].batches[0].data[:50]
    played.logs[T0].read = lambda *_, **__: piece  # type: ignore[method-assign]
    flow = reading(played)
    played.time.advance(5_000)
    found = flow.result()
    assert [row.offset for row in found[T1]] == [2, 3, 4]
    with pytest.raises(ClientError, match="without the next batch"):
        found.checked()
