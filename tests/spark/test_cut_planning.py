"""Cuts found at a real broker: rows and times by confluent-kafka, plans by the stream's planner, without Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from tests.conformance.under_test import UnderTest
from tests.spark.timed import PlannedStream, TimedWriter, stamps
from tests.spark.writing import Topics

from lowwater.types import TopicPartition

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
T0 = 1_760_000_400_000 - 1_760_000_400_000 % DAY
FAR = 4_102_444_800_000  # 2100


@pytest.fixture(scope="module")
def writer(broker: UnderTest) -> TimedWriter:
    return TimedWriter(broker.bootstrap)


class Planning:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._streams: list[PlannedStream] = []

    def __call__(self, topic: str, *, ends: bool = True, **options: object) -> PlannedStream:
        options = {"subscribe": topic, "startingOffsets": "earliest", "cut": "10m", **options}
        stream = PlannedStream(self._bootstrap, **options)
        self._streams.append(stream)
        if ends:
            stream.stop_at_what_is_there()
        return stream

    def close(self) -> None:
        for stream in self._streams:
            stream.close()


@pytest.fixture
def planned(broker: UnderTest) -> Iterator[Planning]:
    planning = Planning(broker.bootstrap)
    yield planning
    planning.close()


def times_by_batch(topic: str, stream: PlannedStream) -> list[tuple[int, list[int]]]:
    """Of each batch its cut and the times of its rows, as the other client reads them; each row is in one batch."""
    stamped = stamps(stream.options.client.settings["bootstrap.servers"], topic)
    found = []
    batches = stream.all()
    for cut, batch in zip(stream.cuts, batches, strict=True):
        times = [stamped.pop((*one, offset)) for one, (start, end) in batch.items() for offset in range(start, end)
                 if (*one, offset) in stamped]  # fmt: skip
        found.append((cut, times))
    assert not stamped, "every row is read, and once"
    return found


def test_batches_end_at_marks_of_the_grid_in_all_partitions(
    topics: Topics, writer: TimedWriter, planned: Planning
) -> None:
    topic = topics.create(3)
    writer.write(topic, range(T0, T0 + HOUR, 30_000), 0)
    writer.write(topic, range(T0 + 25 * MINUTE, T0 + 35 * MINUTE, 1000), 1)
    writer.write(topic, [T0 + 5 * MINUTE, T0 + 55 * MINUTE], 2)
    stream = planned(topic)
    found = times_by_batch(topic, stream)
    assert [cut for cut, _ in found] == [T0 + number * 10 * MINUTE for number in range(1, 7)]
    assert all(cut - 10 * MINUTE <= each < cut for cut, times in found for each in times)
    assert max(stream.asked) <= 3


def test_three_days_without_rows_are_passed_over(topics: Topics, writer: TimedWriter, planned: Planning) -> None:
    topic = topics.create(2)
    for partition in range(2):
        writer.write(topic, [T0, T0 + 1, T0 + 3 * DAY, T0 + 3 * DAY + 1], partition)
    assert len(planned(topic).all()) == 2


def test_ends_of_transactions_in_old_data_do_not_stop_a_partition(
    topics: Topics, writer: TimedWriter, planned: Planning
) -> None:
    topic = topics.create(2)
    writer.write_in_transactions(topic, range(T0, T0 + HOUR, 20_000), 0, size=13)
    writer.write(topic, range(T0, T0 + HOUR, 20_000), 1)
    found = times_by_batch(topic, planned(topic, kafka_isolation_level="read_committed"))
    assert len(found) == 6
    assert all(cut - 10 * MINUTE <= each < cut for cut, times in found for each in times)


def test_a_row_of_the_future_neither_stops_its_partition_nor_takes_others_along(
    topics: Topics, writer: TimedWriter, planned: Planning
) -> None:
    topic = topics.create(2)
    writer.write(topic, [T0, T0 + 1, FAR, *range(T0 + 2, T0 + HOUR, 20_000)], 0)
    writer.write(topic, range(T0, T0 + HOUR, 20_000), 1)
    stream = planned(topic)
    found = times_by_batch(topic, stream)
    assert len(found) == 6
    assert all(cut - 10 * MINUTE <= each < cut for cut, times in found for each in times if each != FAR)


def test_a_limit_is_kept_and_found_in_twelve_requests(topics: Topics, writer: TimedWriter, planned: Planning) -> None:
    topic = topics.create(2)
    writer.write(topic, [T0] * 250 + list(range(T0, T0 + HOUR, 5000)), 0)
    writer.write(topic, [T0] * 250 + [T0 + 59 * MINUTE + each for each in range(500)], 1)
    stream = planned(topic, maxOffsetsPerTrigger=100)
    found = times_by_batch(topic, stream)
    assert max(len(times) for _, times in found) <= 100
    assert [cut for cut, _ in found] == sorted(cut for cut, _ in found)
    assert max(stream.asked) <= 14  # of which two may fetch rows


def test_once_leaves_the_cut_out(topics: Topics, writer: TimedWriter, planned: Planning) -> None:
    topic = topics.create(1)
    writer.write(topic, range(T0, T0 + HOUR, 60_000))
    planner = planned(topic, ends=False).planner
    end = planner.latest_offset(planner.initial_offset(), None)
    assert end["topics"][topic]["at"] == {"0": 60}
    assert "plan" not in end


def test_sources_of_other_topics_find_the_same_cuts(topics: Topics, writer: TimedWriter, planned: Planning) -> None:
    one, other = topics.create(2), topics.create(1)
    writer.write(one, range(T0 + 2 * HOUR, T0 + 4 * HOUR, 60_000), 0)
    writer.write(one, range(T0 + 3 * HOUR, T0 + 4 * HOUR, 60_000), 1)
    writer.write(other, range(T0, T0 + 3 * HOUR, 30_000))
    streams = planned(one, alignWith=other), planned(other, alignWith=one)
    read = [stream.all() for stream in streams]
    assert [stream.planner.reported_offset() is not None for stream in streams] == [True, True]
    assert streams[0].cuts == streams[1].cuts
    assert len(streams[0].cuts) == 24
    assert read[0][0] == {}
    assert read[1][0] == {TopicPartition(other, 0): (0, 20)}


def test_a_partition_that_is_added_is_read_with_its_time(
    topics: Topics, writer: TimedWriter, planned: Planning
) -> None:
    topic = topics.create(1)
    writer.write(topic, range(T0, T0 + HOUR, 60_000))
    stream = planned(topic, ends=False, idleTimeout="1ms")
    stream.planner.initial_offset()
    assert _next(stream) == {TopicPartition(topic, 0): (0, 10)}
    topics.grow(topic, 2)
    newer = TimedWriter(stream.options.client.settings["bootstrap.servers"])  # which knows of it
    newer.write(topic, range(T0 + 30 * MINUTE, T0 + HOUR, 60_000), 1)
    every = {TopicPartition(topic, 0): 60, TopicPartition(topic, 1): 30}
    begins: dict[TopicPartition, int] = {}
    ends: dict[TopicPartition, int] = {}
    while ends != every:
        for one, (start, end) in _next(stream).items():
            begins.setdefault(one, start)
            ends[one] = end
    assert begins[TopicPartition(topic, 1)] == 0


def test_an_open_transaction_holds_the_cut_for_the_idle_timeout_at_most(
    topics: Topics, writer: TimedWriter, planned: Planning
) -> None:
    topic = topics.create(2)
    writer.write(topic, range(T0, T0 + HOUR, 60_000), 0)
    writer.write(topic, [T0], 1)
    with writer.open_transaction(topic, range(T0 + 1, T0 + HOUR, 60_000), 1):
        stream = planned(topic, ends=False, kafka_isolation_level="read_committed", idleTimeout="2s")
        began = time.monotonic()
        first = _next(stream)
        assert time.monotonic() - began >= 2
        assert first == {TopicPartition(topic, 0): (0, 10), TopicPartition(topic, 1): (0, 1)}
        assert _next(stream) == {TopicPartition(topic, 0): (10, 20)}
    late: dict[TopicPartition, tuple[int, int]] = {}
    while TopicPartition(topic, 1) not in late:
        late = _next(stream)
    assert late[TopicPartition(topic, 1)][0] == 1


def test_times_of_brokers_are_mentioned_once(
    topics: Topics, writer: TimedWriter, planned: Planning, caplog: pytest.LogCaptureFixture
) -> None:
    stamped_by_broker = topics.create(1, config={"message.timestamp.type": "LogAppendTime"})
    other = topics.create(1)
    for topic in (stamped_by_broker, other):
        writer.write(topic, range(T0, T0 + HOUR, 600_000))
    stream = planned(f"{stamped_by_broker},{other}")
    assert len(stream.all()) > 1
    said = [each.getMessage() for each in caplog.records if "LogAppendTime" in each.getMessage()]
    assert len(said) == 1
    assert f"those of {other}" in said[0]


def _next(stream: PlannedStream) -> dict[TopicPartition, tuple[int, int]]:
    """The next batch that comes, as Spark asks for it: again and again."""
    deadline = time.monotonic() + 60
    while (found := stream.batch()) is None:
        assert time.monotonic() < deadline, "there is a next batch"
    return found
