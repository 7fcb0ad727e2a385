"""Promises about reading, as whoever uses a reader sees them: what it fetches, says, holds and pauses."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

import lowwater
from lowwater import Admin, ConsumerManager, Lost, NewTopic, OffsetOutOfRangeError, SourceTopic, TopicPartition
from lowwater.client.releasing import Releasing
from lowwater.testing import Broker
from lowwater.wire.records import Record

CARS0 = TopicPartition("cars", 0)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """`cars` has offsets 6 to 9, stamped as they are numbered; the group `drivers` goes on at 8."""
    with Broker() as running, Admin(running.bootstrap) as admin:
        running.fill("cars", first=6, next=10, generate=lambda offset: Record(offset, offset, None, b""))
        admin.alter_group_offsets("drivers", {CARS0: 8}).checked()
        yield running


def offsets(table: Any) -> list[int]:
    return table["offset"].to_pylist()  # type: ignore[no-any-return]


# -- S3-1: the first Fetch


@pytest.fixture
def fetched(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The offsets that are fetched, as the broker sees them."""
    seen: list[int] = []
    router = broker.node.router
    serve = router.intercept
    assert serve is not None

    def watch(route: Any, request: Any, context: Any) -> Any:
        if route.api.name == "Fetch":
            seen.extend(one.fetch_offset for topic in request.topics for one in topic.partitions)
        return serve(route, request, context)

    monkeypatch.setattr(router, "intercept", watch)
    return seen


@pytest.mark.parametrize(
    ("start", "first"),
    [
        ("earliest", 6),
        ("-2", 8),
        ("-5", 6),
        ("-500", 6),
        ("7", 7),
        ("s@0", 6),
        ("s@8", 8),
        ("-1h|earliest", 6),
        ("stored", 8),
        ("stored|earliest", 8),
    ],
)
def test_the_first_fetch_is_at_the_start_and_never_out_of_range(
    broker: Broker, fetched: list[int], caplog: pytest.LogCaptureFixture, start: str, first: int
) -> None:
    options: Any = {"group": "drivers", "join": False, "config": {"enable.auto.commit": False}}
    with lowwater.read(
        "cars", bootstrap=broker.bootstrap, start=start, on_lost="earliest", **options if "stored" in start else {}
    ) as reader:
        assert reader.starts == {CARS0: first}
        asked = broker.requests()["ListOffsets"]
        assert offsets(reader.to_table()) == list(range(first, 10))
        assert reader.lost == []
    assert fetched[0] == first
    assert min(fetched) >= 6
    # Whatever is out of range is asked for its bounds, and told.
    assert broker.requests()["ListOffsets"] == asked
    assert caplog.records == []


@pytest.mark.parametrize("start", ["latest", "s@100", "-1h", "-0"])
def test_a_start_at_the_end_is_fetched_there(broker: Broker, fetched: list[int], start: str) -> None:
    with lowwater.read("cars", bootstrap=broker.bootstrap, start=start) as reader:
        assert reader.starts == {CARS0: 10}
        assert reader.poll(0).num_rows == 0
        while not fetched:
            assert reader.poll(10).num_rows == 0
    assert set(fetched) == {10}


def test_an_offset_behind_the_end_is_asked_for_as_it_was_given(broker: Broker, fetched: list[int]) -> None:
    out_of_range = pytest.raises(OffsetOutOfRangeError, match=r"offset 12: .*\[6, 10\]")
    with lowwater.read("cars", bootstrap=broker.bootstrap, start=12) as reader, out_of_range:
        reader.to_table()
    assert set(fetched) == {12}


# -- S0-12: a reset says what it did


@pytest.mark.parametrize(("on_lost", "position", "rows"), [("earliest", 6, 4), ("latest", 10, 0)])
def test_a_reset_says_what_it_did(
    broker: Broker, caplog: pytest.LogCaptureFixture, on_lost: Any, position: int, rows: int
) -> None:
    with (
        caplog.at_level(logging.WARNING, "lowwater.reader"),
        lowwater.read("cars", bootstrap=broker.bootstrap, start=2, on_lost=on_lost) as reader,
    ):
        assert reader.to_table().num_rows == rows
        assert reader.lost == [Lost("cars", 0, 2, position)]
    [told] = caplog.messages
    assert told == f"{CARS0}: offset 2 is not within [6, 10]; reading goes on at {position}"


