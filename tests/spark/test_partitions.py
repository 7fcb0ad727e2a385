"""Streams while their topics change: limits, new partitions, rows that keep coming."""

from __future__ import annotations

import time

from pyspark.sql import Row
from tests.spark.reading import PATIENCE_S, Spark, collect_into
from tests.spark.writing import Topics


def places(rows: list[Row]) -> list[tuple[int, int]]:
    return sorted((row.partition, row.offset) for row in rows)


def test_batches_keep_to_their_limit_and_lose_nothing(spark: Spark, topics: Topics) -> None:
    topic = topics.create(2)
    topics.write(topic, [b"v"] * 20, 0)
    topics.write(topic, [b"v"] * 10, 1)
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 12}
    batches = spark.drain(spark.checkpoint(), "partition int, offset long", **options)
    assert [len(batch) for batch in batches] == [12, 12, 6]
    every = [place for batch in batches for place in places(batch)]
    assert sorted(every) == [(0, offset) for offset in range(20)] + [(1, offset) for offset in range(10)]


def test_available_now_ends_although_rows_keep_coming(spark: Spark, topics: Topics) -> None:
    topic = topics.create(1)
    topics.write(topic, [b"v"] * 8)
    batches: list[list[Row]] = []
    keep = collect_into(batches)

    def keep_and_write(frame: object, number: int) -> None:
        keep(frame, number)
        topics.write(topic, [b"late"] * 4)

    frame = spark.stream(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=4)
    query = spark.start(frame, keep_and_write, checkpoint := spark.checkpoint(), availableNow=True)
    assert query.awaitTermination(PATIENCE_S), "the query ends"
    assert [place for batch in batches for place in places(batch)] == [(0, offset) for offset in range(8)]
    rest = spark.drain(checkpoint, subscribe=topic)
    assert [place for batch in rest for place in places(batch)] == [(0, offset) for offset in range(8, 16)]


def test_a_partition_that_is_added_is_read_from_its_beginning(spark: Spark, topics: Topics) -> None:
    topic = topics.create(1)
    topics.write(topic, [b"v"] * 3)
    batches: list[list[Row]] = []
    query = spark.start(spark.stream(subscribe=topic), collect_into(batches), spark.checkpoint())
    query.processAllAvailable()
    assert not any(batches)  # Spark begins with an empty one
    batches.clear()
    topics.grow(topic, 2)
    topics.write(topic, [b"new"] * 2, 1)
    deadline = time.monotonic() + PATIENCE_S
    while not batches:
        assert time.monotonic() < deadline, "the new partition is noticed"
        assert query.exception() is None
        query.processAllAvailable()
    assert places(batches[0]) == [(1, 0), (1, 1)]
    query.stop()


def test_a_query_that_runs_once_leaves_its_limit_out(spark: Spark, topics: Topics) -> None:
    topic = topics.create(2)
    topics.fill(topic, 2, 5)
    batches: list[list[Row]] = []
    frame = spark.stream(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=2)
    query = spark.start(frame, collect_into(batches), spark.checkpoint(), once=True)
    assert query.awaitTermination(PATIENCE_S), "the query ends"
    assert [len(batch) for batch in batches] == [10]
