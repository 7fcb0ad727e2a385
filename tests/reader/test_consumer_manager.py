"""Code that was written for kafkars, run unchanged but for the import."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from tests.conformance.under_test import UnderTest
from tests.reader.test_reader import committed, times
from tests.reader.writing import PATIENCE_S, Writer

from lowwater import AsyncConsumerManager, ConfigError, ConsumerManager, SourceTopic, TopicPartition

TopicOf = Callable[..., str]

# As kafkars 0.0.8 has it; what comes behind these columns is ours.
MESSAGE_FIELDS = [
    ("key", pa.binary()),
    ("value", pa.binary()),
    ("topic", pa.utf8()),
    ("partition", pa.int32()),
    ("offset", pa.int64()),
    ("timestamp", pa.timestamp("ms", tz="UTC")),
]
STATE_NAMES = [
    "topic",
    "partition",
    "replay_start_offset",
    "replay_end_offset",
    "consumed_offset",
    "released_offset",
    "last_consumed_timestamp",
    "is_live",
    "is_paused",
]


def poll_until_live(manager: ConsumerManager) -> list[int]:
    found: list[int] = []
    until = time.monotonic() + PATIENCE_S
    while not manager.is_live() and time.monotonic() < until:
        found += times(manager.poll(timeout_ms=1000))
    return found


def test_the_first_steps_of_kafkars_work_as_they_are(broker: UnderTest, topic_of: TopicOf) -> None:
    now_ms = time.time_ns() // 1_000_000
    events = topic_of([100, 300])
    metrics = topic_of([now_ms - 7_200_000, now_ms - 1_800_000])
    topics = [SourceTopic.from_earliest(events), SourceTopic.from_relative_time(metrics, 3600_000)]
    manager = ConsumerManager(config={"bootstrap.servers": broker.bootstrap}, topics=topics)
    found = []
    while True:
        batch = manager.poll(timeout_ms=1000)
        if batch.num_rows > 0:
            found += times(batch)
        if manager.is_live():
            break
    manager.close()
    assert found == [100, 300, now_ms - 1_800_000]


def test_batches_have_the_columns_of_kafkars_first(broker: UnderTest, topic_of: TopicOf) -> None:
    config = {"bootstrap.servers": broker.bootstrap}
    with ConsumerManager(config, [SourceTopic.from_earliest(topic_of([100]))]) as manager:
        for batch in (manager.poll(PATIENCE_S * 1000), manager.poll(0)):
            fields = [(field.name, field.type) for field in batch.schema]
            assert fields[: len(MESSAGE_FIELDS)] == MESSAGE_FIELDS
            assert [name for name, _ in fields[len(MESSAGE_FIELDS) :]] == ["timestamp_type", "headers"]


def test_a_manager_is_live_only_when_everything_was_returned(broker: UnderTest, topic_of: TopicOf) -> None:
    config = {"bootstrap.servers": broker.bootstrap}
    with ConsumerManager(config, [SourceTopic.from_earliest(topic_of([1, 2, 3, 4, 5]))], batch_size=2) as manager:
        assert not manager.is_live()
        assert poll_until_live(manager) == [1, 2, 3, 4, 5]
        assert manager.held_message_count() == 0
        assert manager.paused_partition_count() == 0
        assert manager.get_priming_watermark() is None


def test_the_batch_size_stands_in_the_third_place_as_in_kafkars(broker: UnderTest, topic_of: TopicOf) -> None:
    config = {"bootstrap.servers": broker.bootstrap}
    with ConsumerManager(config, [SourceTopic.from_earliest(topic_of([1, 2, 3, 4, 5]))], 2) as manager:
        sizes = [manager.poll(PATIENCE_S * 1000).num_rows for _ in range(3)]
    assert sizes == [2, 2, 1]


def test_a_moment_in_the_place_of_the_batch_size_is_refused_with_the_name_it_has() -> None:
    with pytest.raises(ConfigError, match="cutoff_ms=1763251200000"):
        ConsumerManager({"bootstrap.servers": "localhost:1"}, [SourceTopic("orders")], 1763251200000)


def test_the_signature_begins_as_that_of_kafkars() -> None:
    """`PyConsumerManager(config, topics, batch_size=None)` and `poll(timeout_ms)`, kafkars 0.0.8 says of itself."""
    names = [*inspect.signature(ConsumerManager).parameters]
    assert names[:3] == ["config", "topics", "batch_size"]
    assert [*inspect.signature(ConsumerManager.poll).parameters] == ["self", "timeout_ms"]
    assert [*inspect.signature(SourceTopic).parameters][:3] == ["name", "policy", "time_ms"]


def test_the_state_of_partitions_has_kafkars_columns_and_meaning(broker: UnderTest, topic_of: TopicOf) -> None:
    config = {"bootstrap.servers": broker.bootstrap}
    topic = topic_of([100, 200], [])
    with ConsumerManager(config, [SourceTopic.from_earliest(topic)]) as manager:
        before = manager.partition_state().to_pylist()
        poll_until_live(manager)
        state = manager.partition_state()
    assert state.schema.names == STATE_NAMES
    offsets = [[row[name] for name in STATE_NAMES[2:6]] for row in before]
    assert offsets == [[0, 2, 0, 0], [0, 0, 0, 0]]
    first, second = state.to_pylist()
    assert [first[name] for name in STATE_NAMES[2:6]] == [0, 2, 1, 1]
    assert (first["is_live"], first["is_paused"], second["is_live"]) == (True, False, True)
    assert second["last_consumed_timestamp"] is None


@pytest.mark.parametrize(
    ("source", "starts"),
    [
        (SourceTopic.from_latest, 3),
        (SourceTopic.from_earliest, 0),
        (lambda name: SourceTopic.from_absolute_time(name, 200), 1),
        (lambda name: SourceTopic.from_relative_time(name, 1000), 3),
        (lambda name: SourceTopic.from_position(name, "-2"), 1),
        (lambda name: SourceTopic(name=name), 3),
        (lambda name: SourceTopic(name=name, policy="absolute_time", time_ms=300), 2),
    ],
)
def test_each_policy_starts_where_it_says(
    broker: UnderTest, topic_of: TopicOf, source: Callable[[str], SourceTopic], starts: int
) -> None:
    topic = topic_of([100, 200, 300])
    with ConsumerManager({"bootstrap.servers": broker.bootstrap}, [source(topic)]) as manager:
        assert manager.reader.starts == {TopicPartition(topic, 0): starts}


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (SourceTopic("orders", "bogus"), "unknown policy"),
        (SourceTopic("orders", "relative_time"), "time_ms"),
        (SourceTopic("orders", "relative_time", -1), "in the future"),
        (SourceTopic("orders", "absolute_time", -1), "before 1970"),
        (SourceTopic.from_committed("orders"), "group"),
    ],
)
def test_what_cannot_be_understood_is_refused(source: SourceTopic, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        ConsumerManager({"bootstrap.servers": "localhost:1"}, [source])


@pytest.mark.parametrize("time_ms", [-1, -2, -(10**20), 10**20])
def test_a_time_that_is_none_is_refused_where_it_is_given(time_ms: int) -> None:
    for source in (SourceTopic.from_absolute_time, SourceTopic.from_relative_time):
        with pytest.raises(ConfigError, match=r"before 1970|beyond all times|in the future|longer ago"):
            source("orders", time_ms)


@pytest.mark.parametrize("time_ms", ["1h", 3.6e6, timedelta(hours=1), None, True])
def test_a_time_of_another_kind_is_refused_where_it_is_given(time_ms: Any) -> None:
    for source in (SourceTopic.from_absolute_time, SourceTopic.from_relative_time):
        with pytest.raises(ConfigError, match=r"time_ms is a whole number of milliseconds .*, not "):
            source("orders", time_ms)
    with pytest.raises(ConfigError, match="position is text, '-1h' or '17', not 5"):
        SourceTopic.from_position("orders", 5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("localhost", [SourceTopic("orders")]), "config is a mapping, .* not str"),
        (({}, ["orders"]), r"each of topics is a SourceTopic, SourceTopic.from_earliest\('orders'\), not 'orders'"),
        (({}, "orders"), r"topics is a list of SourceTopic, \[.*\], not 'orders'"),
        (({}, SourceTopic("orders")), r"topics is a list of SourceTopic, .* not SourceTopic\("),
        (({}, [SourceTopic(5)]), "each of topics is a name or a partition, .* not 5"),  # type: ignore[arg-type]
        (({}, [SourceTopic("orders", "relative_time", "1h")]), "time_ms is a whole number"),  # type: ignore[arg-type]
        (({}, [SourceTopic("orders")], "5"), "batch_size is a whole number, not '5'"),
    ],
)
def test_arguments_of_another_kind_are_refused_by_their_names(given: Any, says: str) -> None:
    for manager in (ConsumerManager, AsyncConsumerManager):
        with pytest.raises(ConfigError, match=says):
            manager(*given)


def test_a_group_in_the_config_is_where_one_starts_and_commits_and_no_more(
    broker: UnderTest, writer: Writer, topic_of: TopicOf
) -> None:
    topic = topic_of([100, 200], [150])
    group = f"{topic}-group"
    config = {"bootstrap.servers": broker.bootstrap, "group.id": group}
    committing: Any = [SourceTopic.from_committed(topic)]
    with ConsumerManager(config, committing) as first, ConsumerManager(config, committing) as second:
        assert poll_until_live(first) == [100, 150, 200]
        assert poll_until_live(second) == [100, 150, 200]
        assert committed(writer, group) == {}
        first.commit()
        assert committed(writer, group) == {0: 2, 1: 1}
    with ConsumerManager(config, [SourceTopic.from_earliest(topic)]) as manager:
        assert poll_until_live(manager) == [100, 150, 200]
    with ConsumerManager(config, committing) as manager:
        assert manager.is_live()


def test_with_a_group_of_its_own_a_manager_shares_and_commits(
    broker: UnderTest, writer: Writer, topic_of: TopicOf
) -> None:
    topic = topic_of([100, 200])
    group = f"{topic}-group"
    config = {"bootstrap.servers": broker.bootstrap}
    with ConsumerManager(config, [SourceTopic.from_committed(topic)], group=group) as manager:
        assert poll_until_live(manager) == [100, 200]
    assert committed(writer, group) == {0: 2}


@pytest.mark.parametrize(("stored", "expected"), [("true", {0: 2}), ("false", {})])
def test_what_is_not_to_be_stored_is_not_committed_by_itself(
    broker: UnderTest, writer: Writer, topic_of: TopicOf, stored: str, expected: dict[int, int]
) -> None:
    topic = topic_of([100, 200])
    settings = {"group.id": f"{topic}-group", "enable.auto.commit": "true", "enable.auto.offset.store": stored}
    with ConsumerManager(
        {"bootstrap.servers": broker.bootstrap, **settings}, [SourceTopic.from_earliest(topic)]
    ) as one:
        assert poll_until_live(one) == [100, 200]
    assert committed(writer, f"{topic}-group") == expected


def test_iteration_and_a_stop(broker: UnderTest, topic_of: TopicOf) -> None:
    config = {"bootstrap.servers": broker.bootstrap}
    with ConsumerManager(config, [SourceTopic.from_earliest(topic_of([100, 200]))], stop="latest") as manager:
        assert [time for batch in manager for time in times(batch)] == [100, 200]


def test_the_cutoff_lets_go_of_what_is_younger(broker: UnderTest, topic_of: TopicOf) -> None:
    config = {"bootstrap.servers": broker.bootstrap, "fetch.max.bytes": 1}
    topic = topic_of([100, 500, 600], [150, 700])
    with ConsumerManager(config, [SourceTopic.from_earliest(topic)], cutoff_ms=500, batch_size=1) as manager:
        found = poll_until_live(manager)
        found += [time for _ in range(5 - len(found)) for time in times(manager.poll(1000))]
    assert found[:2] == [100, 150]
    assert sorted(found) == [100, 150, 500, 600, 700]
