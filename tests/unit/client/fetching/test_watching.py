"""Topics and partitions that come and go."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.client.fetching.played import NODES, PlayedCluster
from tests.unit.client.virtual import refused

from lowwater.client.errors import UnknownTopicError
from lowwater.client.flow import Flow
from lowwater.client.watching import TopicWatch
from lowwater.types import TopicPartition

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def do(played: PlayedCluster, coroutine: Any, advance_ms: int = 0) -> Any:
    flow = Flow(coroutine)
    played.time.advance(advance_ms)
    return flow.result()


def test_the_first_look_shows_everything_as_new() -> None:
    played = PlayedCluster()
    played.create("t", 1, 2)
    played.create("u", 1)
    seen = do(played, TopicWatch(played.cluster, ["t"]).look())
    assert (seen.added, seen.gone, list(seen.topics)) == ([T0, T1], [], ["t"])
    seen = do(played, TopicWatch(played.cluster, pattern="t|u").look())
    assert (seen.added, sorted(seen.topics)) == ([T0, T1, U0], ["t", "u"])


def test_a_change_is_seen_within_the_age_that_metadata_may_have() -> None:
    played = PlayedCluster(metadata_max_age_ms=60_000)
    played.create("t", 1)
    watch = TopicWatch(played.cluster, pattern=".*")
    do(played, watch.look())
    changed = Flow(watch.changed())
    played.time.advance(200_000)
    assert not changed.done
    played.create("u", 1)
    played.time.advance(60_000)
    assert (changed.result().added, changed.result().gone) == ([U0], [])
    played.delete("t")
    assert do(played, watch.changed(), 60_000).gone == [T0]


def test_partitions_that_are_added_to_a_topic_are_seen() -> None:
    played = PlayedCluster()
    played.create("t", 1)
    watch = TopicWatch(played.cluster, ["t"])
    do(played, watch.look())
    topic_id = played.ids["t"]
    played.create("t", 1, 2)
    played.ids["t"] = topic_id
    assert do(played, watch.look()).added == [T1]


def test_a_named_topic_that_is_gone_is_gone_and_may_come_back() -> None:
    played = PlayedCluster()
    played.create("t", 1)
    played.create("u", 1)
    watch = TopicWatch(played.cluster, ["t", "u"])
    do(played, watch.look())
    played.delete("t")
    assert do(played, watch.look()).gone == [T0]
    played.delete("u")
    assert do(played, watch.look()).gone == [U0]
    played.create("t", 1)
    assert do(played, watch.look()).added == [T0]


def test_a_named_topic_that_never_was_is_an_error() -> None:
    played = PlayedCluster()
    with pytest.raises(UnknownTopicError):
        do(played, TopicWatch(played.cluster, ["t"]).look(), 10_000)


def test_a_watch_outlives_brokers_that_cannot_be_asked() -> None:
    played = PlayedCluster(metadata_max_age_ms=60_000, default_api_timeout_ms=5_000)
    played.create("t", 1)
    watch = TopicWatch(played.cluster, ["t"])
    do(played, watch.look())
    changed = Flow(watch.changed())
    for address in NODES.values():
        played.driver.unreachable[address] = refused(address)
    for line in played.driver.open_lines:
        line.drop()
    played.time.advance(100_000)
    assert not changed.done
    played.driver.unreachable.clear()
    played.create("t", 1, 1)
    played.time.advance(100_000)
    assert changed.result().added == [T1]