# -- timestamps of the broker


def test_times_that_the_broker_has_set_are_marked_as_such(broker: Broker) -> None:
    with Admin(broker.bootstrap) as admin:
        config = {"message.timestamp.type": "LogAppendTime"}
        admin.create_topics([NewTopic("stamped", partitions=1, config=config)]).checked()
    before_ms = time.time_ns() // 1_000_000
    with lowwater.Producer(broker.bootstrap) as producer:
        for _ in range(3):
            producer.send("stamped", b"", timestamp=17)
    table = lowwater.read("stamped", bootstrap=broker.bootstrap).to_table()
    assert table["timestamp_type"].to_pylist() == [1, 1, 1]
    assert min(table["timestamp"].cast("int64").to_pylist()) >= before_ms
    table = lowwater.read("cars", bootstrap=broker.bootstrap).to_table()
    assert table["timestamp_type"].to_pylist() == [0, 0, 0, 0]


# -- S4-7: what is held, paused, and the mark


def test_what_is_held_and_paused_is_told_while_it_is_so(broker: Broker) -> None:
    """The younger of two partitions brings twenty rows at once, the older one its rows one by one."""
    younger = [range(1_001, 1_021), range(1_021, 1_041)]
    with Admin(broker.bootstrap) as admin, lowwater.Producer(broker.bootstrap) as producer:
        admin.create_topics([NewTopic("apart", partitions=2)]).checked()
        for partition, batches in enumerate([[[stamp] for stamp in range(1, 11)], younger]):
            for batch in batches:
                for stamp in batch:
                    producer.send("apart", b"x", partition=partition, timestamp=stamp)
                producer.flush()
    config = {"bootstrap.servers": broker.bootstrap, "max.partition.fetch.bytes": 1}
    with ConsumerManager(config, [SourceTopic.from_earliest("apart")], batch_size=1) as manager:
        found, states = [], []
        while not manager.is_live():
            found += manager.poll(1000)["timestamp"].cast("int64").to_pylist()
            states.append(
                (manager.held_message_count(), manager.paused_partition_count(), manager.get_priming_watermark())
            )
    assert found == [*range(1, 11), *range(1_001, 1_041)]
    waiting = [(held, paused) for held, paused, mark in states if mark is not None and mark < 10]
    assert waiting
    assert all(held >= 20 and paused == 1 for held, paused in waiting)
    assert states[-1] == (0, 0, None)


# -- memory


PARTITIONS, ROW_BYTES, BOUND_BYTES = 1_000, 100_000, 4_000_000


def test_a_thousand_partitions_of_large_rows_are_read_in_order_within_a_small_bound(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is held is looked at wherever it may be most: before and behind each step within the polls."""
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic("wide", partitions=PARTITIONS)]).checked()
    stamps = random.Random(4).sample(range(1, PARTITIONS + 1), PARTITIONS)
    value = b"x" * ROW_BYTES
    for partition, stamp in enumerate(stamps):
        broker.fill("wide", partition, next=1, generate=lambda at, stamp=stamp: Record(at, stamp, None, value))
    held: list[int] = []
    step = Releasing.step

    def watched(releasing: Releasing) -> Any:
        held.append(releasing.held_bytes)
        batch = step(releasing)
        held.append(releasing.held_bytes)
        return batch

    monkeypatch.setattr(Releasing, "step", watched)
    options: Any = {"held_bytes_max": BOUND_BYTES, "stop": "latest", "columns": ["timestamp", "value"]}
    with lowwater.read("wide", bootstrap=broker.bootstrap, **options) as reader:
        found = [stamp for batch in reader for stamp in batch["timestamp"].cast("int64").to_pylist()]
        assert reader.stats.late_rows == 0
    assert found == list(range(1, PARTITIONS + 1))
    assert ROW_BYTES < max(held) <= BOUND_BYTES + ROW_BYTES
