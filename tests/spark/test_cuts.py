"""Micro-batches that end at one moment, on Spark: what each has, that they are the same again, and several sources."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row
from tests.conformance.under_test import UnderTest
from tests.spark.reading import PATIENCE_S, Spark, collect_into
from tests.spark.timed import TimedWriter
from tests.spark.writing import Topics

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
T0 = 1_760_054_400_000  # midnight
SCHEMA = "partition int, offset long, timestamp timestamp"


@pytest.fixture(scope="module")
def writer(broker: UnderTest) -> TimedWriter:
    return TimedWriter(broker.bootstrap)


def times_ms(rows: list[Row]) -> list[int]:
    return sorted(round(row.timestamp.timestamp() * 1000) for row in rows)


def plans(checkpoint: str) -> list[list[dict[str, Any]]]:
    """By batch, how each source planned it."""
    folder = Path(checkpoint) / "offsets"
    found = []
    for number in sorted(int(file.name) for file in folder.iterdir() if file.name.isdigit()):
        _, _, *sources = (folder / str(number)).read_text().splitlines()
        found.append([json.loads(each).get("plan", {}) for each in sources])
    return found


def test_each_batch_has_its_own_hours_and_is_the_same_again(spark: Spark, topics: Topics, writer: TimedWriter) -> None:
    topic = topics.create(3)
    writer.write(topic, range(T0, T0 + 4 * HOUR, 10 * MINUTE), 0)
    writer.write(topic, [T0 + 3 * HOUR + each for each in range(40)], 1)
    writer.write_in_transactions(topic, range(T0, T0 + 4 * HOUR, 20 * MINUTE), 2, size=5)
    options = {
        "subscribe": topic,
        "startingOffsets": "earliest",
        "kafka_isolation_level": "read_committed",
    }
    checkpoint = spark.checkpoint()
    first, second = spark.drain(checkpoint, SCHEMA, cut="2h", **options)
    assert (len(first), len(second)) == (18, 58)
    assert times_ms(first)[-1] < T0 + 2 * HOUR <= times_ms(second)[0]
    assert [plan["cut"] for [plan] in plans(checkpoint)] == [T0 + 2 * HOUR, T0 + 4 * HOUR]
    (Path(checkpoint) / "commits" / "1").unlink()
    (Path(checkpoint) / "commits" / ".1.crc").unlink(missing_ok=True)
    topics.grow(topic, 4)
    [again] = spark.drain(checkpoint, SCHEMA, cut="2h", **options)
    assert sorted(again) == sorted(second)


def test_sources_of_one_query_are_cut_at_the_same_moments(spark: Spark, topics: Topics, writer: TimedWriter) -> None:
    one, other = topics.create(2), topics.create(1)
    writer.write(one, range(T0 + 6 * HOUR, T0 + 12 * HOUR, 5 * MINUTE), 0)
    writer.write(one, [T0 + 11 * HOUR], 1)
    writer.write(other, range(T0, T0 + 9 * HOUR, 10 * MINUTE))
    options = {"startingOffsets": "earliest", "cut": "3h", "maxOffsetsPerTrigger": 1000}
    left = spark.stream("topic string, timestamp timestamp", subscribe=one, alignWith=other, **options)
    right = spark.stream("topic string, timestamp timestamp", subscribe=other, alignWith=one, **options)
    batches: list[list[Row]] = []
    checkpoint = spark.checkpoint()
    query = spark.start(left.union(right), collect_into(batches), checkpoint, availableNow=True)
    assert query.awaitTermination(PATIENCE_S), "the query ends"
    cuts = [[plan["cut"] for plan in batch] for batch in plans(checkpoint)]
    assert cuts == [[T0 + number * 3 * HOUR] * 2 for number in range(1, 5)]
    for number, batch in enumerate(batches):
        assert all(number * 3 * HOUR <= each - T0 < (number + 1) * 3 * HOUR for each in times_ms(batch))
    assert sum(map(len, batches)) == 72 + 1 + 54


def test_a_stream_that_goes_on_reads_what_comes_when_nobody_is_waited_for(
    spark: Spark, topics: Topics, writer: TimedWriter
) -> None:
    topic = topics.create(2)
    batches: list[list[Row]] = []
    frame = spark.stream(SCHEMA, subscribe=topic, startingOffsets="earliest", cut="1h", idleTimeout="200ms")
    query = spark.start(frame, collect_into(batches), spark.checkpoint())
    writer.write(topic, [T0, T0 + HOUR, T0 + 2 * HOUR], 0)
    query.processAllAvailable()
    writer.write(topic, [T0 + 1], 1)
    deadline = time.monotonic() + PATIENCE_S
    while sum(map(len, batches)) < 4:
        assert time.monotonic() < deadline, "all rows come"
        assert query.exception() is None
        query.processAllAvailable()
    assert next(times_ms(batch) for batch in batches if batch) == [T0]
    assert sorted(each for batch in batches for each in times_ms(batch)) == [T0, T0 + 1, T0 + HOUR, T0 + 2 * HOUR]
